"""What the two source texts claim, judged: verdict, corrected statement, reason.

Public: :class:`Claim`, :func:`claims`, :data:`VERDICTS`. The words are in ``texts/claims.csv``, the
verdicts in ``claims.csv``; which formulas a claim concerns is in ``formulas.csv``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from formulas.entry import VERDICTS, entries
from formulas.texts import text

__all__ = ["VERDICTS", "Claim", "claims"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of source text A or B.

    ``verdicts`` has the main one first; "unverified" means that it could not be traced to a public
    source and is shown as a claim.
    """

    id: str
    verdicts: tuple[str, ...]

    @property
    def formulas(self) -> tuple[str, ...]:
        """Ids of the formulas that it concerns, as the index says."""
        return tuple(key for key, row in entries().items() if self.id in row.claims)

    @property
    def source(self) -> str:
        """The letter of the text: A or B."""
        return self.id[0]

    @property
    def verdict(self) -> str:
        """The main verdict."""
        return self.verdicts[0]

    @property
    def is_unverified(self) -> bool:
        """Whether some of it can only be reported as claimed."""
        return "unverified" in self.verdicts

    def claim(self, language: str = "en") -> str:
        """What the text says, in short."""
        return text("claims", f"{self.id}.claim", language)

    def corrected(self, language: str = "en") -> str:
        """What may be said instead."""
        return text("claims", f"{self.id}.corrected", language)

    def reason(self, language: str = "en") -> str:
        """Why."""
        return text("claims", f"{self.id}.reason", language)


@cache
def claims() -> Mapping[str, Claim]:
    """All claims by id (A1 … A25, B1 … B21), in their order."""
    content = resources.files("formulas").joinpath("claims.csv").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            row["id"]: Claim(row["id"], tuple(row["verdicts"].split()))
            for row in csv.DictReader(content.splitlines())
        }
    )
