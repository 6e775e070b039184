"""What the viewer shows of a formula, as plain data for the browser.

Public: :func:`described` (what does not depend on numbers), :func:`numbered` (what does).
Formulas travel as MathML made by the program's own tables, everything else as text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import formulas
from formulas import evaluation, exact, mathml, plain
from formulas.errors import FormulaError
from formulas.formula import Bound, Formula
from formulas.layout import Node, Op, Row, Sym, layout, number
from formulas.step import Step
from formulas.symbols import quantities, visible
from formulas.texts import text
from ui.language import translate

__all__ = ["described", "numbered", "symbol_ids"]

_WORDS = (
    *("numbers", "copy", "copied", "back", "next", "all", "step", "steps", "hint", "goal"),
    *("symbol", "now", "plus10", "solved", "tab_steps", "tab_change", "tab_notes"),
)


@lru_cache(maxsize=256)
def symbol_ids(formula_id: str) -> tuple[str, ...]:
    """Every symbol that the formula or one of its steps writes."""
    formula = formulas.get(formula_id)
    found = {entry.id for entry in formula.symbols}
    for step in formula.steps:
        found |= {e.id for side in (step.relation.lhs, step.relation.rhs) for e in visible(side)}
    return tuple(name for name in quantities() if name in found)


@lru_cache(maxsize=256)
def described(formula_id: str, language: str) -> Mapping[str, object]:
    """Name, verdict, formula, steps, symbols, notes and words."""
    formula = formulas.get(formula_id)
    entry = formula.entry
    verdict = entry.verdict or entry.status
    parts = (
        (formula.derivation, ""),
        (formula.consequences, text("words", "consequences", language)),
    )
    return MappingProxyType(
        {
            "id": formula_id,
            "language": language,
            "name": formula.name(language),
            "reason": formula.reason(language),
            "verdict": verdict,
            "badge": text("words", f"verdict.{entry.verdict}", language) if entry.verdict else "",
            "mathml": formula.mathml(),
            "latex": formula.latex(),
            "steps": [
                {
                    "part": part,
                    "kind": text("words", f"kind.{step.kind}", language),
                    "mathml": mathml.document(_with_case(step)),
                    "reason": _reason(formula, step, language),
                }
                for steps, part in parts
                for step in steps
            ],
            "symbols": {name: _symbol(name, language) for name in symbol_ids(formula_id)},
            "notes": [
                [text("words", "assumptions", language), list(formula.assumption_texts(language))],
                [text("words", "sources", language), list(entry.source_texts(language))],
            ],
            "words": {word: translate(language, f"deriv.{word}") for word in _WORDS},
        }
    )


def _with_case(step: Step) -> Node:
    """The line of a step, and the special case it is about."""
    node = layout(step.relation)
    case = getattr(step, "special_case", ())
    for relation in case:
        node = Row((node, Op(","), layout(relation)))
    return node


def _reason(formula: Formula, step: Step, language: str) -> str:
    said = formula.step_reason(step, language)
    return f"{said} ({step.formula})" if step.formula else said


def _symbol(name: str, language: str) -> dict[str, str]:
    entry = quantities()[name]
    unit = str(entry.unit)
    return {
        "mathml": mathml.document(Sym(name), display=False),
        "meaning": entry.meaning(language),
        "unit": translate(language, "deriv.no_unit") if unit == "1" else unit,
        "where": "",
        "value": "",
    }


# -- with numbers ----------------------------------------------------------------------------------


def numbered(
    formula_id: str, language: str, values: tuple[tuple[str, float], ...], goal: float | None
) -> Mapping[str, object]:
    """What numbers add: the filled formula, each step, values of symbols, changes and solutions.

    ``goal`` is what the result shall be (None: 10 % more than it is). Empty where a value misses.
    """
    return _numbered(formula_id, language, values, goal)


@lru_cache(maxsize=512)
def _numbered(formula_id, language, values, goal) -> Mapping[str, object]:
    formula = formulas.get(formula_id)
    try:
        bound = formula.bind(dict(values))
        result = bound.value
        filled = bound.mathml()
    except FormulaError:
        return MappingProxyType({"filled": None, "steps": {}, "values": {}, "changes": []})
    known = dict(values)
    if formula.result is not None:
        known.setdefault(formula.result.id, result)
    steps = {}
    for place, step in enumerate(formula.steps):
        if (node := _filled(step, known)) is not None:
            steps[place] = mathml.document(node)
    found: dict[str, object] = {
        "filled": filled,
        "steps": steps,
        "values": {name: _shown(value, name) for name, value in known.items()},
        "changes": [],
    }
    if formula.result is not None and result != 0:
        wanted = result * 1.1 if goal is None else goal
        found |= {
            "result": mathml.document(Sym(formula.result.id), display=False),
            "goal": float(f"{wanted:.6g}"),
            "changes": _changes(bound, result, wanted, language),
        }
    return MappingProxyType(found)


def _filled(step: Step, known: dict[str, float]) -> Node | None:
    """A step with its numbers; what it defines becomes known. None where that says nothing."""
    relation = step.relation
    if step.kind not in ("definition", "algebra", "approximation") or getattr(step, "given", None):
        return None
    names = {entry.id for entry in visible(relation.rhs)}
    if not names or not names <= known.keys():
        return None
    try:
        value = evaluation.value(relation.rhs, known)
    except (KeyError, TypeError, ValueError, NotImplementedError):
        return None
    if not math.isfinite(value):
        return None
    left = relation.lhs.name if relation.lhs.is_Symbol else None
    if left in quantities():
        known.setdefault(left, value)
    return Row(
        (
            layout(relation.lhs),
            Op(relation.sign),
            layout(relation.rhs, known),
            Op(exact.sign(relation.rhs, known, value)),
            number(value, left),
        )
    )


def _changes(bound: Bound, result: float, wanted: float, language: str) -> list[dict[str, str]]:
    elasticities = bound.elasticities()
    return [
        _change(bound, entry.id, result, wanted, elasticities.get(entry.id, math.nan), language)
        for entry in bound.formula.inputs
    ]


def _change(bound, name, result, wanted, elasticity, language) -> dict[str, str]:
    formula = bound.formula
    try:
        changed = bound.changed(name)
        plus10 = f"{_plain(changed)} ({_percent(changed / result - 1)})"
    except FormulaError as error:
        plus10 = error.sentence(language)
    moves = translate(language, "deriv.elasticity", percent=_percent(elasticity / 100))
    form, needs, how = _solved(formula, bound, name, wanted, language)
    return {
        "mathml": mathml.document(Sym(name), display=False),
        "now": _shown(bound.values[name], name),
        "plus10": plus10,
        "elasticity": moves,
        "form": form,
        "needs": needs,
        "how": how,
    }


def _solved(formula, bound, name, wanted, language) -> tuple[str, str, str]:
    """Closed form as MathML, the value that it needs, and how that was found."""
    if formula.algorithm is not None:
        return "", "–", translate(language, "deriv.algorithm")
    try:
        found = bound.solve_for(name, wanted)
    except FormulaError:
        return "", "–", translate(language, "deriv.no_solution")
    form = ""
    if found.expression is not None:
        node = Row((Sym(name), Op("="), layout(found.expression)))
        form = mathml.document(node)
    return form, f"≈ {_shown(found.value, name)}", text("words", f"solution.{found.kind}", language)


def _plain(value: float) -> str:
    return plain.render(number(value))


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "–"
    value = share * 100
    sign = "+" if value > 0.005 else "−" if value < -0.005 else "±"
    return f"{sign}{abs(value):.3g} %" if abs(value) >= 0.005 else "±0 %"


def _shown(value: float, name: str) -> str:
    unit = str(quantities()[name].unit) if name in quantities() else "1"
    return _plain(value) if unit == "1" else f"{_plain(value)} {unit}"
