"""A formula and a formula with numbers.

:class:`Formula` is what ``formulas.get("F14")`` returns: a relation with its derivation, and the
operations on it (show, evaluate, solve, elasticities, NumPy function). :class:`Bound` is the same
formula at one set of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
import sympy

from formulas import elasticity, evaluation, exact, latex, mathml, plain, solving
from formulas.entry import Entry, entry
from formulas.errors import FormulaError
from formulas.layout import Node, Op, Row, layout, number
from formulas.relation import Relation
from formulas.step import Step
from formulas.symbols import Quantity, quantities, visible
from formulas.texts import table, text


@dataclass(frozen=True)
class Algorithm:
    """A value that a procedure computes where no expression gives it.

    ``compute`` takes a mapping from symbol id to float; ``inputs`` are the ids it needs.
    """

    inputs: tuple[str, ...]
    compute: Callable[[Mapping[str, float]], float]


@dataclass(frozen=True, eq=False)
class Formula:
    """One formula of the catalogue.

    ``relation`` is what it says; ``derivation`` leads to it and ``consequences`` follow from it
    (limits, special cases, bounds); ``assumptions`` are keys of ``texts/assumptions.csv``;
    ``algorithm`` computes the left side where the right side is only for show. ``id`` is given by
    the registry and leads to the ``entry``: status, verdict, sources, the corrected formula.
    """

    relation: Relation
    derivation: tuple[Step, ...] = ()
    consequences: tuple[Step, ...] = ()
    assumptions: tuple[str, ...] = ()
    algorithm: Algorithm | None = None
    id: str = field(default="", kw_only=True)

    # --- what it is -----------------------------------------------------------------------

    @cached_property
    def entry(self) -> Entry:
        """Its row of the index."""
        return entry(self.id)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The derivation and what follows from it."""
        return self.derivation + self.consequences

    def name(self, language: str = "en") -> str:
        """Its name."""
        return self.entry.name(language)

    def reason(self, language: str = "en") -> str:
        """Why it is right or wrong, or what to mind when using it."""
        return self.entry.reason(language)

    def step_reason(self, step: Step, language: str = "en") -> str:
        """Why a step may be taken: its own words, or those of all steps of its kind."""
        key = f"{self.id}.{step.id}"
        if key in table(self.entry.topic):
            return text(self.entry.topic, key, language)
        kind = "solved" if getattr(step, "solves", None) else step.kind
        return text("steps", f"{kind}.{step.id}", language)

    def assumption_texts(self, language: str = "en") -> tuple[str, ...]:
        """The assumptions, a sentence each."""
        return tuple(text("assumptions", key, language) for key in self.assumptions)

    @cached_property
    def result(self) -> Quantity | None:
        """The symbol it computes; None for a condition such as ``a > b``."""
        lhs = self.relation.lhs
        if self.relation.sign in ("=", "≈") and lhs.is_Symbol:
            return quantities().get(lhs.name)
        return None

    @property
    def is_condition(self) -> bool:
        """Whether it states an inequality, which holds or does not."""
        return self.result is None

    @cached_property
    def inputs(self) -> tuple[Quantity, ...]:
        """The symbols whose values it needs, in the order of the table."""
        if self.algorithm is not None:
            return tuple(quantities()[name] for name in self.algorithm.inputs)
        if self.is_condition:
            return self.symbols
        return visible(self.relation.rhs)

    @cached_property
    def symbols(self) -> tuple[Quantity, ...]:
        """All symbols that are written or needed, in the order of the table."""
        names = {entry.id for side in self._sides for entry in visible(side)}
        names |= set(self.algorithm.inputs) if self.algorithm else set()
        return tuple(entry for entry in quantities().values() if entry.id in names)

    @property
    def _sides(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.relation.lhs, self.relation.rhs

    # --- how it is shown ------------------------------------------------------------------

    def node(self) -> Node:
        """Its boxes (see :mod:`formulas.layout`)."""
        return layout(self.relation)

    def latex(self) -> str:
        return latex.render(self.node())

    def mathml(self) -> str:
        """A ``<math>`` element whose symbols carry ``data-symbol``."""
        return mathml.document(self.node())

    def plain(self) -> str:
        return plain.render(self.node())

    # --- numbers --------------------------------------------------------------------------

    def bind(self, values: Mapping[str, float]) -> Bound:
        """The formula with numbers; ``values`` in SI units by symbol id, others are ignored.

        Raises FormulaError missing_values, not_finite, outside_domain.
        """
        missing = [entry.id for entry in self.inputs if entry.id not in values]
        if missing:
            raise FormulaError("missing_values", formula=self.id, names=", ".join(missing))
        used = {entry.id: _checked(entry, values[entry.id]) for entry in self.inputs}
        return Bound(self, MappingProxyType(used))

    def evaluate(self, values: Mapping[str, float]) -> float:
        """The result in SI units; of a condition, whether it holds (1.0 or 0.0).

        Raises FormulaError as :meth:`bind` does, and no_value where the result is not finite.
        """
        return self.bind(values).value

    def lambdify(self, *names: str) -> Callable:
        """A NumPy function of these inputs, in this order (default: all); arrays broadcast.

        An algorithm is called once for every element.
        """
        order = names or tuple(entry.id for entry in self.inputs)
        unknown = sorted(set(order) ^ {entry.id for entry in self.inputs})
        if unknown:
            raise FormulaError("wrong_inputs", formula=self.id, names=", ".join(unknown))
        if self.algorithm is not None:
            compute = self.algorithm.compute
            return np.vectorize(lambda *xs: compute(dict(zip(order, xs, strict=True))))
        side = self.relation.difference if self.is_condition else self.relation.rhs
        return evaluation.compiled(side, tuple(quantities()[name].symbol for name in order))

    def closed_forms(self, name: str) -> tuple[sympy.Expr, ...]:
        """Expressions for one of its symbols; () where only a numeric root can be had."""
        entry = self._own(name)
        if self.algorithm is not None or self.is_condition:
            return ()
        if self.result is not None and entry.id == self.result.id:
            return (self.relation.rhs,)
        return solving.closed_forms(self.relation, entry.symbol)

    def solve_for(self, name: str, values: Mapping[str, float]) -> solving.Solution:
        """The value of one symbol; ``values`` give all others, the result among them.

        Raises FormulaError unknown_input, missing_values, no_solution.
        """
        entry = self._own(name)
        result = self.result
        if result is not None and entry.id == result.id:
            return solving.Solution(entry.id, self.evaluate(values), "closed_form", None)
        needed = {e.id for e in self.inputs} | ({result.id} if result else set())
        missing = sorted(needed - {entry.id} - values.keys())
        if missing:
            raise FormulaError("missing_values", formula=self.id, names=", ".join(missing))
        given = {key: float(values[key]) for key in needed - {entry.id}}
        for expression in self.closed_forms(name):
            value = evaluation.value(expression, given)
            if math.isfinite(value) and entry.allows(value) and self._solves(entry, value, given):
                return solving.Solution(entry.id, value, "closed_form", expression)
        found = solving.bracketed_root(lambda x: self._gap({**given, entry.id: x}), entry)
        if found is None:
            raise FormulaError("no_solution", formula=self.id, name=entry.id)
        return solving.Solution(entry.id, found[0], "numeric_root", None, found[1])

    def _own(self, name: str) -> Quantity:
        own = {entry.id: entry for entry in (*self.inputs, *self.symbols)}
        if name not in own:
            names = ", ".join(own)
            raise FormulaError("unknown_input", formula=self.id, name=name, choices=names)
        return own[name]

    def _raw(self, values: Mapping[str, float]) -> float:
        if self.algorithm is not None:
            return float(self.algorithm.compute(values))
        return evaluation.value(self.relation.rhs, values)

    def _gap(self, values: Mapping[str, float]) -> float:
        """Right side minus left side."""
        try:
            return self._raw(values) - evaluation.value(self.relation.lhs, values)
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    def _solves(self, entry: Quantity, value: float, given: Mapping[str, float]) -> bool:
        """A root of a squared or cleared equation need not solve the equation itself."""
        gap = self._gap({**given, entry.id: value})
        size = abs(evaluation.value(self.relation.lhs, {**given, entry.id: value}))
        return abs(gap) <= 1e-6 * max(size, 1e-300) or abs(gap) < 1e-12


@dataclass(frozen=True, eq=False)
class Bound:
    """A formula at one set of values (SI units, by symbol id)."""

    formula: Formula
    values: Mapping[str, float]

    @property
    def value(self) -> float:
        """The result; FormulaError no_value where it is not finite."""
        relation = self.formula.relation
        if self.formula.is_condition:
            left, right = (evaluation.value(s, self.values) for s in (relation.lhs, relation.rhs))
            return float(relation.holds(left, right))
        try:
            value = self.formula._raw(self.values)
        except (ZeroDivisionError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise FormulaError("no_value", formula=self.formula.id)
        return value

    def node(self) -> Node:
        """The relation with every number in its place, and the result behind it."""
        relation = self.formula.relation
        shown = layout(relation, self.values)
        if self.formula.is_condition:
            return shown
        if self.formula.algorithm is not None:
            return Row((layout(relation.lhs), Op("="), number(self.value, relation.lhs.name)))
        result = self.value
        equals = Op(exact.sign(relation.rhs, self.values, result))
        return Row((*shown.items, equals, number(result, relation.lhs.name)))

    def latex(self) -> str:
        """The formula with numbers, as LaTeX."""
        return latex.render(self.node())

    def mathml(self) -> str:
        """The formula with numbers; each number carries the ``data-symbol`` it stands for."""
        return mathml.document(self.node())

    def plain(self) -> str:
        return plain.render(self.node())

    def step_node(self, step: Step) -> Node:
        """A step of the derivation with the numbers that are known."""
        return layout(step.relation, self.values)

    def changed(self, name: str, factor: float = 1.1) -> float:
        """The result when one input is multiplied by ``factor`` ("+10 %")."""
        self.formula._own(name)
        return self.formula.evaluate({**self.values, name: self.values[name] * factor})

    def elasticities(self) -> dict[str, float]:
        """Per input: by how many percent the result moves when the input grows by 1 %.

        Around these values; rounding is left out, of max and min the active branch counts.
        """
        formula = self.formula
        if formula.is_condition:
            return {}
        if formula.algorithm is not None:
            compute = formula.algorithm.compute
            return {
                name: elasticity.numeric_elasticity(compute, name, self.values)
                for name in formula.algorithm.inputs
            }
        return {
            entry.id: elasticity.elasticity(formula.relation.rhs, entry.symbol, self.values)
            for entry in formula.inputs
        }

    def solve_for(self, name: str, target: float) -> solving.Solution:
        """The value of one input that makes the result equal ``target``."""
        result = self.formula.result
        others = {key: value for key, value in self.values.items() if key != name}
        return self.formula.solve_for(name, {**others, result.id: target} if result else others)


def _checked(entry: Quantity, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise FormulaError("not_a_number", name=entry.id, value=value)
    if not math.isfinite(value):
        raise FormulaError("not_finite", name=entry.id, value=value)
    if not entry.allows(value):
        raise FormulaError(f"outside_{entry.domain}", name=entry.id, value=float(value))
    return float(value)
