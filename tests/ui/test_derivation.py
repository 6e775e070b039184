"""What the derivation viewer is given: complete in both languages, numbers that follow."""

import pytest

import formulas
from formulas.symbols import quantities
from ui.derivation.content import described, numbered, symbol_ids

SERVICE = {"B_s": 10.0, "B_d": 23.0, "L_in": 512.0, "L": 200.0}


def given(formula_id, values):
    return tuple((name, values[name]) for name in symbol_ids(formula_id) if name in values)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("formula_id", list(formulas.entries()))
def test_every_formula_is_described(formula_id, language):
    found = described(formula_id, language)
    assert found["name"]
    assert found["mathml"].startswith("<math")
    assert found["latex"]
    assert len(found["steps"]) == len(formulas.get(formula_id).steps)
    for step in found["steps"]:
        assert step["kind"]
        assert step["reason"]
        assert step["mathml"].startswith("<math")
    for symbol in found["symbols"].values():
        assert symbol["meaning"]
        assert symbol["unit"]


def test_a_formula_with_numbers():
    found = numbered("F14", "en", given("F14", SERVICE), None)
    assert "7.188" in found["filled"]
    assert found["values"]["Delta"] == "7.188"
    assert found["goal"] == pytest.approx(7.9068)
    changes = {change["needs"] for change in found["changes"]}
    assert "≈ 25.02 request" in changes
    assert all(change["how"] == "closed form" for change in found["changes"])


def test_a_goal_is_solved_for():
    found = numbered("F14", "en", given("F14", SERVICE), 1.3)
    by_symbol = {change["mathml"]: change["needs"] for change in found["changes"]}
    needs = next(need for math, need in by_symbol.items() if 'data-symbol="B_d"' in math)
    assert needs == "≈ 6.461 request"


def test_what_a_step_defines_is_known_to_the_next():
    values = {**SERVICE, "T_s": 0.0126}
    found = numbered("F12", "en", given("F12", values), None)
    assert found["values"]["I_old"] == "712"
    assert len(found["steps"]) == len(formulas.get("F12").derivation)


def test_special_cases_and_limits_show_no_numbers():
    steps = formulas.get("F14").steps
    shown = numbered("F14", "en", given("F14", SERVICE), None)["steps"]
    for place, step in enumerate(steps):
        if step.kind in ("limit", "numeric") or getattr(step, "given", None):
            assert place not in shown


def test_without_values_nothing_is_computed():
    found = numbered("F14", "en", (), None)
    assert found["filled"] is None
    assert not found["changes"]


@pytest.mark.parametrize("formula_id", list(formulas.entries()))
def test_usual_values_of_every_formula_can_be_shown(formula_id):
    values = {e.id: (e.low * e.high) ** 0.5 if e.low > 0 else (e.low + e.high) / 2
              for e in quantities().values()}  # fmt: skip
    inputs = {entry.id for entry in formulas.get(formula_id).inputs}
    found = numbered(
        formula_id, "zh", tuple((k, v) for k, v in values.items() if k in inputs), None
    )
    assert found["filled"] is None or found["filled"].startswith("<math")
