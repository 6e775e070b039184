"""A metric against one parameter: the mean over seeds, its band, and what cannot run.

Numbers make a curve, names and switches make dots. A value that cannot run is a cross at the
bottom whose hover box says why; the curve has a gap there, because nothing is known between.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import Scale, scale_of, shown, significant
from charts.palette import GHOST, SERIES, translucent
from charts.sheet import Sheet, numbered, plain
from charts.sweep_axis import ParameterAxis, is_number
from model.errors import LabError
from model.experiment import Sweep
from model.metrics import METRICS

__all__ = ["Pinned", "description", "sweep_chart"]

HEIGHT, HEIGHT_OF_TWO = 400, 600

_WRAP = 60
_CJK = 0x2E80  # the first of the characters without spaces between words
_WIDE = 30.0  # a larger ratio of highest to lowest mean is drawn on a log axis
_FAR = 2.0  # a bound beyond this multiple of the highest value is not drawn
_BAND = 0.18

Translator = Callable[..., str]


@dataclass(frozen=True)
class Pinned:
    """A run to compare with: where it lies on the swept parameter, and its summary.

    ``value`` is None where the run has no place on the axis; then only its level is drawn.
    """

    value: object
    numbers: Mapping[str, float]


def sweep_chart(
    found: Sweep,
    metric: str,
    t: Translator,
    theme: str = "light",
    *,
    second: str | None = None,
    pinned: Pinned | None = None,
    parameter: str | None = None,
    sentence: Callable[[LabError], str] = str,
    word: Callable[[object], str] = str,
) -> go.Figure:
    """The figure of one or two metrics of a sweep.

    ``parameter`` is its name on the axis (default: its path), ``sentence`` says an error in the
    reader's language, ``word`` names the values of a choice.
    """
    metrics = (metric,) if second is None else (metric, second)
    sheet = Sheet(theme, HEIGHT if second is None else HEIGHT_OF_TWO)
    axis = ParameterAxis.of(found.values, word, pinned.value if pinned else None)
    rows = ((0.0, 1.0),) if second is None else ((0.56, 1.0), (0.0, 0.44))
    last, name = numbered("y", len(metrics) - 1), parameter or found.parameter
    sheet.legend(0, 1.0)
    sheet.layout |= {
        "hovermode": "x unified" if axis.numeric else "closest",
        "hoversubplots": "axis",
        "xaxis": {
            **sheet.bottom_axis(name),
            **axis.layout(),
            **(sheet.cursor(f"{name} %{{x:,.4~g}}") if axis.numeric else {}),
            "anchor": last,
            "domain": [0, 1],
        },
    }
    for index, one in enumerate(metrics):
        _draw_row(sheet, index, rows[index], found, one, axis, pinned, t)
    _impossible(sheet, found, axis, last, sentence, t)
    if not found.runs and not found.impossible:
        muted = {"color": sheet.color["muted"], "size": 13}
        sheet.note(t("sweep.nothing"), 0.5, 0.5, font=muted)
    return sheet.figure()


class _Row(NamedTuple):
    """One metric's share of the figure: its axis, its scale, whether it is first in the legend."""

    metric: str
    yaxis: str
    scale: Scale
    first: bool


class _Curve(NamedTuple):
    """Columns in the order of the axis, scaled; nan where a value could not run."""

    x: np.ndarray
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray


def _draw_row(
    sheet: Sheet,
    index: int,
    domain: tuple[float, float],
    found: Sweep,
    metric: str,
    axis: ParameterAxis,
    pinned: Pinned | None,
    t: Translator,
) -> None:
    columns = found.curve(metric)
    level = float(pinned.numbers.get(metric, math.nan)) if pinned else math.nan
    values = np.append(columns["high"], level)
    highest = float(values[np.isfinite(values)].max(initial=0.0))
    row = _Row(metric, numbered("y", index), scale_of(metric, highest, t), index == 0)
    curve = _scaled(found, columns, axis, row.scale)
    bound_s = _bound(found, metric)
    if bound_s is not None and bound_s > _FAR * highest:
        bound_s = None  # a bound far above the picture would only flatten it
    lines = [y * row.scale.factor for y in (level, bound_s) if y is not None]
    heights = _heights(curve, lines, METRICS[metric].unit)
    log = heights.get("type") == "log"
    if log:  # an interval may reach below 0, where a logarithm ends
        bottom = 10.0 ** heights["range"][0]
        curve = curve._replace(low=np.where(curve.low < bottom, bottom, curve.low))

    seeds = t("sweep.seeds", n=int(columns["seeds"].max(initial=0)))
    more = " · ".join(filter(None, (row.scale.unit, seeds)))
    sheet.heading(t(f"measure.{metric}"), more, 0, domain[1])
    sheet.layout[numbered("yaxis", index)] = {
        **sheet.axis(domain=domain, anchor="x", fixedrange=True, nticks=6, separatethousands=True),
        **heights,
    }
    if (columns["seeds"] > 1).any():
        draw_spread = _draw_band if axis.numeric else _draw_whiskers
        draw_spread(sheet, row, curve, t(f"sweep.band.{found.band(metric)}"))
    _draw_mean(sheet, row, curve, axis, t)
    if bound_s is not None:
        _draw_bound(sheet, row, bound_s * row.scale.factor, log, t)
    if pinned is not None and math.isfinite(level):
        _draw_pinned(sheet, row, axis.at(pinned.value), level, t)


def _scaled(
    found: Sweep, columns: Mapping[str, np.ndarray], axis: ParameterAxis, scale: Scale
) -> _Curve:
    rows = {axis.at(value): [math.nan] * 3 for value in found.values}
    for i, value in enumerate(columns["value"].tolist()):
        rows[axis.at(value)] = [columns[name][i] * scale.factor for name in ("low", "mean", "high")]
    x = sorted(rows)
    return _Curve(np.array(x, float), *np.array([rows[p] for p in x], float).reshape(-1, 3).T)


def _heights(curve: _Curve, lines: list[float], unit: str) -> dict:
    """The vertical axis: from 0, or logarithmic where short times would lie on the ground."""
    values = np.concatenate((curve.mean, lines))
    values = values[np.isfinite(values)]
    if not len(values):
        return {"range": [0, 1]}
    top = float(np.nanmax(np.concatenate((values, curve.high))))
    if unit == "s" and values.min() > 0 and values.max() / values.min() > _WIDE:
        lows = curve.low[curve.low > 0]
        # An interval may reach down to 0; the axis goes as far as its mean makes worth while.
        least = max(float(lows.min(initial=np.inf)), values.min() / 3)
        ends = np.log10([min(least, values.min()) / 1.3, top * 1.3])
        decades = 10.0 ** np.arange(np.floor(ends[0]), np.ceil(ends[1]) + 1)
        ticks = decades if len(decades) > 4 else np.outer(decades, (1, 2, 5)).ravel()
        return {
            "type": "log",
            "range": ends.tolist(),
            "tickvals": ticks,
            "ticktext": [f"{tick:,g}" for tick in ticks],
        }
    bottom = min(0.0, float(values.min()))
    return {"range": [bottom, 1.15 * top if top > 0 else 1.0]}


def _bound(found: Sweep, metric: str) -> float | None:
    """The promise that a latency is held to; only TTFT and TPOT have one."""
    slo, kind = found.scenario.slo, metric.split("_")[0]
    if not metric.endswith("_s") or kind not in ("ttft", "tpot"):
        return None
    if found.parameter == f"slo.{kind}_s":
        return None  # it is the parameter itself
    return slo.ttft_s if kind == "ttft" else slo.tpot_s


def _draw_bound(sheet: Sheet, row: _Row, y: float, log: bool, t: Translator) -> None:
    color = sheet.color["violated"]
    sheet.line(0, 1, y, y, xref="paper", yref=row.yaxis, color=color, dash="solid")
    sheet.note(
        t("sweep.bound", bound=f"{y:,g}{row.scale.suffix}"),
        1,
        math.log10(y) if log else y,  # Plotly: a note stands at the logarithm, a line does not
        yref=row.yaxis,
        xanchor="right",
        yanchor="bottom",
        font={"color": color},
        on_curves=True,
    )


def _draw_whiskers(sheet: Sheet, row: _Row, curve: _Curve, label: str) -> None:
    color = SERIES[sheet.theme][0]
    sheet.traces.append(
        {
            "type": "scatter",
            "x": curve.x,
            "y": curve.mean,
            "yaxis": row.yaxis,
            "mode": "markers",
            "name": label,
            "marker": {
                "symbol": "line-ns-open",
                "size": 12,
                "color": color,
                "line": {"width": 2},
            },
            "cliponaxis": False,
            "error_y": {
                "array": np.nan_to_num(curve.high - curve.mean),
                "arrayminus": np.nan_to_num(curve.mean - curve.low),
                "color": color,
                "thickness": 2,
                "width": 8,
            },
            "legendgroup": "band",
            "showlegend": row.first,
            "hoverinfo": "skip",
        }
    )


def _draw_band(sheet: Sheet, row: _Row, curve: _Curve, label: str) -> None:
    """An area between low and high, in pieces where values are missing."""
    color = translucent(SERIES[sheet.theme][0], _BAND)
    for number, piece in enumerate(_pieces(~np.isnan(curve.mean))):
        x, low, high = curve.x[piece], curve.low[piece], curve.high[piece]
        sheet.traces.append(
            {
                "type": "scatter",
                "x": np.concatenate((x, x[::-1])),
                "y": np.concatenate((high, low[::-1])),
                "yaxis": row.yaxis,
                "mode": "lines",
                "fill": "toself",
                "fillcolor": color,
                "line": {"width": 0, "color": color},
                "name": label,
                "legendgroup": "band",
                "showlegend": row.first and number == 0,
                "hoverinfo": "skip",
            }
        )


def _pieces(there: np.ndarray) -> list[slice]:
    """Runs of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], there, [False])).astype(int)))
    return [slice(a, b) for a, b in edges.reshape(-1, 2).tolist()]


def _draw_mean(sheet: Sheet, row: _Row, curve: _Curve, axis: ParameterAxis, t: Translator) -> None:
    color = SERIES[sheet.theme][0]
    spread = [
        t("sweep.hover.band", low=significant(low), high=significant(high)) if high > low else ""
        for low, high in zip(curve.low.tolist(), curve.high.tolist(), strict=True)
    ]
    name = t(f"measure.{row.metric}")
    sheet.traces.append(
        {
            "type": "scatter",
            "x": curve.x,
            "y": curve.mean,
            "yaxis": row.yaxis,
            "mode": "lines+markers" if axis.numeric else "markers",
            "name": t("sweep.mean"),
            "line": {"width": 2.2, "color": color},
            "marker": {
                "size": 8 if axis.numeric else 11,
                "color": color,
                "line": {"width": 1.5, "color": sheet.color["panel"]},
            },
            "cliponaxis": False,
            "legendgroup": "mean",
            "showlegend": row.first,
            "customdata": spread,
            "hovertemplate": f"{name} <b>%{{y:,.4~g}}{row.scale.suffix}</b>"
            "%{customdata}<extra></extra>",
        }
    )


def _draw_pinned(sheet: Sheet, row: _Row, place: float | None, level: float, t: Translator) -> None:
    """The pinned run: its level as a thin dashed line, itself as a diamond on it."""
    ink, y = sheet.color["ink"], level * row.scale.factor
    sheet.line(0, 1, y, y, xref="paper", yref=row.yaxis, color=ink, **GHOST)
    sheet.traces.append(
        {
            "type": "scatter",
            "x": [place],
            "y": [y if place is not None else None],
            "yaxis": row.yaxis,
            "mode": "lines+markers",
            "name": t("ghost.baseline"),
            "line": {"color": ink, **GHOST},
            "marker": {
                "symbol": "diamond",
                "size": 11,
                "color": sheet.color["panel"],
                "line": {"width": 2, "color": ink},
            },
            "cliponaxis": False,
            "legendgroup": "baseline",
            "showlegend": row.first,
            "hovertemplate": f"{t('ghost.baseline')} <b>{shown(row.metric, level, t)}</b>"
            "<extra></extra>",
        }
    )


def _impossible(
    sheet: Sheet,
    found: Sweep,
    axis: ParameterAxis,
    yaxis: str,
    sentence: Callable[[LabError], str],
    t: Translator,
) -> None:
    """A cross at the bottom for each value that could not run with some or all seeds."""
    if not found.impossible:
        return
    reasons: dict[float, dict[str, list[int | None]]] = {}
    for point in found.impossible:
        why = reasons.setdefault(axis.at(point.value), {})
        why.setdefault(sentence(point.error), []).append(point.seed)
    texts = []
    for why in reasons.values():
        lines = []
        for text, seeds in why.items():
            some = [seed for seed in seeds if seed is not None]
            part = len(some) and len(some) < len(found.seeds)
            prefix = t("sweep.some_seeds", n=len(some)) if part else ""
            lines += _wrapped(prefix + text)
        texts.append("<br>".join(map(plain, lines)))
    sheet.layout["yaxis9"] = {
        "overlaying": yaxis,
        "range": [0, 1],
        "visible": False,
        "fixedrange": True,
        "anchor": "x",
    }
    sheet.traces.append(
        {
            "type": "scatter",
            "x": list(reasons),
            "y": [0.0] * len(reasons),
            "yaxis": "y9",
            "mode": "markers",
            "name": t("sweep.impossible"),
            "marker": {
                "symbol": "x",
                "size": 11,
                "color": sheet.color["violated"],
                "line": {"width": 1, "color": sheet.color["ground"]},
            },
            "cliponaxis": False,
            "customdata": texts,
            "hovertemplate": f"<b>{t('sweep.impossible')}</b><br>%{{customdata}}<extra></extra>",
        }
    )


def _wrapped(text: str) -> list[str]:
    """Lines of a text; one in Chinese has no spaces, and its characters are twice as wide."""
    if all(ord(character) < _CJK for character in text):
        return textwrap.wrap(text, _WRAP)
    width = _WRAP // 2
    return [text[i : i + width] for i in range(0, len(text), width)]


def description(found: Sweep, metric: str, t: Translator, *, parameter: str | None = None) -> str:
    """The figure in words, for those who do not see it."""
    curve = found.curve(metric)
    defined = np.flatnonzero(~np.isnan(curve["mean"]))
    name, path = t(f"measure.{metric}"), parameter or found.parameter
    if not len(defined):
        return t("sweep.alt.nothing", metric=name, parameter=path)
    means = curve["mean"][defined]
    low, high = defined[np.argmin(means)], defined[np.argmax(means)]
    impossible = len({point.value for point in found.impossible})
    return t(
        "sweep.alt",
        metric=name,
        parameter=path,
        n=len(defined),
        low=shown(metric, float(curve["mean"][low]), t),
        at_low=_said(curve["value"][low]),
        high=shown(metric, float(curve["mean"][high]), t),
        at_high=_said(curve["value"][high]),
        impossible=impossible,
    )


def _said(value: object) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value:,.4g}" if is_number(value) else str(value)
