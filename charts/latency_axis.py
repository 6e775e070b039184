"""What panels of cumulative latency curves share: their axes, and the line of a promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from charts.ecdf import Sample
from charts.sheet import Sheet

__all__ = ["LatencyAxis", "promise", "set_time", "share_axis"]

_FAR = 2.0  # a bound beyond this multiple of the longest value would flatten the curves
_RIGHT = 0.55  # of the width: a bound beyond has its words on its left
_WIDTH, _HEIGHT, _LOWEST = 0.3, 0.09, 0.02  # of the words of a bound, as shares of the panel

Translator = Callable[..., str]


@dataclass(frozen=True)
class LatencyAxis:
    """A horizontal axis of times from ``low_s`` to ``high_s``; a log axis where they lie far apart.

    What is drawn is in milliseconds where all is shorter than a second.
    """

    log: bool
    low_s: float
    high_s: float

    @classmethod
    def of(cls, samples: Sequence[Sample], bound_s: float | None, most: float) -> LatencyAxis:
        """For these curves and this bound; log where longest over shortest exceeds ``most``."""
        found = [sample.values for sample in samples if sample.size]
        low_s = min((float(values[0]) for values in found), default=0.0)
        high_s = max((float(values[-1]) for values in found), default=1.0)
        log = low_s > 0 and high_s / low_s > most
        if bound_s is not None and bound_s <= high_s * (most if log else _FAR):
            low_s, high_s = min(low_s, bound_s), max(high_s, bound_s)
        return cls(log, low_s, high_s or 1.0)

    @property
    def unit(self) -> str:
        """Key of the unit's word, less ``unit.``."""
        return "ms" if self.high_s < 1 else "s"

    @property
    def factor(self) -> float:
        """Turns seconds into what is drawn."""
        return 1e3 if self.high_s < 1 else 1.0

    def layout(self, nticks: int) -> dict:
        """Range and ticks for Plotly."""
        if not self.log:
            return {"range": [0, self.high_s * self.factor * 1.04], "nticks": nticks}
        ends = np.log10([self.low_s * self.factor / 1.15, self.high_s * self.factor * 1.25])
        decades = 10.0 ** np.arange(np.ceil(ends[0]), np.floor(ends[1]) + 1)
        return {
            "type": "log",
            "range": ends.tolist(),
            "tickvals": decades,
            "ticktext": [f"{decade:,g}" for decade in decades],
            "minor": {"dtick": "D1", "ticks": "outside", "ticklen": 3},
        }

    def at(self, seconds: float) -> float:
        """Where a note stands: Plotly wants the logarithm there on a log axis."""
        return float(np.log10(seconds * self.factor)) if self.log else seconds * self.factor

    def seconds_at(self, share: float) -> float:
        """The inverse of ``share_of_width``."""
        if self.log:
            return self.low_s * (self.high_s / self.low_s) ** share
        return self.high_s * share

    def share_of_width(self, seconds: float) -> float:
        """0 at the left end of the axis, 1 at its right end."""
        left, right = np.log10((self.low_s, self.high_s)) if self.log else (0.0, self.high_s)
        place = np.log10(seconds) if self.log else seconds
        return float((place - left) / (right - left)) if right > left else 0.0


def share_axis(sheet: Sheet, x: str, domain: Sequence[float], top: float) -> dict:
    """The vertical axis: shares from 0 to 1, with room up to ``top``."""
    return sheet.axis(
        domain=domain,
        anchor=x,
        range=[0, top],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=[f"{share} %" for share in (0, 25, 50, 75, 100)],
        fixedrange=True,
    )


def promise(
    sheet: Sheet,
    x: str,
    y: str,
    axis: LatencyAxis,
    bound_s: float,
    text: str,
    samples: Sequence[Sample] = (),
) -> None:
    """The bound of a promise as a line with its words; an arrow where it is far away.

    The words stand where none of the curves of ``samples`` runs behind them, if there is room.
    """
    color = sheet.color["violated"]
    more = {"yref": f"{y} domain", "yanchor": "bottom", "font": {"size": 12, "color": color}}
    if not axis.low_s <= bound_s <= axis.high_s:
        sheet.note(f"{text} →", 1, 0.02, xref=f"{x} domain", xanchor="right", **more)
        return
    # Plotly: a line stands at its value also on a log axis, a note at the logarithm.
    drawn = bound_s * axis.factor
    sheet.line(drawn, drawn, 0, 1, xref=x, yref=f"{y} domain", color=color, dash="solid")
    # Curves are low on the left and high on the right: there is room below on the right side.
    left, height = _room(axis, bound_s, axis.share_of_width(bound_s) > _RIGHT, samples)
    anchor, shift = ("right", -5) if left else ("left", 5)
    sheet.note(
        text, axis.at(bound_s), height, xref=x, xanchor=anchor, xshift=shift, on_curves=True, **more
    )


def _room(
    axis: LatencyAxis, bound_s: float, left: bool, samples: Sequence[Sample]
) -> tuple[bool, float]:
    """Side and height (0 to 1) at which words beside a bound cross no curve, lowest first.

    ``left`` is the side that is preferred; its bottom where there is no room at all.
    """
    here = axis.share_of_width(bound_s)
    drawn = [sample for sample in samples if sample.size]
    for side in (left, not left):
        ends = (here - _WIDTH, here) if side else (here, here + _WIDTH)
        if ends[0] < 0 or ends[1] > 1:
            continue
        low_s, high_s = (axis.seconds_at(end) for end in ends)
        spans = [(one.share_within(low_s), one.share_within(high_s)) for one in drawn]
        for height in np.arange(_LOWEST, 0.9, _HEIGHT / 4):
            if all(high <= height or low >= height + _HEIGHT for low, high in spans):
                return side, float(height)
    return left, _LOWEST


def set_time(seconds: float, t: Translator) -> str:
    """A time that somebody has set: as many digits as it has."""
    if seconds < 1:
        return f"{seconds * 1e3:,g} {t('unit.ms')}"
    return f"{seconds:,g} {t('unit.s')}"
