"""An exercise at the end of each part: numbers to compute, with a hint for each usual mistake.

Answers come from the formulas. Units: ms, s, tokens, requests per second, as the text says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from formulas import get
from ui.language import t
from ui.lesson import number_exercise
from ui.prose import prose
from ui.slo.words import PAGE, says
from ui.units import significant

__all__ = ["TASKS", "Task", "your_turn"]


class Task(NamedTuple):
    """Numbers for the text, the answer, and what usual mistakes give (number, section)."""

    numbers: Mapping[str, object]
    answer: int
    mistakes: Sequence[tuple[float, str]]


_BUDGET = 8192


def _stall(prompts: int, tokens: int, full_ms: int) -> Task:
    """F22: whole prompts in iterations of at most 8,192 tokens."""
    given = {"k_wait": prompts, "n": tokens, "b_tok": _BUDGET}

    def stall(**other: float) -> int:
        return round(get("F22").evaluate({**given, "t_b": full_ms / 1000, **other}) * 1000)

    answer = stall()
    together = _BUDGET // tokens
    numbers = {"prompts": prompts, "tokens": f"{tokens:,}", "budget": f"{_BUDGET:,}"}
    more = {"full": full_ms, "together": together, "iterations": answer // full_ms}
    return Task(
        {**numbers, **more, "answer": f"{answer:,}"},
        answer,
        (
            (full_ms, "hint-one-iteration"),
            (prompts * full_ms, "hint-one-each"),
            (stall(n=1, k_wait=prompts * tokens), "hint-cut"),
            (prompts // together * full_ms, "hint-last"),
        ),
    )


_ATTAINED = (98, 95, 91, 70)


def _frontier(gpus: int, rates: tuple[int, int, int, int]) -> Task:
    """F31 on four measured rates, the third of which is the last with 90 %."""
    answer = round(get("F31").evaluate({"R_max": rates[2], "g": gpus}))
    in_time = rates[3] * _ATTAINED[3] / 100
    table = "\n".join(f"| {rate} | {kept} % |" for rate, kept in zip(rates, _ATTAINED, strict=True))
    return Task(
        {"gpus": gpus, "table": table, "rate": rates[2], "beyond": rates[3], "answer": answer},
        answer,
        (
            (rates[2], "hint-per-gpu"),
            (rates[3], "hint-beyond"),
            (rates[3] / gpus, "hint-beyond"),
            (in_time, "hint-in-time"),
            (in_time / gpus, "hint-in-time"),
        ),
    )


def _stay(rate: int, ttft_ms: int, tpot_ms: int, output: int) -> Task:
    """F29: how many requests are there."""
    stay_s = (ttft_ms + tpot_ms * output) / 1000
    answer = round(get("F29").evaluate({"lambda": rate, "W": stay_s}))
    numbers = {"rate": rate, "ttft": ttft_ms, "tpot": tpot_ms, "output": output}
    return Task(
        {**numbers, "stay": significant(stay_s), "answer": answer},
        answer,
        (
            (round(rate * ttft_ms / 1000), "hint-first"),
            (round(rate * tpot_ms * output / 1000), "hint-rest"),
            (round(stay_s), "hint-stay"),
            (round(stay_s / rate), "hint-over"),
        ),
    )


def _break(prefill_ms: int, bound_s: int, more_percent: int) -> Task:
    """F28e: a prefill server that gets so much more than it can do."""
    prefill_s, load = prefill_ms / 1000, 1 + more_percent / 100
    given = {"D": prefill_s, "D_ttft": bound_s, "C_p": 1 / prefill_s}  # a token is a prompt here
    answer = round(get("F28e").evaluate({**given, "lambda": load / prefill_s, "s_mean": 1}))
    return Task(
        {
            "prefill": prefill_ms,
            "bound": bound_s,
            "more": more_percent,
            "growth": 10 * more_percent,
            "answer": answer,
        },
        answer,
        (
            (round(bound_s * 100 / more_percent), "hint-own-prefill"),
            (round((bound_s / prefill_s - 1) * 100 / more_percent), "hint-in-prefills"),
            (bound_s, "hint-growth"),
        ),
    )


def _door(bound_s: int, rate: int, tokens: int) -> Task:
    """F28d: prompts that may wait."""
    queued = get("F28d").evaluate({"D_ttft": bound_s, "C_p": rate})
    answer = round(queued) // tokens
    return Task(
        {
            "bound": bound_s,
            "rate": f"{rate:,}",
            "tokens": f"{tokens:,}",
            "queued": f"{queued:,.0f}",
            "answer": answer,
        },
        answer,
        ((round(queued), "hint-tokens"), (rate // tokens, "hint-per-second")),
    )


TASKS: Mapping[str, tuple[Callable[..., Task], Sequence[tuple]]] = {
    "tension": (_stall, ((10, 3000, 700), (8, 2048, 800), (7, 3500, 600), (5, 5000, 450))),
    "goodput": (_frontier, ((2, (4, 8, 12, 20)), (4, (8, 16, 20, 40)), (3, (6, 12, 21, 30)))),
    "little": (_stay, ((5, 400, 30, 200), (8, 500, 25, 300), (10, 1000, 40, 100))),
    "stability": (_break, ((500, 2, 10), (200, 1, 10), (400, 2, 5), (250, 1, 25))),
    "admission": (_door, ((2, 8000, 1000), (2, 12_000, 500), (3, 5000, 1500))),
}
"""Of each part: how a task is made of its numbers, and several sets of them."""


def your_turn(part: str) -> None:
    """The exercise of a part, and other numbers for it."""
    make, variants = TASKS[part]
    state = f"slo.variant.{part}"
    place = st.session_state.setdefault(state, 0) % len(variants)
    task = make(*variants[place])
    section = f"exercise-{part}"
    st.subheader(prose(PAGE, section).title, anchor=False)
    st.markdown(says(section, **task.numbers))
    number_exercise(
        f"slo.{part}.{place}",
        task.answer,
        [(number, says(hint)) for number, hint in task.mistakes],
        says(f"solved-{part}", **task.numbers),
    )

    def other_numbers() -> None:
        st.session_state[state] += 1

    st.button(
        t("lesson.again"), icon=":material/casino:", on_click=other_numbers, key=f"{state}.again"
    )
