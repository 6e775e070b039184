"""A stretch: iterations in a row that one decision fills with the same requests and tokens.

How many there can be is bounded by the clock (before the next outside event) and by the KV blocks;
how long each lasts comes from its work. All three cost what the stretch really holds.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from model.iteration_time import IterationCost
    from model.schedulers.base import Decision, Scheduler
    from model.state import EngineState

SCALAR_ITERATIONS = 24  # below this a Python loop is faster than NumPy calls; same bits


class Work(NamedTuple):
    """What an iteration computes, and by how much that grows from one iteration to the next."""

    tokens: int
    pairs: int
    pairs_step: int
    reads: int
    reads_step: int
    swapped_blocks: int


def most_iterations(shortest_s: float, start_s: float, limit_s: float) -> int:
    """How many iterations of `shortest_s` or more can start before `limit_s` at most."""
    if shortest_s <= 0 or limit_s == float("inf"):
        return 1 << 60
    return max(1, int((limit_s - start_s) / shortest_s) + 2)


def iterations_with_blocks(state: EngineState, decision: Decision, tokens: int) -> int:
    """For how many iterations of `tokens` tokens there are blocks in any case, however they fall.

    The first iteration's blocks have been taken already.
    """
    if state.policy.reserves:
        return 1 << 60
    started = state.decoding + len(decision.chunks)  # requests, each of which may begin a block
    return 1 + max(0, state.free - started - 1) * state.block_size // max(1, tokens)


def end_times(
    cost: IterationCost,
    work: Work,
    start_s: float,
    iterations: int,
    limit_s: float,
    policy: Scheduler,
) -> list[float]:
    """End times (s) of up to `iterations` iterations; all but the first start before `limit_s`.

    The clock is accumulated one iteration after the other, never by a sum in another order. Where
    the policy starts iterations at ticks only, the rest of a tick passes between two of them.
    """
    tokens, pairs, pairs_step, reads, reads_step, swapped_blocks = work
    weights = cost.weights_s(tokens)
    other = cost.fixed_s + cost.token_s * tokens + cost.swapped_block_s * swapped_blocks
    by_tokens = cost.compute_token_s * tokens
    per_pair, per_read = cost.compute_pair_s, cost.kv_token_read_s
    clock = start_s
    on_ticks = policy.on_ticks
    ends: list[float] = []
    for _ in range(iterations if on_ticks else min(iterations, SCALAR_ITERATIONS)):
        compute = by_tokens + per_pair * pairs  # cost.seconds, written out
        memory = weights + per_read * reads
        clock = clock + ((compute if compute > memory else memory) + other)
        ends.append(clock)
        if on_ticks:
            clock = policy.start_not_before(clock)
        if clock >= limit_s:
            return ends
        pairs += pairs_step
        reads += reads_step
    left = iterations - len(ends)
    if left:
        step = np.arange(left)
        durations = cost.seconds(
            tokens,
            pairs + pairs_step * step,
            reads + reads_step * step,
            swapped_blocks,
        )
        durations[0] = clock + durations[0]
        clocks = np.add.accumulate(durations)
        ends.extend(clocks[: int(np.searchsorted(clocks, limit_s)) + 1].tolist())
    return ends


def blocks_ahead(state: EngineState, decision: Decision, iterations: int) -> list[int]:
    """KV blocks used after each of up to `iterations` iterations, cut before they run short.

    The first iteration's blocks have been taken already.
    """
    used = state.kv_blocks - state.free
    if iterations == 1 or state.policy.reserves:
        return [used] * iterations
    limit = state.kv_blocks
    steps = [0] * (iterations - 1)
    if decision.decodes:
        cycle = state.demand_cycle()
        whole, rest = divmod(iterations, state.block_size)
        steps = (cycle * whole + cycle[:rest])[1:]
        limit -= state.policy.needs_free_block
    for request, size in decision.chunks:
        held, total = state.held[request], state.computed[request] + size
        for i in range(iterations - 1):
            total += size
            need = state.blocks_for(total) - held
            if need > 0:
                steps[i] += need
                held += need
    ahead = list(accumulate(steps, initial=used))
    if ahead[-1] > limit:
        first_above = next(i for i, blocks in enumerate(ahead) if blocks > limit)
        ahead = ahead[: max(1, first_above)]
    return ahead
