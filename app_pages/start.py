"""Start: why continuous batching, in a film; three ways into the lab; scenarios to open."""

import streamlit as st

from ui.few_requests import Few, run
from ui.language import current_language, t
from ui.player import compare
from ui.prose import prose
from ui.theme import current_theme

EIGHT = Few(
    rows=(
        *((0.0, 420, 80), (0.0, 260, 22), (0.0, 520, 150), (0.0, 380, 38)),
        *((0.2, 480, 35), (0.35, 560, 110), (0.5, 300, 30), (0.7, 420, 60)),
    ),
    slots=4,
)

lead = prose("start", "lead")
st.title(lead.title, anchor=False)
st.markdown(lead.text)



compare(
    [run(EIGHT, "static"), run(EIGHT, "continuous")],
    key="film",
    titles=[t("engine.static"), t("engine.continuous")],
    subtitles=[t("engine.static.rule"), t("engine.continuous.rule")],
    short_titles=[t("engine.static.short"), t("engine.continuous.short")],
    language=current_language(),
    theme=current_theme(),
    autoplay=True,
)
