"""Head-of-line blocking: the head of the queue waits while a later request would fit."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from model.events import EVENT, REASON
from model.metrics.latency import Columns
from model.state import REJECTED

if TYPE_CHECKING:
    from model.result import SimulationResult

_SAME_MOMENT_S = 1e-9


def head_of_line_blocked(
    iterations: Columns,
    events: Columns,
    requests: Columns,
    *,
    kv_blocks: int,
    block_size: int,
    watermark_blocks: int = 0,
    max_num_seqs: int | None = None,
    tokens_needed: np.ndarray | None = None,
) -> np.ndarray:
    """For each iteration: was the head refused although a later request would have fitted?

    The head counts as refused from its "refuse" event, for want of blocks or of token budget,
    until the queue moves, and it blocks as long as its blocks are not free. A later request fits
    if it has never run, there is a slot for it, and its whole prompt (or ``tokens_needed``, what
    a reserving policy sets aside) goes into the blocks that are free after the decision, less the
    watermark; and for want of budget, if its prompt goes into the budget that was left. Cached
    prefixes are not counted in its favor.
    """
    sizes = requests["prompt_tokens"] if tokens_needed is None else tokens_needed
    blocked = np.zeros(len(iterations["start_s"]), dtype=bool)
    for engine in np.unique(events["engine_id"]):
        rows = np.flatnonzero(iterations["engine_id"] == engine)
        mine = events["engine_id"] == engine
        log = {name: column[mine] for name, column in events.items()}
        need, budget = _refused_iterations(log, len(rows))
        at = np.flatnonzero(need)
        if not len(at):
            continue
        smallest = _smallest_waiting(
            requests, sizes, _queued_s(log, len(sizes)), iterations["start_s"][rows[at]]
        )
        free = kv_blocks - iterations["blocks_used"][rows[at]] - watermark_blocks
        fits = (np.ceil(smallest / block_size) <= free) & (smallest <= budget[at])
        fits &= need[at] > free  # else it is not the head that blocks, but a rule of the policy
        if max_num_seqs is not None:
            fits &= iterations["running"][rows[at]] < max_num_seqs
        blocked[rows[at]] = fits
    return blocked


def head_of_line_s(iterations: Columns, blocked: np.ndarray) -> float:
    """Seconds of the iterations that :func:`head_of_line_blocked` marks."""
    return float((iterations["end_s"] - iterations["start_s"])[blocked].sum())


def head_of_line(result: SimulationResult) -> np.ndarray:
    """For each iteration: was the head of the queue refused while a later request would fit?"""
    policy = result.scenario.policy if result.scenario else None
    watermark = getattr(policy, "watermark", 0.0)
    return head_of_line_blocked(
        result.iterations,
        result.events,
        result.requests,
        kv_blocks=result.kv_blocks,
        block_size=result.block_size,
        watermark_blocks=int(watermark * result.kv_blocks),
        max_num_seqs=getattr(policy, "max_num_seqs", None),
        tokens_needed=_reserved_tokens(result),
    )


class _Sizes:
    """As much of an engine's state as a reserving policy looks at."""

    def __init__(self, result: SimulationResult) -> None:
        self.prompt = result.requests["prompt_tokens"].tolist()
        total = result.requests["prompt_tokens"] + result.requests["output_tokens"]
        self.last_token = total.tolist()
        self.max_model_len = result.scenario.max_model_len()


def _reserved_tokens(result: SimulationResult) -> np.ndarray | None:
    """Tokens that each request reserves at admission; None where policies do not reserve."""
    policy = result.scenario.policy if result.scenario else None
    if not getattr(policy, "reserves", False):
        return None
    sizes = _Sizes(result)
    return np.array([policy.tokens_reserved(sizes, row) for row in range(len(sizes.prompt))])


def _refused_iterations(log: Columns, n: int) -> tuple[np.ndarray, np.ndarray]:
    """By iteration: blocks that a refused head needs, and the longest prompt the budget takes.

    The first is 0 where no head is refused and inf where its trouble is the budget; the second is
    inf where its trouble is blocks.
    """
    event, request = log["event"], log["request"]
    refused = event == EVENT["refuse"]
    # A refusal ends with the next refusal or admission, or when its own head leaves the queue.
    last = np.maximum.accumulate(np.where(refused, np.arange(len(event)), -1))
    left = np.isin(event, [EVENT["cancel"], EVENT["reject"]])
    left &= (last >= 0) & (request == request[np.maximum(last, 0)])
    moves = np.flatnonzero(refused | left | np.isin(event, [EVENT["admit"], EVENT["resume"]]))
    start = np.minimum(log["iteration"][moves], n)
    end = np.append(start[1:], n)  # one decision may admit several before it refuses
    for_blocks = refused[moves] & (log["reason"][moves] == REASON["no_blocks"])
    for_budget = refused[moves] & (log["reason"][moves] == REASON["no_budget"])
    length = np.where(for_blocks | for_budget, np.maximum(end - start, 0), 0)
    rows = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())
    need, budget = np.zeros(n), np.full(n, np.inf)
    blocks_needed, tokens_free = log["blocks_needed"][moves], log["tokens_free"][moves]
    need[rows] = np.repeat(np.where(for_blocks, blocks_needed, np.inf), length)
    budget[rows] = np.repeat(np.where(for_budget, tokens_free, np.inf), length)
    return need, budget


def _queued_s(log: Columns, n: int) -> np.ndarray:
    """When each request joined this engine's queue, after however many tries; nan: never."""
    arrived = log["event"] == EVENT["arrive"]
    times = np.full(n, np.nan)
    times[log["request"][arrived]] = log["time_s"][arrived]
    return times


def _smallest_waiting(
    requests: Columns, sizes: np.ndarray, queued_s: np.ndarray, at_s: np.ndarray
) -> np.ndarray:
    """Smallest size among the requests that wait at each moment and have never run; inf: none."""
    rows = np.flatnonzero(np.isfinite(queued_s) & (requests["status"] != REJECTED))
    ran_s, end_s = requests["first_scheduled_s"][rows], requests["end_s"][rows]
    left_s = np.where(np.isnan(ran_s), end_s, ran_s)
    left_s = np.where(np.isnan(left_s), np.inf, left_s)
    arrival_s = queued_s[rows]
    size = sizes[rows].tolist()
    moments = np.concatenate((arrival_s, left_s))
    order = np.argsort(moments, kind="stable").tolist()
    n = len(rows)
    gone = [False] * n
    heap: list[tuple[float, int]] = []
    smallest = []
    for moment in order:
        if moment < n:
            heapq.heappush(heap, (size[moment], moment))
        else:
            gone[moment - n] = True
        while heap and gone[heap[0][1]]:
            heapq.heappop(heap)
        smallest.append(heap[0][0] if heap else np.inf)
    index = np.searchsorted(moments[order], at_s + _SAME_MOMENT_S, side="right") - 1
    return np.where(index >= 0, np.array([*smallest, np.inf])[index], np.inf)
