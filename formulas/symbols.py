"""The registry of symbols: how each is written, its unit, its range and what it means.

``symbols.csv`` holds one symbol a row, in the order in which factors of a product are written;
the meanings are in ``texts/symbols.csv``. Values are always SI (seconds, bytes, FLOP/s). Public:
:func:`symbols` and :func:`symbol` (SymPy symbols by id), :func:`quantity`, :func:`quantities`.

Units that count (``one_token``, ``one_request``, ``one_flop``, ``one_gpu``) are symbols as well:
"2·Ψ FLOP per token" is ``2*one_flop/one_token*Psi``. They have value 1 and are not written, and
they let the unit check see what a bare number hides.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

import sympy

from formulas.errors import FormulaError
from formulas.texts import text
from formulas.units import Unit, parse_unit

DOMAINS = {
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
    "count": {"positive": True},  # whole, but not told to SymPy: ⌈B⌉ must stay as written
    "share": {"positive": True},  # from 0 to 1
    "index": {"positive": True, "integer": True},
    "real": {"real": True},
}
"""Domain → what SymPy may assume of such a symbol."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One symbol of the registry.

    ``base``, ``sub``, ``sup`` and ``accent`` say how it is written (η, c → η with index c).
    ``low`` and ``high`` span usual values in SI units: random checks draw from this range and
    a numeric root is looked for in it. ``hidden`` marks the units that count.
    """

    id: str
    base: str
    sub: str
    sup: str
    accent: str
    unit: Unit
    domain: str
    low: float
    high: float
    hidden: bool
    rank: int

    @property
    def symbol(self) -> sympy.Symbol:
        """The SymPy symbol with the assumptions of the domain."""
        return sympy.Symbol(self.id, **DOMAINS[self.domain])

    def meaning(self, language: str = "en") -> str:
        """What it stands for, in a language."""
        return text("symbols", self.id, language)

    @property
    def latex(self) -> str:
        """As LaTeX, for example ``\\eta_{c}``."""
        from formulas import latex, layout

        return latex.render(layout.Sym(self.id))

    @property
    def plain(self) -> str:
        """As plain text, for example ``η_c``."""
        from formulas import layout, plain

        return plain.render(layout.Sym(self.id))

    def allows(self, value: float) -> bool:
        """Whether a value lies in the domain."""
        if self.domain == "real":
            return True
        if self.domain == "share":
            return 0 <= value <= 1
        return value >= 0 if self.domain == "nonnegative" else value > 0


@cache
def quantities() -> Mapping[str, Quantity]:
    """All symbols by id, in the order of the table."""
    content = resources.files("formulas").joinpath("symbols.csv").read_text(encoding="utf-8")
    rows = {}
    for rank, row in enumerate(csv.DictReader(content.splitlines())):
        if row["id"] in rows:
            raise KeyError(f"symbols.csv has {row['id']!r} twice")
        rows[row["id"]] = Quantity(
            id=row["id"],
            base=row["base"],
            sub=row["sub"],
            sup=row["sup"],
            accent=row["accent"],
            unit=parse_unit(row["unit"]),
            domain=row["domain"],
            low=float(row["low"]),
            high=float(row["high"]),
            hidden=row["base"] == "1",
            rank=rank,
        )
    return MappingProxyType(rows)


def quantity(name: str | sympy.Symbol) -> Quantity:
    """The registry entry of an id or SymPy symbol; FormulaError unknown_symbol otherwise."""
    key = str(name)
    if key not in quantities():
        raise FormulaError("unknown_symbol", name=key)
    return quantities()[key]


def symbol(name: str) -> sympy.Symbol:
    """The SymPy symbol of an id."""
    return quantity(name).symbol


def symbols(names: str) -> tuple[sympy.Symbol, ...]:
    """SymPy symbols of ids separated by spaces: ``B_s, L = symbols("B_s L")``."""
    return tuple(symbol(name) for name in names.split())


@cache
def hidden_values() -> Mapping[sympy.Symbol, int]:
    """The units that count, each with its value 1."""
    return MappingProxyType({q.symbol: sympy.S.One for q in quantities().values() if q.hidden})


def visible(expression: sympy.Basic) -> tuple[Quantity, ...]:
    """The registered symbols of an expression in the order of the table, without hidden ones."""
    names = {s.name for s in expression.free_symbols} & quantities().keys()
    return tuple(q for q in quantities().values() if q.id in names and not q.hidden)
