"""Every formula, step by step: each step holds by its kind's check and they lead to the formula."""

import pytest

import formulas
from formulas.entry import entries
from formulas.proof import Known, unit_mismatch
from formulas.step import Approximation, Definition, verify_all

DERIVED = (
    *("F3", "F5", "F6", "F7", "F8", "F9", "F12", "F13", "F14", "F15", "F16", "F17", "F18", "F19"),
    *("F22", "F23", "F24", "F25", "F26", "F27", "F28", "F30", "F32", "F35", "F35e", "F36", "F39"),
)
"""Formulas that must have a derivation from what they rest on, not a bare statement."""


@pytest.mark.parametrize("formula_id", entries())
def test_every_step_holds(formula_id):
    formula = formulas.get(formula_id)
    known = verify_all(formula.derivation)
    verify_all(formula.consequences, known)


@pytest.mark.parametrize("formula_id", entries())
def test_the_derivation_ends_at_the_formula(formula_id):
    formula = formulas.get(formula_id)
    if formula.derivation:
        assert formula.derivation[-1].relation == formula.relation
    else:
        assert formula.algorithm is not None


@pytest.mark.parametrize("formula_id", entries())
def test_units_agree(formula_id):
    assert unit_mismatch(formulas.get(formula_id).relation) is None


@pytest.mark.parametrize("formula_id", entries())
def test_step_ids_are_unique(formula_id):
    ids = [step.id for step in formulas.get(formula_id).steps]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("formula_id", entries())
def test_quoted_formulas_are_quoted_rightly(formula_id):
    """A step that takes its equation from another formula writes just that equation."""
    for step in formulas.get(formula_id).steps:
        if step.formula is not None:
            assert isinstance(step, Definition | Approximation)
            assert step.relation == formulas.get(step.formula).relation


@pytest.mark.parametrize("formula_id", [key for key in DERIVED if key in entries()])
def test_derived_from_primitives(formula_id):
    assert len(formulas.get(formula_id).derivation) >= 2


def test_nothing_is_known_in_the_beginning():
    assert Known().meanings == {}
