"""Figures of the lesson on prefix caching: what of the prompts was found, and what was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from charts.palette import pattern
from charts.sheet import LINE_PX, Sheet

__all__ = ["Part", "stacked"]


class Part(NamedTuple):
    """Tokens of every bar that mean the same: "free" was found, "prefill" computed."""

    name: str
    tokens: Sequence[float]
    meaning: str


def stacked(
    bars: Sequence[str] | tuple[Sequence[str], Sequence[str]],
    parts: Sequence[Part],
    words: Mapping[str, str],
    theme: str = "light",
    *,
    formula: Sequence[float] = (),
    height: int = 380,
    legend_lines: int = 1,
) -> go.Figure:
    """Upright bars of parts; ``words`` has title, more, x, y, unit and, with ``formula``, formula.

    ``bars`` are labels, or groups and labels for two lines of them. ``formula`` marks a height in
    every bar; a legend that is long for its figure needs more ``legend_lines``.
    """
    sheet = Sheet(theme, height)
    grouped = isinstance(bars, tuple)
    labels = [list(line) for line in bars] if grouped else list(bars)
    for part in parts:
        color = sheet.color[part.meaning]
        sheet.traces.append(
            {
                "type": "bar",
                "name": part.name,
                "x": labels,
                "y": list(part.tokens),
                "width": 0.66,
                "marker": {
                    "color": color,
                    "line": {"color": color, "width": 1.2},
                    "pattern": pattern(part.meaning, theme),
                },
                "hovertemplate": f"{part.name} <b>%{{y:,}}</b> {words['unit']}<extra></extra>",
            }
        )
    if len(formula):
        sheet.traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": words["formula"],
                "x": labels,
                "y": list(formula),
                "marker": {
                    "symbol": "diamond",
                    "size": 9,
                    "color": sheet.color["ink"],
                    "line": {"color": sheet.color["ground"], "width": 1},
                },
                "hovertemplate": f"{words['formula']} <b>%{{y:,}}</b><extra></extra>",
            }
        )
    sheet.heading(words["title"], words["more"], 0, 1, yshift=legend_lines * LINE_PX + 10)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "barmode": "stack",
        "margin": {"l": 8, "r": 8, "t": (1 + legend_lines) * LINE_PX + 16, "b": 8},
        "hovermode": "x unified",
        "xaxis": sheet.bottom_axis(
            words["x"],
            type="multicategory" if grouped else "category",
            showgrid=False,
            fixedrange=True,
        ),
        "yaxis": sheet.side_axis(
            words["y"],
            rangemode="tozero",
            separatethousands=True,
            nticks=6,
            fixedrange=True,
        ),
    }
    return sheet.figure()
