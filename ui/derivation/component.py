"""The viewer as a Streamlit component: what pages call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from formulas.entry import entry
from ui.derivation.content import described, numbered, symbol_ids
from ui.language import current_language, t
from ui.theme import current_theme

__all__ = ["name_of", "show"]

_FOLDER = Path(__file__).resolve().parent


def show(
    formula: str,
    values: Mapping[str, float] | None = None,
    *,
    key: str,
    where: Mapping[str, str] | None = None,
    numbers: bool = True,
) -> None:
    """Show a formula by its id ("F14") with its derivation.

    ``values`` are the scenario's numbers by symbol id, in SI units; without them the viewer has no
    numbers and no changes. ``where`` says of a symbol where its value comes from and which control
    moves it. ``numbers``: whether they are shown at first. The viewer keeps the learner's place
    while numbers change, and starts anew with another formula.
    """
    language = current_language()
    names = symbol_ids(formula)
    given = tuple((name, float(values[name])) for name in names if values and name in values)
    found = numbered(formula, language, given, _goal(key, formula))
    about = described(formula, language)
    where, follows = where or {}, t("deriv.follows")
    _component()(
        key=key,
        data={
            **about,
            "theme": current_theme(),
            "numbers": numbers,
            "steps": [
                {**step, "filled": found["steps"].get(place, "")}
                for place, step in enumerate(about["steps"])
            ],
            "symbols": {
                name: {
                    **symbol,
                    "value": found["values"].get(name, ""),
                    "where": where.get(name, follows if name in found["values"] else ""),
                }
                for name, symbol in about["symbols"].items()
            },
            **{name: found.get(name) for name in ("filled", "changes", "result", "goal")},
        },
        height="content",
        on_goal_change=_nothing,
    )


def name_of(formula: str, language: str) -> str:
    """The name of a formula by its id."""
    return entry(formula).name(language)


def _goal(key: str, formula: str) -> float | None:
    """What the learner wants the result to be; it belongs to the formula it was typed for."""
    state = (st.session_state.get(key) or {}).get("goal") or {}
    goal = state.get("goal")
    is_number = isinstance(goal, int | float) and abs(goal) < 1e30
    return float(goal) if state.get("formula") == formula and is_number else None


def _nothing() -> None:
    """A new goal needs a rerun only."""


@st.cache_resource(show_spinner=False)
def _component():
    """Registered once a process: every registration would make the browser load the code anew."""
    html, css, js = (
        (_FOLDER / f"viewer.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    return st.components.v2.component("iteration_lab_derivation", html=html, css=css, js=js)
