"""Choices of a lesson whose codes live in the address, and its formulas one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from ui import derivation
from ui.language import current_language, t, translator

__all__ = ["choose", "code_field", "formula_viewer"]


def code_field(name: str) -> str:
    """A code in the address: an unseen text field; code changes it through the session."""
    with st.container(key=f"code-{name}"):
        st.html(f"<style>.st-key-code-{name} {{display: none}}</style>")
        code = st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
    return code or ""


def choose(
    name: str,
    options: Sequence[str],
    stem: str,
    label: str,
    *,
    default: str | None = None,
    label_visibility: str = "visible",
) -> str:
    """A row of choices; the address keeps the code, the screen shows the message ``stem.code``.

    The default, the first option where none is given, stands for codes that are not known.
    """
    speak = translator(current_language())
    code = code_field(name)
    chosen, widget = code if code in options else default or options[0], f"choice.{name}"
    st.session_state[widget] = chosen

    def take() -> None:
        st.session_state[name] = st.session_state[widget]

    st.segmented_control(
        label,
        options,
        required=True,
        format_func=lambda option: speak(f"{stem}.{option}"),
        key=widget,
        on_change=take,
        label_visibility=label_visibility,
    )
    return chosen


def formula_viewer(
    lesson: str,
    part: str,
    ids: Sequence[str],
    values: Mapping[str, float],
    where: Mapping[str, str],
) -> None:
    """The formulas of a part of a lesson, one at a time; ``lesson`` is the stem of widget keys.

    ``values`` are numbers by symbol id in SI units, ``where`` says where each comes from.
    """
    language = current_language()
    chosen = st.segmented_control(
        t("lesson.formula"),
        ids,
        default=ids[0],
        required=True,
        format_func=lambda name: f"{name} {derivation.name_of(name, language)}",
        key=f"{lesson}.formula.{part}",
        label_visibility="collapsed",
    )
    derivation.show(chosen, values, key=f"{lesson}.viewer.{part}", where=where)
