"""Whom each engine evicts when blocks are short, and what that frees and costs.

A rule is an order: requests leave one after the other until enough blocks are free, and the last
one stays, as in every engine. Costs are F23, F23a and F25h.

Public: :class:`Running`, :data:`RULES`, :func:`victims`, :func:`cheapest`, :class:`Bill`,
:func:`bill`, :func:`decode_s`, :data:`EXAMPLES`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import formulas
from model.kv_cache import blocks_for_tokens
from validation import throughput
from validation.preemption import Costs, decoding, values
from validation.throughput import Engine

__all__ = [
    "EXAMPLES", "RULES", "Bill", "Running", "bill", "blocks_of", "cheapest", "decode_s",
    "victims",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Running:
    """A request that decodes. ``arrived`` and ``admitted`` are places in those orders (1 first).

    A larger ``priority`` is less important, as in vLLM. Engines do not know ``left_tokens``, the
    output still to come.
    """

    name: str
    prompt_tokens: int
    generated_tokens: int
    left_tokens: int
    arrived: int
    admitted: int
    priority: int = 0

    @property
    def context_tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens


def blocks_of(request: Running, block_size: int) -> int:
    """F10: the blocks that its eviction frees."""
    return int(blocks_for_tokens(request.context_tokens, block_size))


Pick = Callable[[Sequence[Running], int, Costs], Running]
"""The next one to leave: (who still runs, blocks still missing, what things cost)."""


def _just_enough(running: Sequence[Running], missing: int, costs: Costs) -> Running:
    """The smallest that covers the need alone, the largest where nobody does."""
    by_blocks = sorted(running, key=lambda r: (blocks_of(r, costs.block_size), r.name))
    covers = [r for r in by_blocks if blocks_of(r, costs.block_size) >= missing]
    return covers[0] if covers else by_blocks[-1]


def _most_block_seconds(running: Sequence[Running], missing: int, costs: Costs) -> Running:
    return max(running, key=lambda r: _block_seconds_per_flop(r, costs, 1.0))


RULES: Mapping[str, Pick] = MappingProxyType(
    {
        "vllm_v0": lambda running, missing, costs: max(running, key=lambda r: r.arrived),
        "vllm_v1": lambda running, missing, costs: max(running, key=lambda r: r.admitted),
        "vllm_v1_priority": lambda running, missing, costs: max(
            running, key=lambda r: (r.priority, r.arrived)
        ),
        "sarathi": lambda running, missing, costs: max(running, key=lambda r: r.admitted),
        "sglang": lambda running, missing, costs: min(
            running, key=lambda r: (r.generated_tokens, -r.prompt_tokens)
        ),
        "just_enough": _just_enough,
        "most_left": lambda running, missing, costs: max(running, key=lambda r: r.left_tokens),
        "block_seconds": _most_block_seconds,
    }
)
"""Rules by name; sources: vLLM 0.5.4, 0.11 and 0.33, sarathi-serve, SGLang 0.5.23; the last three
are no engine's: two need to know how long outputs will be."""


def victims(
    rule: str, running: Sequence[Running], blocks: int, costs: Costs
) -> tuple[Running, ...]:
    """Who leaves, in order, until ``blocks`` are free; one request always stays."""
    staying, gone, freed = list(running), [], 0
    while freed < blocks and len(staying) > 1:
        victim = RULES[rule](staying, blocks - freed, costs)
        staying.remove(victim)
        gone.append(victim)
        freed += blocks_of(victim, costs.block_size)
    return tuple(gone)


def cheapest(running: Sequence[Running], blocks: int, costs: Costs) -> tuple[Running, ...]:
    """Those whose eviction frees ``blocks`` with the least work.

    All choices are tried, which is for a handful of requests. One request stays; empty where all
    others are not enough.
    """
    choices = (
        chosen
        for size in range(1, len(running))
        for chosen in itertools.combinations(running, size)
        if sum(blocks_of(one, costs.block_size) for one in chosen) >= blocks
    )
    return min(choices, key=lambda chosen: sum(_work(one, costs) for one in chosen), default=())


@dataclass(frozen=True, slots=True)
class Bill:
    """What evicting some requests frees and costs; ``spare_blocks`` is negative where too few."""

    freed_blocks: int
    spare_blocks: int
    work_flop: float
    recompute_s: float
    block_seconds: float

    @property
    def block_seconds_per_flop(self) -> float:
        """F25h, summed over the victims."""
        return self.block_seconds / self.work_flop if self.work_flop else float("nan")


def bill(gone: Sequence[Running], blocks: int, costs: Costs, decode_s: float) -> Bill:
    """The bill of evicting ``gone`` where ``blocks`` are needed and an iteration is ``decode_s``.

    Work is F23's. Fixed costs are left out: the work rides along with decodes.
    """
    freed = sum(blocks_of(r, costs.block_size) for r in gone)
    flop = sum(_work(r, costs) for r in gone)
    given = values(costs)
    return Bill(
        freed_blocks=freed,
        spare_blocks=freed - blocks,
        work_flop=flop,
        recompute_s=flop / (given["g"] * given["P"] * given["eta_c"]),
        block_seconds=sum(
            blocks_of(r, costs.block_size) * r.left_tokens * decode_s for r in gone
        ),
    )


def _work(request: Running, costs: Costs) -> float:
    given = {**values(costs), "n": float(request.context_tokens)}
    return formulas.get("F23").evaluate(given)


def _block_seconds_per_flop(request: Running, costs: Costs, decode_s: float) -> float:
    given = {
        "n": float(request.context_tokens),
        "bs": float(costs.block_size),
        "n_left": float(request.left_tokens),
        "t_d": decode_s,
        "C_rec": _work(request, costs),
    }
    return formulas.get("F25h").evaluate(given)


@lru_cache(maxsize=256)
def decode_s(engine: Engine, running: tuple[Running, ...]) -> float:
    """F5a: seconds of an iteration in which all of them decode."""
    mean = sum(request.context_tokens for request in running) / len(running)
    return float(throughput.decode_s(decoding(engine, len(running), mean), len(running)))


EXAMPLES: tuple[tuple[Running, ...], ...] = (
    (
        Running("A", 1800, 620, 40, 1, 1, 0),
        Running("B", 240, 500, 700, 2, 2, 1),
        Running("C", 3000, 30, 370, 3, 6, 0),
        Running("D", 400, 12, 500, 4, 3, 0),
        Running("E", 900, 180, 60, 5, 4, 2),
        Running("F", 120, 90, 900, 6, 5, 1),
    ),
    (
        Running("A", 350, 900, 250, 1, 1, 0),
        Running("B", 2600, 410, 15, 2, 2, 1),
        Running("C", 700, 60, 640, 3, 3, 2),
        Running("D", 90, 310, 90, 4, 6, 0),
        Running("E", 1500, 8, 120, 5, 4, 0),
        Running("F", 500, 150, 450, 6, 5, 1),
    ),
)
"""Teaching examples in which the rules disagree: one request was admitted out of turn."""
