"""How TTFT, TPOT and ITL are distributed under several policies: cumulative curves in one picture.

One panel a latency, one curve a policy, told apart by color and dash; the bound of the promise is a
line. What a request never got is in no curve, so a curve tells nothing of those who got no token:
the table's attainment does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from charts.ecdf import Sample
from charts.latency_axis import LatencyAxis, promise, set_time, share_axis
from charts.numbers import duration, significant
from charts.palette import COLORS, DASHES, SERIES
from charts.sheet import LINE_PX, Sheet, numbered, plain
from model.metrics import itl_counts, tpot_s, ttft_s
from model.metrics.slo import TOLERANCE_S
from model.result import SimulationResult

__all__ = ["MOST", "WORDS", "Curves", "curves", "description", "distributions", "style"]

WORDS = ("ttft", "tpot", "itl")
HEIGHT = 430
SHARES = (50, 99)

_BROWN = {"light": "#7A4A21", "dark": "#CFA27A"}
_MORE_DASHES = ("longdashdot", "2px,5px")
_COLUMNS = ((0.0, 0.30), (0.35, 0.65), (0.70, 1.0))
_DECADES = 50.0  # a larger ratio of longest to shortest is drawn on a log axis
_IN_A_LINE = 3  # curves that the legend names in one line

MOST = len(DASHES) + len(_MORE_DASHES)
"""Curves that can be told apart."""

Translator = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Curves:
    """The samples of one policy's run by word of WORDS; times in seconds."""

    label: str
    samples: Mapping[str, Sample]


def curves(label: str, result: SimulationResult) -> Curves:
    """What the picture shows of a run."""
    requests = result.requests
    return Curves(
        label,
        {
            "ttft": Sample(ttft_s(requests)),
            "tpot": Sample(tpot_s(requests)),
            "itl": Sample(*itl_counts(result)),
        },
    )


def style(place: int, theme: str) -> dict:
    """Color and dash of the curve at a place (0 to MOST − 1)."""
    colors = (*SERIES[theme], _BROWN[theme], COLORS[theme]["ink"])
    return {"color": colors[place], "dash": (*DASHES, *_MORE_DASHES)[place]}


def distributions(
    runs: Sequence[Curves],
    bounds_s: Mapping[str, float],
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """The figure; ``bounds_s`` are the promises by word (not all words have one)."""
    sheet = Sheet(theme, HEIGHT)
    lines = -(-len(runs) // _IN_A_LINE)
    sheet.height += lines * LINE_PX
    sheet.layout["margin"] = {"l": 8, "r": 8, "t": 40 + lines * LINE_PX, "b": 8}
    sheet.layout["hovermode"] = "closest"
    sheet.layout["hoverdistance"] = 60
    sheet.legend_line(0, 0)
    # Entries of one width stand in columns, however long their names are.
    sheet.layout["legend"] |= {"entrywidth": 1 / _IN_A_LINE, "entrywidthmode": "fraction"}
    for index, word in enumerate(WORDS):
        _panel(sheet, index, word, runs, bounds_s.get(word), t)
    return sheet.figure()


def _panel(
    sheet: Sheet,
    index: int,
    word: str,
    runs: Sequence[Curves],
    bound_s: float | None,
    t: Translator,
) -> None:
    x, y = numbered("x", index), numbered("y", index)
    sheet.heading(t(f"dist.{word}"), t(f"dist.{word}.is"), _COLUMNS[index][0], 1.0)
    samples = [run.samples[word] for run in runs]
    axis = LatencyAxis.of(samples, bound_s, _DECADES)
    sheet.layout[numbered("xaxis", index)] = {
        **sheet.bottom_axis(t("chart.axis", name=t(f"dist.{word}"), unit=t(f"unit.{axis.unit}"))),
        **axis.layout(6),
        "domain": _COLUMNS[index],
        "anchor": y,
        "fixedrange": True,
    }
    sheet.layout[numbered("yaxis", index)] = share_axis(sheet, x, [0.0, 1.0], 1.06)
    if not any(sample.size for sample in samples):
        sheet.note(t("dist.none"), sum(_COLUMNS[index]) / 2, 0.5, font={"size": 13})
    if bound_s is not None:
        text = t("pol.bound", bound=set_time(bound_s, t))
        promise(sheet, x, y, axis, bound_s, text, samples)
    for place, (run, sample) in enumerate(zip(runs, samples, strict=True)):
        values, share = sample.curve(log=axis.log)
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
                "name": plain(run.label),
                "mode": "lines",
                "line": {"shape": "hv", "width": 2.2, **style(place, sheet.theme)},
                "legendgroup": str(place),
                "showlegend": index == 0,
                "hovertemplate": f"{plain(run.label)}<br>{text}<extra></extra>",
            }
        )


def description(runs: Sequence[Curves], bounds_s: Mapping[str, float], t: Translator) -> str:
    """The figure in words, for those who do not see it."""
    parts = []
    for run in runs:
        says = []
        for word in WORDS:
            sample = run.samples[word]
            if not sample.size:
                says.append(t("dist.alt.none", name=t(f"dist.{word}")))
                continue
            p50, p99 = (duration(s, t) for s in sample.percentiles(SHARES))
            text = t("pol.alt.one", name=t(f"dist.{word}"), p50=p50, p99=p99)
            if word in bounds_s:
                share = significant(100 * sample.share_within(bounds_s[word] + TOLERANCE_S))
                bound = set_time(bounds_s[word], t)
                text += t("dist.alt.bound", bound=bound, share=share)
            says.append(text)
        parts.append(f"{run.label}: {t('list.separator').join(says)}")
    return f"{t('pol.alt')} {'. '.join(parts)}."
