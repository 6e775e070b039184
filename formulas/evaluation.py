"""Numbers from expressions: compiled NumPy functions that broadcast, and high precision.

Public: :func:`compiled` (expression → NumPy function, cached), :func:`value` (one float).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import sympy
from sympy.printing.numpy import NumPyPrinter

from formulas.symbols import hidden_values


def harmonic(n):
    """H_n = 1 + 1/2 + … + 1/n, continued between whole n; scalar or array, n ≥ 0."""
    # ψ(n + 1) + γ by its asymptotic series, after stepping up to where the series is exact.
    x = np.asarray(n, dtype=float) + 1.0
    result = np.full_like(x, np.euler_gamma)
    for _ in range(12):
        result -= 1.0 / x
        x = x + 1.0
    square = 1.0 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    result = result + np.log(x) - 0.5 / x - series
    return result if result.ndim else float(result)


def sum_over(body: Callable[[int], float], low: float, high: float):
    """Σ of ``body(k)`` for whole k from low to high."""
    return sum(body(k) for k in range(round(float(low)), round(float(high)) + 1))


def integral_over(body: Callable, low: float, high: float) -> float:
    """∫ of a smooth ``body`` between finite bounds, by Gauss and Legendre."""
    x = (low + high) / 2 + (high - low) / 2 * _NODES
    return float((high - low) / 2 * np.sum(_WEIGHTS * body(x)))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)


class _Printer(NumPyPrinter):
    """NumPy code in which max and min broadcast and sums run over whole numbers."""

    def _print_Largest(self, expr):
        return self._nested("maximum", expr.args)

    def _print_Smallest(self, expr):
        return self._nested("minimum", expr.args)

    def _nested(self, name, args):
        first, *rest = (self._print(argument) for argument in args)
        for argument in rest:
            first = f"{name}({first}, {argument})"
        return first

    def _print_Sum(self, expr):
        text = self._print(expr.function)
        for index, low, high in expr.limits:
            bounds = f"{self._print(low)}, {self._print(high)}"
            text = f"sum_over(lambda {self._print(index)}: {text}, {bounds})"
        return text

    def _print_Integral(self, expr):
        ((variable, low, high),) = expr.limits
        bounds = f"{self._print(low)}, {self._print(high)}"
        body = self._print(expr.function)
        return f"integral_over(lambda {self._print(variable)}: {body}, {bounds})"

    def _print_harmonic(self, expr):
        return f"harmonic({self._print(expr.args[0])})"


_NAMES = {"harmonic": harmonic, "integral_over": integral_over, "sum_over": sum_over}


@lru_cache(maxsize=4096)
def compiled(
    expression: sympy.Expr, arguments: tuple[sympy.Symbol, ...], hidden: bool = False
) -> Callable:
    """A NumPy function of ``arguments`` (scalars or arrays) for an expression.

    Units that count are 1, unless ``hidden`` says that they are among the arguments.
    """
    if not hidden:
        expression = expression.xreplace(dict(hidden_values()))
    printer = _Printer(
        {
            "fully_qualified_modules": False,
            "inline": True,
            "allow_unknown_functions": False,
            "user_functions": {},
        }
    )
    return sympy.lambdify(arguments, expression, modules=[_NAMES, "numpy"], printer=printer)


@lru_cache(maxsize=4096)
def _with_arguments(expression: sympy.Expr) -> tuple[Callable, tuple[str, ...]]:
    """The compiled function and the ids of its arguments."""
    hidden = hidden_values()
    names = sorted((s for s in expression.free_symbols if s not in hidden), key=lambda s: s.name)
    return compiled(expression, tuple(names)), tuple(s.name for s in names)


def value(expression: sympy.Expr, values: Mapping[str, float]) -> float:
    """The expression as a float; ``values`` by symbol id. May be nan or infinite."""
    function, names = _with_arguments(sympy.sympify(expression))
    with np.errstate(all="ignore"):
        try:
            result = function(*(float(values[name]) for name in names))
        except (ZeroDivisionError, OverflowError, ValueError):
            return float("nan")
    # A negative number to a broken power is complex in Python: no value here.
    return float("nan") if isinstance(result, complex) else float(result)
