"""Lesson 0's requests and words, without the page."""

import string

import pytest

from ui.few_requests import ENGINES, both, end_ms, iterations, run
from ui.first_lesson import (
    LENGTHS,
    ONE,
    PAGE,
    TWO,
    batches,
    bound,
    eight,
    exercise,
    parts_of,
    saved,
)
from ui.language import LANGUAGES
from ui.prose import sections


@pytest.mark.parametrize("language", LANGUAGES)
def test_there_is_a_word_for_every_token(language):
    for name, (_, prompt, output) in zip(("r1", "r2"), TWO.rows, strict=True):
        words = sections(language, PAGE)[f"words-{name}"].text.split()
        assert len(words) == prompt + output


def test_sentences_have_the_same_numbers_in_both_languages():
    def fields(language):
        return {
            name: {field for _, field, _, _ in string.Formatter().parse(section.text) if field}
            for name, section in sections(language, PAGE).items()
        }

    assert fields("en") == fields("zh")


def test_one_request_is_the_same_in_both_engines():
    static, continuous = both(ONE)
    assert end_ms(static) == end_ms(continuous)


def test_the_second_request_does_not_wait_for_the_first_to_end():
    waits = [run(TWO, engine).requests["first_token_s"][1] for engine in ENGINES]
    first_ends = run(TWO, "static").requests["end_s"][0]
    assert waits[0] > first_ends > waits[1]


def test_an_iteration_of_two_is_the_sum_of_its_parts():
    parts = parts_of(TWO)
    assert parts["both"] == pytest.approx(parts["fixed"] + max(parts["compute"], parts["read"]))
    assert parts["alone"] <= parts["both"] < 1.01 * parts["alone"]
    assert parts["ridge"] == pytest.approx(96, abs=1)  # A100, efficiencies 0.5 and 0.8


@pytest.mark.parametrize("lengths", LENGTHS)
def test_static_takes_the_sum_of_the_longest_and_continuous_no_less_than_the_bound(lengths):
    few = eight(lengths)
    static, continuous = map(iterations, both(few))
    assert static == sum(batches(few))
    assert bound(few) <= continuous <= static
    assert saved(few) == pytest.approx(1 - continuous / static, abs=0.01)


def test_equal_answers_gain_nothing():
    assert saved(eight("equal")) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("variant", range(1, 40))
def test_no_wrong_way_gives_the_right_answer_of_an_exercise(variant):
    few = exercise(variant)
    assert few == exercise(variant)
    static, continuous = map(iterations, both(few))
    right = static - continuous
    assert right > 0
    assert right not in (static, continuous, static - bound(few))
