"""How TTFT, TPOT, ITL and E2E are distributed: four curves of "so many are at most this long".

Each panel marks P50, P90 and P99 and the bound of its promise, where there is one. The curve counts
only requests that have the value; the heading says how many those are, because a request that never
got a token is in no latency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go

from charts.ecdf import Sample
from charts.latency_axis import LatencyAxis, promise, set_time, share_axis
from charts.numbers import duration, significant
from charts.palette import DASHES, GHOST, SERIES
from charts.sheet import LINE_PX, Sheet, numbered, plain
from model.metrics import e2e_s, itl_counts, tpot_s, ttft_s
from model.metrics.slo import TOLERANCE_S
from model.result import SimulationResult

__all__ = ["WORDS", "Latencies", "description", "distributions", "latencies"]

WORDS = ("ttft", "tpot", "itl", "e2e")
SHARES = (50, 90, 99)
MOST_CLASSES = len(DASHES)
HEIGHT = 560

_DECADES = 100.0  # a larger ratio of longest to shortest is drawn on a log axis
_COLUMNS = ((0.0, 0.465), (0.535, 1.0))
_ROWS = ((0.60, 1.0), (0.0, 0.40))

Translator = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Latencies:
    """What the panels show; all times in seconds.

    ``samples`` and ``bounds_s`` have one entry a word of WORDS (no bound: None). ``by_class`` has
    one such mapping a class of requests, empty where all belong to one class. ``arrived`` are the
    requests that could have had a value.
    """

    samples: Mapping[str, Sample]
    bounds_s: Mapping[str, float | None]
    arrived: int
    by_class: Mapping[str, Mapping[str, Sample]]


def latencies(result: SimulationResult, others: str = "…") -> Latencies:
    """The samples of a run. More than four classes are folded: the last is called ``others``."""
    requests = result.requests
    arrived = np.isfinite(requests["arrival_s"])
    slo = result.scenario.slo if result.scenario else None
    by_class = {}
    names, member = _classes(result, others)
    if len(names) > 1:
        by_class = {name: _samples(result, member == i) for i, name in enumerate(names)}
    return Latencies(
        _samples(result, np.ones(len(arrived), bool)),
        {
            "ttft": slo and slo.ttft_s,
            "tpot": slo and slo.tpot_s,
            "itl": None,
            "e2e": None,
        },
        int(arrived.sum()),
        by_class,
    )


def _classes(result: SimulationResult, others: str) -> tuple[list[str], np.ndarray]:
    """Names of the classes that occur, and the index of each request's."""
    classes, names = result.requests["request_class"], list(result.inputs.class_names)
    counts = np.bincount(classes, minlength=len(names))
    present = np.flatnonzero(counts)
    kept = present
    if len(present) > MOST_CLASSES:
        largest = present[np.argsort(-counts[present], kind="stable")]
        kept = np.sort(largest[: MOST_CLASSES - 1])
    member = np.full(len(counts), len(kept))
    member[kept] = np.arange(len(kept))
    shown = [names[index] for index in kept] + [others] * (len(kept) < len(present))
    return shown, member[classes]


def _samples(result: SimulationResult, mine: np.ndarray) -> dict[str, Sample]:
    requests = {name: column[mine] for name, column in result.requests.items()}
    decodes, ends = result.decodes, result.prefill_ends
    if not mine.all():
        result = replace(
            result,
            decodes={k: v[mine[decodes["request"]]] for k, v in decodes.items()},
            prefill_ends={k: v[mine[ends["request"]]] for k, v in ends.items()},
        )
    return {
        "ttft": Sample(ttft_s(requests)),
        "tpot": Sample(tpot_s(requests)),
        "itl": Sample(*itl_counts(result)),
        "e2e": Sample(e2e_s(requests)),
    }


def distributions(
    data: Latencies, t: Translator, theme: str = "light", *, baseline: Latencies | None = None
) -> go.Figure:
    """The figure; ``baseline`` adds the curve of all requests of another run as a ghost."""
    sheet = Sheet(theme, HEIGHT)
    sheet.layout["hovermode"] = "closest"
    sheet.layout["hoverdistance"] = 100
    if data.by_class or baseline:
        sheet.height += LINE_PX
        sheet.layout["margin"] = {"l": 8, "r": 8, "t": 36 + LINE_PX, "b": 8}
        sheet.legend_line(0, 0)
    for index, word in enumerate(WORDS):
        _panel(sheet, index, word, data, t, baseline)
    return sheet.figure()


def _panel(
    sheet: Sheet,
    index: int,
    word: str,
    data: Latencies,
    t: Translator,
    baseline: Latencies | None,
) -> None:
    columns, rows = _COLUMNS[index % 2], _ROWS[index // 2]
    x, y = numbered("x", index), numbered("y", index)
    sample, bound_s = data.samples[word], data.bounds_s[word]
    ghost = baseline.samples[word] if baseline else Sample(np.empty(0))
    counted = t("dist.gaps", n=sample.size)
    if word != "itl":
        counted = t("dist.requests", n=sample.size, arrived=data.arrived)
    sheet.heading(t(f"dist.{word}"), f"{t(f'dist.{word}.is')} · {counted}", columns[0], rows[1])

    axis = LatencyAxis.of((sample, ghost), bound_s, _DECADES)
    unit = t(f"unit.{axis.unit}")
    sheet.layout[numbered("xaxis", index)] = {
        **sheet.bottom_axis(t("chart.axis", name=t(f"dist.{word}"), unit=unit)),
        **axis.layout(7),
        "domain": columns,
        "anchor": y,
        "fixedrange": True,
    }
    sheet.layout[numbered("yaxis", index)] = share_axis(sheet, x, rows, 1.12)
    if not sample.size:
        middle = (sum(columns) / 2, sum(rows) / 2)
        sheet.note(t("dist.none"), *middle, font={"color": sheet.color["muted"], "size": 13})
    if bound_s is not None and sample.size:
        share = significant(100 * sample.share_within(bound_s + TOLERANCE_S))
        text = t("dist.bound", bound=set_time(bound_s, t), share=share)
        promise(sheet, x, y, axis, bound_s, text)
    if ghost.size:
        _curve(sheet, x, y, axis, ghost, t("ghost.baseline"), t, index == 0, ghost=True)
    if data.by_class:
        for place, (name, samples) in enumerate(data.by_class.items()):
            _curve(sheet, x, y, axis, samples[word], plain(name), t, index == 0, place=place)
    elif sample.size:
        _curve(sheet, x, y, axis, sample, "", t, False)
    curves = [samples[word] for samples in data.by_class.values()] or [sample]
    for place, one in enumerate(curves):
        _percentiles(sheet, x, y, axis, one, place, t, words=len(curves) == 1)


def _curve(
    sheet: Sheet,
    x: str,
    y: str,
    axis: LatencyAxis,
    sample: Sample,
    label: str,
    t: Translator,
    in_legend: bool,
    *,
    place: int = 0,
    ghost: bool = False,
) -> None:
    values, share = sample.curve(log=axis.log)
    line = {"color": SERIES[sheet.theme][place], "width": 2.2, "dash": DASHES[place]}
    if ghost:
        line = {"color": sheet.color["ink"], **GHOST}
    value = f"%{{x:,.4~g}} {t(f'unit.{axis.unit}')}"
    text = t("dist.hover", share="%{customdata:.3~g}", value=value)
    sheet.traces.append(
        {
            "type": "scatter",
            "x": values * axis.factor,
            "y": share,
            "xaxis": x,
            "yaxis": y,
            "customdata": share * 100,
            "name": label,
            "mode": "lines",
            "line": {"shape": "hv", **line},
            "legendgroup": label or None,
            "showlegend": in_legend,
            "hovertemplate": f"{label + '<br>' if label else ''}{text}<extra></extra>",
        }
    )


def _percentiles(
    sheet: Sheet,
    x: str,
    y: str,
    axis: LatencyAxis,
    sample: Sample,
    place: int,
    t: Translator,
    *,
    words: bool,
) -> None:
    """Dots at P50, P90 and P99; with one curve their values stand beside them."""
    if not sample.size:
        return
    seconds = sample.percentiles(SHARES)
    labels = [f"P{share} {duration(s, t)}" for share, s in zip(SHARES, seconds, strict=True)]
    sheet.traces.append(
        {
            "type": "scatter",
            "x": seconds * axis.factor,
            "y": np.array(SHARES) / 100,
            "xaxis": x,
            "yaxis": y,
            "mode": "markers",
            "text": labels,
            "marker": {
                "size": 8,
                "color": sheet.color["panel"],
                "line": {"width": 2, "color": SERIES[sheet.theme][place]},
            },
            "cliponaxis": False,
            "showlegend": False,
            "hovertemplate": "%{text}<extra></extra>",
        }
    )
    if not words:
        return
    for share, at_s, label in zip(SHARES, seconds, labels, strict=True):
        # A cumulative curve leaves room above it on the left and below it on the right.
        right = axis.share_of_width(at_s) < 0.7
        sheet.note(
            label,
            axis.at(at_s),
            share / 100,
            xref=x,
            yref=y,
            xanchor="left" if right else "right",
            yanchor="top" if right else "bottom",
            xshift=6 if right else -6,
            yshift=-4 if right else 3,
            on_curves=True,
        )


def description(data: Latencies, t: Translator) -> str:
    """The figure in words, for those who do not see it."""
    parts = []
    for word in WORDS:
        sample, bound_s = data.samples[word], data.bounds_s[word]
        name = t(f"dist.{word}")
        if not sample.size:
            parts.append(t("dist.alt.none", name=name))
            continue
        p50, p90, p99 = (duration(s, t) for s in sample.percentiles(SHARES))
        text = t("dist.alt.one", name=name, p50=p50, p90=p90, p99=p99)
        if bound_s is not None:
            share = significant(100 * sample.share_within(bound_s + TOLERANCE_S))
            text += t("dist.alt.bound", bound=set_time(bound_s, t), share=share)
        parts.append(text)
    text = t("dist.alt", parts=t("list.separator").join(parts))
    if data.by_class:
        text += t("dist.alt.classes", names=t("list.separator").join(data.by_class))
    return text
