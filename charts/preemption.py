"""Figures of the lesson on preemption: costs over length, ratios by model, chances.

Numbers come in as they are; what they mean is said by the words that come with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.palette import pattern
from charts.sheet import LINE_PX, Sheet
from charts.throughput import Line, Mark

__all__ = ["Border", "Line", "Mark", "Ratio", "chances", "curves", "ratios"]

_ROW_PX = 24
_DECADES = range(-7, 12)


class Border(NamedTuple):
    """A value of the horizontal axis with its words; ``row`` keeps neighbors apart."""

    x: float
    words: str
    dash: str = "solid"
    row: int = 0


class Ratio(NamedTuple):
    """A model's R̂ on the device in question, the same on all others, and words beside it."""

    name: str
    value: float
    others: tuple[tuple[str, float], ...]
    more: str = ""


# -- curves ----------------------------------------------------------------------------------------


def curves(
    x: np.ndarray,
    lines: Sequence[Line],
    words: Mapping[str, str],
    theme: str = "light",
    *,
    marks: Sequence[Mark] = (),
    borders: Sequence[Border] = (),
    across: tuple[float, str] | None = None,
    y_range: tuple[float, float] | None = None,
    log: tuple[bool, bool] = (True, True),
    height: int = 400,
    legend_lines: int = 1,
) -> go.Figure:
    """Curves on logarithmic (or linear) axes; ``words`` has title, more, x, y, unit, at.

    ``across`` is a horizontal limit with its words. What is drawn of the vertical axis is
    ``y_range``, or what the curves need.
    """
    sheet = Sheet(theme, height)
    for line in lines:
        sheet.traces.append(
            {
                "type": "scatter",
                "x": x,
                "y": line.y,
                "name": line.name,
                "mode": "lines",
                "line": {"color": sheet.hue(line.color), "width": line.width,
                         "dash": line.dash},
                "hovertemplate": f"{line.name} <b>%{{y:,.3~s}}</b> {words['unit']}<extra></extra>",
            }
        )  # fmt: skip
    for mark in marks:
        sheet.traces.append(_mark(sheet, mark, words["unit"]))
    for border in borders:
        _border(sheet, border, log[0], (float(x[0]), float(x[-1])))
    if across is not None:
        _across(sheet, *across, log[1])
    low, high = y_range or _reach(lines)
    sheet.heading(words["title"], words["more"], 0, 1, yshift=legend_lines * LINE_PX + 10)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": (1 + legend_lines) * LINE_PX + 16, "b": 8},
        "hovermode": "x unified",
        "xaxis": sheet.bottom_axis(
            words["x"],
            showgrid=False,
            fixedrange=True,
            **_scale(float(x[0]), float(x[-1]), log[0], binary=True),
            **sheet.cursor(words["at"]),
        ),
        "yaxis": sheet.side_axis(
            words["y"],
            fixedrange=True,
            **_scale(low, high, log[1]),
        ),
    }
    return sheet.figure()


def _mark(sheet: Sheet, mark: Mark, unit: str) -> dict:
    return {
        "type": "scatter",
        "x": [mark.x],
        "y": [mark.y],
        "name": mark.name,
        "showlegend": bool(mark.name),
        "mode": "markers",
        "marker": {
            "size": 11,
            "symbol": mark.symbol,
            "color": sheet.hue(mark.color),
            "line": {"color": sheet.color["ink"], "width": 1.5},
        },
        "hovertemplate": f"{mark.name} <b>%{{y:,.3~s}}</b> {unit}<extra></extra>",
    }


def _border(sheet: Sheet, border: Border, log: bool, ends: tuple[float, float]) -> None:
    place, first, last = (np.log10([border.x, *ends]) if log else (border.x, *ends))
    is_late = place - first > 0.7 * (last - first)  # words to its right would leave the picture
    sheet.line(
        border.x, border.x, 0, 1, color=sheet.color["muted"], dash=border.dash, width=1.4,
        yref="y domain",
    )  # fmt: skip
    sheet.note(
        border.words,
        float(place),
        1,
        xref="x",
        yref="y domain",
        yanchor="top",
        xanchor="right" if is_late else "left",
        xshift=-3 if is_late else 3,
        yshift=-3 - 19 * border.row,
        on_curves=True,
    )


def _across(sheet: Sheet, value: float, words: str, log: bool) -> None:
    sheet.line(
        0, 1, value, value, color=sheet.color["violated"], dash="longdash", width=1.6,
        xref="x domain",
    )  # fmt: skip
    sheet.note(
        words, 0, float(np.log10(value)) if log else value,
        xref="x domain", yref="y", xanchor="left", yanchor="bottom", xshift=4, on_curves=True,
        font={"color": sheet.color["violated"]},
    )  # fmt: skip


def _reach(lines: Sequence[Line]) -> tuple[float, float]:
    values = np.concatenate([line.y[np.isfinite(line.y) & (line.y > 0)] for line in lines])
    return float(values.min()) / 1.3, float(values.max()) * 1.6


def _scale(low: float, high: float, log: bool, binary: bool = False) -> dict:
    """An axis from ``low`` to ``high``; logarithmic ones have few ticks that people can read."""
    if not log:
        return {"range": [low, high], "nticks": 8}
    if binary:
        step = 2 if high > 1024 else 1
        ticks = [2.0**k for k in range(0, 24, step)]
        names = [f"{tick:,.0f}" for tick in ticks]
    else:
        ticks = [10.0**k for k in _DECADES]
        names = [f"{tick:,.0f}" if tick >= 1 else f"{tick:.{-k}f}"
                 for tick, k in zip(ticks, _DECADES, strict=True)]  # fmt: skip
    shown = [place for place, tick in enumerate(ticks) if low <= tick <= high]
    return {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickvals": [ticks[place] for place in shown],
        "ticktext": [names[place] for place in shown],
    }


# -- R̂ of every model ------------------------------------------------------------------------------


def ratios(rows: Sequence[Ratio], words: Mapping[str, str], theme: str = "light") -> go.Figure:
    """R̂ by model on a logarithmic axis, the line R̂ = 1, values printed.

    ``words`` has title, more, x, swap, recompute, others. Left of the line a swap is cheaper per
    token (a dot), right of it a recomputation (a diamond); short strokes are the other devices.
    """
    sheet = Sheet(theme, 110 + _ROW_PX * len(rows))
    spread = [(row.name, value, name) for row in rows for name, value in row.others]
    sheet.traces.append(
        {
            "type": "scatter",
            "x": [value for _, value, _ in spread],
            "y": [name for name, _, _ in spread],
            "customdata": [device for _, _, device in spread],
            "name": words["others"],
            "mode": "markers",
            "marker": {
                "symbol": "line-ns-open",
                "size": 9,
                "color": sheet.color["muted"],
                "line": {"width": 1.3, "color": sheet.color["muted"]},
                "opacity": 0.6,
            },
            "hovertemplate": "%{y} · %{customdata}: <b>%{x:.3f}</b><extra></extra>",
        }
    )
    for meaning, symbol, wins in (
        ("swap", "circle", [row for row in rows if row.value <= 1]),
        ("recompute", "diamond", [row for row in rows if row.value > 1]),
    ):
        sheet.traces.append(
            {
                "type": "scatter",
                "x": [row.value for row in wins] or [None],
                "y": [row.name for row in wins] or [None],
                "name": words[meaning],
                "mode": "markers",
                "marker": {
                    "symbol": symbol,
                    "size": 12,
                    "color": sheet.color[meaning],
                    "line": {"color": sheet.color["ink"], "width": 1.2},
                },
                "hovertemplate": "%{y}: <b>%{x:.3f}</b><extra></extra>",
            }
        )
    every = [row.value for row in rows] + [value for _, value, _ in spread]
    low, high = min([*every, 0.5]) / 1.5, max([*every, 1.5])
    for row in rows:  # in a column of their own: no dot of another device is written over
        said = f"<b>{significant(row.value)}</b>" + (f" · {row.more}" if row.more else "")
        sheet.note(said, 1, row.name, xref="paper", yref="y", xanchor="right", xshift=-6)
    sheet.line(1, 1, 0, 1, color=sheet.color["ink"], dash="solid", width=1.6, yref="y domain")
    sheet.heading(words["title"], words["more"], 0, 1, yshift=LINE_PX + 10)
    sheet.legend_line(0, 1)
    ticks = [value for value in (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30) if low <= value <= high]
    room = (high / low) ** 0.32  # for the column
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 2 * LINE_PX + 16, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            words["x"],
            type="log",
            range=[float(np.log10(low)), float(np.log10(high * room))],
            tickvals=ticks,
            ticktext=[f"{tick:g}" for tick in ticks],
            fixedrange=True,
        ),
        "yaxis": sheet.axis(
            type="category",
            categoryorder="array",
            categoryarray=[row.name for row in rows],
            range=[len(rows) - 0.4, -0.6],
            fixedrange=True,
        ),
    }
    return sheet.figure()


# -- chances ---------------------------------------------------------------------------------------


def chances(
    measured: Sequence[float], chance: float, words: Mapping[str, str], theme: str = "light"
) -> go.Figure:
    """Shares preempted at least k = 1, 2, … times: bars measured, points ``chance`` to the k.

    There is room for a dozen. ``words`` has title, more, x, y, measured, formula.
    """
    sheet = Sheet(theme, 340)
    times = list(range(1, len(measured) + 1))
    sheet.traces += [
        {
            "type": "bar",
            "name": words["measured"],
            "x": times,
            "y": [100 * share for share in measured],
            "width": 0.6,
            "marker": {
                "color": sheet.color["recompute"],
                "line": {"color": sheet.color["recompute"], "width": 1.2},
                "pattern": pattern("recompute", theme),
            },
            "hovertemplate": "<b>%{y:.3g} %</b><extra></extra>",
        },
        {
            "type": "scatter",
            "name": words["formula"],
            "x": times,
            "y": [100 * chance**k for k in times],
            "mode": "lines+markers",
            "line": {"color": sheet.color["ink"], "width": 1.3, "dash": "dot"},
            "marker": {"size": 9, "symbol": "diamond", "color": sheet.color["ink"]},
            "hovertemplate": "<b>%{y:.3g} %</b><extra></extra>",
        },
    ]
    for k, share in zip(times, measured, strict=True):
        top = max(share, chance**k) * 100
        sheet.note(f"{significant(100 * share, 2)} %", k, top, xref="x", yref="y", yanchor="bottom",
                   yshift=8, on_curves=True)  # fmt: skip
    sheet.heading(words["title"], words["more"], 0, 1, yshift=LINE_PX + 10)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 2 * LINE_PX + 16, "b": 8},
        "xaxis": sheet.bottom_axis(
            words["x"], range=[0.4, len(times) + 0.6], dtick=1,
            fixedrange=True, showgrid=False,
        ),
        "yaxis": sheet.side_axis(
            words["y"],
            range=[0, max(*measured, chance) * 118],
            ticksuffix=" %",
            nticks=6,
            fixedrange=True,
        ),
    }  # fmt: skip
    return sheet.figure()
