"""Figures of the lesson on hardware: roofs, critical batches, Δ by device.

Numbers come in as they are; what they mean is said by ``t``. A device has the same color in all
figures: "ink" is the scenario's own, the others take places in SERIES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.hardware_marks import SYMBOLS, dots, log_axis, side_legend
from charts.numbers import significant
from charts.palette import SERIES
from charts.sheet import LINE_PX, Sheet

__all__ = [
    "Batches", "Gain", "Roof", "Spot",
    "batches", "gains", "roofline",
]  # fmt: skip

Translator = Callable[..., str]

_TERA = 1e12


# -- roofs -----------------------------------------------------------------------------------------


class Roof(NamedTuple):
    """FLOP/s and bytes/s of one GPU, at peak and as achieved."""

    name: str
    flop_per_s: float
    bytes_per_s: float
    achieved_flop_per_s: float
    achieved_bytes_per_s: float
    color: str | int


class Spot(NamedTuple):
    """An iteration: FLOP/byte and FLOP/s, computed and simulated (None: not run)."""

    name: str
    kind: str
    intensity: float
    flop_per_s: float
    run_intensity: float | None
    run_flop_per_s: float | None


def roofline(
    roofs: Sequence[Roof], spots: Sequence[Spot], t: Translator, theme: str = "light"
) -> go.Figure:
    """FLOP/s of one GPU over intensity: roofs at peak (solid), as achieved (dashed), iterations."""
    sheet = Sheet(theme, 440)
    intensities = [spot.intensity for spot in spots] + [_ridge(roof) for roof in roofs]
    left, right = 0.5 * min(intensities), 3 * max(intensities)
    for roof in roofs:
        _roof(sheet, roof, left, right, t)
    for spot, symbol in zip(spots, _spot_symbols(spots), strict=True):
        _spot(sheet, spot, symbol, t)
    sheet.traces.append(
        {
            **dots([s.run_intensity for s in spots], [_tera(s.run_flop_per_s) for s in spots]),
            "name": t("hw.run"),
            "marker": {
                "symbol": "circle-open",
                "size": 18,
                "color": sheet.color["ink"],
                "line": {"width": 1.6},
            },
            "hoverinfo": "skip",
        }
    )
    highest = max(roof.flop_per_s for roof in roofs) / _TERA
    lowest = min(spot.flop_per_s for spot in spots) / _TERA
    sheet.heading(t("hw.roof.title"), t("hw.roof.more"), 0, 1, yshift=6)
    side_legend(sheet)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": LINE_PX + 16, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(t("hw.roof.x"), **log_axis(left, right)),
        "yaxis": sheet.side_axis(t("hw.roof.y"), **log_axis(0.5 * lowest, 2 * highest)),
    }
    return sheet.figure()


def _ridge(roof: Roof) -> float:
    return roof.flop_per_s / roof.bytes_per_s


def _tera(flop_per_s: float | None) -> float | None:
    return None if flop_per_s is None else flop_per_s / _TERA


def _spot_symbols(spots: Sequence[Spot]) -> list[str]:
    decodes = iter(SYMBOLS)
    return ["star" if spot.kind == "prefill" else next(decodes) for spot in spots]


def _roof(sheet: Sheet, roof: Roof, left: float, right: float, t: Translator) -> None:
    color = sheet.hue(roof.color)
    wide = 2.6 if roof.color == "ink" else 1.8
    for flop, moved, dash in (
        (roof.flop_per_s, roof.bytes_per_s, "solid"),
        (roof.achieved_flop_per_s, roof.achieved_bytes_per_s, "dash"),
    ):
        solid, ridge = dash == "solid", flop / moved
        x = [left, ridge, right]
        y = [moved * left / _TERA, flop / _TERA, flop / _TERA]
        sheet.traces.append(
            {
                "type": "scatter",
                "x": x,
                "y": y,
                "name": t("hw.roof.ridge", name=roof.name, ridge=significant(ridge)),
                "showlegend": solid,
                "mode": "lines+markers" if solid else "lines",
                "marker": {"size": [0, 8, 0], "symbol": "line-ns-open", "color": color},
                "line": {"color": color, "width": wide if solid else 1.2, "dash": dash},
                "hovertemplate": f"{roof.name}: <b>%{{y:,.3~s}}</b> TFLOP/s<extra></extra>",
            }
        )


def _spot(sheet: Sheet, spot: Spot, symbol: str, t: Translator) -> None:
    color = sheet.color[spot.kind]
    sheet.line(
        spot.intensity, spot.intensity, 0, 1,
        color=color, dash="dot", width=1, xref="x", yref="y domain", layer="below",
    )  # fmt: skip
    about = t(
        "hw.roof.hover",
        name=spot.name,
        intensity=significant(spot.intensity),
        flop=significant(spot.flop_per_s / _TERA),
    )
    sheet.traces.append(
        {
            **dots([spot.intensity], [spot.flop_per_s / _TERA]),
            "name": spot.name,
            "marker": {
                "symbol": symbol,
                "size": 10,
                "color": color,
                "line": {"color": sheet.color["ground"], "width": 1},
            },
            "hovertemplate": f"{about}<extra></extra>",
        }
    )


# -- batches on one line a device ------------------------------------------------------------------


class Batches(NamedTuple):
    """Of a device: F6 at peak, F6 as achieved, the run's, F5's in context, and what memory holds.

    None where there is no such batch.
    """

    name: str
    peak: float
    achieved: float
    run: float | None
    in_context: float | None
    memory_holds: float | None


def batches(
    rows: Sequence[Batches],
    at: Sequence[tuple[float, str]],
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """Batches on a logarithmic scale, one line a device; ``at`` marks batches over all lines."""
    sheet = Sheet(theme, 130 + 40 * len(rows))
    looks = (
        ("achieved", "circle", sheet.color["decode"], 13),
        ("run", "circle-open", sheet.color["ink"], 19),
        ("peak", "circle-open", sheet.color["decode"], 11),
        ("in_context", "diamond", SERIES[theme][2], 12),
        ("memory_holds", "line-ns-open", sheet.color["muted"], 20),
    )
    names = [row.name for row in rows]
    for field, symbol, color, size in looks:
        label = t(f"hw.batches.{field}")
        sheet.traces.append(
            {
                **dots([getattr(row, field) for row in rows], names),
                "name": label,
                "marker": {
                    "symbol": symbol,
                    "size": size,
                    "color": color,
                    "line": {"width": 2.4 if field == "memory_holds" else 1.6, "color": color},
                },
                "hovertemplate": f"%{{y}} · {label}: <b>%{{x:,.4~r}}</b><extra></extra>",
            }
        )
    shown = [value for row in rows for value in row[1:] if value] + [batch for batch, _ in at]
    low, high = max(0.7 * min(shown), 0.7), 1.5 * max(shown)
    for batch, name in at:
        sheet.line(batch, batch, 0, 1, color=sheet.color["muted"], dash="dot", width=1,
                   xref="x", yref="y domain", layer="below")  # fmt: skip
        sheet.note(name, float(np.log10(batch)), 1, xref="x", yref="y domain", yanchor="bottom")
    sheet.heading(t("hw.batches.title"), t("hw.batches.more"), 0, 1, yshift=2 * LINE_PX + 4)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 3 * LINE_PX + 10, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(t("hw.batches.x"), **log_axis(low, high)),
        "yaxis": sheet.axis(
            autorange="reversed", fixedrange=True, tickfont={"size": 13}, ticklabelstandoff=6
        ),
    }
    return sheet.figure()


# -- Δ by device -----------------------------------------------------------------------------------


class Gain(NamedTuple):
    """Δ of a device by formula and in simulation, as shares."""

    name: str
    formula: float
    simulated: float


def gains(
    rows: Sequence[Gain],
    reference: float,
    printed: float,
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """Δ in percent, one bar a device; lines at the reference's Δ and at what is printed of it."""
    sheet = Sheet(theme, 130 + 42 * len(rows))
    names = [row.name for row in rows]
    sheet.traces.append(
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": [100 * row.formula for row in rows],
            "name": t("hw.gain.formula"),
            "marker": {"color": sheet.color["decode"], "opacity": 0.7},
            "width": 0.5,
            "hovertemplate": "%{y}: <b>%{x:+.3~r} %</b><extra></extra>",
        }
    )
    sheet.traces.append(
        {
            **dots([100 * row.simulated for row in rows], names),
            "name": t("hw.run"),
            "marker": {
                "symbol": "circle-open",
                "size": 15,
                "color": sheet.color["ink"],
                "line": {"width": 2},
            },
            "hovertemplate": "%{y}: <b>%{x:+.3~r} %</b><extra></extra>",
        }
    )
    for value, color, dash, key in (
        (reference, sheet.color["muted"], "dot", "hw.gain.reference"),
        (printed, sheet.color["violated"], "dash", "hw.gain.printed"),
    ):
        sheet.traces.append(
            {
                "type": "scatter",
                "x": [100 * value] * len(names),
                "y": names,
                "mode": "lines",
                "name": t(key, percent=significant(100 * value)),
                "line": {"color": color, "dash": dash, "width": 2},
                "hoverinfo": "skip",
            }
        )
    sheet.heading(t("hw.gain.title"), t("hw.gain.more"), 0, 1, yshift=LINE_PX + 10)
    sheet.legend_line(0, 1)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": 2 * LINE_PX + 16, "b": 8},
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            t("hw.gain.x"), rangemode="tozero", ticksuffix=" %", fixedrange=True
        ),
        "yaxis": sheet.axis(
            autorange="reversed", fixedrange=True, tickfont={"size": 13}, ticklabelstandoff=6
        ),
    }
    return sheet.figure()
