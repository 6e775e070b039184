"""Curves of the lesson on hardware: intensity of attention tiles, and F39's mixture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.hardware_marks import SYMBOLS, dots, log_axis, side_legend
from charts.numbers import significant
from charts.sheet import LINE_PX, Sheet

__all__ = ["Curve", "Level", "Place", "mixtures", "tiles"]

Translator = Callable[..., str]


class Level(NamedTuple):
    """The ridge of a device, and the block that reaches it."""

    name: str
    ridge: float
    needed: float
    color: str | int


def tiles(
    blocks: np.ndarray,
    intensity: np.ndarray,
    levels: Sequence[Level],
    here: tuple[float, float],
    decode: float | None,
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """Intensity of a tile over its block, with ridges; ``here`` is the chosen block's point.

    ``decode`` is the intensity of decode attention, which no block changes; None where F4b does not
    know it.
    """
    sheet = Sheet(theme, 400)
    for level in levels:
        color = sheet.hue(level.color)
        wide = 2.4 if level.color == "ink" else 1.6
        label = t("hw.tile.level", name=level.name, needed=f"{math.ceil(level.needed):,}")
        sheet.traces.append(
            {
                "type": "scatter",
                "x": [float(blocks[0]), level.needed, float(blocks[-1])],
                "y": [level.ridge] * 3,
                "name": label,
                "mode": "lines+markers",
                "marker": {"size": [0, 9, 0], "color": color},
                "line": {"color": color, "width": wide, "dash": "longdash"},
                "hovertemplate": f"{label}<extra></extra>",
            }
        )
    rows = [(intensity, t("hw.tile.prefill"), sheet.color["prefill"], "solid")]
    if decode is not None:
        level = np.full(len(blocks), decode)
        rows.append((level, t("hw.tile.decode"), sheet.color["decode"], "dot"))
    for y, name, color, dash in rows:
        sheet.traces.append(
            {
                "type": "scatter",
                "x": blocks,
                "y": y,
                "name": name,
                "mode": "lines",
                "line": {"color": color, "width": 2.4, "dash": dash},
                "hovertemplate": f"{name}: <b>%{{y:,.3~r}}</b><extra></extra>",
            }
        )
    sheet.traces.append(
        {
            **dots([here[0]], [here[1]]),
            "name": t("hw.tile.here", block=f"{here[0]:g}", intensity=significant(here[1])),
            "marker": {
                "size": 13,
                "color": sheet.color["prefill"],
                "line": {"color": sheet.color["ink"], "width": 1.6},
            },
            "hoverinfo": "skip",
        }
    )
    high = 1.4 * max([float(intensity[-1]), *(level.ridge for level in levels)])
    sheet.heading(t("hw.tile.title"), t("hw.tile.more"), 0, 1, yshift=6)
    side_legend(sheet)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 16, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            t("hw.tile.x"),
            **log_axis(float(blocks[0]), float(blocks[-1])),
        )
        | {
            "tickvals": [16, 32, 64, 128, 256, 512, 1024],
            "ticktext": ["16", "32", "64", "128", "256", "512", "1,024"],
        },
        "yaxis": sheet.side_axis(
            t("hw.roof.x"), **log_axis(0.7 * min(decode or np.inf, float(intensity[0])), high)
        ),
    }
    return sheet.figure()


class Place(NamedTuple):
    """A pair of runs: the measured share f and the ratio of throughputs; its batch."""

    share: float
    ratio: float
    batch: int


class Curve(NamedTuple):
    """F39 of a device over the share f, where it takes the printed ratio, and pairs of runs."""

    name: str
    ratio: np.ndarray
    solved: float | None
    runs: Sequence[Place]
    color: str | int


def mixtures(
    shares: np.ndarray,
    curves: Sequence[Curve],
    printed: float,
    chosen: float,
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """Throughput over the reference's against the share f of time that reading binds."""
    sheet = Sheet(theme, 420)
    for curve, symbol in zip(curves, SYMBOLS, strict=False):
        color = sheet.hue(curve.color)
        sheet.traces.append(
            {
                "type": "scatter",
                "x": 100 * shares,
                "y": curve.ratio,
                "name": curve.name
                if curve.solved is None
                else t("hw.mix.solved", name=curve.name, f=significant(100 * curve.solved)),
                "mode": "lines",
                "line": {"color": color, "width": 2.2},
                "hovertemplate": f"{curve.name}: <b>%{{y:.3~r}}</b><extra></extra>",
            }
        )
        sheet.traces.append(
            {
                **dots([100 * p.share for p in curve.runs], [p.ratio for p in curve.runs]),
                "showlegend": False,
                "customdata": [p.batch for p in curve.runs],
                "marker": {
                    "symbol": symbol,
                    "size": 10,
                    "color": color,
                    "line": {"color": sheet.color["ink"], "width": 1.2},
                },
                "hovertemplate": f"{curve.name} · {t('hw.run')} · B = %{{customdata}}: "
                "<b>%{y:.3~r}</b><extra></extra>",
            }
        )
    sheet.key(
        t("hw.mix.runs"),
        color=sheet.color["panel"],
        line={"color": sheet.color["ink"], "width": 1.4},
        symbol="circle",
    )
    sheet.traces.append(
        {
            "type": "scatter",
            "x": [0, 100],
            "y": [printed, printed],
            "name": t("hw.mix.printed", ratio=significant(printed)),
            "mode": "lines",
            "line": {"color": sheet.color["violated"], "dash": "longdash", "width": 2},
            "hoverinfo": "skip",
        }
    )
    solved = [100 * curve.solved for curve in curves if curve.solved is not None]
    sheet.traces.append(
        {
            **dots(solved, [printed] * len(solved)),
            "showlegend": False,
            "marker": {"size": 12, "symbol": "x", "color": sheet.color["violated"]},
            "hovertemplate": "f = <b>%{x:.3~r} %</b><extra></extra>",
        }
    )
    sheet.line(100 * chosen, 100 * chosen, 0, 1, color=sheet.color["muted"], dash="dot",
               xref="x", yref="y domain", layer="below")  # fmt: skip
    sheet.heading(t("hw.mix.title"), t("hw.mix.more"), 0, 1, yshift=6)
    side_legend(sheet)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 16, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            t("hw.mix.x"), range=[-2, 102], ticksuffix=" %", fixedrange=True
        ),
        "yaxis": sheet.side_axis(t("hw.mix.y"), rangemode="tozero", fixedrange=True),
    }
    return sheet.figure()
