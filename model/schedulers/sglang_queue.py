"""In which order SGLang looks at its waiting requests.

Source: SGLang 0.5.23, `managers/schedule_policy.py` (SchedulePolicy), `managers/scheduler.py`
(_add_request_to_queue).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from model.radix_cache import RadixTree
from model.schedulers.queues import FcfsQueue

if TYPE_CHECKING:
    from model.state import EngineState

MOST_MATCHED = 128  # waiting requests up to which prefixes are looked for
REFRESH_PASSES = 32  # passes between two looks at the waiting requests' prefixes
SHORT_PREFIX_TOKENS = 32  # found no more in the cache, and as much in the queue: let another first


class SglangQueue(FcfsQueue):
    """Retracted requests go to the back; a queue that has been sorted stays so."""

    def push_back_preempted(self, request: int) -> None:
        """Put a retracted request behind everybody."""
        self.push(request)

    def sort(self, key: Callable[[int], object]) -> None:
        """Sort, equal ones in their order."""
        for request in sorted(self, key=key):
            self.move_to_end(request)


def sort_by_prefix(state: EngineState) -> None:
    """Longest cached prefix first, as long as the queue is short enough to look for them.

    Of those whose beginning is new but the same, all but the first go to the back: it fills the
    cache for them.
    """
    cache = state.cache
    in_queue = RadixTree(cache.token_key)
    rank: dict[int, float] = {}
    for request in state.waiting:
        known = state.known[request]
        cached = cache.touch(request, known).end * state.block_size
        rank[request] = -min(cached, known - 1)
        if cached <= SHORT_PREFIX_TOKENS:
            if in_queue.walk(request, known).end >= SHORT_PREFIX_TOKENS:
                rank[request] = float("inf")
            else:
                in_queue.insert(request, known)
    state.waiting.sort(rank.__getitem__)


def touch_prefixes(state: EngineState) -> None:
    """Count the prefixes of the first in the queue as used, the head's last of all."""
    for request in reversed(list(islice(state.waiting, MOST_MATCHED))):
        state.cache.touch(request, state.known[request])
