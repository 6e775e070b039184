"""The planner, without a browser: answers follow what is asked, links reproduce it."""

import time
from dataclasses import replace

import pytest

from model import catalogue
from model.scenario import Slo
from tests.ui.reading import answered, numbers, text_of
from ui.panel import link
from ui.panel.choices import Base, Choices, choices_for
from ui.planner.study import Study

PARTS = ("plan", "check", "pools", "load")


def opened(open_app, **params):
    return answered(open_app(page="planner", **params), {"prediction.planner.2"})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.main.warning


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="planner")
    assert not app.main.metric
    assert "engines" not in text_of(app).split("GPUs does the plan")[-1]


def test_ten_times_the_customer_service_takes_six_gpus(open_app):
    app = opened(open_app)
    assert numbers(app)[:3] == ["6", "452", "452"]
    assert "352 prompt tokens beside 100 decodes" in text_of(app)
    assert "--max-num-batched-tokens 452" in app.main.code[0].value


def test_a_link_beyond_the_limits_says_so_until_the_control_is_used(open_app):
    app = opened(open_app, rate="99999", ttft="soon", tpot="80")
    assert [box.value for box in app.main.warning] == [
        "The link asks for values that are out of range, which are left out: `rate`; `ttft`"
    ]
    app.number_input(key="rate").set_value(30.0).run()
    assert "`ttft`" in app.main.warning[0].value
    assert "`rate`" not in app.main.warning[0].value
    app.number_input(key="ttft").set_value(5.0).run()
    assert not app.main.warning


def test_the_load_is_asked_and_goes_into_the_address(open_app):
    app = opened(open_app, rate="6")
    assert numbers(app)[0] == "1"
    app.number_input(key="rate").set_value(20.0).run()
    assert numbers(app)[0] == "2"
    app.number_input(key="price").set_value(4.0).run()
    # 2 GPUs · 4 $ over 20 · 200 tokens/s for an hour, the mean of what the scenario draws.
    assert float(numbers(app)[-1]) == pytest.approx(8 / (20 * 200 * 3600 / 1e6), rel=0.05)


def test_a_softer_promise_needs_fewer(open_app):
    hard, soft = (
        int(numbers(opened(open_app, v="2", s="conversation", promise=code, rate="55"))[0])
        for code in ("p99", "mean")
    )
    assert soft < hard


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"tpot": "10"}, "A decode of a single request takes 11.9"),
        ({"ttft": "0.04"}, "In chunks that keep TPOT a mean prompt takes 97.2"),
    ],
)
def test_what_cannot_be_has_a_sentence(open_app, params, words):
    for part in ("plan", "check"):
        app = opened(open_app, part=part, **params)
        assert words in app.main.warning[0].value
        assert not app.error


def test_pools_may_keep_what_engines_that_do_both_cannot(open_app):
    """55 ms for a whole prompt alone; its chunks beside decodes take 97."""
    app = opened(open_app, part="pools", ttft="0.08")
    assert not app.main.warning
    assert "together: no plan" in app.main.metric[1].delta
    alone = opened(open_app, part="pools", ttft="0.05")
    assert "55.2" in alone.main.warning[0].value


def test_the_plan_goes_into_the_panel(open_app):
    app = opened(open_app)
    app.button(key="plan.adopt").click().run()
    assert not app.exception
    assert "The panel has this plan" in text_of(app)
    assert app.session_state["s"].startswith("preset-customer-service~bd-452")


def test_a_check_runs_and_is_read(open_app):
    app = opened(open_app, part="check", rate="6")
    app.button(key="plan.check").click().run()
    study: Study = app.session_state["plan.study"]
    assert study.ended.wait(120)
    app.run()
    words = text_of(app)
    assert "The plan holds" in words
    assert "Engines: 1" in words
    assert "Pools: 1 prefill, 1 decode" in words


@pytest.mark.parametrize(
    ("promise", "cells"),
    [
        ("p99", "|  | ≤ 1\u00a0s |"),
        ("p90", "|  | P90 ≤ 1\u00a0s |"),
        ("mean", "| mean ≤ 1\u00a0s |  |"),
    ],
)
def test_the_promise_stands_below_the_number_that_it_is_about(open_app, promise, cells):
    app = opened(open_app, part="check", rate="1", promise=promise)
    app.button(key="plan.check").click().run()
    study: Study = app.session_state["plan.study"]
    assert study.ended.wait(120)
    app.run()
    assert cells in text_of(app)
    assert "one engine is the least there can be" in text_of(app)


def test_a_check_can_be_cancelled(open_app):
    app = opened(open_app, part="check", rate="300")
    app.button(key="plan.check").click().run()
    study: Study = app.session_state["plan.study"]
    study.cancel()
    assert study.ended.wait(60)
    time.sleep(0.01)
    app.run()
    assert not app.exception


@pytest.mark.parametrize("preset", ["conversation", "code", "law", "interactive-offline"])
@pytest.mark.parametrize("part", PARTS)
def test_presets_are_planned(open_app, preset, part):
    app = opened(open_app, part=part, s=preset)
    assert not app.error


def test_more_engines_than_a_scenario_may_have_are_said(open_app):
    app = opened(open_app, rate="1000")
    assert int(numbers(app)[0]) > 64
    assert app.main.warning
    assert not app.error
    assert opened(open_app, part="load", rate="1000").get("plotly_chart")


@pytest.mark.parametrize("bound_s", [1e-6, 1e6])
def test_promises_of_the_panel_beyond_the_limits_are_taken_to_them(open_app, bound_s):
    """The panel bears from a microsecond to a million seconds, the planner less."""
    base = catalogue.presets()["customer-service"].scenario
    choices = choices_for(
        replace(base, slo=Slo(bound_s, bound_s)), Choices("customer-service"), Base(base)
    )
    app = opened(open_app, s=link.write(choices))
    limits = app.number_input(key="ttft"), app.number_input(key="tpot")
    assert all(one.value == (one.max if bound_s > 1 else one.min) for one in limits)


@pytest.mark.parametrize("tpot", ["1", "50"])
def test_no_plan_is_said_over_the_load_as_well(open_app, tpot):
    app = opened(open_app, part="load", ttft="0.01", tpot=tpot)
    assert "No plan" in app.main.warning[0].value
    assert not app.get("plotly_chart")


def test_room_may_bind(open_app):
    app = opened(open_app, s="preset-preemption-storm~v-2", rate="10")
    assert "Memory binds" in text_of(app)
