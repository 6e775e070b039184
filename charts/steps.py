"""Step functions of time, and their reduction to few points that keep means and extremes.

A run has up to a million iterations, a chart some hundred pixels. Dropping points would lose the
short events that matter; drawing all of them would be slow. So a long series is cut into equal
intervals of time, of which each keeps its time-weighted mean (areas stay true) and its peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["MAX_POINTS", "Steps", "steps"]

MAX_POINTS = 400


@dataclass(frozen=True, eq=False)
class Steps:
    """Step functions on common intervals ``[edges[i], edges[i + 1])``.

    ``mean`` and ``peak`` map each series to one value an interval; where ``exact`` is true they
    are equal, because an interval holds one value only.
    """

    edges: np.ndarray
    mean: dict[str, np.ndarray]
    peak: dict[str, np.ndarray]
    exact: bool

    def drawn(self, name: str, kind: str = "mean") -> tuple[np.ndarray, np.ndarray]:
        """x and y of a series for a line of shape "hv": the last value is held to the end."""
        y = getattr(self, kind)[name]
        return self.edges, np.append(y, y[-1:])


def steps(
    start_s: np.ndarray,
    end_s: np.ndarray,
    series: Mapping[str, np.ndarray],
    *,
    until_s: float | None = None,
    max_points: int = MAX_POINTS,
) -> Steps:
    """Sum, for each series, the values of the intervals that are open at a time.

    ``start_s``, ``end_s`` and each series have one entry an interval (an iteration, a wait);
    intervals may overlap (several engines) and leave gaps (idle: the sum is 0). The result runs
    from 0 to ``until_s`` (default: the last end) and has at most ``max_points`` intervals.
    """
    start_s, end_s = np.asarray(start_s, float), np.asarray(end_s, float)
    last_s = float(end_s.max(initial=0.0)) if until_s is None else float(until_s)
    edges = np.unique(np.concatenate(([0.0, last_s], start_s, end_s)))
    edges = edges[(edges >= 0) & (edges <= last_s)]
    if len(edges) < 2:
        edges = np.array([0.0, max(last_s, 1e-9)])

    first, stop = np.searchsorted(edges, start_s), np.searchsorted(edges, end_s)
    levels = {}
    for name, values in series.items():
        change = np.bincount(first, values, len(edges) + 1) - np.bincount(
            stop, values, len(edges) + 1
        )
        levels[name] = np.cumsum(change)[: len(edges) - 1]

    if len(edges) - 1 <= max_points:
        return Steps(edges, levels, levels, exact=True)

    coarse = np.linspace(edges[0], edges[-1], max_points + 1)
    # An interval's peak: all fine steps that overlap it, the one it begins in included.
    begin = np.searchsorted(edges, coarse[:-1], side="right") - 1
    mean, peak = {}, {}
    for name, level in levels.items():
        area = np.concatenate(([0.0], np.cumsum(level * np.diff(edges))))
        mean[name] = np.diff(np.interp(coarse, edges, area)) / np.diff(coarse)
        # reduceat ends each interval before the next begins, so the step that crosses the border
        # is missing: it is the one the next interval begins in.
        inner = np.maximum.reduceat(level, begin)
        crossing = level[np.append(begin[1:], len(level) - 1)]
        begins_on_edge = np.append(edges[begin[1:]] >= coarse[1:-1], False)
        peak[name] = np.where(begins_on_edge, inner, np.maximum(inner, crossing))
    return Steps(coarse, mean, peak, exact=False)
