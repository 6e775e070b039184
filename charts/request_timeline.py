"""One row a request: where it was from arrival to end, its first token, its broken promises.

Full bars are time in the batch, thin bars time outside of it. Which requests are shown is the
caller's choice (see :func:`charts.lives.interesting` and :func:`charts.lives.window`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.lives import Segments, lives
from charts.numbers import duration
from charts.palette import COLORS, pattern
from charts.sheet import LINE_PX, Sheet, numbered, plain
from model.metrics import tpot_violation_s, ttft_violation_s
from model.result import STATUS, SimulationResult

__all__ = ["MOST_ROWS", "description", "request_timeline"]

MOST_ROWS = 60
MAX_SEGMENTS = 500

_ROW_PX = 17
_BOTTOM_PX = 56
_PIXELS = 500  # what is shorter than a part in so many of the time shown is drawn that long
_LABEL = 12  # characters of a request's name on the axis
_SLIM = 0.01  # of the time shown: a bar below is too short for a pattern

_FIRST_TOKEN_UP = 0.28  # of a row, so that the mark leaves the prefill to be seen


class _Bar(NamedTuple):
    """How a state is drawn; the height is a share of its row."""

    state: str
    meaning: str
    shape: str
    height: float

    @property
    def legend(self) -> str:
        return "inside" if self.height == _FULL else "outside"


_FULL, _THIN = 0.78, 0.32
# In drawing order: the ordinary first, so that the short and rare stays on top.
_BARS = (
    _Bar("decode", "decode", "", _FULL),
    _Bar("waiting", "waiting", "", _THIN),
    _Bar("late", "late", ".", _THIN),
    _Bar("preempted", "waiting", "|", _THIN),
    _Bar("swapped", "swap", "-", _THIN),
    _Bar("handed", "swap", "+", _THIN),
    _Bar("paused", "free", "\\", _FULL),
    _Bar("prefill", "prefill", "/", _FULL),
    _Bar("recompute", "recompute", "x", _FULL),
)
_SHORT = ("prefill", "recompute")

Translator = Callable[..., str]


def request_timeline(
    result: SimulationResult, rows: np.ndarray, t: Translator, theme: str = "light"
) -> go.Figure:
    """The figure for the requests ``rows`` (indices of ``result.requests``, at most MOST_ROWS)."""
    shown = _Shown.of(result, np.asarray(rows)[:MOST_ROWS])
    bars = _bars(result, shown)
    marks = _marks(result, shown.rows)
    drawn = [bar for bar in _BARS if len(bars[bar.state].place)]
    kinds = {bar.legend for bar in drawn} | ({"marks"} if marks else set())
    legends = [kind for kind in ("inside", "outside", "marks") if kind in kinds]
    where = {kind: numbered("legend", index) for index, kind in enumerate(legends)}
    top = LINE_PX * (1 + len(legends)) + 12
    sheet = Sheet(theme, max(2, len(shown.rows)) * _ROW_PX + top + _BOTTOM_PX)
    for index, kind in enumerate(legends):
        sheet.legend_line(index, index + 1, t(f"life.legend.{kind}"))
    _lay_out(sheet, result, shown, top, t)
    for bar in drawn:
        _draw_bars(sheet, shown, bar, bars[bar.state], where[bar.legend], t)
    for name, (place, time_s) in marks.items():
        _draw_marks(sheet, shown, name, place, time_s, where["marks"], t)
    if not len(shown.rows):
        sheet.note(t("life.nobody"), 0.5, 0.5, font={"color": sheet.color["muted"], "size": 13})
    return sheet.figure()


class _Shown(NamedTuple):
    """The chosen requests: rows, what a hover box calls them, first arrival and last end."""

    rows: np.ndarray
    who: list[str]
    begin_s: float
    end_s: float

    @classmethod
    def of(cls, result: SimulationResult, rows: np.ndarray) -> _Shown:
        columns, names = result.requests, result.inputs.class_names
        who = [plain(name)[:40] for name in columns["request_id"][rows]]
        if len(names) > 1:
            classes = columns["request_class"][rows].tolist()
            who = [f"{name} · {plain(names[c])}" for name, c in zip(who, classes, strict=True)]
        if not len(rows):
            return cls(rows, who, 0.0, 1.0)
        last_s = float(result.iterations["end_s"].max(initial=0.0))
        end_s = columns["end_s"][rows]
        begin_s = float(columns["arrival_s"][rows].min())
        until_s = float(np.where(np.isnan(end_s), last_s, end_s).max())
        return cls(rows, who, begin_s, max(until_s, begin_s + 1e-9))

    @property
    def span_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def narrowest_s(self) -> float:
        """What is about two pixels wide."""
        return self.span_s / _PIXELS


def _bars(result: SimulationResult, shown: _Shown) -> dict[str, Segments]:
    """Segments of each state, at most MAX_SEGMENTS of one; the first wait is cut at its bound."""
    rows, resolution_s = shown.rows, shown.narrowest_s
    while True:
        found = lives(result, rows, resolution_s)
        if max(len(part.place) for part in found.values()) <= MAX_SEGMENTS:
            break
        resolution_s *= 2
    waiting = found["waiting"]
    found["late"] = waiting.where(np.zeros(len(waiting.place), bool))
    if result.scenario is not None:
        bound_s = result.requests["arrival_s"][rows][waiting.place] + result.scenario.slo.ttft_s
        late_from_s = np.maximum(waiting.start_s, bound_s)
        late = Segments(waiting.place, late_from_s, waiting.end_s)
        found["late"] = late.where(late.end_s > late.start_s)
        in_time = Segments(waiting.place, waiting.start_s, np.minimum(waiting.end_s, bound_s))
        found["waiting"] = in_time.where(in_time.end_s > in_time.start_s)
    return found


def _marks(result: SimulationResult, rows: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(place, time) of each kind of mark that occurs."""
    chosen = {name: column[rows] for name, column in result.requests.items()}
    times = {"first_token": chosen["first_token_s"]}
    for status, name in (("finished", "finish"), ("cancelled", "cancel"), ("rejected", "reject")):
        ended = chosen["status"] == STATUS.index(status)
        times[name] = np.where(ended, chosen["end_s"], np.nan)
    if result.scenario is not None:
        slo = result.scenario.slo
        times["ttft_missed"] = ttft_violation_s(chosen, slo)
        times["tpot_missed"] = tpot_violation_s(chosen, slo)
    places = {name: np.flatnonzero(~np.isnan(column)) for name, column in times.items()}
    return {name: (place, times[name][place]) for name, place in places.items() if len(place)}


def _lay_out(
    sheet: Sheet, result: SimulationResult, shown: _Shown, top: int, t: Translator
) -> None:
    rows, pad_s = shown.rows, 0.01 * shown.span_s
    came = int(np.isfinite(result.requests["arrival_s"]).sum())
    more = t("life.title.more", n=len(rows), all=came)
    sheet.heading(t("life.title"), more, 0, 1, yshift=top - LINE_PX - 2)
    sheet.layout |= {
        "margin": {"l": 8, "r": 8, "t": top, "b": 8},
        "barmode": "overlay",
        "bargap": 0,
        "hovermode": "closest",
        "xaxis": sheet.bottom_axis(
            t("chart.time_s"),
            range=[max(shown.begin_s - pad_s, 0.0), shown.end_s + pad_s],
        ),
        "yaxis": sheet.axis(
            range=[len(rows) - 0.4 if len(rows) else 1, -0.6],
            tickvals=np.arange(len(rows)),
            ticktext=[_short(name) for name in result.requests["request_id"][rows]],
            fixedrange=True,
            showgrid=False,
        ),
    }


def _short(name: object) -> str:
    text = plain(name)
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _draw_bars(
    sheet: Sheet, shown: _Shown, bar: _Bar, segments: Segments, legend: str, t: Translator
) -> None:
    place, start_s, end_s = segments
    length_s = drawn_s = end_s - start_s
    if bar.state in _SHORT:
        drawn_s = np.maximum(length_s, shown.narrowest_s)
    color = COLORS[sheet.theme]
    look = pattern(bar.meaning, sheet.theme)
    marker = {
        "color": look["bgcolor"],
        "line": {"width": 1 if bar.state == "paused" else 0, "color": color["free"]},
        "pattern": {
            "shape": bar.shape,
            "bgcolor": look["bgcolor"],
            "fgcolor": look.get("fgcolor", color["ground"]),
            "size": 6,
            "solidity": 0.3,
        },
    }
    label = t(f"life.{bar.state}")
    # The legend shows the pattern also where every bar is too short for one.
    sheet.traces.append(
        {
            "type": "bar",
            "x": [None],
            "y": [None],
            "name": label,
            "legend": legend,
            "marker": marker,
            "hoverinfo": "skip",
        }
    )
    slim = length_s < _SLIM * shown.span_s
    pattern_of_bar = {**marker["pattern"], "shape": np.where(slim, "", bar.shape)}
    sheet.traces.append(
        {
            "type": "bar",
            "orientation": "h",
            "y": place,
            "base": start_s,
            "x": drawn_s,
            "width": bar.height,
            "name": label,
            "showlegend": False,
            "marker": {**marker, "pattern": pattern_of_bar},
            "customdata": [
                (shown.who[p], duration(length, t), f"{a:,.2f}", f"{b:,.2f}")
                for p, length, a, b in zip(
                    place.tolist(), length_s.tolist(), start_s.tolist(), end_s.tolist(), strict=True
                )
            ],
            "hovertemplate": t(
                "life.hover",
                who="%{customdata[0]}",
                state=label,
                length="%{customdata[1]}",
                start="%{customdata[2]}",
                end="%{customdata[3]}",
            )
            + "<extra></extra>",
        }
    )


def _look(name: str, theme: str) -> Mapping[str, object]:
    color = COLORS[theme]
    ink, bad, ground = color["ink"], color["violated"], color["ground"]
    outline = {"width": 1, "color": ground}
    return {
        "first_token": {
            "symbol": "circle",
            "size": 7,
            "color": ground,
            "line": {"width": 1.5, "color": ink},
        },
        "ttft_missed": {"symbol": "triangle-up", "size": 11, "color": bad, "line": outline},
        "tpot_missed": {"symbol": "square", "size": 9, "color": bad, "line": outline},
        "finish": {"symbol": "line-ns-open", "size": 11, "color": ink, "line": {"width": 2}},
        "cancel": {"symbol": "x-thin-open", "size": 9, "color": ink, "line": {"width": 2}},
        "reject": {"symbol": "x", "size": 9, "color": ink, "line": outline},
    }[name]


def _draw_marks(
    sheet: Sheet,
    shown: _Shown,
    name: str,
    place: np.ndarray,
    time_s: np.ndarray,
    legend: str,
    t: Translator,
) -> None:
    label = t(f"mark.{name}")
    sheet.traces.append(
        {
            "type": "scatter",
            "x": time_s,
            "y": place - (_FIRST_TOKEN_UP if name == "first_token" else 0.0),
            "mode": "markers",
            "name": label,
            "legend": legend,
            "marker": _look(name, sheet.theme),
            "cliponaxis": False,
            "customdata": [shown.who[p] for p in place.tolist()],
            "hovertemplate": t("mark.hover", who="%{customdata}", what=label, time="%{x:,.2f}")
            + "<extra></extra>",
        }
    )


def description(result: SimulationResult, rows: np.ndarray, t: Translator) -> str:
    """The figure in words, for those who do not see it."""
    rows = np.asarray(rows)[:MOST_ROWS]
    chosen = {name: column[rows] for name, column in result.requests.items()}
    ttft = tpot = 0
    if result.scenario is not None:
        slo = result.scenario.slo
        ttft = int((~np.isnan(ttft_violation_s(chosen, slo))).sum())
        tpot = int((~np.isnan(tpot_violation_s(chosen, slo))).sum())
    queue_s = chosen["first_scheduled_s"] - chosen["arrival_s"]
    longest = float(np.nanmax(queue_s)) if np.isfinite(queue_s).any() else float("nan")
    return t(
        "life.alt",
        requests=t("summary.requests", n=len(rows)),
        preemptions=t("chart.timeline.alt.preempted", n=int(chosen["preemptions"].sum())),
        longest=duration(longest, t),
        ttft=ttft,
        tpot=tpot,
    )
