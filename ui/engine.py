"""Simulations and figures kept for all sessions, found by the frozen scenario they belong to.

The keys are scenarios, never arrays: a large array is hashed by a sample, so that two different
ones can be taken for the same. Where the requests come from a file of this session, the hash of
what it holds belongs to the key. What is kept is shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts.timeline import Timeline, timeline
from model import metrics
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario
from model.simulator import simulate
from ui.language import translator
from ui.panel.uploads import requests_of

__all__ = ["simulated", "summary", "timeline_figure"]


def simulated(scenario: Scenario) -> SimulationResult:
    """The result of a scenario; LabError where it cannot run, or its file is not here."""
    return _simulated(scenario, *_file(scenario))


def summary(scenario: Scenario) -> Mapping[str, float]:
    """The run of a scenario in numbers."""
    return _summary(scenario, *_file(scenario))


def timeline_figure(scenario: Scenario, language: str, theme: str) -> go.Figure:
    """What happened over time in the run of a scenario."""
    return _timeline_figure(scenario, *_file(scenario), language, theme)


def _file(scenario: Scenario) -> tuple[str, Requests | None]:
    """Hash and requests of the file that a scenario needs; requests are no part of a key."""
    file = requests_of(scenario.workload)
    return ("", None) if file is None else (file.digest, file.requests)


@st.cache_resource(max_entries=64, show_spinner=False)
def _simulated(scenario: Scenario, digest: str, _requests: Requests | None) -> SimulationResult:
    return simulate(scenario, _requests)


@st.cache_resource(max_entries=256, show_spinner=False)
def _summary(scenario: Scenario, digest: str, _requests: Requests | None) -> Mapping[str, float]:
    return metrics.summary(_simulated(scenario, digest, _requests))


@st.cache_resource(max_entries=64, show_spinner=False)
def _timeline_figure(
    scenario: Scenario, digest: str, _requests: Requests | None, language: str, theme: str
) -> go.Figure:
    result = _simulated(scenario, digest, _requests)
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
