"""Who is next in the lab's queue: first come, the shortest as predicted, or the most important."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from model.schedulers.queues import FcfsQueue, PatientQueue, PriorityQueue

if TYPE_CHECKING:
    from model.schedulers.lab import Lab
    from model.state import EngineState

Key = Callable[[int], tuple]
PREDICTOR_STREAM = 0x5EED  # of random numbers; the workload never draws from it


def predicted_outputs(output_tokens: np.ndarray, sigma: float, seed: int) -> list[float]:
    """The true lengths times exp(sigma·z), one standard normal z a request, in row order.

    The same seed and row give the same z under every policy (common random numbers). The median
    of the predictions is the truth.
    """
    draws = np.random.default_rng([seed, PREDICTOR_STREAM]).standard_normal(len(output_tokens))
    return (output_tokens * np.exp(sigma * draws)).tolist()


# -- ranks: smaller first, the arrival second ------------------------------------------------------


def _by_arrival(policy: Lab, state: EngineState) -> Key:
    return lambda request: (0, state.arrival_s[request], request)


def _by_size(policy: Lab, state: EngineState) -> Key:
    """Prompt and predicted answer; waiting t seconds makes it aging·t tokens smaller.

    All who wait age alike, so the later arrival may start with the handicap instead: the rank
    never changes.
    """
    aging = policy.aging_tokens_per_s
    arrival_s, prompt, predicted = state.arrival_s, state.prompt, state.predicted_output

    def rank(request: int) -> tuple:
        since = arrival_s[request]
        return (prompt[request] + predicted[request] + aging * since, since, request)

    return rank


def _by_importance(policy: Lab, state: EngineState) -> Key:
    return state.rank


RANKS: Mapping[str, Callable[[Lab, EngineState], Key]] = MappingProxyType(
    {"fcfs": _by_arrival, "sjf": _by_size, "priority": _by_importance}
)
"""By the value of the parameter `queue_order`."""


def new_queue(policy: Lab, rank: Key) -> FcfsQueue | PriorityQueue:
    """The waiting queue of this order."""
    if policy.queue_order == "fcfs":
        return FcfsQueue()
    patience_s = patience(policy)
    return PriorityQueue(rank) if patience_s is None else PatientQueue(rank, patience_s)


def patience(policy: Lab) -> float | None:
    """After how many seconds a request goes before the order, None for never."""
    return policy.fcfs_after_s if policy.queue_order == "sjf" and policy.fcfs_after_s else None


# -- who joins next: from the queue, or back from host memory --------------------------------------


def next_to_join(policy: Lab, state: EngineState) -> int:
    """The first of those that wait and those that were swapped out; one of them must be there.

    First come, first served brings swapped requests back in swap-out order, before the others.
    """
    if not state.swapped:
        return state.waiting.head()
    if policy.queue_order == "fcfs":
        return next(iter(state.swapped))
    key = _key_now(policy, state)
    swapped = min(state.swapped, key=key)
    if not state.waiting or key(swapped) <= key(state.waiting.head()):
        return swapped
    return state.waiting.head()


def _key_now(policy: Lab, state: EngineState) -> Key:
    """The rank at this moment: who is out of patience first, in order of arrival."""
    rank = policy.rank_of(state)
    patience_s = patience(policy)
    if patience_s is None:
        return rank

    def key(request: int) -> tuple:
        since = state.arrival_s[request]
        if since + patience_s <= state.clock_s:
            return (0, since, request)
        return (1, *rank(request))

    return key


def tell_time(policy: Lab, state: EngineState) -> float:
    """Let the queue know what time it is; return when somebody's patience ends next (s)."""
    patience_s = patience(policy)
    if patience_s is None:
        return float("inf")
    ends = [state.arrival_s[r] + patience_s for r in state.swapped]
    if state.waiting:
        state.waiting.now_s = state.clock_s
        ends.append(state.waiting.patient_until_s(state.waiting.first_come()))
    return min((end for end in ends if end > state.clock_s), default=float("inf"))
