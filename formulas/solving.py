"""Solve an equation for one of its symbols: closed form where there is one, else a bracketed root.

Public: :func:`closed_forms`, :func:`bracketed_root`, :class:`Solution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import sympy

from formulas.functions import Largest, Smallest
from formulas.relation import Relation
from formulas.symbols import Quantity, hidden_values

JUMPS = (sympy.floor, sympy.ceiling, Largest, Smallest, sympy.Piecewise, sympy.Sum,
         sympy.Integral, sympy.harmonic, sympy.erf)  # fmt: skip
_GRID = 400
_STEPS = 200
_JUMP_SHARE = 1e-6  # of the difference at both ends: what is left of it at a root


@dataclass(frozen=True, slots=True)
class Solution:
    """The value of ``symbol`` that makes both sides equal.

    ``kind`` is "closed_form", with the ``expression`` it came from, or "numeric_root", with the
    ``bracket`` in which the difference changes its sign (a jump is bracketed just as well).
    """

    symbol: str
    value: float
    kind: str
    expression: sympy.Expr | None = None
    bracket: tuple[float, float] | None = None


@lru_cache(maxsize=1024)
def closed_forms(relation: Relation, symbol: sympy.Symbol) -> tuple[sympy.Expr, ...]:
    """Expressions for the symbol, those known to be negative left out; () where there is none.

    Only ways that cannot hang: linear and quadratic equations, and undoing one operation after
    the other where the symbol stands in one place. Units that count are 1 in the result.
    """
    expression = relation.difference.xreplace(dict(hidden_values()))
    if any(atom.has(symbol) for atom in expression.atoms(*JUMPS)):
        return ()
    found = _peeled(expression, symbol) or _polynomial(expression, symbol)
    wanted = symbol.is_nonnegative
    return tuple(root for root in found if not (wanted and root.is_negative))


def _polynomial(expression: sympy.Expr, symbol: sympy.Symbol) -> list[sympy.Expr]:
    above, _ = sympy.fraction(sympy.together(expression))
    try:
        polynomial = sympy.Poly(sympy.expand(above), symbol)
    except sympy.PolynomialError:
        return []
    if not polynomial.gens or any(c.has(symbol) for c in polynomial.coeffs()):
        return []
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        return [sympy.factor_terms(sympy.cancel(-b / a))]
    if polynomial.degree() == 2:
        a, b, c = polynomial.all_coeffs()
        root = sympy.sqrt(b**2 - 4 * a * c)
        return [(-b + root) / (2 * a), (-b - root) / (2 * a)]
    return []


def _peeled(expression: sympy.Expr, symbol: sympy.Symbol) -> list[sympy.Expr]:
    """Undo operations from the outside in, while only one argument contains the symbol."""
    side, other = expression, sympy.S.Zero
    while side != symbol:
        inside = [argument for argument in side.args if argument.has(symbol)]
        if len(inside) != 1:
            return []
        (inner,) = inside
        rest = [argument for argument in side.args if argument is not inner]
        if side.is_Add:
            other = other - sympy.Add(*rest)
        elif side.is_Mul:
            other = other / sympy.Mul(*rest)
        elif side.is_Pow and inner is side.base and side.exp.is_number:
            if side.exp.is_even and not inner.is_nonnegative:
                return []
            other = other ** (1 / side.exp)
        elif side.is_Pow and inner is side.exp:
            other = sympy.log(other) / sympy.log(side.base)
        elif isinstance(side, sympy.exp):
            other = sympy.log(other)
        elif isinstance(side, sympy.log):
            other = sympy.exp(other)
        else:
            return []
        side = inner
    return [sympy.factor_terms(sympy.cancel(other)) if other.is_rational_function() else other]


def bracketed_root(
    difference: Callable[[float], float], entry: Quantity
) -> tuple[float, tuple[float, float]] | None:
    """The smallest root of ``difference`` in a wide range of the symbol, and the bracket around it.

    A grid (logarithmic for positive symbols) finds the first change of sign, halving narrows it to
    the last digits. Where the difference only jumps over 0, a later root is preferred. None where
    the sign never changes.
    """
    before = jump = None
    for x in _grid(entry):
        y = difference(x)
        if not math.isfinite(y):
            before = None
            continue
        if y == 0:
            return x, (x, x)
        if before is not None and (before[1] < 0) != (y < 0):
            found = _halved(difference, before, (x, y))
            if abs(difference(found[0])) <= _JUMP_SHARE * (abs(before[1]) + abs(y)):
                return found
            jump = jump or found
        before = (x, y)
    return jump


def _grid(entry: Quantity) -> list[float]:
    if entry.domain == "share":
        return [(place + 0.5) / _GRID for place in range(_GRID)] + [1.0]
    if entry.domain == "real":
        reach = 100 * max(abs(entry.low), abs(entry.high))
        return [reach * (2 * place / _GRID - 1) for place in range(_GRID + 1)]
    low, high = math.log(max(entry.low, 1e-12) / 1e3), math.log(entry.high * 1e3)
    start = [0.0] if entry.domain == "nonnegative" else []
    return start + [math.exp(low + (high - low) * place / _GRID) for place in range(_GRID + 1)]


def _halved(difference, left, right) -> tuple[float, tuple[float, float]]:
    bracket = (left[0], right[0])
    (a, below), (b, _) = left, right
    for _ in range(_STEPS):
        middle = (a + b) / 2
        if middle in (a, b):
            break
        y = difference(middle)
        if (y < 0) == (below < 0) and y != 0:
            a = middle
        else:
            b = middle
    return b, bracket
