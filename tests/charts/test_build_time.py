"""Every figure of every preset is built within a slider's patience."""

import time

import pytest

from charts.distributions import distributions, latencies
from charts.ghost import with_baseline
from charts.lives import interesting
from charts.request_timeline import request_timeline
from charts.timeline import timeline
from charts.utilization import utilization
from model import metrics
from tests.charts.runs import PRESETS, run, timeline_of
from ui.language import translator

T = translator("en")
LIMIT_S = 0.06  # of processor time: the machine may have other things to do


def best_s(build, runs=5):
    times = []
    for _ in range(runs):
        start = time.process_time()
        build()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_figures_are_built_in_time(preset):
    result = run(preset)
    numbers, data = metrics.summary(result), timeline_of(result)
    figure, baseline = timeline(data, T), timeline_of(run(preset, "static"))
    samples = latencies(run(preset, "static"))
    builds = {
        "distributions": lambda: distributions(latencies(result), T, baseline=samples),
        "requests": lambda: request_timeline(result, interesting(result, 30), T),
        "utilization": lambda: utilization(result, numbers, T, steady_s=data.steady_s),
        "ghost": lambda: with_baseline(figure, data, baseline, T),
    }
    took_s = {name: best_s(build) for name, build in builds.items()}
    assert max(took_s.values()) < LIMIT_S, took_s
