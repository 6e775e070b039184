"""Elasticities: by how many percent a result moves when an input grows by one percent.

Where max or min decides, the branch that is active at the given values is differentiated; rounding
(⌊ ⌋, ⌈ ⌉) is left out, since its slope is 0 almost everywhere and says nothing. Public:
:func:`smooth`, :func:`elasticity`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import sympy

from formulas import evaluation
from formulas.functions import Largest, Smallest
from formulas.symbols import hidden_values

_STEP = 1e-4


def smooth(expression: sympy.Expr, values: Mapping[str, float]) -> sympy.Expr:
    """The expression that holds around these values: active branches, no rounding."""
    expression = expression.xreplace(dict(hidden_values()))
    while True:
        atoms = expression.atoms(Largest, Smallest, sympy.floor, sympy.ceiling, sympy.Piecewise)
        inner = [a for a in atoms if not any(a is not b and a.has(b) for b in atoms)]
        if not inner:
            return expression
        expression = expression.xreplace({atom: _active(atom, values) for atom in inner})


def _active(atom: sympy.Basic, values: Mapping[str, float]) -> sympy.Expr:
    if isinstance(atom, sympy.floor | sympy.ceiling):
        return atom.args[0]
    if isinstance(atom, sympy.Piecewise):
        point = {s: values[s.name] for s in atom.free_symbols}
        return next(e for e, condition in atom.args if condition.subs(point) == sympy.true)
    choose = max if isinstance(atom, Largest) else min
    return choose(atom.args, key=lambda argument: evaluation.value(argument, values))


@lru_cache(maxsize=4096)
def _symbolic(expression: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    return symbol * sympy.diff(expression, symbol) / expression


def elasticity(expression: sympy.Expr, symbol: sympy.Symbol, values: Mapping[str, float]) -> float:
    """Of an expression at these values; nan where the result is 0."""
    here = smooth(expression, values)
    if here.atoms(sympy.Sum, sympy.harmonic, sympy.Integral):
        return numeric_elasticity(lambda given: evaluation.value(here, given), symbol.name, values)
    return evaluation.value(_symbolic(here, symbol), values)


def numeric_elasticity(
    function: Callable[[Mapping[str, float]], float], name: str, values: Mapping[str, float]
) -> float:
    """The same by a small step to both sides, for what is computed by an algorithm."""
    x, y = values[name], function(values)
    if x == 0 or y == 0:
        return 0.0 if x == 0 else float("nan")
    up = function({**values, name: x * (1 + _STEP)})
    down = function({**values, name: x * (1 - _STEP)})
    return (up - down) / (2 * _STEP * y)
