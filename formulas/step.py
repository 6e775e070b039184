"""Steps of a derivation. Each kind says what it claims, and checks just that.

======================  =====================================================================
:class:`Definition`     a new symbol gets its meaning
:class:`Assumption`     a relation is taken to hold; it is neither empty nor contradictory
:class:`Algebra`        follows from what is known: the difference of the sides simplifies to 0
:class:`Limit`          what an expression tends to
:class:`Approximation`  something is left out; the largest relative error is stated, and true
:class:`Inequality`     the sign of the difference follows from the assumptions on the symbols
:class:`Numeric`        a number comes out at given values
======================  =====================================================================

``step.verify(known)`` raises :class:`~formulas.proof.ProofError` unless the claim holds given what
earlier steps established; ``step.learn(known)`` adds its own result. The reason for a person is in
``texts/<topic>.csv`` under ``<formula>.<step id>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import sympy

from formulas import evaluation
from formulas.proof import (
    Known,
    ProofError,
    agree,
    is_nonnegative,
    is_zero,
    precise,
    samples,
    settled,
    unit_mismatch,
)
from formulas.relation import Relation
from formulas.symbols import quantities

Replacement = Mapping[sympy.Symbol, sympy.Expr]


@dataclass(frozen=True)
class Step:
    """One line: a relation between two sides, and the key of its reason.

    ``formula`` names the formula that a definition is taken from, so that a page can link to it.
    """

    kind: ClassVar[str] = ""

    id: str
    relation: Relation
    formula: str | None = field(default=None, kw_only=True)

    @property
    def special_case(self) -> tuple[Relation, ...]:
        """Equations that hold in this step alone ("for B_d = B_s"), to be shown beside it."""
        given = getattr(self, "given", {})
        plain = {s: e for s, e in given.items() if not sympy.sympify(e).atoms(sympy.Dummy)}
        return tuple(Relation(symbol, expression) for symbol, expression in plain.items())

    def verify(self, known: Known) -> None:
        """Raise ProofError unless the step holds and its units agree."""
        mismatch = unit_mismatch(self.relation)
        if mismatch:
            raise ProofError(f"{self.id}: {mismatch}")

    def learn(self, known: Known) -> Known:
        """What is known after this step."""
        lhs, rhs = self.relation.lhs, self.relation.rhs
        names = lhs.is_Symbol and lhs not in known.meanings and self.relation.sign in ("=", "≈")
        if names and lhs not in known.expand(rhs).free_symbols:
            return known.with_meaning(lhs, rhs)
        return known.with_relation(self.relation)


@dataclass(frozen=True)
class Definition(Step):
    """``symbol = expression`` for a symbol that has no meaning yet."""

    kind: ClassVar[str] = "definition"

    def verify(self, known: Known) -> None:
        super().verify(known)
        symbol, expression = self.relation.lhs, self.relation.rhs
        if not symbol.is_Symbol or self.relation.sign not in ("=", "≈"):
            raise ProofError(f"{self.id}: a definition needs one symbol on its left")
        if symbol in known.meanings:
            raise ProofError(f"{self.id}: {symbol} is defined already")
        if symbol in known.expand(expression).free_symbols:
            raise ProofError(f"{self.id}: {symbol} is defined by itself")


@dataclass(frozen=True)
class Assumption(Step):
    """A relation that is taken to hold, such as two costs being equal."""

    kind: ClassVar[str] = "assumption"

    def verify(self, known: Known) -> None:
        super().verify(known)
        difference = known.expand(self.relation.difference)
        if is_zero(difference):
            raise ProofError(f"{self.id}: this always holds, so it assumes nothing")
        signs = {
            np.sign(evaluation.value(difference, {s.name: float(v) for s, v in point.items()}))
            for point in samples(difference.free_symbols, 100)
        }
        wanted = {"<": {-1}, "≤": {-1, 0}, ">": {1}, "≥": {0, 1}}.get(self.relation.sign)
        possible = signs & wanted if wanted else 0 in signs or {-1, 1} <= signs
        if not possible:
            raise ProofError(f"{self.id}: no usual values satisfy this")


@dataclass(frozen=True)
class Algebra(Step):
    """Follows from the steps before.

    ``given`` are replacements that hold in this step alone (a special case). ``solves`` names an
    earlier implicit equation in which the left side, put in, must leave 0.
    """

    kind: ClassVar[str] = "algebra"

    given: Replacement = field(default_factory=dict, kw_only=True)
    solves: Relation | None = field(default=None, kw_only=True)

    def verify(self, known: Known) -> None:
        super().verify(known)
        left, right = self.sides(known)
        if not is_zero(left - right):
            raise ProofError(f"{self.id}: the difference {left - right} is not shown to be 0")
        agree(Relation(left, right))

    def learn(self, known: Known) -> Known:
        if self.given:
            return known
        lhs = self.relation.lhs
        if lhs in known.meanings and lhs not in known.expand(self.relation.rhs).free_symbols:
            return known.with_meaning(lhs, self.relation.rhs)  # proven equal, and shorter
        return super().learn(known)

    def sides(self, known: Known) -> tuple[sympy.Expr, sympy.Expr]:
        """Both sides in terms of what is not defined further."""
        relation = self.relation
        if self.solves is not None:
            if self.solves not in known.relations:
                raise ProofError(f"{self.id}: solves an equation that no step before states")
            solution = {relation.lhs: relation.rhs}
            relation = Relation(
                known.expand(self.solves.lhs).xreplace(solution),
                known.expand(self.solves.rhs).xreplace(solution),
            )
        given = dict(self.given)
        meanings = {s: e for s, e in known.meanings.items() if s not in given}
        here = Known({**meanings, **given}, known.relations)
        return here.expand(relation.lhs), here.expand(relation.rhs)


@dataclass(frozen=True)
class Limit(Step):
    """``lim expression = value``; the left side is an unevaluated SymPy Limit.

    ``given`` replaces symbols first (a share by 1/(1 + z), so that its powers are seen to vanish).
    """

    kind: ClassVar[str] = "limit"

    given: Replacement = field(default_factory=dict, kw_only=True)

    def verify(self, known: Known) -> None:
        super().verify(known)
        function, variable, point, direction = self.relation.lhs.args
        # The variable itself must stay visible, even where it was given a meaning.
        meanings = {s: e for s, e in known.meanings.items() if s != variable}
        here = Known({**meanings, **self.given}, known.relations)
        expression, expected = here.expand(function), here.expand(self.relation.rhs)
        found = sympy.limit(settled(expression), variable, point, str(direction))
        if found != expected and not is_zero(found - expected):
            raise ProofError(f"{self.id}: the limit is {found}, not {expected}")
        self._approach(expression, variable, point, expected)

    def _approach(self, expression, variable, point, expected) -> None:
        """Come closer by numbers too."""
        others = expression.free_symbols | expected.free_symbols | point.free_symbols
        others -= {variable}
        for values in samples(others, 3):
            near = [
                precise(expression, {**values, variable: self._near(point.subs(values), power)})
                for power in (6, 9)
            ]
            if expected in (sympy.oo, -sympy.oo):
                if abs(near[1]) <= abs(near[0]):
                    raise ProofError(f"{self.id}: does not grow without bound at {values}")
                continue
            goal = precise(expected, values)
            errors = [abs(value - goal) for value in near]
            if errors[1] > max(errors[0] / 2, sympy.Float("1e-20") * (1 + abs(goal))):
                raise ProofError(f"{self.id}: does not come closer to {goal} at {values}")

    def _near(self, point, power: int):
        small = sympy.Rational(1, 10**power)
        if point == sympy.oo:
            return sympy.Integer(10) ** (power + 6)
        direction = str(self.relation.lhs.args[3])
        return point - small if direction == "-" else point + small


@dataclass(frozen=True)
class Approximation(Step):
    """``exact ≈ simpler`` with a relative error of at most ``within`` for values in ``where``.

    The check draws points, corners first, and also refuses a bound that is far too generous.
    ``of`` is the exact expression where the left side is a symbol that is only now defined.
    """

    kind: ClassVar[str] = "approximation"

    within: float = field(kw_only=True)
    where: Mapping[sympy.Symbol, tuple[float, float]] = field(default_factory=dict, kw_only=True)
    of: sympy.Expr | None = field(default=None, kw_only=True)

    def verify(self, known: Known) -> None:
        super().verify(known)
        worst = self.largest_error(known)
        if worst > self.within:
            raise ProofError(f"{self.id}: an error of {worst:.3g} is above {self.within:.3g}")
        if worst < self.within / 20:
            raise ProofError(f"{self.id}: errors stay below {worst:.3g}; state a tighter bound")

    def learn(self, known: Known) -> Known:
        """From here on the simpler expression counts."""
        lhs = self.relation.lhs
        if lhs.is_Symbol and lhs not in known.expand(self.relation.rhs).free_symbols:
            return known.with_meaning(lhs, self.relation.rhs)
        return known.with_relation(self.relation)

    def largest_error(self, known: Known, count: int = 400) -> float:
        """The largest relative error found among the points."""
        left = known.expand(self.relation.lhs if self.of is None else self.of)
        right = known.expand(self.relation.rhs)
        names = tuple(left.free_symbols | right.free_symbols)
        points = samples(names, count, self.where)
        columns = [np.array([float(point[s]) for point in points]) for s in names]
        exact = evaluation.compiled(left, names)(*columns)
        return float(np.max(np.abs(evaluation.compiled(right, names)(*columns) / exact - 1)))


@dataclass(frozen=True)
class Inequality(Step):
    """``lhs ≤ rhs`` (or <, ≥, >), from the assumptions on the symbols.

    ``given`` are replacements that put a condition into the symbols themselves (B = 1 + z with
    z ≥ 0); ``cases`` are several such sets that together cover everything.
    """

    kind: ClassVar[str] = "inequality"

    given: Replacement = field(default_factory=dict, kw_only=True)
    cases: tuple[Replacement, ...] = field(default=({},), kw_only=True)

    def verify(self, known: Known) -> None:
        super().verify(known)
        sign = self.relation.sign
        if sign not in ("<", "≤", ">", "≥"):
            raise ProofError(f"{self.id}: {sign} is no inequality")
        difference = known.expand(self.relation.difference)
        difference = -difference if sign in ("<", "≤") else difference
        for case in self.cases:
            here = difference.xreplace(dict(self.given)).xreplace(dict(case))
            if not is_nonnegative(here, strict=sign in ("<", ">")):
                raise ProofError(f"{self.id}: the sign of {here} does not follow")
            for point in samples(here.free_symbols, 20):
                if precise(here, point) < -sympy.Float("1e-30"):
                    raise ProofError(f"{self.id}: does not hold at {point}")

    def learn(self, known: Known) -> Known:
        return known.with_relation(self.relation)


@dataclass(frozen=True)
class Numeric(Step):
    """``expression ≈ number`` at ``values`` (by symbol id), to within ``within`` (relative)."""

    kind: ClassVar[str] = "numeric"

    values: Mapping[str, float] = field(kw_only=True)
    within: float = field(default=5e-3, kw_only=True)

    def verify(self, known: Known) -> None:
        unknown = self.values.keys() - quantities().keys()
        if unknown:
            raise ProofError(f"{self.id}: {unknown} are no symbols")
        given = {s: e for s, e in known.meanings.items() if s.name not in self.values}
        expression = Known(given).expand(self.relation.lhs)
        found = evaluation.value(expression, self.values)
        stated = float(self.relation.rhs)
        if not abs(found - stated) <= self.within * abs(stated):
            raise ProofError(f"{self.id}: {found}, not {stated}")

    def learn(self, known: Known) -> Known:
        return known


KINDS = tuple(
    step.kind
    for step in (Definition, Assumption, Algebra, Limit, Approximation, Inequality, Numeric)
)


def verify_all(steps: tuple[Step, ...], known: Known | None = None) -> Known:
    """Check steps one after the other; what is known at the end."""
    known = known or Known()
    for step in steps:
        step.verify(known)
        known = step.learn(known)
    return known
