"""The field of an exercise: what it says of an empty field, of decimals, of a wrong size."""

import pytest
from streamlit.testing.v1 import AppTest

from ui.language import LANGUAGES, translate


def _page():
    import streamlit as st

    from ui.language import set_language
    from ui.lesson import number_exercise

    set_language(st.session_state["lang"])
    answer = st.session_state["answer"]
    st.session_state["right"] = number_exercise(
        "task", answer, ((10 / 3, "a third"), (answer, "never"), (40, "forty")), "solved"
    )


def checked(given, answer=12, language="en"):
    app = AppTest.from_function(_page, default_timeout=30)
    app.session_state["answer"], app.session_state["lang"] = answer, language
    app.run()
    assert not [*app.info, *app.warning, *app.success]
    app.number_input(key="exercise.task").set_value(given)
    app.button[0].click().run()
    assert not app.exception
    assert app.session_state["right"] == bool(app.success)
    return [box.value for box in (*app.info, *app.warning, *app.success)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("given", "key"),
    [
        (None, "lesson.empty"), (12.5, "lesson.whole"), (2.5, "lesson.whole"),
        (11, "lesson.too_low"), (13, "lesson.too_high"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_whole_answer(given, key, language):
    assert checked(given, language=language) == [translate(language, key)]


@pytest.mark.parametrize(
    ("given", "said"),
    [(12, "solved"), (40, "forty"), (3.33, "a third"), (41, "Too high."), (3, "Too low.")],
)
def test_a_whole_answer_is_asked_for_exactly(given, said):
    assert checked(given) == [said]


@pytest.mark.parametrize(
    ("given", "said"),
    [(2.25, "solved"), (2.26, "solved"), (2.2, "Too low."), (2, "Too low."), (2.5, "Too high.")],
)
def test_an_answer_with_decimals_counts_when_it_is_rounded(given, said):
    assert checked(given, answer=2.25) == [said]
