"""Charts of a run, kept for all sessions like the run itself (see :mod:`ui.engine`).

Keys are the scenario, the hash of the file its requests come from, the language and the theme;
the figures are shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import distributions, request_timeline, utilization
from charts.figure import CONFIG
from charts.ghost import with_baseline
from charts.lives import interesting, window
from charts.timeline import Timeline, description, timeline
from model import metrics
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import current_language, translator
from ui.panel.uploads import requests_of
from ui.theme import current_theme

__all__ = [
    "Key",
    "Picture",
    "Rows",
    "draw",
    "key_of",
    "latencies",
    "lives",
    "over_time",
    "steady_s",
    "utilizations",
]


class Key(NamedTuple):
    """What a run is found by: its scenario, and the hash of the requests of a file ("": none)."""

    scenario: Scenario
    digest: str


class Picture(NamedTuple):
    """A figure and what it says in words."""

    figure: go.Figure
    alt: str


class Rows(NamedTuple):
    """Which requests a timeline shows.

    ``how`` is "interesting" or "window"; a window begins at ``share`` of the run's time.
    """

    how: str
    n: int
    share: float = 0.0


def key_of(scenario: Scenario) -> Key:
    """The key of a scenario in this session."""
    file = requests_of(scenario.workload)
    return Key(scenario, "" if file is None else file.digest)


def draw(picture: Picture, key: str) -> None:
    """Put a picture on the page."""
    st.plotly_chart(picture.figure, theme=None, config=CONFIG, key=key, alt=picture.alt)


def over_time(scenario: Scenario, baseline: Scenario | None = None) -> Picture:
    """Batch, KV memory, queue and missed promises, with the ghost of a baseline if there is one."""
    return _kept(_over_time, scenario, baseline)


def latencies(scenario: Scenario, baseline: Scenario | None = None) -> Picture:
    """How TTFT, TPOT, ITL and E2E are distributed."""
    return _kept(_latencies, scenario, baseline)


def utilizations(scenario: Scenario) -> Picture:
    """Residency, MFU and MBU over time."""
    return _kept(_utilizations, scenario)


def lives(scenario: Scenario, rows: Rows) -> Picture:
    """Single requests from arrival to end."""
    return _kept(_lives, scenario, None, rows)


def steady_s(scenario: Scenario) -> tuple[float, float] | None:
    """Begin and end of the steady window, None where there is none."""
    found = metrics.measuring_window(simulated(scenario).requests)
    return (found.start_s, found.end_s) if found.is_steady else None


# -- what is kept ----------------------------------------------------------------------------------


def _kept(
    make: Callable[..., Picture],
    scenario: Scenario,
    baseline: Scenario | None = None,
    rows: Rows | None = None,
) -> Picture:
    other = None if baseline is None else key_of(baseline)
    words = current_language(), current_theme()
    return _made(make.__name__, key_of(scenario), other, rows, *words, make)


@st.cache_resource(max_entries=128, show_spinner=False)
def _made(
    name: str,
    run: Key,
    baseline: Key | None,
    rows: Rows | None,
    language: str,
    theme: str,
    _make: Callable[..., Picture],
) -> Picture:
    others = tuple(part for part in (baseline and baseline.scenario, rows) if part is not None)
    return _make(run.scenario, translator(language), theme, *others)


def _over_time(scenario, t, theme, baseline=None) -> Picture:
    data = _timeline(scenario)
    alt = description(data.result, summary(scenario), t)
    figure = timeline(data, t, theme)
    if baseline is None:
        return Picture(figure, alt)
    figure = with_baseline(figure, data, _timeline(baseline), t, theme)
    return Picture(figure, f"{alt} {t('ghost.alt')}")


def _timeline(scenario: Scenario) -> Timeline:
    result = simulated(scenario)
    return Timeline(
        result,
        ttft_missed_s=_defined(metrics.ttft_violation_s(result.requests, scenario.slo)),
        tpot_missed_s=_defined(metrics.tpot_violation_s(result.requests, scenario.slo)),
        steady_s=steady_s(scenario),
    )


def _defined(times_s: np.ndarray) -> np.ndarray:
    return times_s[~np.isnan(times_s)]


def _latencies(scenario, t, theme, baseline=None) -> Picture:
    others = t("dist.others")
    data = distributions.latencies(simulated(scenario), others)
    alt = distributions.description(data, t)
    ghost = None
    if baseline is not None:
        ghost = distributions.latencies(simulated(baseline), others)
        alt = f"{alt} {t('ghost.alt')}"
    return Picture(distributions.distributions(data, t, theme, baseline=ghost), alt)


def _utilizations(scenario, t, theme) -> Picture:
    numbers = summary(scenario)
    figure = utilization.utilization(
        simulated(scenario), numbers, t, theme, steady_s=steady_s(scenario)
    )
    return Picture(figure, utilization.description(numbers, t))


def _lives(scenario, t, theme, rows: Rows) -> Picture:
    result = simulated(scenario)
    if rows.how == "interesting":
        shown = interesting(result, rows.n)
    else:
        last_s = float(result.iterations["end_s"].max(initial=0.0))
        shown = window(result, rows.n, from_s=rows.share * last_s)
    figure = request_timeline.request_timeline(result, shown, t, theme)
    return Picture(figure, request_timeline.description(result, shown, t))
