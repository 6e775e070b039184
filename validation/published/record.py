"""One published result beside what the lab gives for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["CONSISTENCY", "PARTLY", "REPRODUCTION", "Finding", "Row"]

REPRODUCTION = "reproduction"  # the published setting, the published number within a tolerance
CONSISTENCY = "consistency"  # another setting, the same direction or order of magnitude
PARTLY = "partly"  # some of it is out of reach; the text says what and why


@dataclass(frozen=True, slots=True)
class Row:
    """A quantity: what was printed, what comes out here, and between which bounds that agrees.

    ``key`` names it in the catalogues of words (``pub.KEY``). ``printed`` is None where a paper
    gives a direction only. Bounds are inclusive, in ``unit``; the ones left open are infinite. A
    row without any bound is for information.
    """

    key: str
    unit: str
    printed: float | None
    ours: float
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def within(cls, key: str, unit: str, printed: float, ours: float, share: float) -> Row:
        """Agrees if it differs from the printed value by at most this share of it."""
        return cls(key, unit, printed, ours, printed * (1 - share), printed * (1 + share))

    @classmethod
    def by_factor(cls, key: str, unit: str, printed: float, ours: float, factor: float) -> Row:
        """Agrees if it is at most so many times as large or as small."""
        return cls(key, unit, printed, ours, printed / factor, printed * factor)

    @property
    def compared(self) -> bool:
        return math.isfinite(self.low) or math.isfinite(self.high)

    @property
    def agrees(self) -> bool:
        return self.low <= self.ours <= self.high


@dataclass(frozen=True, slots=True)
class Finding:
    """A published result by its id (P7), how far it can be checked here, and its rows.

    Claim, source, method and limits are prose: section ``id`` of the page ``published``.
    """

    id: str
    kind: str
    rows: tuple[Row, ...]

    @property
    def compared(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.compared)

    @property
    def agreeing(self) -> int:
        return sum(row.agrees for row in self.compared)
