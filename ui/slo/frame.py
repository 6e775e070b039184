"""What the parts of the lesson have in common: their formulas, and where those end."""

from __future__ import annotations

import streamlit as st

from model.scenario import Scenario
from ui.choose import formula_viewer
from ui.language import t
from ui.slo.words import formula_values, says, where

__all__ = ["BESIDE", "FORMULAS", "limits", "viewer"]

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


def viewer(part: str, scenario: Scenario, **more: float) -> None:
    """The formulas of a part with the scenario's numbers, and ``more`` of the part's own."""
    numbers = {**formula_values(scenario), **more}
    formula_viewer("slo", part, FORMULAS[part], numbers, where(scenario))


def limits(section: str) -> None:
    """Where what was said does not hold."""
    st.markdown(f":gray[**{t('lesson.limits')}**] {says(section)}")
