"""The simulator page, without a browser: numbers follow the choices, faults become sentences."""

import json

import pytest

from model import catalogue
from model.schedulers import POLICIES


def figures(app):
    return [metric.value for metric in app.metric]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("preset", catalogue.presets())
def test_every_preset_shows_its_figures_and_chart(open_app, preset, language):
    app = open_app(preset=preset, lang=language)
    assert not app.exception
    assert not app.error
    assert len(app.metric) == 6
    assert all(metric.help for metric in app.metric)
    assert app.get("plotly_chart")[0].proto.alt


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["customer-service", "law", "interactive-offline"])
def test_every_policy_runs_every_kind_of_preset(open_app, preset, policy):
    app = open_app(preset=preset, policy=policy)
    assert not app.exception
    assert not app.error
    assert not app.warning  # comparable settings: nobody is rejected


def test_another_policy_changes_the_numbers(open_app):
    app = open_app(preset="preemption-storm")
    before = figures(app)
    app.selectbox(key="choice.policy").select("static").run()
    assert not app.exception
    assert figures(app) != before


def test_a_model_that_does_not_fit_gets_a_sentence_in_the_readers_language(open_app):
    app = open_app(model="llama-3-70b")
    assert not app.exception
    assert not app.metric
    assert "use 4 GPUs" in app.error[0].value
    app.selectbox(key="choice.lang").select("zh").run()
    assert "使用 4 个 GPU" in app.error[0].value
    app.selectbox(key="choice.gpus").select("4").run()
    assert not app.error
    assert len(app.metric) == 6


def test_a_chart_carries_no_more_points_than_a_screen_shows(open_app):
    app = open_app(preset="law")
    chart = app.get("plotly_chart")[0].proto
    traces = json.loads(chart.spec)["data"]
    assert len(traces) >= 6
    for trace in traces:
        x = trace["x"]
        points = x["shape"] if isinstance(x, dict) and "shape" in x else len(x)
        assert int(points) <= 500
