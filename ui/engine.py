"""Simulations kept for all sessions, found by the frozen scenario they belong to.

The keys are scenarios, never arrays: a large array is hashed by a sample, so that two different
ones can be taken for the same. Where the requests come from a file of this session, the hash of
what it holds belongs to the key. What is kept is shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from model import metrics
from model.errors import LabError
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario
from model.simulator import simulate
from ui.panel.uploads import requests_of

__all__ = ["simulated", "summary"]


def simulated(scenario: Scenario) -> SimulationResult:
    """The result of a scenario; LabError where it cannot run, or its file is not here."""
    return _result(scenario, *_file(scenario))


def summary(scenario: Scenario) -> Mapping[str, float]:
    """The run of a scenario in numbers."""
    return _summary(scenario, *_file(scenario))


def _file(scenario: Scenario) -> tuple[str, Requests | None]:
    """Hash and requests of the file that a scenario needs; requests are no part of a key."""
    file = requests_of(scenario.workload)
    return ("", None) if file is None else (file.digest, file.requests)


def _result(scenario: Scenario, digest: str, requests: Requests | None) -> SimulationResult:
    run = _run(scenario, digest, requests)
    if isinstance(run, LabError):
        raise LabError(run.code, **run.values)
    return run


@st.cache_resource(max_entries=24, show_spinner=False)
def _run(
    scenario: Scenario, digest: str, _requests: Requests | None
) -> SimulationResult | LabError:
    """The result, or why there is none: a run that was stopped need not be tried again."""
    try:
        return simulate(scenario, _requests)
    except LabError as error:
        return error


@st.cache_resource(max_entries=256, show_spinner=False)
def _summary(scenario: Scenario, digest: str, _requests: Requests | None) -> Mapping[str, float]:
    result = _result(scenario, digest, _requests)
    return metrics.summary(result, window=metrics.measuring_window(result.requests))
