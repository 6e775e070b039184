"""Whether a filled-in formula is exactly what it shows, so that "=" may stand before its result.

Public: :func:`sign`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import sympy

from formulas.functions import Largest, Smallest
from formulas.layout import number
from formulas.symbols import hidden_values

_LARGEST_POWER = 4  # beyond it exact fractions get long, and nobody checks them by hand
_OF_ALL = {sympy.Add: sum, sympy.Mul: math.prod, Largest: max, Smallest: min}
_OF_ONE = {sympy.floor: math.floor, sympy.ceiling: math.ceil}


def sign(expr: sympy.Expr, values: Mapping[str, float], result: float) -> str:
    """An equals sign where the numbers as written give the result as written, otherwise ≈.

    ``values`` are numbers by symbol id. Roots, exponentials, sums and cases count as rounded.
    """
    try:
        return "=" if _value(expr, values) == _as_written(result) else "≈"
    except (_RoundedError, ZeroDivisionError):
        return "≈"


class _RoundedError(ValueError):
    """A number is written with fewer digits than it has."""


def _as_written(value: float) -> Fraction:
    shown = number(value)
    text = shown.text.replace(",", "").replace("−", "-")
    try:
        written = Fraction(text) * Fraction(10) ** (shown.exponent or 0)
    except ValueError:  # ∞
        raise _RoundedError from None
    if not math.isclose(written, value, rel_tol=1e-12):  # the last digits of a float say nothing
        raise _RoundedError
    return written


def _value(expr: sympy.Expr, values: Mapping[str, float]) -> Fraction:
    if expr.is_Symbol:
        if expr.name in values:
            return _as_written(float(values[expr.name]))
        if expr in hidden_values():
            return Fraction(1)
        raise _RoundedError
    if expr.is_Rational:
        return Fraction(int(expr.p), int(expr.q))
    if expr.is_Float:
        return _as_written(float(expr))
    if expr.is_Pow and expr.exp.is_Integer and abs(expr.exp) <= _LARGEST_POWER:
        return _value(expr.base, values) ** int(expr.exp)
    if expr.func in _OF_ALL:
        return _OF_ALL[expr.func]([_value(argument, values) for argument in expr.args])
    if expr.func in _OF_ONE:
        return Fraction(_OF_ONE[expr.func](_value(expr.args[0], values)))
    raise _RoundedError
