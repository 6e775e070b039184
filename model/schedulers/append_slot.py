"""The rule that Sarathi-Serve and vLLM V0 share: no decode without a free block.

Before every decode one block must be free, even if the request's last block has room. Where none
is, the tail of the running list is preempted, the request itself when nobody stands behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.state import EngineState


def all_decodes_have_slots(state: EngineState) -> bool:
    """True if every decode finds a free block, whatever the order in which they are served."""
    return state.decoding == 0 or state.free - state.decode_demand() >= 1


def take_slot(state: EngineState, request: int) -> None:
    """Take the block of the next token if the last block is full."""
    state.take(int(state.context(request) % state.block_size == 0))


def serve_decodes(state: EngineState, preempt: Callable[[int, int], None]) -> list[int]:
    """Give each decode its slot in list order; return the requests that still prefill.

    `preempt(victim, asking)` takes a victim out of running.
    """
    order = list(state.running)
    prefills: list[int] = []
    i = 0
    while i < len(order):
        request = order[i]
        i += 1
        if not state.is_decoding(request):
            prefills.append(request)
        elif free_a_slot(state, order, i, request, preempt):
            take_slot(state, request)
    return prefills


def free_a_slot(
    state: EngineState,
    order: list[int],
    reached: int,
    request: int,
    preempt: Callable[[int, int], None],
) -> bool:
    """Preempt from the tail of `order` until a block is free; False if `request` itself had to go.

    Only what stands at `reached` or behind may be preempted; victims are removed from `order`.
    """
    while state.free < 1:
        victim = order.pop() if reached < len(order) else request
        preempt(victim, request)
        if victim == request:
            return False
    return True
