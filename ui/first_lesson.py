"""What lesson 0 shows: its requests, the picture of an iteration, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from charts.moments import Moment, moment
from charts.tokens import jobs, lanes, rows
from model.result import SimulationResult
from ui.few_requests import Few, both, end_ms, iterations, run
from ui.language import current_language, t, translator
from ui.lesson import Figure, figures
from ui.prose import prose
from ui.theme import current_theme

__all__ = [
    "LENGTHS",
    "ONE",
    "PAGE",
    "TWO",
    "batches",
    "bound",
    "eight",
    "exercise",
    "jobs_picture",
    "parts_of",
    "picture",
    "saved",
    "schedule_picture",
    "tokens_picture",
]

PAGE = "one_request"
R1, R2 = (0.0, 7, 6), (0.018, 5, 3)  # arrival s, prompt and output tokens
_SMALL = {"slots": 2, "block_size": 4, "kv_blocks": 16, "max_model_len": 16}
ONE = Few((R1,), **_SMALL)
TWO = Few((R1, R2), **_SMALL)

LENGTHS = {
    "mixed": (12, 4, 20, 6, 5, 16, 4, 9),
    "equal": (10,) * 8,
    "one_long": (4, 4, 36, 4, 4, 4, 4, 4),
}


def eight(lengths: str) -> Few:
    """Eight requests with short prompts, all there at once, for four slots."""
    return Few(tuple((0.0, 8, tokens) for tokens in LENGTHS[lengths]), slots=4)


def exercise(variant: int) -> Few:
    """Six requests for two slots, with other answers in each variant.

    Drawn until no wrong way (one engine alone, or the bound) gives the right answer.
    """
    rng = np.random.default_rng(variant)
    while True:
        few = Few(tuple((0.0, 8, int(n)) for n in rng.integers(2, 12, 6)), slots=2)
        static, continuous = map(iterations, both(few))
        if 0 < static - continuous not in (static, continuous, static - bound(few)):
            return few


def batches(few: Few) -> list[int]:
    """The longest answer of each batch, in tokens, where batches form in the order of arrival."""
    outputs = [row[2] for row in few.rows]
    return [max(outputs[i : i + few.slots]) for i in range(0, len(outputs), few.slots)]


def bound(few: Few) -> int:
    """Iterations below which no schedule can end: the longest answer, all tokens over the slots."""
    outputs = [row[2] for row in few.rows]
    return max(max(outputs), -(-sum(outputs) // few.slots))


def saved(few: Few) -> float:
    """Share of the static batch's time that continuous batching does not need (0 to 1)."""
    static, continuous = map(end_ms, both(few))
    return 1 - continuous / static


# -- pictures -------------------------------------------------------------------------------------


def jobs_picture(few: Few) -> None:
    """The lengths of the answers."""
    st.html(jobs(run(few, "continuous"), translator(current_language()), current_theme()))


def tokens_picture(few: Few, iteration: int) -> None:
    """Tokens and KV blocks after so many iterations, and what happened in the last of them."""
    result = run(few, "continuous")
    now = moment(result, iteration)
    words = {name: prose(PAGE, f"words-{name}").text.split() for name in ("r1", "r2")}
    said, speak = _said(now, result), translator(current_language())
    st.html(rows(now, words, few.block_size, said, speak, current_theme()))


def schedule_picture(few: Few, iteration: int, engines: Sequence[str]) -> None:
    """Who is computed in which iteration; at the end all engines are shown to theirs."""
    is_end = iteration >= iterations(run(few, "continuous"))
    shown = []
    for engine in engines:
        result = run(few, engine)
        title = t(f"engine.{engine}") if len(engines) > 1 else ""
        shown.append((title, result, iterations(result) if is_end else iteration))
    st.html(lanes(shown, translator(current_language()), current_theme()))


def picture(few: Few, iteration: int, engines: Sequence[str]) -> None:
    """All of an iteration: tokens, schedule, figures."""
    result = run(few, "continuous")
    now = moment(result, iteration)
    tokens_picture(few, iteration)
    schedule_picture(few, iteration, engines)
    total = t("first.figure.of", n=result.kv_blocks)
    figures(
        (
            Figure(t("first.figure.iteration"), str(iteration)),
            Figure(t("first.figure.clock"), f"{now.time_s * 1e3:.1f}", t("unit.ms")),
            Figure(t("first.figure.tokens"), str(now.tokens)),
            Figure(t("first.figure.blocks"), str(now.blocks_used), total),
        )
    )


def _said(now: Moment, result: SimulationResult) -> str:
    """What happened in an iteration, in one or two sentences."""
    here = [stand for stand in now.requests if stand.phase != "away"]
    said = []
    for place, stand in enumerate(now.requests):
        if stand.phase == "prefill":
            wait_s = now.time_s - float(result.requests["arrival_s"][place])
            said.append(
                t(
                    "first.said.prefill",
                    n=stand.tokens,
                    name=stand.name,
                    ttft=f"{wait_s * 1e3:.1f}",
                )
            )
        elif stand.phase == "waiting":
            said.append(t("first.said.ready", name=stand.name))
    if decoding := [stand.name for stand in here if stand.phase == "decode"]:
        said.append(t("first.said.decode", names=t("list.comma").join(decoding)))
    if new := sum(stand.new_blocks for stand in here if stand.phase == "decode"):
        said.append(t("first.said.block", n=new))
    said += [t("first.said.leaves", name=stand.name) for stand in here if stand.leaves]
    return ("" if current_language() == "zh" else " ").join(said)


# -- what an iteration is made of -----------------------------------------------------------------


def parts_of(few: Few) -> dict[str, float]:
    """What the iteration of the second prompt is made of, in milliseconds; the one before it.

    ``ridge``: from how many tokens on computing takes longer than reading the weights; ``long``:
    milliseconds of an iteration with a prompt of 2,000 tokens.
    """
    columns = run(few, "continuous").iterations
    joins = int(np.argmax(columns["tokens"][1:])) + 1
    tokens, pairs, read = (
        int(columns[name][joins]) for name in ("tokens", "attention_pairs", "kv_tokens_read")
    )
    cost, prompt = few.scenario("continuous").cost(), 2000
    compute_s, memory_s, fixed_s = cost.parts(tokens, pairs, read)
    lasted_s = columns["end_s"] - columns["start_s"]
    return {
        "tokens": tokens,
        "compute": compute_s * 1e3,
        "read": memory_s * 1e3,
        "fixed": fixed_s * 1e3,
        "both": float(lasted_s[joins]) * 1e3,
        "alone": float(lasted_s[joins - 1]) * 1e3,
        "ridge": cost.weights_read_s / cost.compute_token_s,
        "long": cost.seconds(prompt, prompt * (prompt + 1) // 2, prompt) * 1e3,
    }
