"""Throughput of static and continuous batching: F12 to F15, F17 and F17a.

The simulations that meet the assumptions are those of the lesson (:mod:`validation.throughput`);
here they run along one axis, and assumptions are broken one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from model.schedulers import POLICIES
from validation import throughput
from validation.comparison import Comparison
from validation.throughput import Case

__all__ = ["COMPARISONS"]

_CASE = Case()
_SLOW_START_S = 0.01
_PLACE = {"F12": 0, "F13": 1, "F15": 2, "F17": 3, "F18": 4}  # in what ``compare`` gives
_BATCHES = (4.0, 10.0, 16.0, 23.0, 32.0, 48.0)
_PROMPTS = (64.0, 256.0, 512.0, 1024.0, 2048.0)


def _static(batch: float) -> Case:
    return replace(_CASE, static_batch=int(batch))


def _dynamic(batch: float) -> Case:
    return replace(_CASE, dynamic_batch=int(batch))


def _prompts(tokens: float) -> Case:
    return replace(_CASE, prompt_tokens=int(tokens))


def _values(case_at: Callable[[float], Case]):
    def found(x: float, broken: str) -> Mapping[str, float]:
        return throughput.values(case_at(x))

    return found


def _simulated(case: Case, formula_id: str) -> float:
    return throughput.compare(case)[_PLACE[formula_id]].simulated


def _gain(case: Case) -> float:
    return _simulated(case, "F17") / _simulated(case, "F15") - 1


def _unequal(case: Case) -> Case:
    return replace(case, lengths="geometric")


def _slower(case: Case) -> Case:
    """Every iteration pays 10 ms beside its work, where the formula is told of 2 ms."""
    clock = replace(case.engine.clock, fixed_s=_SLOW_START_S)
    return replace(case, engine=replace(case.engine, clock=clock))


def _f12(batch: float, broken: str) -> float:
    case = _static(batch)
    if broken == "whole_prompt":
        policy = POLICIES["static"](max_num_seqs=case.static_batch)
        return throughput.textbook_throughput(case, policy, "free")
    return _simulated(case, "F12")


def _f13(batch: float, broken: str) -> float:
    case = _dynamic(batch)
    if broken == "prompt_charged":
        policy = POLICIES["vllm-v1"](
            max_num_seqs=case.dynamic_batch,
            max_num_batched_tokens=case.dynamic_batch * case.prompt_tokens,
        )
        return throughput.textbook_throughput(case, policy, "serial")
    return _simulated(case, "F13")


def _f14(prompt: float, broken: str) -> float:
    return throughput.textbook_improvement(_prompts(prompt), broken or "printed")


def _f15(batch: float, broken: str) -> float:
    case = _static(batch)
    return _simulated(_unequal(case) if broken == "lengths" else case, "F15")


def _f17(batch: float, broken: str) -> float:
    case = _dynamic(batch)
    if broken == "mixed":
        return _simulated(_unequal(case), "F18")
    return _simulated(_slower(case) if broken == "overhead" else case, "F17")


def _f17a(prompt: float, broken: str) -> float:
    case = _prompts(prompt)
    return _gain(_unequal(case) if broken == "lengths" else case)


COMPARISONS = (
    Comparison(
        name="static_printed",
        formulas=("F12",),
        values=_values(_static),
        simulate=_f12,
        axis="B_s",
        at=10.0,
        points=_BATCHES,
        unit="tokens_per_s",
        broken=("whole_prompt",),
    ),
    Comparison(
        name="continuous_printed",
        formulas=("F13",),
        values=_values(_dynamic),
        simulate=_f13,
        axis="B_d",
        at=23.0,
        points=_BATCHES,
        unit="tokens_per_s",
        broken=("prompt_charged",),
    ),
    Comparison(
        name="improvement_printed",
        formulas=("F14", "F12", "F13"),
        values=_values(_prompts),
        simulate=_f14,
        axis="L_in",
        at=512.0,
        points=_PROMPTS,
        unit="percent",
        factor=100.0,
        broken=("alike",),
    ),
    Comparison(
        name="static",
        formulas=("F15",),
        values=_values(_static),
        simulate=_f15,
        axis="B_s",
        at=10.0,
        points=_BATCHES,
        unit="tokens_per_s",
        broken=("lengths",),
    ),
    Comparison(
        name="continuous",
        formulas=("F17",),
        values=_values(_dynamic),
        simulate=_f17,
        axis="B_d",
        at=23.0,
        points=_BATCHES,
        unit="tokens_per_s",
        broken=("mixed", "overhead"),
    ),
    Comparison(
        name="improvement",
        formulas=("F17a", "F15", "F17"),
        values=_values(_prompts),
        simulate=_f17a,
        axis="L_in",
        at=512.0,
        points=_PROMPTS,
        unit="percent",
        factor=100.0,
        broken=("lengths",),
    ),
)
