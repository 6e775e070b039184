"""Two sides and the sign between them.

SymPy's own relations evaluate (``Eq(x, x)`` becomes ``True``) and drop what was written; this one
keeps both sides as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

SIGNS = ("=", "≈", "<", "≤", ">", "≥")


@dataclass(frozen=True, slots=True)
class Relation:
    """``lhs sign rhs``; ``sign`` is one of :data:`SIGNS`."""

    lhs: sympy.Expr
    rhs: sympy.Expr
    sign: str = "="

    def __post_init__(self) -> None:
        if self.sign not in SIGNS:
            raise ValueError(f"unknown sign {self.sign!r}")
        object.__setattr__(self, "lhs", sympy.sympify(self.lhs))
        object.__setattr__(self, "rhs", sympy.sympify(self.rhs))

    @property
    def difference(self) -> sympy.Expr:
        """``lhs − rhs``."""
        return self.lhs - self.rhs

    @property
    def free_symbols(self) -> set[sympy.Symbol]:
        return self.lhs.free_symbols | self.rhs.free_symbols

    def holds(self, left: float, right: float) -> bool:
        """Whether two numbers stand in this relation (≈ within 1 %)."""
        return {
            "=": abs(left - right) <= 1e-9 * max(abs(left), abs(right)),
            "≈": abs(left - right) <= 1e-2 * max(abs(left), abs(right)),
            "<": left < right,
            "≤": left <= right,
            ">": left > right,
            "≥": left >= right,
        }[self.sign]


def equation(lhs: sympy.Expr, rhs: sympy.Expr) -> Relation:
    """``lhs = rhs``."""
    return Relation(lhs, rhs)
