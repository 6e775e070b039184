"""The index of the catalogue: one row of ``formulas.csv`` per formula, read without SymPy.

Public: :class:`Entry`, :func:`entries`, :func:`entry`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from formulas.errors import FormulaError
from formulas.texts import table, text

STATUSES = ("printed", "correct")
VERDICTS = ("right", "conditional", "wrong", "unverified")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index says of a formula.

    ``status`` is "printed" (as a source text has it) or "correct" (the version to compute with);
    a printed one has a ``verdict`` and the ids of the formulas that correct it (``corrected_by``).
    ``claims`` are ids of :mod:`formulas.claims`; ``sources`` pairs of a key of
    ``texts/sources.csv`` and a place in it.
    """

    id: str
    topic: str
    status: str
    verdict: str
    corrected_by: tuple[str, ...]
    claims: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]

    @property
    def number(self) -> int:
        """14 of F14, F14a …"""
        return int("".join(c for c in self.id if c.isdigit()))

    def name(self, language: str = "en") -> str:
        return text(self.topic, f"{self.id}.name", language)

    def reason(self, language: str = "en") -> str:
        """The reason of the verdict, or a note; "" where there is none."""
        key = f"{self.id}.reason"
        return text(self.topic, key, language) if key in table(self.topic) else ""

    def source_texts(self, language: str = "en") -> tuple[str, ...]:
        """The sources as they are cited."""
        return tuple(
            f"{text('sources', key, language)}{', ' if place else ''}{place}"
            for key, place in self.sources
        )


@cache
def entries() -> Mapping[str, Entry]:
    """All rows by id, in the order of the file."""
    content = resources.files("formulas").joinpath("formulas.csv").read_text(encoding="utf-8")
    rows = {}
    for row in csv.DictReader(content.splitlines()):
        if row["id"] in rows:
            raise KeyError(f"formulas.csv has {row['id']!r} twice")
        rows[row["id"]] = Entry(
            id=row["id"],
            topic=row["topic"],
            status=row["status"],
            verdict=row["verdict"],
            corrected_by=tuple(row["corrected_by"].split()),
            claims=tuple(row["claims"].split()),
            sources=tuple(
                (key, place.strip())
                for item in filter(None, row["sources"].split(";"))
                for key, _, place in [item.strip().partition(" ")]
            ),
        )
    return MappingProxyType(rows)


def entry(formula_id: str) -> Entry:
    """The row of a formula; FormulaError unknown_formula otherwise."""
    if formula_id not in entries():
        raise FormulaError("unknown_formula", id=formula_id)
    return entries()[formula_id]
