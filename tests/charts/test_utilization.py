"""Three utilizations: the drawn means are the metrics, and what is unknown is not drawn."""

import dataclasses

import numpy as np
import pytest

from charts.palette import COLORS, SERIES, THEMES
from charts.utilization import MEANINGS, by_iteration, description, utilization
from model import metrics
from model.iteration_time import Linear
from model.simulator import simulate
from tests.charts.runs import PRESETS, named, notes, run, timeline_of, without_scenario
from ui.language import LANGUAGES, translator

T = translator("en")


def linear(result, **changes):
    """The same scenario without model and hardware, on a clock that needs neither."""
    memory = dataclasses.replace(result.scenario.memory, kv_blocks=2_000, max_model_len=8_192)
    return simulate(
        dataclasses.replace(
            result.scenario, clock=Linear(), model=None, hardware=None, memory=memory, **changes
        )
    )


def drawn(figure, index):
    return [trace for trace in figure.data if trace.mode == "lines"][index]


@pytest.mark.parametrize("preset", PRESETS)
def test_means_over_the_window_are_the_metrics(preset):
    result = run(preset)
    numbers, window = metrics.summary(result), metrics.steady_window(result.requests)
    for name, shares in by_iteration(result).items():
        mean = metrics.time_mean(result.iterations, shares, window, result.scenario.n_engines)
        assert mean == pytest.approx(numbers[f"{name}_share"], rel=1e-9)


def test_areas_under_the_drawn_curves_are_those_of_the_iterations():
    result = run("code")
    figure = utilization(result, metrics.summary(result), T)
    took_s = result.iterations["end_s"] - result.iterations["start_s"]
    for index, (name, shares) in enumerate(by_iteration(result).items()):
        trace = drawn(figure, index)
        area = np.sum(np.diff(trace.x) * np.array(trace.y)[:-1]) / 100
        assert area == pytest.approx((shares * took_s).sum(), rel=1e-9), name
        assert len(trace.x) <= 500


def test_several_engines_are_averaged():
    result = run("code", n_engines=2)
    figure = utilization(result, metrics.summary(result), T)
    assert max(drawn(figure, 0).y) <= 100 + 1e-9
    took_s = (result.iterations["end_s"] - result.iterations["start_s"]).sum()
    trace = drawn(figure, 0)
    area = np.sum(np.diff(trace.x) * np.array(trace.y)[:-1]) / 100
    assert area == pytest.approx(took_s / 2)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_draws_in_every_theme_and_language(theme, language):
    t, result = translator(language), run()
    numbers = metrics.summary(result)
    steady_s = timeline_of(result).steady_s
    figure = utilization(result, numbers, t, theme, steady_s=steady_s)
    colors = [drawn(figure, index).line.color for index in range(3)]
    assert colors == [COLORS[theme]["muted"], *SERIES[theme][:2]]
    assert f"{100 * numbers['mfu_share']:.1f} %" in drawn(figure, 1).name
    assert len(figure.layout.shapes) == 2
    assert named(figure, t("chart.unsteady"))


def test_without_model_and_hardware_only_residency_is_drawn():
    for result in (linear(run("customer-service")), without_scenario(run())):
        assert list(by_iteration(result)) == ["residency"]
        figure = utilization(result, metrics.summary(result), T)
        assert len([trace for trace in figure.data if trace.mode == "lines"]) == 1
        assert T("util.no_model") in notes(figure)
        text = description(metrics.summary(result), T)
        assert "(MFU): –" in text
        assert "nan" not in text


def test_a_clock_faster_than_the_hardware_makes_room_above_everything():
    scenario = dataclasses.replace(
        run("customer-service").scenario, clock=Linear(base_s=1e-4, per_scheduled_token_s=0.0)
    )
    result = simulate(scenario)
    figure = utilization(result, metrics.summary(result), T)
    assert figure.layout.yaxis.range[1] > 200


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_description_has_the_numbers(language):
    numbers = metrics.summary(run("code"))
    text = description(numbers, translator(language))
    for name in MEANINGS:
        assert f"{100 * numbers[f'{name}_share']:.3g}" in text
