"""What the seconds of a run went into, by device: shares side by side, and strips over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.palette import SERIES, translucent
from charts.sheet import LINE_PX, Sheet, numbered

__all__ = ["Row", "shares", "strips"]

Translator = Callable[..., str]

_STRIP_PX = 74
_LABELLED = 0.06  # smaller shares have no room for their number


class Row(NamedTuple):
    """A device's run: shares (of 1) by cause, and the same in bins, one row a cause."""

    name: str
    shares: Sequence[float]
    edges_s: np.ndarray
    strip: np.ndarray


def _looks(sheet: Sheet) -> tuple[tuple[str, str, str], ...]:
    """Key, color and pattern of each cause, in their order."""
    series = SERIES[sheet.theme]
    return (
        ("compute", series[1], "/"),
        ("weights", series[0], ""),
        ("kv", series[3], "x"),
        ("fixed", sheet.color["muted"], "\\"),
        ("idle", sheet.color["track"], ""),
    )


def _fill(sheet: Sheet, color: str, shape: str) -> dict:
    return {
        "shape": shape,
        "bgcolor": translucent(color, 0.8),
        "fgcolor": sheet.color["ground"],
        "size": 7,
        "solidity": 0.25,
    }


def shares(rows: Sequence[Row], t: Translator, theme: str = "light") -> go.Figure:
    """Shares of a run's time by cause, one bar a device."""
    sheet = Sheet(theme, 110 + 40 * len(rows))
    for place, (cause, color, shape) in enumerate(_looks(sheet)):
        values = [row.shares[place] for row in rows]
        sheet.traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": [row.name for row in rows],
                "x": [100 * value for value in values],
                "name": t(f"hw.cause.{cause}"),
                "marker": {"color": color, "pattern": _fill(sheet, color, shape)},
                "width": 0.66,
                "hovertemplate": f"%{{y}} · {t(f'hw.cause.{cause}')}: <b>%{{x:.3~r}} %</b>"
                "<extra></extra>",
            }
        )
    for row in rows:
        _numbers(sheet, row)
    sheet.heading(t("hw.causes.title"), t("hw.causes.more"), 0, 1, yshift=LINE_PX + 10)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 28, "t": 2 * LINE_PX + 16, "b": 8},
        "barmode": "stack",
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis("", range=[0, 100], ticksuffix=" %", fixedrange=True),
        "yaxis": sheet.axis(
            autorange="reversed", fixedrange=True, tickfont={"size": 13}, ticklabelstandoff=6
        ),
    }
    return sheet.figure()


def _numbers(sheet: Sheet, row: Row) -> None:
    """The larger shares of a bar, in their middles."""
    left = 0.0
    for share in row.shares:
        if share > _LABELLED:
            sheet.note(
                f"<b>{significant(100 * share, 2)} %</b>",
                100 * (left + share / 2),
                row.name,
                xref="x",
                yref="y",
                on_curves=True,
            )
        left += share


def strips(rows: Sequence[Row], t: Translator, theme: str = "light") -> go.Figure:
    """The same over time, one strip a device, on one axis of seconds."""
    sheet = Sheet(theme, 2 * LINE_PX + 50 + (_STRIP_PX + LINE_PX) * len(rows))
    last_s = max(float(row.edges_s[-1]) for row in rows)
    each = 1 / len(rows)
    inner = each * _STRIP_PX / (_STRIP_PX + LINE_PX)
    for index, row in enumerate(rows):
        top = 1 - index * each - (each - inner)
        for place, (cause, color, shape) in enumerate(_looks(sheet)):
            sheet.traces.append(
                {
                    "type": "scatter",
                    "x": np.repeat(row.edges_s, 2)[1:-1],
                    "y": np.repeat(100 * row.strip[place], 2),
                    "yaxis": numbered("y", index),
                    "name": t(f"hw.cause.{cause}"),
                    "showlegend": False,
                    "stackgroup": f"strip{index}",
                    "mode": "lines",
                    "line": {"width": 0},
                    "fillcolor": translucent(color, 0.8),
                    "fillpattern": _fill(sheet, color, shape),
                    "hovertemplate": f"{t(f'hw.cause.{cause}')}: <b>%{{y:.3~r}} %</b>"
                    "<extra></extra>",
                }
            )
        sheet.note(f"<b>{row.name}</b>", 0, top, xanchor="left", yanchor="bottom", yshift=1)
        sheet.layout[numbered("yaxis", index)] = sheet.axis(
            domain=[max(top - inner, 0.0), top], range=[0, 100], tickvals=[0, 50, 100],
            ticktext=["0", "50", "100 %"], fixedrange=True,
        )  # fmt: skip
    sheet.heading(t("hw.strips.title"), t("hw.strips.more"), 0, 1, yshift=2)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 12, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            t("hw.strips.x"),
            range=[0, last_s],
            fixedrange=True,
            anchor=numbered("y", len(rows) - 1),
        ),
    }
    return sheet.figure()
