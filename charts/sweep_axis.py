"""Where the values of a swept parameter stand: numbers at themselves, names side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from charts.sheet import plain

__all__ = ["ParameterAxis", "is_number"]

_APART = 0.055  # of the axis: closer labels run into one another
_LABEL = 24


@dataclass(frozen=True)
class ParameterAxis:
    """A horizontal axis for the values of a parameter.

    ``numeric``: they are numbers; otherwise ``values`` stand at 0, 1, 2, ... under their ``words``.
    ``extra`` are further numbers that need room.
    """

    numeric: bool
    log: bool
    values: tuple
    words: tuple[str, ...]
    extra: tuple[float, ...]

    @classmethod
    def of(
        cls, values: tuple, word: Callable[[object], str] = str, pinned: object = None
    ) -> ParameterAxis:
        """The axis of the values asked for, with room for the value of a pinned run."""
        numeric = all(is_number(value) for value in values)
        extra: tuple[float, ...] = ()
        if numeric:
            values = tuple(sorted(values))
            if is_number(pinned):
                extra = (float(pinned),)
        log = numeric and _is_geometric(np.array([*values, *extra], float))
        return cls(numeric, log, values, tuple(plain(word(value)) for value in values), extra)

    def at(self, value: object) -> float | None:
        """The coordinate of a value; None where it has no place on this axis."""
        if self.numeric:
            return float(value) if is_number(value) else None
        # True == 1, but a switch is not a number.
        same = [i for i, v in enumerate(self.values) if v == value and type(v) is type(value)]
        return float(same[0]) if same else None

    def layout(self) -> dict:
        """Type, range and ticks for Plotly: as many of the values as can be read."""
        if not self.numeric:
            n = len(self.values)
            return {
                "range": [-0.6, max(n, 1) - 0.4],
                "tickvals": list(range(n)),
                "ticktext": [_short(word) for word in self.words],
                "showgrid": False,
                "fixedrange": True,
            }
        spots = np.array(sorted({*map(float, self.values), *self.extra}))
        low, high = (float(spots[0]), float(spots[-1])) if len(spots) else (0.0, 1.0)
        layout: dict = {"showgrid": False}
        if self.log:
            pad = 0.03 * math.log10(high / low) or 0.1
            layout |= {"type": "log", "range": [math.log10(low) - pad, math.log10(high) + pad]}
        else:
            pad = 0.03 * (high - low) or 0.5 * abs(high) or 0.5
            layout["range"] = [low - pad, high + pad]
        kept = _apart(np.array(self.values, float), self.log)
        if len(self.values) and len(kept) > 1:
            layout |= {"tickvals": kept, "ticktext": [f"{value:,.4g}" for value in kept]}
        return layout


def _apart(values: np.ndarray, log: bool) -> np.ndarray:
    """Those values whose tick labels do not run into one another."""
    place = np.log(values) if log else values
    if len(values) < 2 or place[-1] == place[0]:
        return values
    kept = [0]
    for index in range(1, len(values)):
        if (place[index] - place[kept[-1]]) / (place[-1] - place[0]) >= _APART:
            kept.append(index)
    return values[kept]


def is_number(value: object) -> bool:
    """A number, not a switch."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_geometric(values: np.ndarray) -> bool:
    """Do equal ratios describe the values better than equal steps?"""
    values = np.unique(values)
    if len(values) < 3 or values[0] <= 0 or values[-1] / values[0] < 8:
        return False
    ratios, gaps = np.diff(np.log(values)), np.diff(values)
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"
