"""From a load and two promises to the knobs of an engine and to a number of engines, by formula.

What a plan takes for granted: the queue of prompts is M/D/1 (F28, F28b) at the rate that is left
beside the decodes (F19), every request has the mean lengths, and as many requests decode as
Little's law (F29) gives: where TPOT is just kept for the chunk, at the pace at which engines settle
for the number of engines. Rates are those of all engines together.

Public: :class:`Plan`, :class:`Refusal`, :class:`Carried`, :func:`plan`, :func:`engines_at`,
:func:`carried_by_one`, :func:`deployment`, :func:`price_of_a_million`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import formulas
from model.parameters import RATE, replace_at, with_policy
from model.scenario import Scenario
from validation.planner_engine import (
    GRID,
    Beside,
    batch_in_memory,
    beside,
    chunk_s,
    decode_batch,
    engines_for,
    pace_s,
)
from validation.planner_load import Load, load_of

__all__ = [
    "MOST_ENGINES",
    "PROMISES",
    "Carried",
    "Plan",
    "Refusal",
    "carried_by_one",
    "deployment",
    "engines_at",
    "plan",
    "price_of_a_million",
]

PROMISES = (0.99, 0.9, None)
"""For which share of the requests TTFT is promised; None: only for the mean."""
MOST_ENGINES = 4096
_HARDLY_ANY, _NOBODY = 1e-6, 1e7  # requests/s of an engine


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no plan, and the seconds that say so: ``needs_s`` against ``bound_s``.

    ``reason`` is "tpot" (one decode takes longer), "chunk" (no room for a chunk beside one decode),
    "ttft" (one prompt takes longer) or "engines" (more than MOST_ENGINES).
    """

    reason: str
    needs_s: float = math.nan
    bound_s: float = math.nan


class Carried(NamedTuple):
    """Requests/s that one engine carries: while TTFT is kept as promised (F28, F28b), and while it
    is stable with room in memory for all who decode (F28a, F29).

    TPOT bounds neither by itself: while a chunk fits beside the decodes, so do these.
    """

    ttft_per_s: float
    room_per_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Knobs of an engine, how many engines, and what each number comes from.

    ``batch_memory`` (F9a) and ``batch_tpot`` (F5a) bound ``batch_max``; ``max_num_seqs`` is bounded
    by the token budget as well, of which each decode takes one. ``engines_prefill`` keep TTFT,
    ``engines_batch`` are stable (F28a below 1) and have room for all who decode (F29) at the pace
    ``tpot_s`` at which engines settle; the larger number counts.
    """

    load: Load
    promise: float | None
    beside: Beside
    batch_memory: int
    batch_tpot: int
    carried: Carried
    engines_prefill: int
    engines_batch: int
    tpot_s: float
    gpus_per_engine: int

    @property
    def batch_max(self) -> int:
        return min(self.batch_memory, self.batch_tpot)

    @property
    def max_num_batched_tokens(self) -> int:
        """The chunk and a token for each decode: vLLM counts both."""
        return self.beside.chunk_tokens + self.beside.decodes

    @property
    def max_num_seqs(self) -> int:
        return min(self.batch_max, self.max_num_batched_tokens)

    @property
    def stay_s(self) -> float:
        """F29a without the queue: prefill, and a token after the other at the expected pace."""
        return self.beside.prefill_s + self.load.output_tokens * self.tpot_s

    @property
    def decodes(self) -> float:
        """Decodes of an engine that Little's law expects (F29)."""
        return self.load.rate_per_s / self.engines * self.load.output_tokens * self.tpot_s

    @property
    def engines(self) -> int:
        return max(self.engines_prefill, self.engines_batch)

    @property
    def gpus(self) -> int:
        return self.engines * self.gpus_per_engine

    @property
    def binding(self) -> str:
        """ "prefill", "memory", or "both" where they ask for the same number.

        An engine that keeps TTFT is stable, so that more engines for room are more for memory.
        """
        if self.engines_prefill == self.engines_batch:
            return "both"
        return "prefill" if self.engines_prefill > self.engines_batch else "memory"

    @property
    def tokens_per_s(self) -> float:
        """Output tokens that the load asks for."""
        return self.load.rate_per_s * self.load.output_tokens


@lru_cache(maxsize=2048)
def plan(scenario: Scenario, promise: float | None = 0.99) -> Plan | Refusal:
    """The plan for a scenario of :func:`asked`, or why there is none."""
    load, slo, cost = load_of(scenario), scenario.slo, scenario.cost()
    in_memory = batch_in_memory(scenario, load.context_tokens)
    in_time = decode_batch(cost, load.context_tokens, slo.tpot_s)
    if not in_time:
        return Refusal("tpot", chunk_s(cost, 1, load.context_tokens, 0, 0.0), slo.tpot_s)
    carried = carried_by_one(scenario, promise)
    if not carried.ttft_per_s:
        return _refusal(scenario, load, promise)
    ttft, room = (engines_for(load.rate_per_s, rate) for rate in carried)
    engines = max(ttft, room)
    if engines > MOST_ENGINES:
        return Refusal("engines")
    one = beside(scenario, load, engines, promise)
    return Plan(
        load=load,
        promise=promise,
        beside=one,
        tpot_s=pace_s(cost, load, engines, one),
        batch_memory=in_memory,
        batch_tpot=in_time,
        carried=carried,
        engines_prefill=ttft,
        engines_batch=room,
        gpus_per_engine=scenario.tensor_parallel,
    )


def engines_at(scenario: Scenario, promise: float | None, rate_per_s: float) -> float:
    """How many engines :func:`plan` asks for at another rate; nan where there is no plan."""
    carried = carried_by_one(scenario, promise)
    if not min(carried):
        return math.nan
    return float(max(engines_for(rate_per_s, rate) for rate in carried))


def carried_by_one(scenario: Scenario, promise: float | None) -> Carried:
    """What one engine carries of the scenario's requests, whatever the rate of all of them."""
    return _carried(replace_at(scenario, RATE, 1.0), promise)


@lru_cache(maxsize=256)
def _carried(scenario: Scenario, promise: float | None) -> Carried:
    load, cost = load_of(scenario), scenario.cost()
    room = max(batch_in_memory(scenario, load.context_tokens), 1)

    def keeps_ttft(rate: float) -> bool:
        return beside(scenario, replace(load, rate_per_s=rate), 1, promise).keeps

    def has_room(rate: float) -> bool:
        own = replace(load, rate_per_s=rate)
        tpot_s = pace_s(cost, own, 1, beside(scenario, own, 1, None))
        if math.isinf(tpot_s):
            return False
        stay_s = load.output_tokens * tpot_s
        return formulas.get("F29").evaluate({"lambda": rate, "W": stay_s}) <= room

    return Carried(_largest_rate(keeps_ttft), _largest_rate(has_room))


def _largest_rate(keeps: Callable[[float], bool]) -> float:
    """Largest rate that keeps what all smaller ones keep, to within a millionth; 0: none does."""
    low, high = 0.0, _HARDLY_ANY
    while high < _NOBODY and keeps(high):
        low, high = high, 8 * high
    if not low:
        return 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _refusal(scenario: Scenario, load: Load, promise: float | None) -> Refusal:
    """What even an engine for each request cannot keep."""
    slo, cost = scenario.slo, scenario.cost()
    alone = beside(scenario, replace(load, rate_per_s=_HARDLY_ANY), 1, promise)
    if not alone.chunk_tokens:
        start = max(load.prompt_tokens - GRID, 0.0) / 2
        needs_s = chunk_s(cost, 1, load.context_tokens, GRID, start)
        return Refusal("chunk", needs_s, slo.tpot_s)
    if not alone.keeps:
        return Refusal("ttft", alone.prefill_s, slo.ttft_s)
    return Refusal("engines")


def deployment(scenario: Scenario, plan: Plan, engines: int | None = None) -> Scenario:
    """The planned knobs on the planned number of engines, or on another one.

    Engines get requests in turn. Raises LabError where a scenario may not have so many engines.
    """
    policy = replace(
        with_policy(scenario, "vllm-v1").policy,
        max_num_seqs=plan.max_num_seqs,
        max_num_batched_tokens=plan.max_num_batched_tokens,
        enable_chunked_prefill=True,
    )
    return replace(scenario, policy=policy, n_engines=plan.engines if engines is None else engines)


def price_of_a_million(gpus: int, price_per_gpu_hour: float, tokens_per_s: float) -> float:
    """F31b, in the currency of the price."""
    given = {"N_gpu": gpus, "p_gpu": price_per_gpu_hour / 3600, "X": tokens_per_s}
    return formulas.get("F31b").evaluate(given)
