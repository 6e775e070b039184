"""What one engine can do within two promises: its chunk (F19), its batch (F5a), its load (F28).

Iterations take the seconds of the scenario's own clock, so that communication between GPUs and
experts, which F5 and F19 leave out, are counted. Times in seconds, lengths in tokens.

Public: :func:`largest`, :func:`chunk_s`, :func:`chunk_beside`, :func:`decode_batch`,
:func:`batch_in_memory`, :func:`engines_for`, :func:`load_that_keeps`, :func:`pace_s`,
:class:`Beside`, :func:`beside`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import formulas
from model import kv_cache
from model.iteration_time import IterationCost
from model.scenario import Scenario
from validation.planner_load import Load

__all__ = [
    "GRID",
    "Beside",
    "batch_in_memory",
    "beside",
    "chunk_beside",
    "chunk_s",
    "decode_batch",
    "engines_for",
    "largest",
    "load_that_keeps",
    "pace_s",
]

GRID = 16
"""Chunks are multiples of so many tokens, as kernels like them."""
_MOST_BATCH, _MOST_CHUNK = 65_536, 65_536
_MOST_ROUNDS = 200


def largest(keeps: Callable[[int], bool], most: int) -> int:
    """Largest n from 1 to ``most`` that keeps what all smaller ones keep; 0 where 1 does not."""
    if not keeps(1):
        return 0
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def chunk_s(
    cost: IterationCost, decodes: float, context: float, chunk: int, start: float
) -> float:
    """Seconds of an iteration of so many decodes and one chunk that starts at ``start`` (F5)."""
    read = decodes * context
    pairs = read + chunk * start + chunk * (chunk + 1) / 2
    last = start + chunk if chunk else 0.0
    return float(cost.seconds(math.ceil(decodes + chunk), pairs, read + last))


def chunk_beside(
    cost: IterationCost, decodes: float, context: float, bound_s: float, prompt: float = 0.0
) -> int:
    """F19: the largest chunk beside so many decodes that keeps an iteration within ``bound_s``.

    A multiple of GRID, 0 where there is none. The chunk of a longer ``prompt`` is taken from its
    middle, where it attends to as much as the mean chunk does.
    """

    def keeps(steps: int) -> bool:
        chunk = GRID * steps
        start = max(prompt - chunk, 0.0) / 2
        return chunk_s(cost, decodes, context, chunk, start) <= bound_s

    return GRID * largest(keeps, _MOST_CHUNK // GRID)


def decode_batch(cost: IterationCost, context: float, bound_s: float) -> int:
    """F5a solved for B: the largest batch whose decode iteration takes at most ``bound_s``."""
    return largest(lambda n: chunk_s(cost, n, context, 0, 0.0) <= bound_s, _MOST_BATCH)


def batch_in_memory(scenario: Scenario, context: float) -> int:
    """F9a: requests of the mean context whose KV an engine holds."""
    capacity = scenario.kv_capacity()
    return kv_cache.paged_batch(capacity.tokens, context, capacity.block_size)


def engines_for(rate_per_s: float, each_per_s: float) -> int:
    """F32a: whole engines for a rate of which one carries ``each_per_s``."""
    return int(formulas.get("F32a").evaluate({"lambda": rate_per_s, "mu_inst": each_per_s}))


@lru_cache(maxsize=4096)
def load_that_keeps(x: float, promise: float | None) -> float:
    """F28 for the mean, F28b for a share of the requests; 0 where no load keeps the bound."""
    if x <= 1:
        return 0.0
    if promise is None:
        return formulas.get("F28").evaluate({"x_ttft": x})
    return formulas.get("F28b").evaluate({"x_ttft": round(x, 3), "q_share": promise})


@dataclass(frozen=True, slots=True)
class Beside:
    """What an engine has for prompts beside its decodes.

    ``iteration_s`` is that of a full chunk; ``prefill_s`` that of a mean prompt without a queue
    (F19b); ``load_mean`` and ``load_max`` are the loads that keep TTFT in the mean (F28) and as
    promised; ``load`` (F28a) is what there is.
    """

    decodes: int
    chunk_tokens: int
    iteration_s: float
    prefill_tokens_per_s: float
    prefill_s: float
    x: float
    load_mean: float
    load_max: float
    load: float

    @property
    def keeps(self) -> bool:
        """Whether TTFT is kept as promised."""
        return 0 < self.load <= self.load_max


def beside(scenario: Scenario, load: Load, engines: int, promise: float | None) -> Beside:
    """An engine of so many, with the decodes that it may have while TPOT is just kept (F29)."""
    slo, cost = scenario.slo, scenario.cost()
    rate = load.rate_per_s / engines
    stay_s = load.output_tokens * slo.tpot_s
    decodes = max(math.ceil(formulas.get("F29").evaluate({"lambda": rate, "W": stay_s})), 1)
    chunk = chunk_beside(cost, decodes, load.context_tokens, slo.tpot_s, load.prompt_tokens)
    if chunk == 0:
        return Beside(decodes, 0, math.nan, 0.0, math.inf, 0.0, 0.0, 0.0, math.inf)
    start = max(load.prompt_tokens - chunk, 0.0) / 2
    iteration_s = chunk_s(cost, decodes, load.context_tokens, chunk, start)
    given = {"n": load.prompt_tokens, "C": chunk, "t_iter": iteration_s}
    prefill_s = formulas.get("F19b").evaluate(given)
    x, per_s = slo.ttft_s / prefill_s, chunk / iteration_s
    given = {"lambda": rate, "s_mean": load.prompt_tokens, "C_p": per_s, "rho_max": 1.0}
    return Beside(
        decodes=decodes,
        chunk_tokens=chunk,
        iteration_s=iteration_s,
        prefill_tokens_per_s=per_s,
        prefill_s=prefill_s,
        x=x,
        load_mean=load_that_keeps(x, None),
        load_max=load_that_keeps(x, promise),
        load=formulas.get("F28a").evaluate(given),
    )


def pace_s(cost: IterationCost, load: Load, engines: int, one: Beside) -> float:
    """TPOT at which an engine settles; inf where prompts come faster than they are computed.

    It spends the share ρ of its time on iterations with a full chunk and the rest on decodes alone
    (F5a), of as many requests as Little's law gives at that pace (F29).
    """
    if one.load >= 1:
        return math.inf
    rate, paced_s = load.rate_per_s / engines, 0.0
    for _ in range(_MOST_ROUNDS):
        decodes = max(rate * load.output_tokens * paced_s, 1.0)
        alone_s = chunk_s(cost, decodes, load.context_tokens, 0, 0.0)
        before_s = paced_s
        paced_s = 1 / (one.load / one.iteration_s + (1 - one.load) / alone_s)
        if paced_s - before_s < 1e-7:
            break
    return paced_s
