"""Functions that stay as written: max, min, and the largest or smallest number with a property.

SymPy's own Max compares its arguments by their assumptions whenever it is built, which takes
seconds for the expressions here. ``Largest`` and ``Smallest`` evaluate only where all arguments are
numbers; ``LargestSuch`` and ``SmallestSuch`` never do.
"""

from __future__ import annotations

import sympy


class Largest(sympy.Function):
    """The largest of its arguments."""

    @classmethod
    def eval(cls, *args: sympy.Expr) -> sympy.Expr | None:
        if all(argument.is_number for argument in args):
            return max(args)
        return args[0] if len(set(args)) == 1 else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if any(argument.is_nonnegative for argument in self.args) else None

    def _eval_is_positive(self) -> bool | None:
        return True if any(argument.is_positive for argument in self.args) else None

    def _eval_is_real(self) -> bool | None:
        return True if all(argument.is_real for argument in self.args) else None


class Smallest(sympy.Function):
    """The smallest of its arguments."""

    @classmethod
    def eval(cls, *args: sympy.Expr) -> sympy.Expr | None:
        if all(argument.is_number for argument in args):
            return min(args)
        return args[0] if len(set(args)) == 1 else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(argument.is_nonnegative for argument in self.args) else None

    def _eval_is_positive(self) -> bool | None:
        return True if all(argument.is_positive for argument in self.args) else None

    def _eval_is_real(self) -> bool | None:
        return True if all(argument.is_real for argument in self.args) else None


class LargestSuch(sympy.Function):
    """``max{x : condition}``, for show. Arguments: the symbol x, and a SymPy relation."""

    nargs = 2


class SmallestSuch(sympy.Function):
    """``min{x : condition}``, for show. Arguments: the symbol x, and a SymPy relation."""

    nargs = 2
