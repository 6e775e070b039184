"""Lesson 0 without a browser: guesses first, then the picture; numbers are the simulation's."""

import pytest

from ui.few_requests import both, iterations, run
from ui.first_lesson import ONE, PAGE, TWO, eight, exercise
from ui.language import LANGUAGES, translate
from ui.prose import sections


def html(app):
    return "".join(block.proto.body for block in app.get("html"))


def texts(app):
    return "\n".join(block.value for block in app.main.markdown)


def press(app, words):
    button = next(b for b in app.button if b.label == words and not b.disabled)
    button.click().run()
    assert not app.exception


def press_key(app, key):
    app.button(key=key).click().run()
    assert not app.exception


@pytest.fixture(params=LANGUAGES)
def language(request):
    return request.param


def test_one_request_from_the_guess_to_the_formula(open_app, language):
    app = open_app(PAGE, lang=language)
    assert not app.exception
    assert "il-prefill\"" not in html(app)  # nothing is given away
    assert not app.metric
    press_key(app, "prediction.first.iterations.0")
    assert html(app).count("il-token il-prefill") == ONE.rows[0][1]
    last = iterations(run(ONE, "continuous"))
    for done in range(2, last + 1):
        assert not app.latex
        press_key(app, "step.one.next")
        assert app.metric[0].value == str(done)
    assert f"**{last} " in texts(app)
    end_ms = run(ONE, "continuous").requests["end_s"][0] * 1e3
    assert f"{end_ms:.1f}" in app.latex[0].value
    press_key(app, "step.one.next")  # the same button leads on
    assert app.session_state["requests"] == "2"


def test_a_guess_stays_as_it_was_made(open_app):
    app = open_app(PAGE, lang="en")
    press(app, "13: one for each token")
    assert "**13: one for each token**" in texts(app)
    assert not any(b.label.startswith("6:") for b in app.button)
    app.selectbox(key="choice.lang").select("zh").run()
    assert f"**{translate('zh', 'first.all_tokens', n=13)}**" in texts(app)
    app.switch_page("app_pages/simulator.py").run()
    app.switch_page(f"app_pages/{PAGE}.py").run()
    assert f"**{translate('zh', 'first.all_tokens', n=13)}**" in texts(app)


def test_steps_go_back_and_to_the_start(open_app):
    app = open_app(PAGE)
    press_key(app, "prediction.first.iterations.2")
    press_key(app, "step.one.next")
    press_key(app, "step.one.next")
    assert app.metric[0].value == "3"
    press_key(app, "step.one.back")
    assert app.metric[0].value == "2"
    press_key(app, "step.one.again")
    assert app.metric[0].value == "0"
    assert app.button(key="step.one.back").disabled


def test_two_requests_share_iterations(open_app, language):
    app = open_app(PAGE, requests="2", lang=language)
    press_key(app, "prediction.first.both.2")
    assert html(app).count("il-token il-prefill") == TWO.rows[1][1]
    assert html(app).count("il-token il-decode") == 1
    while not app.latex:
        press_key(app, "step.two.next")
    for engine in ("static", "continuous"):
        waited_s = run(TWO, engine).requests["first_token_s"][1] - TWO.rows[1][0]
        assert f"{waited_s * 1e3:.1f}" in texts(app)
    press_key(app, "step.two.next")
    assert app.session_state["requests"] == "8"


def test_eight_requests_show_the_film_after_the_guess(open_app, language):
    app = open_app(PAGE, requests="8", lang=language)
    assert not app.get("bidi_component")
    for row in eight("mixed").rows:
        assert translate(language, "jobs.tokens", n=row[2]) in html(app)
    press_key(app, "prediction.first.eight.1")
    assert app.get("bidi_component")
    ends = [f"{result.iterations['end_s'][-1] * 1e3:.0f}" for result in both(eight("mixed"))]
    assert [metric.value.split()[0] for metric in app.metric[:2]] == ends
    assert all(end in app.latex[0].value for end in ends[:1])


def test_equal_answers_save_nothing(open_app):
    app = open_app(PAGE, requests="8")
    press_key(app, "prediction.first.eight.0")
    app.session_state["first.lengths"] = "equal"
    app.run()
    assert not app.exception
    assert app.metric[2].value.startswith("0 ")


def test_the_exercise_knows_right_from_wrong(open_app, language):
    app = open_app(PAGE, requests="8", lang=language)
    press_key(app, "prediction.first.eight.0")
    static, continuous = map(iterations, both(exercise(1)))
    hints = {name: sections(language, PAGE)[name].text for name in ("hint-static", "hint-bound")}

    def answer(value):
        app.number_input(key="exercise.first.1").set_value(value)
        press(app, translate(language, "lesson.check"))

    answer(static)
    assert app.warning[0].value == hints["hint-static"]
    answer(static - continuous + 100)
    assert app.warning[0].value == translate(language, "lesson.too_high")
    answer(static - continuous)
    assert not app.warning
    assert app.success
    press(app, translate(language, "lesson.again"))
    assert app.number_input(key="exercise.first.2").value is None


def test_nonsense_in_the_link_opens_the_first_step(open_app):
    app = open_app(PAGE, requests="<script>")
    assert not app.exception
    assert app.button(key="prediction.first.iterations.0")


def test_the_words_of_the_lesson_are_the_glossary_s(open_app):
    app = open_app(PAGE, lang="zh")
    assert "预填充" in str(app.table[0].value)
    assert "prefill" in str(app.table[0].value)
