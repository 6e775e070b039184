"""What the parts of the lesson have in common: prediction, formulas, limits, exercise."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from model.scenario import Scenario
from ui.choose import formula_viewer
from ui.language import t
from ui.lesson import limits, predict
from ui.slo.exercises import TASKS, your_turn
from ui.slo.words import formula_values, rate_or_none, says, where

__all__ = ["BESIDE", "FORMULAS", "closing", "guess", "has_rate"]

FORMULAS = {
    "tension": ("F22", "F30", "F30a", "F19"),
    "goodput": ("F31", "F31a"),
    "little": ("F29", "F29a", "F29b", "F28c"),
    "stability": ("F28p", "F28a", "F28", "F28b", "F28e", "F26"),
    "admission": ("F28d", "F29", "F28e"),
    "exercise": ("F28d", "F19"),
}

BESIDE = (32, 1500)
"""Decodes, and the context of each, beside which a chunk must fit (F19)."""


def guess(part: str, asks: str, answers: Sequence[str]) -> bool:
    """The prediction of a part; False until one of the answers (codes) has been chosen."""
    words = [(code, t(f"slo.guess.{part}.{code}")) for code in answers]
    return predict(f"slo.{part}", asks, words) is not None


def has_rate(scenario: Scenario) -> bool:
    """Whether arrivals have a rate to vary; says why that matters where they have none."""
    if rate_or_none(scenario) is not None:
        return True
    st.info(says("no-rate"), icon=":material/tune:")
    return False


def closing(part: str, scenario: Scenario, ends: str, **more: float) -> None:
    """The formulas of a part with the scenario's numbers, and ``more`` of the part's own; then
    the section ``ends`` on where they do not hold, and the exercise."""
    numbers = {**formula_values(scenario), **more}
    formula_viewer("slo", part, FORMULAS[part], numbers, where(scenario))
    limits(says(ends))
    if part in TASKS:
        your_turn(part)
