"""What the figures of the lesson on hardware share: axes, legend, dots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.sheet import Sheet

__all__ = ["SYMBOLS", "dots", "log_axis", "side_legend"]

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def log_axis(low: float, high: float) -> dict:
    """Range and ticks of a logarithmic axis: powers of ten and what lies between, unprefixed."""
    found = [base * 10.0**power for power in range(-3, 7) for base in (1, 2, 5)]
    values = [value for value in found if low <= value <= high]
    if len(values) > 9:
        values = [value for value in values if f"{value:e}".startswith("1")]
    return {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickvals": values,
        "ticktext": [f"{value:,g}" for value in values],
        "fixedrange": True,
    }


def side_legend(sheet: Sheet) -> None:
    """A legend to the right of the plot, one entry a line."""
    sheet.legend(0, 1, orientation="v", x=1.01, xanchor="left", yanchor="top")


def dots(x: Sequence, y: Sequence) -> dict:
    """Points without a line."""
    return {"type": "scatter", "x": list(x), "y": list(y), "mode": "markers"}
