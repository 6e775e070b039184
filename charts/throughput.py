"""Figures of the lesson on throughput: factors of Δ, bounds, iteration time, bands, padding.

Numbers come in as they are; what they mean is said by ``t``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.palette import SERIES, translucent
from charts.sheet import LINE_PX, Sheet

__all__ = ["Bar", "Line", "Mark", "bars", "factors", "lines", "shares"]

Translator = Callable[..., str]

_SOFT = 0.16


# -- the factors of Δ as an area -------------------------------------------------------------------


def factors(
    batch: float, lengths: float, state: str, t: Translator, theme: str = "light"
) -> go.Figure:
    """The factor 1 + Δ as a rectangle: wide by the batch, high by what prompts are charged.

    ``state``: "printed" has both, "alike" charges both sides alike (height 1), "same" runs the same
    batch on both sides (width 1). What is printed stays as an outline.
    """
    sheet = Sheet(theme, 330)
    wide = 1.0 if state == "same" else batch
    high = 1.0 if state == "alike" else lengths
    gain, wrong = SERIES[theme][3], sheet.color["violated"]
    if state != "printed":
        _outline(sheet, batch, lengths)
    _block(sheet, 0, min(1.0, wide), 0, 1.0, sheet.color["waiting"], "")
    if wide > 1:
        _block(sheet, 1, wide, 0, 1.0, gain, "")
    if high > 1:
        _block(sheet, 0, wide, 1.0, high, wrong, "/")
    top = 1 + (lengths - 1) / 2
    _words(sheet, min(wide, 1.0) / 2, 0.5, t("thr.area.one"))
    if wide > 1:
        _words(sheet, (1 + wide) / 2, 0.5, t("thr.area.batch", percent=_percent(wide - 1)))
    if high > 1:
        share = t("thr.area.lengths", percent=_percent(wide * (high - 1)))
        _words(sheet, wide / 2, top, share)
    sheet.heading(
        t(
            "thr.area.title",
            batch=significant(wide),
            lengths=significant(high),
            product=significant(wide * high),
        ),
        t("thr.area.more"),
        0,
        1,
        yshift=6,
    )
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 16, "b": 8},
        "showlegend": False,
        "hovermode": False,
        "xaxis": sheet.bottom_axis(
            t("thr.area.x"), range=[0, 1.04 * max(batch, 1)], showgrid=False, fixedrange=True
        ),
        "yaxis": sheet.axis(
            range=[0, 1.06 * max(lengths, 1)],
            title={"text": t("thr.area.y"), "font": {"size": 13}, "standoff": 6},
            showgrid=False,
            fixedrange=True,
        ),
    }
    return sheet.figure()


def _block(sheet: Sheet, x0, x1, y0, y1, color: str, shape: str) -> None:
    sheet.traces.append(
        {
            "type": "scatter",
            "x": [x0, x1, x1, x0, x0],
            "y": [y0, y0, y1, y1, y0],
            "mode": "lines",
            "fill": "toself",
            "fillcolor": translucent(color, 0.3),
            "line": {"color": color, "width": 1.5},
            "fillpattern": {
                "shape": shape,
                "fgcolor": translucent(color, 0.55),
                "bgcolor": translucent(color, 0.12 if shape else 0.3),
                "size": 9,
                "solidity": 0.2,
            },
            "hoverinfo": "skip",
        }
    )


def _outline(sheet: Sheet, wide: float, high: float) -> None:
    sheet.shapes.append(
        {
            "type": "rect",
            "x0": 0,
            "x1": wide,
            "y0": 0,
            "y1": high,
            "line": {"color": sheet.color["muted"], "width": 1.3, "dash": "4px,3px"},
            "fillcolor": "rgba(0,0,0,0)",
        }
    )


def _words(sheet: Sheet, x: float, y: float, text: str) -> None:
    sheet.note(text, x, y, xref="x", yref="y", font={"size": 14}, on_curves=True)


def _percent(share: float) -> str:
    return f"{'+' if share >= 0 else '−'}{significant(abs(share) * 100)}"


# -- bars ------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """A factor with its label; ``low`` and ``high`` span its range where there is one."""

    label: str
    value: float
    kind: str  # "claim", "bound" or "computed"
    low: float | None = None
    high: float | None = None


def bars(rows: Sequence[Bar], title: str, more: str, axis: str, theme: str = "light") -> go.Figure:
    """Factors on one scale, the first row on top."""
    sheet = Sheet(theme, 70 + 46 * len(rows))
    colors = {
        "claim": sheet.color["violated"],
        "bound": sheet.color["muted"],
        "computed": sheet.color["decode"],
    }
    most = max((row.high or row.value) for row in rows)
    sheet.traces.append(
        {
            "type": "bar",
            "orientation": "h",
            "y": [row.label for row in rows],
            "x": [row.value for row in rows],
            "marker": {
                "color": [translucent(colors[row.kind], 0.75) for row in rows],
                "line": {"color": [colors[row.kind] for row in rows], "width": 1.2},
                "pattern": {
                    "shape": ["/" if row.kind == "claim" else "" for row in rows],
                    "fgcolor": sheet.color["ground"],
                    "size": 8,
                    "solidity": 0.2,
                },
            },
            "width": 0.62,
            "hoverinfo": "skip",
        }
    )
    _ranges(sheet, [row for row in rows if row.low is not None and row.high is not None])
    for row in rows:
        sheet.note(
            f"<b>{significant(row.value)}×</b>",
            row.high or row.value,
            row.label,
            xref="x",
            yref="y",
            xanchor="left",
            xshift=8,
            font={"size": 14},
        )
    sheet.heading(title, more, 0, 1, yshift=4)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 12, "b": 8},
        "showlegend": False,
        "xaxis": sheet.bottom_axis(axis, range=[0, most * 1.14], fixedrange=True),
        "yaxis": sheet.axis(
            autorange="reversed", fixedrange=True, tickfont={"size": 13}, ticklabelstandoff=6
        ),
    }
    return sheet.figure()


def _ranges(sheet: Sheet, rows: Sequence[Bar]) -> None:
    """Whiskers of the bars that have a range."""
    sheet.traces.append(
        {
            "type": "scatter",
            "x": [row.value for row in rows],
            "y": [row.label for row in rows],
            "mode": "markers",
            "marker": {"size": 0.1, "color": sheet.color["ink"]},
            "error_x": {
                "type": "data",
                "symmetric": False,
                "array": [row.high - row.value for row in rows],
                "arrayminus": [row.value - row.low for row in rows],
                "color": sheet.color["ink"],
                "thickness": 1.6,
                "width": 6,
            },
            "hoverinfo": "skip",
        }
    )


def shares(
    groups: Mapping[str, Sequence[float]],
    names: Sequence[str],
    title: str,
    more: str,
    theme: str = "light",
) -> go.Figure:
    """Shares (0 to 1) of several things in groups beside each other, in percent."""
    sheet = Sheet(theme, 300)
    looks = ((sheet.color["muted"], "\\"), (sheet.color["decode"], ""))
    for (name, values), (color, shape) in zip(groups.items(), looks, strict=False):
        sheet.traces.append(
            {
                "type": "bar",
                "name": name,
                "x": list(names),
                "y": [100 * value for value in values],
                "text": [f"{significant(100 * value)} %" for value in values],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {
                    "color": color,
                    "line": {"color": color, "width": 1.2},
                    "pattern": {
                        "shape": shape,
                        "fgcolor": color,
                        "bgcolor": translucent(color, 0.25 if shape else 0.8),
                        "size": 7,
                        "solidity": 0.25,
                    },
                },
                "hoverinfo": "skip",
            }
        )
    sheet.heading(title, more, 0, 1, yshift=LINE_PX + 8)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 2 * LINE_PX + 16, "b": 8},
        "bargap": 0.35,
        "xaxis": sheet.axis(fixedrange=True, tickfont={"size": 13}),
        "yaxis": sheet.axis(range=[0, 118], ticksuffix=" %", nticks=6, fixedrange=True),
    }
    return sheet.figure()


# -- curves ----------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A curve over the batch; ``color`` a meaning or a place in SERIES, ``band`` its range."""

    name: str
    y: np.ndarray
    color: str | int
    dash: str = "solid"
    band: tuple[np.ndarray, np.ndarray] | None = None
    width: float = 2.2


class Mark(NamedTuple):
    """A point that a simulation gave; without a name it stands in no legend."""

    name: str
    x: float
    y: float
    color: str | int
    symbol: str = "circle"


def lines(
    x: np.ndarray,
    curves: Sequence[Line],
    marks: Sequence[Mark],
    words: Mapping[str, str],
    theme: str = "light",
    *,
    height: int = 380,
    at: Sequence[tuple[float, str]] = (),
    most: float | None = None,
    legend_lines: int = 1,
) -> go.Figure:
    """Curves with their bands; ``words`` has title, more, x, y, unit, batch, run;
    ``at`` marks batches.

    ``most`` ends the vertical axis where one curve would hide the others.
    """
    sheet = Sheet(theme, height)
    for line in curves:
        if line.band is not None:
            _band(sheet, x, line)
    for line in curves:
        sheet.traces.append(
            {
                "type": "scatter",
                "x": x,
                "y": line.y,
                "name": line.name,
                "mode": "lines",
                "line": {
                    "color": sheet.hue(line.color),
                    "width": line.width,
                    "dash": line.dash,
                },
                "hovertemplate": f"{line.name} <b>%{{y:,.3~s}}</b> {words['unit']}<extra></extra>",
            }
        )
    said = f"{words['run']} <b>%{{y:,.4~s}}</b> {words['unit']}<extra></extra>"
    for mark in marks:
        sheet.traces.append(
            {
                "type": "scatter",
                "x": [mark.x],
                "y": [mark.y],
                "name": mark.name or words["x"],
                "showlegend": bool(mark.name),
                "mode": "markers",
                "marker": {
                    "size": 11,
                    "symbol": mark.symbol,
                    "color": sheet.hue(mark.color),
                    "line": {"color": sheet.color["ink"], "width": 1.5},
                },
                "hovertemplate": said,
            }
        )
    for batch, name in at:
        place = float(np.log10(batch))
        sheet.line(
            batch, batch, 0, 1, color=sheet.color["muted"], dash="dot", width=1, yref="y domain"
        )
        sheet.note(
            name, place, 1, xref="x", yref="y domain", yanchor="top", xanchor="left", xshift=3,
            on_curves=True,
        )  # fmt: skip
    _lay_out(sheet, x, words, most, legend_lines)
    return sheet.figure()


def _band(sheet: Sheet, x: np.ndarray, line: Line) -> None:
    low, high = line.band
    sheet.traces.append(
        {
            "type": "scatter",
            "x": np.concatenate([x, x[::-1]]),
            "y": np.concatenate([high, low[::-1]]),
            "mode": "lines",
            "line": {"width": 0},
            "fill": "toself",
            "fillcolor": translucent(sheet.hue(line.color), _SOFT),
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )


def _lay_out(sheet: Sheet, x: np.ndarray, words: Mapping[str, str], most, legend_lines) -> None:
    sheet.heading(words["title"], words["more"], 0, 1, yshift=legend_lines * LINE_PX + 10)
    sheet.legend_line(0, 1)
    ticks = [value for value in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if value <= x[-1]]
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": (1 + legend_lines) * LINE_PX + 16, "b": 8},
        "hovermode": "x unified",
        "xaxis": sheet.bottom_axis(
            words["x"],
            type="log",
            range=[0, float(np.log10(x[-1]))],
            tickvals=ticks,
            ticktext=[f"{value:,}" for value in ticks],
            showgrid=False,
            fixedrange=True,
            **sheet.cursor(words["batch"]),
        ),
        "yaxis": sheet.axis(
            title={"text": words["y"], "font": {"size": 13}, "standoff": 6},
            rangemode="tozero",
            fixedrange=True,
            **({"range": [0, most]} if most else {}),
        ),
    }
