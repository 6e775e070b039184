"""The small proof kit behind the steps: zero tests, sign tests, random points, unit checks.

SymPy's ``.equals`` may raise and its simplifier may stop short, so a zero is accepted only when a
plain algebraic method finds it, and every accepted statement is also tried at random points with
high precision. Public: :class:`Known`, :func:`is_zero`, :func:`is_nonnegative`, :func:`samples`,
:func:`precise`, :func:`unit_mismatch`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from formulas.evaluation import compiled
from formulas.functions import Largest, LargestSuch, Smallest, SmallestSuch
from formulas.relation import Relation
from formulas.symbols import quantities
from formulas.units import BASES

DIGITS = 40
SEED = 20_240


class ProofError(AssertionError):
    """A step that does not hold, or cannot be shown to hold."""


@dataclass(frozen=True)
class Known:
    """What a derivation has established: symbols with their expressions, and other equations."""

    meanings: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()

    def with_meaning(self, symbol: sympy.Symbol, expression: sympy.Expr) -> Known:
        return Known({**self.meanings, symbol: expression}, self.relations)

    def with_relation(self, relation: Relation) -> Known:
        return Known(self.meanings, (*self.relations, relation))

    def expand(self, expression: sympy.Expr) -> sympy.Expr:
        """The expression with every known symbol replaced by what it means."""
        for _ in range(len(self.meanings) + 1):
            replaced = expression.xreplace(dict(self.meanings))
            if replaced == expression:
                return expression
            expression = replaced
        raise ProofError(f"the definitions of {expression} go round in a circle")


def is_zero(expression: sympy.Expr) -> bool:
    """Whether plain algebra shows that the expression is 0."""
    expression = settled(expression)
    methods = (sympy.expand, lambda e: sympy.cancel(sympy.together(e)), sympy.simplify)
    return expression == 0 or any(method(expression) == 0 for method in methods)


def settled(expression: sympy.Expr) -> sympy.Expr:
    """Sums and integrals carried out; a share is never exactly 1."""
    expression = sympy.sympify(expression).doit()
    exact_one = {sympy.Eq(s, 1): sympy.false for s in expression.free_symbols if _is_share(s)}
    exact_one |= {sympy.Ne(s, 1): sympy.true for s in expression.free_symbols if _is_share(s)}
    return expression.xreplace(exact_one)


def is_nonnegative(expression: sympy.Expr, strict: bool = False) -> bool:
    """Whether the sign follows from the assumptions of the symbols.

    ⌊a⌋ is a − f and ⌈a⌉ is a + f with 0 ≤ f < 1; max(a, b) is a + z and also b + z with z ≥ 0;
    a share is 1/(1 + z) with z > 0.
    """
    for candidate in _without_choice(_without_rounding(settled(expression))):
        for form in (candidate, _without_shares(candidate)):
            above, below = sympy.fraction(sympy.cancel(sympy.together(form)))
            product = _sign(above, strict) and _sign(below, True)
            if product or (_sign(-above, strict) and _sign(-below, True)):
                return True
    return False


def _sign(expression: sympy.Expr, strict: bool) -> bool:
    """Term by term, then factor by factor."""
    terms = sympy.Add.make_args(sympy.expand(expression))
    if all(term.is_nonnegative for term in terms):
        return not strict or any(term.is_positive for term in terms)
    factored = sympy.factor(expression)
    return bool(factored.is_positive if strict else factored.is_nonnegative)


def _without_rounding(expression: sympy.Expr) -> sympy.Expr:
    while True:
        atoms = expression.atoms(sympy.floor, sympy.ceiling)
        innermost = [a for a in atoms if not a.args[0].atoms(sympy.floor, sympy.ceiling)]
        if not innermost:
            return expression
        atom = min(innermost, key=sympy.default_sort_key)
        z = sympy.Dummy("z", nonnegative=True)
        part = z / (1 + z)
        inner = atom.args[0]
        exact = inner - part if isinstance(atom, sympy.floor) else inner + part
        expression = expression.xreplace({atom: exact})


def _without_choice(expression: sympy.Expr) -> Iterator[sympy.Expr]:
    """The expression with max and min told by one of their arguments, for each choice."""
    atoms = sorted(expression.atoms(Largest, Smallest), key=sympy.default_sort_key)
    for chosen in itertools.product(*(_candidates(atom) for atom in atoms)):
        replacement = {}
        for atom, argument in zip(atoms, chosen, strict=True):
            z = 0 if _decided(atom, argument) else sympy.Dummy("z", nonnegative=True)
            replacement[atom] = argument + z if isinstance(atom, Largest) else argument - z
        yield expression.xreplace(replacement)


def _candidates(atom: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """The arguments worth trying: the one that decides, where that is known."""
    deciding = tuple(argument for argument in atom.args if _decided(atom, argument))
    return deciding or atom.args


def _decided(atom: sympy.Expr, argument: sympy.Expr) -> bool:
    """Whether this argument is the largest (smallest) by the assumptions alone."""
    sign = 1 if isinstance(atom, Largest) else -1
    return all(_sign(sympy.expand(sign * (argument - other)), False) for other in atom.args)


def _without_shares(expression: sympy.Expr) -> sympy.Expr:
    odds = {
        s: 1 / (1 + sympy.Dummy(f"z_{s}", positive=True))
        for s in expression.free_symbols
        if _is_share(s)
    }
    return expression.xreplace(odds)


def _is_share(symbol: sympy.Symbol) -> bool:
    entry = quantities().get(symbol.name)
    return entry is not None and entry.domain == "share"


def samples(
    symbols: Iterable[sympy.Symbol],
    count: int,
    ranges: Mapping[sympy.Symbol, tuple[float, float]] | None = None,
) -> list[dict[sympy.Symbol, sympy.Expr]]:
    """Random points (seeded) in the usual ranges of the symbols.

    The first points are the corners "all low" and "all high"; counts are whole numbers.
    """
    generator = random.Random(SEED)
    ordered = sorted(symbols, key=str)
    points = []
    for place in range(count):
        point = {}
        for symbol in ordered:
            low, high, whole = _range(symbol, ranges or {})
            if place < 2 and ranges:
                drawn = (low, high)[place]
            elif low > 0 and high / low > 20:
                drawn = math.exp(generator.uniform(math.log(low), math.log(high)))
            else:
                drawn = generator.uniform(low, high)
            point[symbol] = sympy.Integer(round(drawn)) if whole else sympy.Float(drawn, DIGITS)
        points.append(point)
    return points


def _range(symbol: sympy.Symbol, ranges: Mapping) -> tuple[float, float, bool]:
    entry = quantities().get(symbol.name)
    if entry is None:
        low, high, whole = 0.01, 10.0, False
    elif entry.hidden:
        return 1.0, 1.0, True
    else:
        low, high, whole = entry.low, entry.high, entry.domain in ("count", "index")
    low, high = ranges.get(symbol, (low, high))
    return low, high, whole


def precise(expression: sympy.Expr, point: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Float:
    """The value at a point with :data:`DIGITS` digits; ProofError where there is none."""
    value = sympy.sympify(expression).subs(point).doit().evalf(DIGITS, maxn=400)
    if not value.is_Number or value.is_finite is False or value is sympy.nan:
        raise ProofError(f"{expression} has no value at {point}")
    return value


def agree(relation: Relation, count: int = 6, ranges: Mapping | None = None) -> None:
    """Try an equation at random points; ProofError with the first point where it fails."""
    for point in samples(relation.free_symbols, count, ranges):
        left, right = precise(relation.lhs, point), precise(relation.rhs, point)
        if abs(left - right) > sympy.Float("1e-25") * max(abs(left), abs(right), 1):
            raise ProofError(f"{relation.lhs} = {left}, but {relation.rhs} = {right} at {point}")


def unit_mismatch(relation: Relation, rounds: int = 4) -> str | None:
    """Why the two sides have different units, or None where they agree.

    Base units are rescaled by random powers of two, and both sides must grow by the same factor.
    0 and ∞ go with every unit.
    """
    generator = random.Random(SEED)
    lhs, rhs = (_inside_limit(side) for side in (relation.lhs, relation.rhs))
    compared = any(side == 0 or not _has_value(side) for side in (lhs, rhs))
    for point in samples(lhs.free_symbols | rhs.free_symbols, rounds):
        powers = generator.sample([*range(-9, 0), *range(1, 10)], len(BASES))
        scales = {base: 2.0**power for base, power in zip(BASES, powers, strict=True)}
        factors = [
            factor
            for side in (lhs, rhs)
            if (factor := _scale_factor(side, point, scales)) is not None
        ]
        if len(factors) == 2 and not math.isclose(*factors, rel_tol=1e-9):
            return f"the sides change by {factors[0]:g} and {factors[1]:g} under {scales}"
        compared = compared or len(factors) == 2
    return None if compared else "one of the sides has no value to compare"


def _has_value(side: sympy.Expr) -> bool:
    """Whether it can be computed: infinite sums and named functions are only for show."""
    return not side.has(sympy.oo, AppliedUndef, LargestSuch, SmallestSuch)


def _inside_limit(side: sympy.Expr) -> sympy.Expr:
    return side.args[0] if isinstance(side, sympy.Limit) else side


def _scale_factor(expression: sympy.Expr, point: Mapping, scales: Mapping[str, float]):
    """By how much the value grows when base units are rescaled; None for 0 and ∞."""
    if expression == 0 or not _has_value(expression):
        return None
    # Every free symbol, units that count included, is an argument.
    names = tuple(sorted(expression.free_symbols, key=str))
    before = [float(point.get(s, 1)) for s in names]
    after = [
        value * quantities()[s.name].unit.scaled(scales) if s.name in quantities() else value
        for s, value in zip(names, before, strict=True)
    ]
    function = compiled(expression, names, hidden=True)
    with np.errstate(all="ignore"):
        start, end = float(function(*before)), float(function(*after))
    if start == 0 or not math.isfinite(start):
        return None
    return end / start


__all__ = [
    "Known", "ProofError", "agree", "is_nonnegative", "is_zero", "precise", "samples",
    "settled", "unit_mismatch",
]  # fmt: skip
