"""The lesson on prefix caching, without a browser: every part speaks, numbers are the engine's."""

import pytest

from model.requests import Requests
from model.traces import read_trace
from tests.ui.reading import answered, figures, text_of
from ui import prefix_caching as lesson_of

PARTS = ("turns", "effect", "memory", "admission", "replicas", "trace", "exercise")


def opened(open_app, **params):
    return answered(open_app(page="prefix_caching", **params), {"prediction.prefix_caching.3"})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.warning
    pictures = len(app.get("plotly_chart"))
    assert pictures == (part in ("turns", "memory", "replicas", "trace"))


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="prefix_caching")
    assert not app.main.metric
    assert not app.get("plotly_chart")


def test_a_conversation_follows_its_sliders(open_app):
    """Turn 6 of 600 + 5·260 = 1,900 tokens; 1,839 stored, 114 blocks of 16 are 1,824."""
    app = opened(open_app)
    assert figures(app)[:2] == ["1,900", "76"]
    assert "**72 tokens.** 1,568 are found" in text_of(app)
    pages = opened(open_app, tpage="1")
    assert figures(pages)[1] == "61"
    short = opened(open_app, tfirst="160", tmessage="7", tanswer="33", tturns="3")
    assert figures(short)[0] == "240"
    assert figures(short)[1] == str(240 - 232 // 16 * 16)


def test_the_same_requests_with_the_cache_off_and_on(open_app):
    table = text_of(opened(open_app, part="effect", preset="conversation-turns"))
    assert "Your scenario" in table
    assert "93.7\u00a0% of the prompt tokens" in table
    assert "| 48,144 | 8,658 | 43 |" in table
    assert "| 0 | 74,491 | 57 |" in table


def test_a_scenario_without_shared_prompts_gives_way_to_the_preset(open_app):
    assert "nothing in common" in text_of(opened(open_app, part="effect", preset="law"))


def test_one_admission_in_numbers(open_app):
    """Request 1: 204 tokens are 13 blocks, 9 of them found in use by others: 4 are needed."""
    table = text_of(opened(open_app, part="admission", adm="1"))
    assert "Request 1, prompt of 204 tokens" in table
    assert "| Blocks needed | **13** | **4** |" in table
    assert "204 − 144 = 60" in table


def test_the_guard_spreads_the_requests(open_app):
    default, small = (opened(open_app, part="replicas", guard=code) for code in ("64", "8"))
    assert "got 73.2\u00a0% of all requests" in text_of(default)
    assert "got 46.2\u00a0% of all requests" in text_of(small)


def test_without_a_file_the_trace_is_said_to_be_made_up(open_app):
    app = opened(open_app, part="trace")
    assert "made-up" in app.info[0].value


def test_a_trace_with_hashes_is_replayed(monkeypatch):
    from model.scenario import TraceReference
    from tests.validation.test_prefix_traces import SAMPLE

    trace = read_trace(SAMPLE)
    reference = TraceReference(trace.name, trace.sha256, trace.kept)
    monkeypatch.setattr(lesson_of, "current_requests", lambda: trace.requests)

    class Scenario:
        workload = reference

    found = lesson_of.replay(Scenario)
    assert (found.source, found.reuse.requests) == ("own", len(trace.requests))
    plain = Requests.from_columns(arrival_s=[0], prompt_tokens=[9], output_tokens=[1])
    monkeypatch.setattr(lesson_of, "current_requests", lambda: plain)
    assert lesson_of.replay(Scenario).source == "unhashed"


@pytest.mark.parametrize("code", ["nonsense", "", "模型"])
def test_unknown_codes_in_a_link_are_left_out(open_app, code):
    params = dict.fromkeys(("part", "tpage", "guard", "tfirst", "tturns"), code)
    assert opened(open_app, **params).main.metric


def check(app, field, given):
    app.number_input(key=field).set_value(given)
    next(button for button in app.main.button if button.label == "Check").click().run()


def test_the_exercise_knows_the_usual_mistakes(open_app):
    """Turn 4: 1,100 tokens; 1,049 stored are 65 blocks, 1,040 tokens; 60 remain."""
    app = opened(open_app, part="exercise")
    field = "exercise.prefix_caching.0"
    for given, said in ((50, "not all else is found"), (51, "pages of one token"),
                        (1100, "without the cache"), (200, "while it was generated"),
                        (70, "Too high")):  # fmt: skip
        check(app, field, given)
        assert said in app.warning[0].value, given
    check(app, field, 60)
    assert "60 tokens" in app.success[0].value


def test_other_numbers_have_other_answers(open_app):
    """620 − 36·16, 1840 − 56·32, 1273 − 77·16, and around again."""
    app = opened(open_app, part="exercise")
    for place, answer in ((1, 44), (2, 48), (3, 41), (4, 60)):
        next(b for b in app.main.button if b.label == "New numbers").click().run()
        check(app, f"exercise.prefix_caching.{place % 4}", answer)
        assert app.success, answer
