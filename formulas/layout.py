"""From expressions to boxes: what is written where, before it is LaTeX, MathML or plain text.

SymPy orders factors and terms for its own sake. Here products keep the order of the symbol table,
numbers come first, sums begin with a positive term, common whole factors stay outside the
parentheses, and units that count are left out. With ``values`` each symbol is written as its
number and keeps its id, so that a page can still say what the number stands for.

Public: :func:`layout` (expression or relation → node) and the node classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy
from sympy.core.function import AppliedUndef

from formulas.functions import Largest, LargestSuch, Smallest, SmallestSuch
from formulas.relation import Relation
from formulas.symbols import quantities


class Node:
    """A box. Subclasses are frozen dataclasses, rendered by latex, mathml and plain."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sym(Node):
    """A symbol, by its id in the table (or a bare letter for an index of a sum)."""

    id: str


@dataclass(frozen=True, slots=True)
class Num(Node):
    """A number, written out; ``symbol`` is the id it replaces. Written m × 10^exponent if given."""

    text: str
    exponent: int | None = None
    symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Op(Node):
    """A sign between boxes: + − = ≈ < ≤ > ≥ × → , : ! or "" for a product that is not written."""

    text: str


@dataclass(frozen=True, slots=True)
class Word(Node):
    """Upright text, such as a function's name."""

    text: str


@dataclass(frozen=True, slots=True)
class Row(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Fence(Node):
    """A box between brackets: ( ) ⌊ ⌋ ⌈ ⌉ or | |."""

    left: str
    item: Node
    right: str


@dataclass(frozen=True, slots=True)
class Frac(Node):
    above: Node
    below: Node


@dataclass(frozen=True, slots=True)
class Power(Node):
    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Root(Node):
    item: Node


@dataclass(frozen=True, slots=True)
class Big(Node):
    """∑ or ∫ with its bounds, or lim with what its variable goes to as the lower bound."""

    sign: str
    lower: Node | None
    upper: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class Cases(Node):
    """Pairs of a value and the condition under which it holds (None: otherwise)."""

    rows: tuple[tuple[Node, Node | None], ...]


TIMES = Op("×")
INVISIBLE_TIMES = Op("")
NAMES = {
    Largest: "max",
    Smallest: "min",
    sympy.log: "ln",
    sympy.erf: "erf",
}


def layout(item: sympy.Expr | Relation, values: Mapping[str, float] | None = None) -> Node:
    """The boxes of an expression or relation; ``values`` (by id) are written in their place."""
    writer = _Writer(values or {})
    if isinstance(item, Relation):
        return Row((writer.node(item.lhs), Op(item.sign), writer.node(item.rhs)))
    return writer.node(sympy.sympify(item))


def number(value: float, symbol: str | None = None, digits: int = 4) -> Num:
    """A number as people write it: 131,072 or 0.0126 or 3.12 × 10¹⁴."""
    if value != value or value in (float("inf"), float("-inf")):
        return Num({True: "∞", False: "−∞"}.get(value > 0, "?") if value == value else "?")
    if value == int(value) and abs(value) < 1e7:
        return Num(f"{int(value):,}".replace("-", "−"), symbol=symbol)
    exponent = int(f"{value:e}".partition("e")[2])
    if -3 <= exponent < 6:
        text = f"{value:,.{max(digits - 1 - exponent, 0)}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        return Num(text.replace("-", "−"), symbol=symbol)
    mantissa = f"{value / 10.0**exponent:.{digits - 1}f}".rstrip("0").rstrip(".")
    return Num(mantissa.replace("-", "−"), exponent, symbol)


class _Writer:
    """Turns expressions into nodes, with the values of one call."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def node(self, expr: sympy.Basic) -> Node:
        """The expression as it stands alone."""
        if expr.is_Symbol:
            return self._symbol(expr)
        if expr.is_Number or expr in (sympy.oo, -sympy.oo):
            return self._number(expr)
        if expr.is_Add:
            return self._sum(expr)
        if expr.is_Mul:
            return self._product(expr)
        if isinstance(expr, sympy.exp):
            return Power(Sym("e"), self.node(expr.args[0]))
        if expr.is_Pow:
            return self._power(expr)
        return self._other(expr)

    def _symbol(self, expr: sympy.Symbol) -> Node:
        if expr.name in self.values:
            return number(float(self.values[expr.name]), expr.name)
        entry = quantities().get(expr.name)
        return Num("1") if entry is not None and entry.hidden else Sym(expr.name)

    def _number(self, expr: sympy.Expr) -> Node:
        if expr.is_Rational and not expr.is_Integer:
            sign, text = ("−", -expr) if expr < 0 else ("", expr)
            fraction = Frac(Num(str(text.p)), Num(str(text.q)))
            return Row((Op(sign), fraction)) if sign else fraction
        return number(float(expr))

    def _sum(self, expr: sympy.Add) -> Node:
        content, rest = _common_content(expr)
        if not content.is_Integer:  # bs/2 − 1/2 is written (bs − 1)/2
            return Frac(self.node(content.p * rest), Num(str(content.q)))
        terms = sorted(sympy.Add.make_args(expr), key=_term_order)
        items: list[Node] = []
        for index, term in enumerate(terms):
            negative = _is_negative(term)
            if index or negative:
                items.append(Op("−" if negative else "+"))
            items.append(self.node(-term if negative else term))
        return Row(tuple(items))

    def _product(self, expr: sympy.Mul) -> Node:
        coefficient, factors = expr.as_coeff_mul()
        above, below = [], []
        for factor in factors:
            if _is_hidden(factor):
                continue
            base, exponent = factor.as_base_exp()
            negative = _is_negative(exponent)
            if factor.is_Add:  # 2x − 2 as a factor is written 2(x − 1)
                content, factor = _common_content(factor)
                coefficient *= content
            elif exponent == -1 and base.is_Add:
                content, base = _common_content(base)
                coefficient /= content
            if negative and not isinstance(factor, sympy.exp):
                below.append(base**-exponent)
            else:
                above.append(factor)
        if coefficient.is_Rational:
            scale_above, scale_below = abs(coefficient.p), coefficient.q
        else:
            scale_above, scale_below = abs(coefficient), 1
        line = self._factors(scale_above, above)
        if below or scale_below != 1:
            line = Frac(line, self._factors(scale_below, below))
        return Row((Op("−"), line)) if coefficient < 0 else line

    def _factors(self, scale: sympy.Number, factors: list[sympy.Expr]) -> Node:
        """A product without a fraction line."""
        shown = sorted(factors, key=_factor_order)
        nodes = [] if scale == 1 and shown else [self._number(sympy.sympify(scale))]
        alone = len(nodes) + len(shown) == 1
        nodes += [self.node(f) if alone or not f.is_Add else self._fenced(f) for f in shown]
        items: list[Node] = []
        for node in nodes:
            if items:
                items.append(TIMES if self.values or _is_number(node) else INVISIBLE_TIMES)
            items.append(node)
        return items[0] if len(items) == 1 else Row(tuple(items))

    def _power(self, expr: sympy.Pow) -> Node:
        base, exponent = expr.base, expr.exp
        if _is_hidden(expr):
            return Num("1")
        if _is_negative(exponent):
            return Frac(Num("1"), self.node(base**-exponent))
        if exponent == sympy.Rational(1, 2):
            return Root(self.node(base))
        inner = self.node(base)
        simple = isinstance(inner, Sym) or (
            isinstance(inner, Num) and inner.exponent is None and inner.text[0] != "−"
        )
        return Power(inner if simple else Fence("(", inner, ")"), self.node(exponent))

    def _fenced(self, expr: sympy.Expr) -> Node:
        return Fence("(", self.node(expr), ")")

    def _other(self, expr: sympy.Basic) -> Node:
        if isinstance(expr, sympy.floor):
            return Fence("⌊", self.node(expr.args[0]), "⌋")
        if isinstance(expr, sympy.ceiling):
            return Fence("⌈", self.node(expr.args[0]), "⌉")
        if isinstance(expr, sympy.Abs):
            return Fence("|", self.node(expr.args[0]), "|")
        if isinstance(expr, sympy.factorial):
            inner = self.node(expr.args[0])
            return Row((inner if isinstance(inner, Sym | Num) else Fence("(", inner, ")"), Op("!")))
        if isinstance(expr, sympy.harmonic):
            return Row((Word("H"), Fence("(", self.node(expr.args[0]), ")")))
        if isinstance(expr, sympy.Sum | sympy.Integral):
            return self._big(expr)
        if isinstance(expr, sympy.Limit):
            return self._limit(expr)
        if isinstance(expr, sympy.Piecewise):
            return Cases(tuple((self.node(e), self._condition(c)) for e, c in expr.args))
        if isinstance(expr, LargestSuch | SmallestSuch):
            return self._extreme(expr)
        if expr.is_Relational:
            return self._condition(expr)
        if isinstance(expr, AppliedUndef):
            name: Node = Sym(expr.func.__name__)
        else:
            name = Word(NAMES.get(expr.func, expr.func.__name__))
        arguments = sorted(expr.args, key=_term_order) if expr.func in NAMES else expr.args
        items: list[Node] = []
        for argument in arguments:
            items += [Op(","), self.node(argument)] if items else [self.node(argument)]
        return Row((name, Fence("(", Row(tuple(items)), ")")))

    def _big(self, expr: sympy.Sum | sympy.Integral) -> Node:
        variable, low, high = expr.limits[0]
        body = self._fenced(expr.function) if expr.function.is_Add else self.node(expr.function)
        if isinstance(expr, sympy.Integral):
            differential = Row((body, INVISIBLE_TIMES, Word("d"), self.node(variable)))
            return Big("∫", self.node(low), self.node(high), differential)
        lower = Row((self.node(variable), Op("="), self.node(low)))
        return Big("∑", lower, self.node(high), body)

    def _extreme(self, expr: LargestSuch | SmallestSuch) -> Node:
        variable, condition = expr.args
        # The variable is bound here: it keeps its letter even where it has a value.
        inner = Row((Sym(variable.name), Op(":"), self._condition(condition)))
        name = "max" if isinstance(expr, LargestSuch) else "min"
        return Row((Word(name), Fence("{", inner, "}")))

    def _limit(self, expr: sympy.Limit) -> Node:
        function, variable, point, _ = expr.args
        entry = quantities().get(variable.name)
        target = self.node(point)
        lower = Row((Sym(variable.name) if entry else self.node(variable), Op("→"), target))
        body = self._fenced(function) if function.is_Add else self.node(function)
        return Big("lim", lower, None, body)

    def _condition(self, condition: sympy.Basic) -> Node | None:
        if condition == sympy.true:
            return None
        sign = {"==": "=", "<=": "≤", ">=": "≥"}.get(condition.rel_op, condition.rel_op)
        return Row((self.node(condition.lhs), Op(sign), self.node(condition.rhs)))


def _is_negative(expr: sympy.Expr) -> bool:
    coefficient = expr.as_coeff_Mul()[0]
    return bool(coefficient.is_negative) and coefficient.is_finite is not False


def _common_content(expr: sympy.Add) -> tuple[sympy.Rational, sympy.Expr]:
    """The number that all terms have in front, and the rest; 1 where the numbers differ."""
    sizes = {abs(term.as_coeff_Mul()[0]) for term in expr.args}
    content, rest = expr.primitive()
    shared = sizes == {content} or any(term.is_Number for term in expr.args)
    return (content, rest) if shared else (sympy.S.One, expr)


def _is_hidden(expr: sympy.Expr) -> bool:
    """Whether it is made of units that count, so that it is 1 and not written."""
    table = quantities()
    names = [s.name for s in expr.free_symbols]
    return bool(names) and all(name in table and table[name].hidden for name in names)


def _is_number(node: Node) -> bool:
    if isinstance(node, Row):
        return _is_number(node.items[0])
    if isinstance(node, Power):
        return _is_number(node.base)
    return isinstance(node, Num)


def _rank(expr: sympy.Expr) -> int:
    """The place in the symbol table of the first symbol that is written."""
    table = quantities()
    names = (s.name for s in expr.free_symbols if s.name in table)
    ranks = [table[name].rank for name in names if not table[name].hidden]
    return min(ranks, default=len(table))


def _factor_order(expr: sympy.Expr) -> tuple:
    """Symbols, then everything else, and last what takes all that follows it (∑, ∫, lim)."""
    kind = 0 if expr.is_Symbol or (expr.is_Pow and expr.base.is_Symbol) else 1
    kind = 2 if isinstance(expr, sympy.Sum | sympy.Integral | sympy.Limit) else kind
    return (kind, _rank(expr), sympy.default_sort_key(expr))


def _term_order(expr: sympy.Expr) -> tuple:
    """Positive before negative, short before long; 1 before shares (1 + CV²), after γ + 1."""
    if _is_hidden(expr):
        place = 2
    elif expr.is_Number:
        place = 0
    else:
        table = quantities()
        count = expr.is_Symbol and expr.name in table and table[expr.name].domain == "count"
        place = -1 if count else 1
    size = len(expr.free_symbols)
    return (_is_negative(expr), place, size, _rank(expr), sympy.default_sort_key(expr))
