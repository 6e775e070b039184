"""Figures of the lesson on SLOs: curves in rows that share one axis, with bounds and bands.

A row has its own vertical axis and says what it is above itself; the legend stands once. What the
numbers mean is said by the caller's words; ``percent`` and ``log`` say how an axis is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.palette import translucent
from charts.sheet import LINE_PX, Sheet, numbered

__all__ = ["Bar", "Curve", "Level", "Place", "Row", "bars", "rows"]

_BAND = 0.16
_GAP_PX = 64  # between rows: ticks of the one above, heading of the one below
_ROW_PX = 19  # of the words of places that lie close together


class Level(NamedTuple):
    """A horizontal line across a row, with words at its left or right end."""

    y: float
    words: str
    color: str = "violated"
    dash: str = "solid"
    end: str = "left"


class Place(NamedTuple):
    """A vertical line through all rows, with words at its top; ``row`` keeps neighbors apart."""

    x: float
    words: str = ""
    color: str | int = "muted"
    row: int = 0


class Curve(NamedTuple):
    """A line; ``color`` is a meaning or a place in SERIES, ``band`` its interval.

    ``hollow`` says which points are drawn as rings, ``marks`` whether points are drawn at all;
    ``steps`` keeps a value until the next one. Curves of the same name stand once in the legend.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    color: str | int
    dash: str = "solid"
    marks: bool = True
    band: tuple[np.ndarray, np.ndarray] | None = None
    hollow: np.ndarray | None = None
    steps: bool = False
    width: float = 2.2


class Row(NamedTuple):
    """Curves over the shared axis; ``unit`` follows a number under the mouse."""

    title: str
    more: str
    unit: str
    curves: Sequence[Curve]
    levels: Sequence[Level] = ()
    top: float | None = None
    log: bool = False


def rows(
    parts: Sequence[Row],
    x_title: str,
    x_says: str,
    theme: str = "light",
    *,
    height: int = 400,
    log_x: Sequence[float] | None = None,
    x_range: tuple[float, float] | None = None,
    at: Sequence[Place] = (),
    legend_lines: int = 1,
) -> go.Figure:
    """The figure. ``log_x`` are the ticks of a logarithmic axis, ``at`` marks places on it.

    ``x_says`` stands before the value in the box under the mouse.
    """
    sheet = Sheet(theme, height)
    domains = _domains(len(parts), height, legend_lines)
    seen: set[str] = set()
    for index, (row, domain) in enumerate(zip(parts, domains, strict=True)):
        yaxis = numbered("y", index)
        for curve in row.curves:
            _draw(sheet, row, curve, yaxis, curve.name not in seen)
            seen.add(curve.name)
        for level in row.levels:
            _level(sheet, level, yaxis, row.log)
        above = legend_lines * LINE_PX + 10 if index == 0 else 4
        sheet.heading(row.title, row.more, 0, domain[1], yshift=above)
        sheet.layout[numbered("yaxis", index)] = {
            **sheet.axis(
                domain=domain, anchor="x", fixedrange=True, nticks=6, separatethousands=True
            ),
            **_heights(row),
        }
    _places(sheet, at, log_x is not None)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": (1 + legend_lines) * LINE_PX + 16, "b": 8},
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "xaxis": {
            **sheet.bottom_axis(x_title, fixedrange=True, showgrid=False, **sheet.cursor(x_says)),
            **_across(log_x, x_range),
            "anchor": numbered("y", len(parts) - 1),
            "domain": [0, 1],
        },
    }
    return sheet.figure()


def _domains(n: int, height: int, legend_lines: int) -> list[tuple[float, float]]:
    inner = height - (1 + legend_lines) * LINE_PX - 60
    gap = _GAP_PX / inner
    each = (1 - gap * (n - 1)) / n
    tops = [1 - i * (each + gap) for i in range(n)]
    return [(max(top - each, 0.0), top) for top in tops]


def _heights(row: Row) -> dict:
    values = [curve.y for curve in row.curves] + [np.array([level.y for level in row.levels])]
    found = np.concatenate(values).astype(float)
    found = found[np.isfinite(found)]
    if row.log:
        found = found[found > 0]
        if not len(found):
            return {}
        low, high = np.log10(found.min() / 1.4), np.log10(min(found.max(), row.top or np.inf) * 1.6)
        decades = np.outer(10.0 ** np.arange(np.floor(low), np.ceil(high) + 1), (1, 2, 5)).ravel()
        ticks = decades if high - low < 2.2 else decades[::3]
        return {
            "type": "log",
            "range": [low, high],
            "tickvals": ticks,
            "ticktext": [f"{tick:,g}" for tick in ticks],
        }
    top = row.top or (1.15 * float(found.max()) if len(found) else 1.0)
    return {"range": [0, top or 1.0]}


def _across(log_x: Sequence[float] | None, x_range: tuple[float, float] | None) -> dict:
    if log_x is not None:
        ends = np.log10([min(log_x) / 1.1, max(log_x) * 1.1])
        return {
            "type": "log",
            "range": ends.tolist(),
            "tickvals": list(log_x),
            "ticktext": [f"{tick:,g}" for tick in log_x],
        }
    return {"range": list(x_range)} if x_range else {"rangemode": "tozero"}


def _draw(sheet: Sheet, row: Row, curve: Curve, yaxis: str, first: bool) -> None:
    color = sheet.hue(curve.color)
    if curve.band is not None:
        low, high = curve.band
        there = ~(np.isnan(low) | np.isnan(high))
        x = curve.x[there]
        sheet.traces.append(
            {
                "type": "scatter",
                "x": np.concatenate((x, x[::-1])),
                "y": np.concatenate((high[there], low[there][::-1])),
                "yaxis": yaxis,
                "mode": "lines",
                "line": {"width": 0},
                "fill": "toself",
                "fillcolor": translucent(color, _BAND),
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    fills = np.full(len(curve.x), color, dtype=object)
    if curve.hollow is not None:
        fills[curve.hollow] = sheet.color["panel"]
    marker = {"size": 8, "color": fills.tolist(), "line": {"width": 1.8, "color": color}}
    sheet.traces.append(
        {
            "type": "scatter",
            "x": curve.x,
            "y": curve.y,
            "yaxis": yaxis,
            "name": curve.name,
            "legendgroup": curve.name,
            "showlegend": first,
            "mode": "lines+markers" if curve.marks else "lines",
            "line": {
                "color": color,
                "width": curve.width,
                "dash": curve.dash,
                "shape": "hv" if curve.steps else "linear",
            },
            **({"marker": marker} if curve.marks else {}),
            "hovertemplate": f"{curve.name} <b>%{{y:,.3~r}}</b>{row.unit}<extra></extra>",
        }
    )


def _level(sheet: Sheet, level: Level, yaxis: str, log: bool) -> None:
    color = sheet.hue(level.color)
    sheet.line(0, 1, level.y, level.y, xref="paper", yref=yaxis, color=color, dash=level.dash)
    sheet.note(
        level.words,
        float(level.end == "right"),
        float(np.log10(level.y)) if log else level.y,
        yref=yaxis,
        xanchor=level.end,
        xshift=4 if level.end == "left" else 0,
        yanchor="bottom",
        font={"color": color},
        on_curves=True,
    )


def _places(sheet: Sheet, at: Sequence[Place], log: bool) -> None:
    for x, words, color, row in at:
        line = {"color": sheet.hue(color), "dash": "dot", "width": 1.4}
        sheet.line(x, x, 0, 1, xref="x", yref="paper", **line)
        if words:
            sheet.note(
                words,
                float(np.log10(x)) if log else x,
                1,
                xref="x",
                yref="paper",
                yanchor="top",
                xanchor="left",
                xshift=4,
                yshift=-_ROW_PX * row,
                on_curves=True,
            )


# -- bars ------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """A length with its label; ``formula`` is what a formula says of it, drawn as a tick."""

    label: str
    value: float
    color: str
    formula: float | None = None


def bars(
    parts: Sequence[Bar],
    title: str,
    more: str,
    axis: str,
    unit: str,
    formula: str,
    theme: str = "light",
    *,
    level: Level | None = None,
) -> go.Figure:
    """Lengths on one scale, the first on top; ``formula`` names the ticks in the legend."""
    sheet = Sheet(theme, 92 + 46 * len(parts))
    colors = [sheet.color[part.color] for part in parts]
    labels = [part.label for part in parts]
    sheet.traces.append(
        {
            "type": "bar",
            "orientation": "h",
            "y": labels,
            "x": [part.value for part in parts],
            "marker": {
                "color": [translucent(color, 0.75) for color in colors],
                "line": {"color": colors, "width": 1.2},
            },
            "width": 0.6,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )
    said = [part for part in parts if part.formula is not None]
    sheet.traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": formula,
            "y": [part.label for part in said],
            "x": [part.formula for part in said],
            "marker": {
                "symbol": "line-ns-open",
                "size": 26,
                "color": sheet.color["ink"],
                "line": {"width": 2.4, "color": sheet.color["ink"]},
            },
            "hoverinfo": "skip",
        }
    )
    most = max(part.value for part in parts)
    for part in parts:
        sheet.note(
            f"<b>{significant(part.value)}</b>{unit}",
            part.value,
            part.label,
            xref="x",
            yref="y",
            xanchor="left",
            xshift=9,
            font={"size": 14},
        )
    if level is not None and level.y < most * 1.15:
        color = sheet.hue(level.color)
        sheet.line(level.y, level.y, 0, 1, yref="paper", color=color, dash=level.dash)
        tick = {"symbol": "line-ns-open", "line": {"width": 2.4, "color": color}, "color": color}
        sheet.key(level.words, **tick)
    sheet.heading(title, more, 0, 1, yshift=LINE_PX + 8)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 2 * LINE_PX + 14, "b": 8},
        "hovermode": False,
        "xaxis": sheet.bottom_axis(axis, range=[0, most * 1.2], fixedrange=True),
        "yaxis": sheet.axis(
            autorange="reversed", fixedrange=True, tickfont={"size": 13}, ticklabelstandoff=6
        ),
    }
    return sheet.figure()
