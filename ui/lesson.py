"""The frame of a lesson: question, prediction, picture, formula, limits, exercise.

A prediction is made before the picture is shown, and stays as it was made: over reruns, over other
pages, until the learner starts over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from ui.language import t
from ui.prose import prose
from ui.units import figure

__all__ = [
    "Figure", "figures", "formula", "limits", "number_exercise", "predict", "question", "reveal",
]  # fmt: skip

_KEY = "prediction."
_ROUNDED = 0.005  # relative: what three digits leave open
_STYLE = """
<style>
[data-testid="stMain"] h1 { padding: 1.1rem 0 0 }
/* Streamlit's own hint in a field, which it has in English only */
[data-testid="InputInstructions"] { display: none }
</style>
"""


def question(page: str) -> None:
    """The title and the question that a practitioner asks."""
    lead = prose(page, "lead")
    st.html(_STYLE)
    st.title(lead.title, anchor=False)
    st.markdown(lead.text)


# -- predictions ----------------------------------------------------------------------------------


def predict(
    name: str,
    asks: str,
    answers: Sequence[tuple[object, str]],
    then: Callable[[], None] | None = None,
) -> object | None:
    """A question with a button an answer; the first click counts, and ``then`` runs with it."""
    guess = st.session_state.get(_KEY + name)
    if guess is not None:
        words = dict(answers).get(guess, "")
        st.markdown(f"{asks} :gray[{t('lesson.said')}] **{words}**")
        return guess

    def commit(answer: object) -> None:
        st.session_state[_KEY + name] = answer
        if then:
            then()

    with st.container(border=True, key=f"predict-{name.replace('.', '-')}"):
        st.markdown(f"**{asks}**")
        with st.container(horizontal=True):
            for place, (answer, words) in enumerate(answers):
                st.button(words, key=f"{_KEY}{name}.{place}", on_click=commit, args=(answer,))
    return guess


# -- numbers, formula, exercise -------------------------------------------------------------------


class Figure(NamedTuple):
    """A big number of a row: what it is, the number, its unit, what belongs to it."""

    label: str
    number: str
    unit: str = ""
    more: str | None = None


def figures(row: Sequence[Figure]) -> None:
    """Big figures beside each other."""
    for column, one in zip(st.columns(len(row)), row, strict=True):
        column.metric(
            one.label,
            figure(one.number, one.unit) if one.unit else one.number,
            delta=one.more,
            delta_color="off",
            delta_arrow="off",
        )


def reveal(says: str) -> None:
    """What really happened, said right below the prediction."""
    with st.container(border=True):
        st.markdown(says)


def formula(tex: str, says: str, ends: str) -> None:
    """A formula with this run's numbers in one line, what it says, and where it ends."""
    st.latex(tex)
    st.markdown(says)
    limits(ends)


def limits(says: str) -> None:
    """Where what was said does not hold."""
    st.markdown(f":gray[**{t('lesson.limits')}**] {says}")


def number_exercise(
    name: str,
    answer: float,
    mistakes: Sequence[tuple[float, str]],
    solved: str,
) -> bool:
    """A field for a number; a known mistake gets its own hint. True once it is right.

    A whole number is asked for exactly; any other answer counts once it is rounded as figures are.
    """
    form = st.form(f"exercise-{name}", border=False)
    with form.container(horizontal=True, vertical_alignment="bottom"):
        given = st.number_input(
            t("lesson.answer"),
            value=None,
            step=1.0,  # not 1, which takes 2.5 as 2 and says nothing
            format="%g",
            key=f"exercise.{name}",
            persist_state="session",  # it is still there after a look at another part
            width=200,
        )
        checked = st.form_submit_button(t("lesson.check"))
    if given is None:
        if checked:
            st.info(t("lesson.empty"), icon=":material/edit:")
        return False
    if _means(given, answer):
        st.success(solved, icon=":material/check:")
        return True
    st.warning(_hint(given, answer, mistakes), icon=":material/lightbulb:")
    return False


def _means(given: float, number: float) -> bool:
    """Whether this number was written, rounded where it is not whole."""
    if float(number).is_integer():
        return given == number
    return math.isclose(given, number, rel_tol=_ROUNDED)


def _hint(given: float, answer: float, mistakes: Sequence[tuple[float, str]]) -> str:
    for mistake, hint in mistakes:
        if _means(given, mistake):
            return hint
    if float(answer).is_integer() and not float(given).is_integer():
        return t("lesson.whole")
    return t("lesson.too_high") if given > answer else t("lesson.too_low")
