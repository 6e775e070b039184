"""Exercises of the lesson on SLOs: answers by hand, every mistake its hint, both languages."""

import math

import pytest

from ui.prose import sections
from ui.slo.exercises import TASKS

# By hand. Stall: 2 prompts of 3,000 fit in 8,192, so 10 take 5 iterations; 4 of 2,048: 2; 2 of
# 3,500: 4; one of 5,000: 5. Break: (bound - D) / overload.
ANSWERS = {
    "tension": (3500, 1600, 2400, 2250),
    "goodput": (6, 5, 7),
    "little": (32, 64, 50),
    "stability": (15, 8, 32, 3),
    "admission": (16, 48, 10),
}


def tasks(part):
    make, variants = TASKS[part]
    return [make(*numbers) for numbers in variants]


@pytest.mark.parametrize("part", ANSWERS)
def test_answers_are_those_found_by_hand(part):
    assert tuple(task.answer for task in tasks(part)) == ANSWERS[part]
    assert ANSWERS.keys() == TASKS.keys()


@pytest.mark.parametrize("part", ANSWERS)
def test_a_mistake_never_gives_the_answer_and_most_give_whole_numbers(part):
    for task in tasks(part):
        wrong = [number for number, _ in task.mistakes if number != task.answer]
        assert len(wrong) >= 2
        assert any(math.isclose(number, round(number)) for number in wrong)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", ANSWERS)
def test_texts_have_every_number(part, language):
    said = sections(language, "slo")
    for task in tasks(part):
        for section in (f"exercise-{part}", f"solved-{part}"):
            assert "{" not in said[section].text.format(**task.numbers)
        assert str(task.numbers["answer"]) in said[f"solved-{part}"].text.format(**task.numbers)
        for _, hint in task.mistakes:
            assert said[hint].text


def test_a_mistake_gets_its_own_hint_and_the_answer_is_praised(open_app):
    app = open_app(page="slo", part="goodput")
    app.button(key="prediction.slo.goodput.1").click().run()
    for given, said in ((12, "per GPU"), (10, "fewer than 90"), (7, "SLO throughput")):
        app.number_input(key="exercise.slo.goodput.0").set_value(given)
        next(b for b in app.main.button if b.label == "Check").click().run()
        assert said in app.warning[0].value
    app.number_input(key="exercise.slo.goodput.0").set_value(6)
    next(b for b in app.main.button if b.label == "Check").click().run()
    assert app.success
    app.button(key="slo.variant.goodput.again").click().run()
    assert app.number_input(key="exercise.slo.goodput.1").value is None


def test_an_answer_is_still_there_after_a_look_at_another_part(open_app):
    app = open_app(page="slo", part="goodput")
    app.button(key="prediction.slo.goodput.1").click().run()
    app.number_input(key="exercise.slo.goodput.0").set_value(12)
    next(b for b in app.main.button if b.label == "Check").click().run()
    for part in ("exercise", "goodput"):
        app.segmented_control(key="choice.part").set_value(part).run()
    assert app.number_input(key="exercise.slo.goodput.0").value == 12
    assert "per GPU" in app.warning[0].value
