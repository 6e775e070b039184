"""Iteration Lab: page config, navigation, language and the scenario panel. Lessons are pages."""

from pathlib import Path

import streamlit as st

from ui.address import choice
from ui.language import LANGUAGES, browser_language, set_language, t
from ui.pages import navigation
from ui.scenario import finish_panel, open_panel, scenario_panel
from ui.theme import apply_style

st.set_page_config(
    page_title="Iteration Lab",
    page_icon=str(Path(__file__).parent / "ui" / "assets" / "icon.png"),
    layout="wide",
)

with st.sidebar:
    apply_style()
    open_panel()
    heading, languages = st.columns(2, vertical_alignment="center")
    with languages:
        set_language(
            choice(
                *("lang", "Language · 语言", tuple(LANGUAGES), browser_language(), LANGUAGES.get),
                label_visibility="collapsed",
            )
        )
    heading.title(t("app.title"))
    place = scenario_panel()

st.navigation(navigation(), position="top").run()
finish_panel(place)
