"""Runs that several tests of charts look at, simulated once."""

import dataclasses
from functools import cache

import numpy as np

from charts.timeline import Timeline
from model import catalogue, metrics
from model.experiment import replace_at, with_policy
from model.simulator import simulate

PRESETS = tuple(catalogue.presets())


@cache
def run(preset="preemption-storm", policy=None, **changes):
    """The result of a preset, under another policy and with other parameters (a.b as a__b)."""
    scenario = catalogue.presets()[preset].scenario
    if policy:
        scenario = with_policy(scenario, policy)
    for path, value in changes.items():
        scenario = replace_at(scenario, path.replace("__", "."), value)
    return simulate(scenario)


def without_scenario(result):
    """The same columns as a recording brings them, without promises, model and hardware."""
    return dataclasses.replace(result, scenario=None)


def timeline_of(result):
    slo = result.scenario.slo
    missed = [
        times[~np.isnan(times)]
        for times in (
            metrics.ttft_violation_s(result.requests, slo),
            metrics.tpot_violation_s(result.requests, slo),
        )
    ]
    window = metrics.steady_window(result.requests)
    return Timeline(result, *missed, (window.start_s, window.end_s) if window.is_steady else None)


def named(figure, name):
    """The traces of a figure with this name."""
    return [trace for trace in figure.data if trace.name == name]


def notes(figure):
    """All words that stand in a figure."""
    return " | ".join(note.text for note in figure.layout.annotations)
