"""What happened over time: batch by phase, KV blocks, queue and missed promises, on one time axis.

Four rows share the axis, so that a cause in one can be followed to its effect in another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from charts.figure import base_figure, legend_at
from charts.palette import COLORS, pattern, translucent
from charts.phases import batch_by_phase, blocks_by_use
from charts.steps import Steps, steps
from model.result import SimulationResult

__all__ = ["Timeline", "description", "timeline"]

ROWS = ("batch", "kv", "queue", "slo")
HEIGHT = 640
_GAP = 0.085
_SLO_BARS = 80

Translator = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Timeline:
    """A result and what is marked in its chart; times in seconds.

    ``ttft_missed_s``/``tpot_missed_s`` are the moments at which a miss became certain,
    ``steady_s`` is the steady window, outside of which the chart is shaded.
    """

    result: SimulationResult
    ttft_missed_s: np.ndarray
    tpot_missed_s: np.ndarray
    steady_s: tuple[float, float] | None = None

    @property
    def until_s(self) -> float:
        """Where the time axis ends."""
        ends = (self.result.iterations["end_s"], self.ttft_missed_s, self.tpot_missed_s)
        return max(1e-6, *(float(times.max(initial=0.0)) for times in ends))


def timeline(data: Timeline, t: Translator, theme: str = "light") -> go.Figure:
    """The figure; ``t`` gives the words, ``theme`` is "light" or "dark"."""
    figure = base_figure(theme, HEIGHT)
    _lay_out_rows(figure, data, t, theme)
    _draw_batch(figure, data, t, theme)
    _draw_kv(figure, data, t, theme)
    _draw_queue(figure, data, t, theme)
    _draw_slo(figure, data, t, theme)
    return figure


def description(result: SimulationResult, numbers: Mapping[str, float], t: Translator) -> str:
    """The figure in words, for those who do not see it; ``numbers`` are the run's summary."""
    columns = result.iterations
    return t(
        "chart.timeline.alt",
        span=f"{numbers['duration_s']:,.3g}",
        batch=_peak_of(columns["decode_requests"] + columns["prefill_requests"]),
        preemptions=t("chart.timeline.alt.preempted", n=numbers["preemptions"]),
        kv=_peak_of(columns["blocks_used"]),
        capacity=f"{result.kv_blocks:,}",
        waiting=_peak_of(columns["waiting"]),
        ttft=f"{numbers['ttft_violations']:,}",
        tpot=f"{numbers['tpot_violations']:,}",
    )


def _peak_of(column: np.ndarray) -> str:
    return f"{int(column.max(initial=0)):,}"


def _domains() -> dict[str, tuple[float, float]]:
    """The vertical span of each row, first row on top."""
    share = (1 - _GAP * (len(ROWS) - 1)) / len(ROWS)
    tops = [1 - i * (share + _GAP) for i in range(len(ROWS))]
    return {row: (max(top - share, 0.0), top) for row, top in zip(ROWS, tops, strict=True)}


def _numbered(name: str, row: str) -> str:
    """Plotly's name of a row's axis or legend: y, y2, y3, ..."""
    number = ROWS.index(row) + 1
    return name if number == 1 else f"{name}{number}"


def _axis(row: str) -> str:
    return _numbered("y", row)


def _lay_out_rows(figure: go.Figure, data: Timeline, t: Translator, theme: str) -> None:
    color = COLORS[theme]
    lines = {"gridcolor": color["track"], "zeroline": False, "tickfont": {"size": 12}}
    figure.update_layout(
        hovermode="x unified",
        hoversubplots="axis",
        xaxis={
            **lines,
            "anchor": _axis(ROWS[-1]),
            "range": [0, data.until_s],
            "showgrid": False,
            "ticks": "outside",
            "tickcolor": color["free"],
            "title": {"text": t("chart.time_s"), "font": {"size": 13}, "standoff": 6},
            "automargin": True,
            "hoverformat": ".3~f",
            "unifiedhovertitle": {"text": t("chart.at_time")},
            "showspikes": True,
            "spikemode": "across",
            "spikecolor": color["ink"],
            "spikethickness": 1,
            "spikedash": "solid",
            "spikesnap": "cursor",
        },
    )
    for row, domain in _domains().items():
        figure.layout[_numbered("legend", row)] = legend_at(domain[1])
        figure.layout[_numbered("yaxis", row)] = {
            **lines,
            "domain": domain,
            "anchor": "x",
            "rangemode": "tozero",
            "fixedrange": True,
            "nticks": 4,
            "automargin": True,
        }
        figure.add_annotation(
            text=f"<b>{t(f'chart.{row}')}</b>  <span style='color:{color['muted']}'>"
            f"{t(f'chart.{row}.unit')}</span>",
            x=0,
            y=domain[1],
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 14},
        )
    if data.steady_s is not None:
        shade = translucent(color["waiting"], 0.12)
        _legend_only(figure, t("chart.unsteady"), translucent(color["waiting"], 0.35))
        start_s, end_s = data.steady_s
        for left, right in ((0.0, start_s), (end_s, data.until_s)):
            for row in ROWS:
                figure.add_shape(
                    type="rect",
                    x0=left,
                    x1=max(left, right),
                    y0=0,
                    y1=1,
                    xref="x",
                    yref=f"{_axis(row)} domain",
                    fillcolor=shade,
                    line={"width": 0},
                    layer="below",
                )


def _hover(row: str, label: str, t: Translator) -> str:
    """A line of the box that stands at the cursor; the same phase has one in several rows."""
    return f"{t(f'chart.{row}')}: {label} <b>%{{y:,.4~g}}</b><extra></extra>"


def _legend_only(figure: go.Figure, label: str, color: str) -> None:
    """A square in the first legend for what is drawn as a shape."""
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            name=label,
            mode="markers",
            marker={"symbol": "square", "size": 12, "color": color},
            hoverinfo="skip",
        )
    )


def _area(
    figure: go.Figure,
    s: Steps,
    name: str,
    row: str,
    meaning: str,
    t: Translator,
    theme: str,
    *,
    label: str,
    **more: object,
) -> None:
    x, y = s.drawn(name)
    color = COLORS[theme][meaning]
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            yaxis=_axis(row),
            name=label,
            legend=_numbered("legend", row),
            stackgroup=row,
            line={"shape": "hv", "width": 0.5, "color": color},
            fillcolor=pattern(meaning, theme)["bgcolor"],
            fillpattern=pattern(meaning, theme),
            hovertemplate=_hover(row, label, t),
            **more,
        )
    )


def _peak(figure: go.Figure, s: Steps, name: str, row: str, t: Translator, theme: str) -> None:
    """The extremes that the means of a long run hide."""
    if s.exact:
        return
    x, y = s.drawn(name, "peak")
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            yaxis=_axis(row),
            name=t("chart.peak"),
            legend=_numbered("legend", row),
            showlegend=row == ROWS[0],
            mode="lines",
            line={"shape": "hv", "width": 1, "color": translucent(COLORS[theme]["ink"], 0.45)},
            hovertemplate=_hover(row, t("chart.peak"), t),
        )
    )


def _limit(
    figure: go.Figure, data: Timeline, row: str, value: float, label: str, theme: str
) -> None:
    color = COLORS[theme]["ink"]
    figure.add_shape(
        type="line",
        x0=0,
        x1=data.until_s,
        y0=value,
        y1=value,
        xref="x",
        yref=_axis(row),
        line={"color": color, "width": 1.5, "dash": "dash"},
    )
    figure.add_annotation(
        text=label,
        x=1,
        y=value,
        xref="paper",
        yref=_axis(row),
        xanchor="right",
        yanchor="bottom",
        showarrow=False,
        font={"size": 12, "color": color},
    )


def _scale_to(figure: go.Figure, row: str, highest: float) -> None:
    """Leave room above the highest value, and count small numbers one by one."""
    axis = figure.layout[_numbered("yaxis", row)]
    axis.range = [0, 1.25 * max(highest, 1.0)]
    if highest <= 4:
        axis.dtick = 1


def _nothing(figure: go.Figure, row: str, words: str, theme: str) -> None:
    """An empty row says that it is empty for a good reason."""
    figure.add_annotation(
        text=words,
        x=0.5,
        y=sum(_domains()[row]) / 2,
        xref="paper",
        yref="paper",
        showarrow=False,
        font={"size": 13, "color": COLORS[theme]["muted"]},
    )


def _draw_batch(figure: go.Figure, data: Timeline, t: Translator, theme: str) -> None:
    columns, phases = data.result.iterations, batch_by_phase(data.result)
    series = {**phases, "all": sum(phases.values())}
    s = steps(columns["start_s"], columns["end_s"], series, until_s=data.until_s)
    for phase in phases:
        if phase != "recompute" or phases[phase].any():
            _area(figure, s, phase, "batch", phase, t, theme, label=t(f"phase.{phase}"))
    _peak(figure, s, "all", "batch", t, theme)
    largest = s.peak["all"].max(initial=0.0)
    slots = data.result.scenario.policy.max_num_seqs * data.result.scenario.n_engines
    if slots <= 1.3 * largest:  # a limit far above the picture would only flatten it
        _limit(figure, data, "batch", slots, t("chart.slots", n=slots), theme)
        largest = slots
    _scale_to(figure, "batch", largest)


def _draw_kv(figure: go.Figure, data: Timeline, t: Translator, theme: str) -> None:
    columns, uses = data.result.iterations, blocks_by_use(data.result)
    series = {**uses, "all": columns["blocks_used"]}
    s = steps(columns["start_s"], columns["end_s"], series, until_s=data.until_s)
    for use, meaning in (
        ("decode", "decode"),
        ("prefill", "prefill"),
        ("recompute", "recompute"),
        ("empty", "free"),
    ):
        if use == "decode" or uses[use].any():
            label = t("kv.empty" if use == "empty" else f"phase.{use}")
            _area(
                figure, s, use, "kv", meaning, t, theme, label=label, showlegend=use == "empty"
            )
    _peak(figure, s, "all", "kv", t, theme)
    capacity = data.result.kv_blocks * data.result.scenario.n_engines
    _limit(figure, data, "kv", capacity, t("chart.capacity", n=capacity), theme)
    _scale_to(figure, "kv", capacity)


def _draw_queue(figure: go.Figure, data: Timeline, t: Translator, theme: str) -> None:
    columns = data.result.iterations
    late_from_s, late_until_s = _late_waits(data)
    late, iterations = np.ones(len(late_from_s)), np.zeros(len(columns["start_s"]))
    series = {
        "waiting": np.concatenate((columns["waiting"], 0 * late)),
        "late": np.concatenate((iterations, late)),
        "swapped": np.concatenate((columns["swapped"], 0 * late)),
    }
    s = steps(
        np.concatenate((columns["start_s"], late_from_s)),
        np.concatenate((columns["end_s"], late_until_s)),
        series,
        until_s=data.until_s,
    )
    s.mean["in_time"] = np.maximum(s.mean["waiting"] - s.mean["late"], 0.0)
    for name, meaning in (("in_time", "waiting"), ("late", "late"), ("swapped", "swap")):
        if s.mean[name].any():
            _area(figure, s, name, "queue", meaning, t, theme, label=t(f"queue.{name}"))
    _peak(figure, s, "waiting", "queue", t, theme)
    highest = s.peak["waiting"].max(initial=0.0) + s.peak["swapped"].max(initial=0.0)
    _scale_to(figure, "queue", highest)
    if not highest:
        _nothing(figure, "queue", t("queue.empty"), theme)


def _late_waits(data: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """From when to when each request waited for its first iteration beyond its TTFT bound."""
    columns = data.result.requests
    late_s = columns["arrival_s"] + data.result.scenario.slo.ttft_s
    served_s = np.where(
        np.isnan(columns["first_scheduled_s"]), columns["end_s"], columns["first_scheduled_s"]
    )
    served_s = np.where(np.isnan(served_s), data.until_s, served_s)
    late = served_s > late_s
    return late_s[late], served_s[late]


def _draw_slo(figure: go.Figure, data: Timeline, t: Translator, theme: str) -> None:
    edges = np.linspace(0.0, data.until_s, _SLO_BARS + 1)
    color = COLORS[theme]
    highest = np.zeros(_SLO_BARS)
    for kind, times_s in (("ttft", data.ttft_missed_s), ("tpot", data.tpot_missed_s)):
        if not len(times_s):
            continue
        count = np.histogram(times_s, edges)[0]
        highest += count
        shape = {"shape": ""} if kind == "ttft" else {"shape": "x", "size": 6, "solidity": 0.3}
        figure.add_trace(
            go.Bar(
                x=(edges[:-1] + edges[1:]) / 2,
                y=np.where(count > 0, count, np.nan),
                width=np.diff(edges),
                yaxis=_axis("slo"),
                name=t(f"slo.{kind}_missed"),
                legend=_numbered("legend", "slo"),
                marker={
                    "color": color["violated"],
                    "line": {"width": 0},
                    "pattern": {"fgcolor": color["ground"], "fillmode": "overlay", **shape},
                },
                hovertemplate=_hover("slo", t(f"slo.{kind}_missed"), t),
            )
        )
    figure.update_layout(barmode="stack", bargap=0)
    _scale_to(figure, "slo", highest.max())
    if not highest.any():
        _nothing(figure, "slo", t("slo.none_missed"), theme)
