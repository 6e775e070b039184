"""The pinned baseline as ghost curves over a figure: thin, dashed, in ink, one line in the legend.

Distributions and sweeps draw their baseline themselves; the timeline gets its ghosts afterwards,
so that the figure without them can be kept and shared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from charts.palette import COLORS, GHOST
from charts.sheet import numbered
from charts.steps import MAX_POINTS, Steps, steps
from charts.timeline import ROWS, Timeline

__all__ = ["ghost_steps", "with_baseline"]

_ROOM = 1.25  # above the highest value, as in the timeline
_BARS = 80  # of missed promises over the timeline's span

Translator = Callable[..., str]


def with_baseline(
    figure: go.Figure,
    data: Timeline,
    baseline: Timeline,
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """A copy of ``data``'s timeline figure with the curves of ``baseline`` over it.

    Batch, blocks used, waiting requests, and missed promises (TTFT and TPOT together, in intervals
    as long as the figure's bars). The axes grow where the baseline needs more room.
    """
    ghosts = ghost_steps(baseline, bar_s=data.until_s / _BARS)
    look = {"shape": "hv", "color": COLORS[theme]["ink"], **GHOST}
    label = t("ghost.baseline")
    traces, axes = [], {}
    for index, row in enumerate(ROWS):
        x, y = ghosts[row].drawn(row)
        traces.append(
            {
                "type": "scatter",
                "x": x,
                "y": y,
                "yaxis": numbered("y", index),
                "mode": "lines",
                "line": look,
                "name": label,
                "legendgroup": "baseline",
                "showlegend": index == 0,
                "hovertemplate": f"{t(f'chart.{row}')}: {label} <b>%{{y:,.4~g}}</b><extra></extra>",
            }
        )
        name = numbered("yaxis", index)
        low, high = figure.layout[name].range
        highest = float(ghosts[row].mean[row].max(initial=0.0))
        axes[name] = {"range": [low, max(high, _ROOM * highest)]}
        if axes[name]["range"][1] > 5:
            axes[name]["dtick"] = None  # the figure may count a small row one by one
    until_s = max(data.until_s, baseline.until_s)
    axes["xaxis"] = {"range": [0, until_s]}
    parts = figure.to_dict()  # a copy: the figure itself may be shared
    layout = parts["layout"]
    for name, changes in axes.items():
        layout[name] = {**layout[name], **changes}
    for shape in layout["shapes"]:
        if shape["type"] == "line":  # a limit goes all along the axis
            shape["x1"] = until_s
    return go.Figure(data=[*parts["data"], *traces], layout=layout)


def ghost_steps(baseline: Timeline, *, bar_s: float) -> dict[str, Steps]:
    """The baseline's curve in each row of the timeline, as few steps."""
    columns = baseline.result.iterations
    series = {
        "batch": columns["decode_requests"] + columns["prefill_requests"],
        "kv": columns["blocks_used"],
        "queue": columns["waiting"],
    }
    common = steps(columns["start_s"], columns["end_s"], series, until_s=baseline.until_s)
    missed_s = np.concatenate((baseline.ttft_missed_s, baseline.tpot_missed_s))
    bars = int(np.ceil(baseline.until_s / bar_s - 1e-9))
    # A far longer baseline gets wider bars, of the same height where as many are missed a second.
    joined = max(1, -(-bars // MAX_POINTS))
    edges = np.arange(-(-bars // joined) + 1) * (bar_s * joined)
    counts = np.histogram(missed_s, edges)[0] / joined
    slo = Steps(edges, {"slo": counts}, {"slo": counts}, exact=True)
    return {"batch": common, "kv": common, "queue": common, "slo": slo}
