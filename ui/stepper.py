"""Going through a short run iteration by iteration, with buttons and arrow keys."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui.language import t

__all__ = ["go_to", "iteration", "stepper"]

_KEY = "iteration."


def iteration(name: str, start: int = 0) -> int:
    """The iteration that the learner has come to."""
    return st.session_state.setdefault(_KEY + name, start)


def go_to(name: str, value: int) -> None:
    """Go to an iteration."""
    st.session_state[_KEY + name] = value


def stepper(name: str, last: int, start: int, following: str, further: Callable[[], None]) -> int:
    """Buttons for one iteration further, one back, and the beginning; gives the iteration.

    At the last one the first button is called ``following`` and does ``further`` instead, so that
    the same key leads through a whole lesson.
    """
    now = min(iteration(name, start), last)
    ended = now >= last
    key = f"step.{name}"
    st.button(
        following if ended else t("step.next"),
        key=f"{key}.next",
        type="primary",
        icon=":material/group_add:" if ended else ":material/skip_next:",
        shortcut="Right",
        on_click=further if ended else go_to,
        args=() if ended else (name, now + 1),
    )
    st.button(
        t("step.back"),
        key=f"{key}.back",
        icon=":material/skip_previous:",
        disabled=now <= start,
        shortcut="Left",
        on_click=go_to,
        args=(name, now - 1),
    )
    st.button(
        t("step.again"),
        key=f"{key}.again",
        icon=":material/replay:",
        disabled=now <= start,
        on_click=go_to,
        args=(name, start),
    )
    return now
