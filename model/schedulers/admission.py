"""Admission control: refuse a request on arrival rather than let it wait too long.

A rule looks at the engine as the request finds it, between two iterations, and says
:class:`~model.schedulers.base.Refused` or None. Sources: Erlang's loss system; the queue caps of
vLLM (`max_num_queued_*`) and of textbooks; Little's law (F29) for the number in the system; early
rejection by predicted TTFT (F28d, Mooncake's idea on the prefill side).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from model.events import REASON
from model.schedulers.base import Refused

if TYPE_CHECKING:
    from model.schedulers.lab import Lab
    from model.state import EngineState

MS_PER_S = 1000


# -- what a rule measures --------------------------------------------------------------------------


def in_system(state: EngineState) -> int:
    """Requests that wait, run or are swapped out."""
    return len(state.waiting) + len(state.running) + len(state.swapped)


def waiting_tokens(state: EngineState) -> int:
    """Tokens that the waiting requests still have to compute before their next output."""
    return sum(state.known[r] for r in state.waiting)


def prefill_backlog(state: EngineState) -> int:
    """The same, with what is left of the prompts being computed."""
    left = sum(state.known[r] - state.computed[r] for r in state.prefilling)
    return waiting_tokens(state) + left


def prompts_in_prefill(state: EngineState) -> int:
    """Prompt tokens of all requests without a first token, whole even where partly computed.

    That is how vLLM counts: its API server hears nothing of a prompt before the first token.
    """
    present = chain(state.waiting, state.prefilling, state.swapped)
    return sum(state.prompt[r] for r in present if state.known[r] == state.prompt[r])


def prefill_rate_per_s(state: EngineState, request: int, backlog: int) -> float:
    """Tokens/s of an iteration full of prompts like this one, by the engine's own cost (F5)."""
    budget = state.policy.tokens_per_iteration or backlog
    tokens = min(budget, backlog)
    pairs = tokens * (state.prompt[request] + 1) // 2
    return tokens / state.cost.seconds(tokens, pairs, tokens)


# -- vLLM's own two limits -------------------------------------------------------------------------


def vllm_refusal(
    state: EngineState, max_num_queued_reqs: int | None, max_num_queued_tokens: int | None
) -> Refused | None:
    """vLLM's limits: requests in flight, then prompt tokens in prefill (without the newcomer's)."""
    if max_num_queued_reqs is not None:
        present = in_system(state)
        if present + 1 > max_num_queued_reqs:
            return Refused(REASON["system_full"], present, max_num_queued_reqs)
    if max_num_queued_tokens is not None:
        tokens = prompts_in_prefill(state)
        if tokens >= max_num_queued_tokens:
            return Refused(REASON["queued_tokens"], tokens, max_num_queued_tokens)
    return None


# -- the lab's rules -------------------------------------------------------------------------------


def _loss(policy: Lab, state: EngineState, request: int) -> Refused | None:
    """Nobody waits: without a free slot and blocks for the prompt a request is lost."""
    taken = in_system(state)
    if taken >= policy.max_num_seqs:
        return Refused(REASON["no_free_slot"], taken, policy.max_num_seqs)
    blocks = sum(policy.blocks_to_join(state, r) for r in chain(state.waiting, (request,)))
    if blocks > state.free:
        return Refused(REASON["no_free_blocks"], blocks, state.free)
    return None


def _queue_cap(policy: Lab, state: EngineState, request: int) -> Refused | None:
    waiting, cap = len(state.waiting), policy.queue_cap_requests
    return Refused(REASON["queue_full"], waiting, cap) if waiting >= cap else None


def _token_cap(policy: Lab, state: EngineState, request: int) -> Refused | None:
    """F28(d): the queue may hold so many tokens, the newcomer's included."""
    tokens, cap = waiting_tokens(state) + state.prompt[request], policy.queue_cap_tokens
    return Refused(REASON["queued_tokens"], tokens, cap) if tokens > cap else None


def _little(policy: Lab, state: EngineState, request: int) -> Refused | None:
    """F29: in a stable system λW requests are present, so a cap on them is a cap on λW."""
    present, cap = in_system(state), policy.system_cap_requests
    return Refused(REASON["system_full"], present, cap) if present >= cap else None


def _deadline(policy: Lab, state: EngineState, request: int) -> Refused | None:
    """The prompts ahead and its own, at the estimated rate, would take longer than the bound."""
    backlog = prefill_backlog(state) + state.prompt[request]
    rate = policy.prefill_rate_tokens_per_s or prefill_rate_per_s(state, request, backlog)
    predicted_s = backlog / rate
    if predicted_s <= policy.ttft_bound_s:
        return None
    in_ms = (round(seconds * MS_PER_S) for seconds in (predicted_s, policy.ttft_bound_s))
    return Refused(REASON["ttft_hopeless"], *in_ms)


Rule = Callable[["Lab", "EngineState", int], Refused | None]

RULES: Mapping[str, Rule | None] = MappingProxyType(
    {
        "open": None,
        "loss": _loss,
        "queue_cap": _queue_cap,
        "token_cap": _token_cap,
        "little": _little,
        "deadline": _deadline,
    }
)
"""The lab's rules by the value of its parameter `admission`."""
