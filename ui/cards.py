"""Cards of the start page: ways into the lab, the course, scenarios to open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from model import catalogue
from model.catalogue import Preset
from ui.language import t
from ui.pages import Lesson, exists, file_of
from ui.prose import prose
from ui.scenario import choose_preset

__all__ = ["STYLE", "Door", "course", "open_button", "preset_card", "way"]

STYLE = """
<style>
[data-testid="stMain"] h1 { padding: 1.1rem 0 0 }
[class*="st-key-card-"] button { justify-content: flex-start }
[class*="st-key-card-"] button * { text-align: left }
[class*="st-key-card-"] h3 { padding-top: 0 }
[class*="st-key-course-"] [data-testid="stMarkdown"] { padding: 0 8px; margin: -3px 0 }
</style>
"""
"""Cards read from the left, their buttons too."""


class Door(NamedTuple):
    """A page, with a preset for the scenario or a number of requests for the first lesson."""

    page: str
    preset: str | None = None
    requests: str | None = None


def way(name: str, doors: Sequence[Door]) -> None:
    """A way into the lab: what it is for, and the doors where it begins."""
    section = prose("start", name)
    with st.container(border=True, height="stretch", key=f"card-{name}"):
        st.subheader(section.title, anchor=False)
        st.markdown(section.text)
        for place, door in enumerate(doors, start=1):
            open_button(door, t(f"start.{name}.{place}"), key=f"start.{name}.{place}")


def course(name: str, title: str, lessons: Sequence[Lesson]) -> None:
    """Lessons in order with their minutes: links where they exist, words where they are to come."""
    st.subheader(title, anchor=False)
    with st.container(gap="xxsmall", key=f"course-{name}"):
        for lesson in lessons:
            words, minutes = t(f"page.{lesson.name}"), t("start.minutes", n=lesson.minutes)
            if exists(lesson.name):
                st.page_link(
                    file_of(lesson.name),
                    label=f"**{words}** :gray[· {minutes}]",
                    icon=":material/arrow_forward:",
                )
            else:
                coming = t("start.coming")
                st.markdown(f":small[:gray[:material/more_horiz: {words} · {minutes} · {coming}]]")


def preset_card(preset: Preset) -> None:
    """A scenario by its name, with what makes it special, and a button that opens it."""
    scenario = preset.scenario
    model, device = catalogue.model(scenario.model), catalogue.device(scenario.hardware)
    gpus = f"{scenario.tensor_parallel} × " if scenario.tensor_parallel > 1 else ""
    with st.container(border=True, height="stretch", key=f"card-{preset.id}"):
        door = Door("simulator", preset=preset.id)
        open_button(door, f"**{t(f'preset.{preset.id}')}**", key=f"start.preset.{preset.id}")
        st.markdown(t(f"preset.{preset.id}.about"))
        st.caption(
            f"{model.name} · {gpus}{device.name}  \n{t(f'policy.{scenario.policy.name}')} · "
            f"{t('summary.requests', n=scenario.workload.n_requests)}"
        )


def open_button(door: Door, label: str, *, key: str, type: str = "tertiary") -> None:
    """A button that goes through a door; the address of the page then carries what it sets."""
    if st.button(label, key=key, type=type, icon=":material/arrow_forward:", wrap=True):
        if door.preset:
            choose_preset(door.preset)
        if door.requests:
            st.session_state["requests"] = door.requests
        # Left to itself it would clear the address, which is not allowed: its fields are bound.
        params = {"requests": door.requests} if door.requests else {}
        st.switch_page(file_of(door.page), query_params=params)
