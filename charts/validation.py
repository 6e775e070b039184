"""A formula's line and what simulations gave along it.

Numbers come in as they are; what they mean is said by ``words``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.sheet import LINE_PX, Sheet

__all__ = ["Points", "beside", "description"]

_FAR = 25.0  # values that lie so many times apart are drawn on a log axis


@dataclass(frozen=True, eq=False)
class Points:
    """What was simulated at each place; ``kind`` is "intact", "broken" or "again"."""

    kind: str
    name: str
    x: np.ndarray
    y: np.ndarray


_LOOKS = {  # color (a meaning, or a place in SERIES), symbol, size
    "again": (0, "circle-open", 15),
    "intact": ("decode", "circle", 9),
    "broken": ("violated", "diamond", 10),
}


def beside(
    line: tuple[np.ndarray, np.ndarray],
    simulated: Sequence[Points],
    at: float,
    words: Mapping[str, str],
    theme: str = "light",
    *,
    log_x: bool = False,
    height: int = 400,
) -> go.Figure:
    """The line of the formula, points of simulations, and the place ``at`` of the table.

    ``words`` has title, more, x, y, formula.
    """
    sheet = Sheet(theme, height)
    sheet.traces.append(
        {
            "type": "scatter",
            "x": line[0],
            "y": line[1],
            "name": words["formula"],
            "mode": "lines",
            "line": {"color": sheet.color["ink"], "width": 2},
            "hovertemplate": f"{words['formula']} <b>%{{y:,.4~g}}</b><extra></extra>",
        }
    )
    for points in simulated:
        _mark(sheet, points)
    place = float(np.log10(at)) if log_x else at
    sheet.line(at, at, 0, 1, color=sheet.color["muted"], dash="dot", width=1, yref="y domain")
    sheet.heading(words["title"], words["more"], 0, 1, yshift=LINE_PX + 10)
    sheet.legend_line(0, 1)
    low, high = float(line[0][0]), float(line[0][-1])
    sheet.layout |= {
        "margin": {"l": 8, "r": 12, "t": 2 * LINE_PX + 16, "b": 8},
        "hovermode": "x unified",
        "xaxis": sheet.bottom_axis(
            words["x"], showgrid=False, fixedrange=True, **_ticks(simulated, log_x),
            **sheet.cursor(words["x"]), range=_range(low, high, log_x),
        ),
        "yaxis": sheet.side_axis(words["y"], fixedrange=True, **_scale(line[1], simulated)),
    }  # fmt: skip
    sheet.note(
        f"{at:,.4g}", place, 1, xref="x", yref="y domain", yanchor="top", xanchor="left",
        xshift=3, on_curves=True,
    )  # fmt: skip
    return sheet.figure()


def _mark(sheet: Sheet, points: Points) -> None:
    color, symbol, size = _LOOKS[points.kind]
    tint = sheet.hue(color)
    sheet.traces.append(
        {
            "type": "scatter",
            "x": points.x,
            "y": points.y,
            "name": points.name,
            "mode": "markers",
            "cliponaxis": False,
            "marker": {
                "size": size,
                "symbol": symbol,
                "color": tint,
                "line": {"color": tint, "width": 2},
            },
            "hovertemplate": f"{points.name} <b>%{{y:,.4~g}}</b><extra></extra>",
        }
    )


def _range(low: float, high: float, log_x: bool) -> list[float]:
    """A little beyond the first and the last point."""
    if log_x:
        low, high = float(np.log10(low)), float(np.log10(high))
    margin = 0.04 * (high - low)
    return [low - margin, high + margin]


def _ticks(simulated: Sequence[Points], log_x: bool) -> dict:
    """On a log axis the points themselves; else Plotly finds good places."""
    if not log_x:
        return {"nticks": 9}
    places = simulated[0].x
    return {
        "type": "log",
        "tickvals": places,
        "ticktext": [f"{place:,.4g}" for place in places],
    }


def _scale(line_y: np.ndarray, simulated: Sequence[Points]) -> dict:
    """From zero, or a log axis where values lie far apart."""
    values = np.concatenate((line_y, *(points.y for points in simulated)))
    above = values[values > 0]
    if len(above) == len(values) and above.max() > _FAR * above.min():
        return {"type": "log", **_log_ticks(above.min(), above.max())}
    return {"rangemode": "tozero"}


def _log_ticks(low: float, high: float) -> dict:
    """Written out: Plotly shortens 200 to a 2."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    places = [step * 10.0**decade for decade in decades for step in steps]
    return {"tickvals": places, "ticktext": [f"{place:,g}" for place in places]}


def description(words: Mapping[str, str], simulated: Sequence[Points]) -> str:
    """What a screen reader says: the title, and each kind of points with its span."""
    parts = [f"{words['title']}. {words['x']}, {words['y']}."]
    for points in simulated:
        low, high = float(np.min(points.y)), float(np.max(points.y))
        parts.append(f"{points.name}: {significant(low)} – {significant(high)}.")
    return " ".join(parts)
