"""Formulas by id, built when they are first asked for.

A topic module registers one builder per formula with :func:`formula`; importing this module
imports no topic and no SymPy. Public: :func:`get`, :func:`family`, :func:`all`, :func:`formula`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from formulas.entry import entries, entry

if TYPE_CHECKING:
    from formulas.formula import Formula

Builder = Callable[[], "Formula"]

_BUILDERS: dict[str, Builder] = {}


def formula(formula_id: str) -> Callable[[Builder], Builder]:
    """Register the function that builds a formula; it runs when the formula is asked for."""

    def register(builder: Builder) -> Builder:
        _BUILDERS[formula_id] = builder
        return builder

    return register


@cache
def get(formula_id: str) -> Formula:
    """The formula of that id ("F14"); FormulaError unknown_formula otherwise."""
    import_module(f"formulas.topics.{entry(formula_id).topic}")
    return replace(_BUILDERS[formula_id](), id=formula_id)


def family(number: int) -> tuple[Formula, ...]:
    """All formulas of one number: F16 with F16a, F16b …, printed ones too."""
    return tuple(get(key) for key, row in entries().items() if row.number == number)


def all() -> Iterator[Formula]:
    """Every formula, in the order of the index."""
    return (get(key) for key in entries())
