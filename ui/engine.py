"""Simulations and figures kept for all sessions, found by the frozen scenario they belong to.

The keys are scenarios, never arrays: a large array is hashed by a sample, so that two different
ones can be taken for the same. What is kept is shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts.timeline import Timeline, timeline
from model import metrics
from model.result import SimulationResult
from model.scenario import Scenario
from model.simulator import simulate
from ui.language import translator

__all__ = ["simulated", "summary", "timeline_figure"]


@st.cache_resource(max_entries=64, show_spinner=False)
def simulated(scenario: Scenario) -> SimulationResult:
    """The result of a scenario; LabError where it cannot run."""
    return simulate(scenario)


@st.cache_resource(max_entries=256, show_spinner=False)
def summary(scenario: Scenario) -> Mapping[str, float]:
    """The run of a scenario in numbers."""
    return metrics.summary(simulated(scenario))


@st.cache_resource(max_entries=64, show_spinner=False)
def timeline_figure(scenario: Scenario, language: str, theme: str) -> go.Figure:
    """What happened over time in the run of a scenario."""
    result = simulated(scenario)
    window = metrics.steady_window(result.requests)
    data = Timeline(
        result,
        ttft_missed_s=_defined(metrics.ttft_violation_s(result.requests, scenario.slo)),
        tpot_missed_s=_defined(metrics.tpot_violation_s(result.requests, scenario.slo)),
        steady_s=(window.start_s, window.end_s) if window.is_steady else None,
    )
    return timeline(data, translator(language), theme)


def _defined(times_s: np.ndarray) -> np.ndarray:
    return times_s[~np.isnan(times_s)]
