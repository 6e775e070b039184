"""From a load and two promises to the knobs of an engine and to a number of engines, by formula.

What a plan takes for granted: the queue of prompts is M/D/1 (F28, F28b) at the rate that is left
beside the decodes (F19), every request has the mean lengths, and as many requests decode as
Little's law (F29) gives: where TPOT is just kept for the chunk, at the pace at which engines settle
for the number of engines. Rates are those of all engines together.

Public: :class:`Plan`, :class:`Refusal`, :func:`plan`, :func:`deployment`,
:func:`price_of_a_million`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import formulas
from model.parameters import with_policy
from model.scenario import Scenario
from validation.planner_engine import (
    GRID,
    Beside,
    batch_in_memory,
    beside,
    chunk_s,
    decode_batch,
    largest,
    pace_s,
)
from validation.planner_load import Load, load_of

__all__ = [
    "MOST_ENGINES",
    "PROMISES",
    "Plan",
    "Refusal",
    "deployment",
    "plan",
    "price_of_a_million",
]

PROMISES = (0.99, 0.9, None)
"""For which share of the requests TTFT is promised; None: only for the mean."""
MOST_ENGINES = 4096
_HARDLY_ANY = 1e-6  # requests/s


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no plan, and the seconds that say so: ``needs_s`` against ``bound_s``.

    ``reason`` is "tpot" (one decode takes longer), "chunk" (no room for a chunk beside one decode),
    "ttft" (one prompt takes longer) or "engines" (more than MOST_ENGINES).
    """

    reason: str
    needs_s: float = math.nan
    bound_s: float = math.nan


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
        """ "prefill", "batch", or "both" where they ask for the same number."""
        if self.engines_prefill == self.engines_batch:
            return "both"
        return "prefill" if self.engines_prefill > self.engines_batch else "batch"

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
    prefill = _fewest(lambda n: beside(scenario, load, n, promise).keeps)
    if prefill is None:
        return _refusal(scenario, load, promise)
    room = max(min(in_memory, in_time), 1)
    batch = _fewest(lambda n: _running(scenario, load, n, promise) <= room)
    if batch is None:
        return Refusal("engines")
    engines = max(prefill, batch)
    one = beside(scenario, load, engines, promise)
    return Plan(
        load=load,
        promise=promise,
        beside=one,
        tpot_s=pace_s(cost, load, engines, one),
        batch_memory=in_memory,
        batch_tpot=in_time,
        engines_prefill=prefill,
        engines_batch=batch,
        gpus_per_engine=scenario.tensor_parallel,
    )


def _running(scenario: Scenario, load: Load, engines: int, promise: float | None) -> float:
    """F29: decodes of one engine of so many, inf where it is not stable (F28a)."""
    one = beside(scenario, load, engines, promise)
    tpot_s = pace_s(scenario.cost(), load, engines, one)
    if math.isinf(tpot_s):
        return math.inf
    stay_s = load.output_tokens * tpot_s
    return formulas.get("F29").evaluate({"lambda": load.rate_per_s / engines, "W": stay_s})


def _fewest(keeps: Callable[[int], bool]) -> int | None:
    """Fewest engines that keep what more of them keep too; None where MOST_ENGINES do not."""
    if not keeps(MOST_ENGINES):
        return None
    return largest(lambda n: n == 1 or not keeps(n - 1), MOST_ENGINES)


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
