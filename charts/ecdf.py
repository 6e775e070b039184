"""Which share of a sample is at most x: samples with counts, and curves of few points.

Millions of equal gaps are one value with a count, so a sample costs what differs in it. A curve
that is too long keeps points of itself: a grid of shares, finer towards 100 %, where P99 is read,
and a grid of x, so that neither direction is ever off by more than half a percent of the picture.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from model.metrics import counted_percentiles

__all__ = ["MAX_POINTS", "Sample"]

MAX_POINTS = 500
_SHARES = 200
_TAIL = 60
_PLACES = 230


class Sample:
    """Values that occur ``counts`` times each (default: once); undefined ones are left out."""

    def __init__(self, values: np.ndarray, counts: np.ndarray | None = None) -> None:
        values = np.asarray(values, float)
        counts = np.ones(len(values), np.int64) if counts is None else np.asarray(counts)
        defined = ~np.isnan(values)
        order = np.argsort(values[defined], kind="stable")
        ordered = values[defined][order]
        first = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0)
        self.values = ordered[first]
        self.counts = np.add.reduceat(counts[defined][order], first) if len(first) else counts[:0]

    @cached_property
    def until(self) -> np.ndarray:
        """How many are at most each value."""
        return np.cumsum(self.counts)

    @property
    def size(self) -> int:
        return int(self.until[-1]) if len(self.values) else 0

    def percentiles(self, shares: tuple[float, ...]) -> np.ndarray:
        """As :func:`model.metrics.percentiles` of the whole list."""
        return counted_percentiles(self.values, self.counts, shares)

    def share_within(self, bound: float) -> float:
        """Share of the sample that is at most ``bound``; nan for an empty one."""
        if not self.size:
            return float("nan")
        below = int(np.searchsorted(self.values, bound, side="right"))
        return float(self.until[below - 1] / self.size) if below else 0.0

    def curve(self, *, log: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """x and share (0 to 1) of at most :data:`MAX_POINTS` points for a line of shape "hv".

        It begins at share 0. ``log``: the grid of x is one of log x.
        """
        if not self.size:
            return np.empty(0), np.empty(0)
        values, share = self.values, self.until / self.size
        if len(values) >= MAX_POINTS:
            kept = np.unique(np.concatenate(([0], self._grid(share, log), [len(values) - 1])))
            values, share = values[kept], share[kept]
        return np.concatenate((values[:1], values)), np.concatenate(([0.0], share))

    def _grid(self, share: np.ndarray, log: bool) -> np.ndarray:
        values = self.values
        tail = 1 - np.geomspace(0.1, max(1 / self.size, 1e-7), _TAIL)
        shares = np.concatenate((np.linspace(0, 1, _SHARES), tail))
        space = np.geomspace if log and values[0] > 0 else np.linspace
        places = np.searchsorted(values, space(values[0], values[-1], _PLACES), side="right") - 1
        return np.concatenate((np.searchsorted(share, shares), places)).clip(0, len(values) - 1)
