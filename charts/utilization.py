"""Three things called utilization over time: residency, MFU and MBU, on one scale.

An engine can be busy all the time (residency 100 %) and yet use a tenth of its arithmetic (MFU) or
half of its memory bandwidth (MBU): what the three say differs, which is why they share a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import plotly.graph_objects as go

from charts.numbers import NOTHING, significant
from charts.palette import SERIES, translucent
from charts.sheet import LINE_PX, Sheet
from charts.steps import Steps, steps
from model.metrics import utilization_by_iteration
from model.result import SimulationResult

__all__ = ["MEANINGS", "by_iteration", "description", "utilization"]

MEANINGS = ("residency", "mfu", "mbu")
HEIGHT = 320
_INTERVALS = 160  # more would follow every prefill up and down

Translator = Callable[..., str]


def by_iteration(result: SimulationResult) -> dict[str, np.ndarray]:
    """Shares (1 is all) of each iteration; no mfu and mbu where model or hardware are unknown.

    The same numbers whose mean over time is :func:`model.metrics.utilization`.
    """
    columns, scenario = result.iterations, result.scenario
    shares = {"residency": np.ones(len(columns["start_s"]))}
    if scenario is None or not (scenario.model_entry and scenario.device):
        return shares
    mfu, mbu = utilization_by_iteration(
        columns,
        scenario.model_entry,
        scenario.device,
        scenario.memory,
        scenario.tensor_parallel,
    )
    return shares | {"mfu": mfu, "mbu": mbu}


def utilization(
    result: SimulationResult,
    numbers: Mapping[str, float],
    t: Translator,
    theme: str = "light",
    *,
    steady_s: tuple[float, float] | None = None,
) -> go.Figure:
    """The figure; ``numbers`` are the run's summary, whose means stand in the legend.

    ``steady_s`` is the steady window, outside of which the chart is shaded, as in the timeline.
    """
    columns, shares = result.iterations, by_iteration(result)
    n_engines = result.scenario.n_engines if result.scenario else 1
    until_s = max(float(columns["end_s"].max(initial=0.0)), 1e-6)
    series = {name: 100 * values / n_engines for name, values in shares.items()}
    s = steps(columns["start_s"], columns["end_s"], series, until_s=until_s, max_points=_INTERVALS)
    sheet = Sheet(theme, HEIGHT)
    _lay_out(sheet, s, until_s, t)
    if steady_s is not None:
        sheet.shade(((0.0, steady_s[0]), (steady_s[1], until_s)))
        sheet.key(t("chart.unsteady"), color=translucent(sheet.color["waiting"], 0.35))
    for name in MEANINGS:
        if name in series:
            _draw(sheet, s, name, numbers[f"{name}_share"], t)
    if "mfu" not in series:
        sheet.note(
            t("util.no_model"),
            1,
            0.04,
            xanchor="right",
            yanchor="bottom",
            font={"color": sheet.color["muted"], "size": 13},
        )
    return sheet.figure()


def _lay_out(sheet: Sheet, s: Steps, until_s: float, t: Translator) -> None:
    sheet.heading(t("util.title"), t("util.title.more"), 0, 1, yshift=LINE_PX + 10)
    sheet.layout["margin"] = {"l": 8, "r": 8, "t": 2 * LINE_PX + 12, "b": 8}
    sheet.legend_line(0, 1)
    highest = max(float(values.max(initial=0.0)) for values in s.mean.values())
    sheet.layout |= {
        "hovermode": "x unified",
        "xaxis": sheet.bottom_axis(
            t("chart.time_s"),
            range=[0, until_s],
            showgrid=False,
            **sheet.cursor(t("chart.at_time")),
        ),
        # A made-up clock may be faster than the hardware: then more than all of it is used.
        "yaxis": sheet.axis(
            range=[0, 1.06 * max(highest, 100.0)], ticksuffix=" %", nticks=6, fixedrange=True
        ),
    }


def _draw(sheet: Sheet, s: Steps, name: str, mean: float, t: Translator) -> None:
    x, y = s.drawn(name)
    trace = {
        "type": "scatter",
        "x": x,
        "y": y,
        "name": t(f"util.{name}", mean=_percent(mean)),
        "mode": "lines",
        "hovertemplate": f"{t(f'util.{name}.word')} <b>%{{y:.3~g}} %</b><extra></extra>",
    }
    if name == "residency":
        color = sheet.color["muted"]
        trace |= {
            "line": {"shape": "hv", "width": 1, "color": color},
            "fill": "tozeroy",
            "fillcolor": translucent(sheet.color["free"], 0.3),
        }
    else:
        place = MEANINGS.index(name) - 1
        color = SERIES[sheet.theme][place]
        trace["line"] = {"shape": "hv", "width": (2.2, 1.6)[place], "color": color}
    sheet.traces.append(trace)


def _percent(share: float) -> str:
    return f"{significant(share * 100)} %" if np.isfinite(share) else NOTHING


def description(numbers: Mapping[str, float], t: Translator) -> str:
    """The figure in words, for those who do not see it."""
    shares = {name: _percent(numbers[f"{name}_share"]) for name in MEANINGS}
    return t("util.alt", **shares)
