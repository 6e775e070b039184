"""Whom the lab preempts when blocks run out, and how.

A victim rule names one of the running requests, the one that asks included, given how many blocks
are missing and what this iteration has given to whom. A mode says whether the victim is computed
again or moved to host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from model.events import REASON

if TYPE_CHECKING:
    from model.schedulers.base import Decision
    from model.schedulers.lab import Lab
    from model.state import EngineState


class Served(NamedTuple):
    """What this iteration has given a running request."""

    start: int  # tokens computed before
    tokens: int
    blocks: int
    decodes: bool


Victim = Callable[["EngineState", int, Mapping[int, Served]], int]


def _outputs(state: EngineState, request: int) -> int:
    return state.known_tokens(request) - state.prompt[request]


def _latest_admitted(state: EngineState, missing: int, served: Mapping[int, Served]) -> int:
    """The tail of the running list."""
    return next(reversed(state.running))


def _lowest_priority(state: EngineState, missing: int, served: Mapping[int, Served]) -> int:
    """The largest (priority, arrival)."""
    return state.least_important()


def _fewest_outputs(state: EngineState, missing: int, served: Mapping[int, Served]) -> int:
    """Fewest outputs so far; of equals the longest prompt, then the latest admitted."""
    return min(reversed(state.running), key=lambda r: (_outputs(state, r), -state.prompt[r]))


def _just_large_enough(state: EngineState, missing: int, served: Mapping[int, Served]) -> int:
    """The smallest that frees what is missing, else the largest; of equals the latest admitted."""
    held = {r: state.blocks_held(r) for r in reversed(state.running)}
    for request, given in served.items():
        held[request] += given.blocks if given.decodes else 0  # a chunk's blocks count already
    enough = [r for r in held if held[r] >= missing]
    return min(enough, key=held.get) if enough else max(held, key=held.get)


def _most_remaining(state: EngineState, missing: int, served: Mapping[int, Served]) -> int:
    """Most outputs still to come, as predicted; of equals the latest admitted."""
    return max(
        reversed(state.running), key=lambda r: state.predicted_output[r] - _outputs(state, r)
    )


VICTIMS: Mapping[str, Victim] = MappingProxyType(
    {
        "latest_admitted": _latest_admitted,
        "lowest_priority": _lowest_priority,
        "fewest_outputs": _fewest_outputs,
        "just_large_enough": _just_large_enough,
        "most_remaining": _most_remaining,
    }
)
"""By the value of the parameter `victim`, which is also the reason that is written down."""


# -- how -------------------------------------------------------------------------------------------


def _never(state: EngineState, victim: int) -> bool:
    return False


def _always(state: EngineState, victim: int) -> bool:
    return True


def _if_cheaper(state: EngineState, victim: int) -> bool:
    """Moving its KV out and back takes less time than computing it again (F23, F24)."""
    swap_s = state.cost.swap_s(state.blocks_held(victim))
    return swap_s < state.cost.recompute_s(state.context(victim))


SWAPS: Mapping[str, Callable[[EngineState, int], bool]] = MappingProxyType(
    {"recompute": _never, "swap": _always, "cheaper": _if_cheaper, "never": _never}
)
"""Whether a victim's KV is moved rather than dropped, by the parameter `preemption_mode`."""


def evict(
    policy: Lab, state: EngineState, decision: Decision, victim: int, reason: str, asking: int
) -> None:
    """Take a victim out of running; what this iteration had given it has been taken back.

    Where host memory has no room its KV is dropped after all.
    """
    room = state.blocks_for(state.known_tokens(victim)) <= state.cpu_free
    code = REASON["itself" if victim == asking else reason]
    if room and SWAPS[policy.preemption_mode](state, victim):
        decision.swapped_blocks += state.swap_out(victim, code, asking=asking)
        decision.swapped_out.append(victim)
    else:
        state.drop(victim, code, asking=asking)
        state.waiting.push_back_preempted(victim)
        decision.preempted.append(victim)
