"""The lesson on throughput, without a browser: numbers follow the sliders, links reproduce it."""

import pytest

from tests.ui.reading import answered, check, numbers

PARTS = ("claim", "checks", "model", "runs")


def opened(open_app, **params):
    return answered(open_app(page="throughput", **params), {"prediction.throughput.2"})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.warning


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="throughput")
    assert not app.main.metric
    assert not app.get("plotly_chart")


def test_the_accounting_turns_719_into_130(open_app):
    assert numbers(opened(open_app))[:2] == ["+719", "+718"]
    assert numbers(opened(open_app, accounting="alike"))[:2] == ["+130", "+130"]
    assert numbers(opened(open_app, accounting="same"))[:2] == ["+256", "+256"]


def test_the_better_model_in_numbers(open_app):
    assert numbers(opened(open_app, part="model"))[:4] == ["+719", "+78.6", "+78.5", "+214"]
    assert numbers(opened(open_app, part="model", lengths="geometric"))[1] == "+347"


def test_a_slider_moves_formula_and_simulation(open_app):
    app = opened(open_app, part="runs")
    app.slider(key="dynamic").set_value(46).run()
    assert numbers(app)[0] == "+1,538"
    assert numbers(app)[1] == "+1,535"


def test_a_batch_beyond_the_memory_is_said(open_app):
    params = {"dynamic": "256", "prompt": "4096", "output": "1024"}
    assert "KV memory holds" in opened(open_app, part="model", **params).warning[0].value


@pytest.mark.parametrize("code", ["nonsense", "", "模型"])
def test_unknown_codes_in_a_link_are_left_out(open_app, code):
    assert opened(open_app, part=code, accounting=code, lengths=code).main.metric


def test_the_exercise_knows_the_usual_mistakes(open_app):
    app = opened(open_app, part="runs")
    for given, said in ((1150, "as printed"), (250, "in percent of the old"), (400, "same batch")):
        app.number_input(key="exercise.throughput.0").set_value(given)
        check(app).click().run()
        assert any(word in app.warning[0].value for word in (said, "what is printed")), given
    app.number_input(key="exercise.throughput.0").set_value(150)
    check(app).click().run()
    assert app.success


def test_the_panels_numbers_can_be_taken_and_given_back(open_app):
    app = opened(open_app, part="model", bs="16", bd="48", lin="1024", l="320")
    app.button(key="thr.panel").click().run()
    assert not app.exception
    taken = [app.slider(key=name).value for name in ("static", "dynamic", "prompt", "output")]
    assert taken == [16, 48, 1024, 320]
    app.button(key="thr.text").click().run()
    assert numbers(app)[0] == "+719"


def test_a_case_beyond_the_models_context_gets_a_sentence(open_app):
    app = open_app(page="throughput", part="runs", model="llama-2-13b", prompt="4096", v="2")
    assert not app.exception
    assert "4,096 tokens" in app.main.warning[0].value


def test_the_panels_model_is_used(open_app):
    small = numbers(opened(open_app, part="model"))
    assert numbers(opened(open_app, part="model", model="llama-2-13b", v="2"))[1] != small[1]
