"""vLLM V1: one list of running requests, one token budget, recompute preemption.

Source: vLLM 0.33.0 `v1/core/sched/scheduler.py`, method `schedule`. Reproduces recorded
schedules of that version decision by decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.prefix_cache import PrefixCache, content_keys
from model.schedulers.admission import vllm_refusal
from model.schedulers.base import (
    MOST_TOKENS,
    UNBOUNDED,
    Decision,
    Refused,
    Scheduler,
    register,
    watermark_blocks,
)
from model.schedulers.queues import FcfsQueue, PriorityQueue

if TYPE_CHECKING:
    from model.requests import Requests
    from model.state import EngineState

MOST_QUEUED = 1_000_000
NO_BLOCKS, NO_BUDGET, NO_SLOT = REASON["no_blocks"], REASON["no_budget"], REASON["no_slot"]
AFTER_PREEMPTION = REASON["after_preemption"]


@register
@dataclass(frozen=True)
class VllmV1(Scheduler):
    """vLLM's V1 scheduler under its own parameter names.

    `long_prefill_token_threshold` caps a prefill chunk while more than one request is present;
    `scheduler_reserve_full_isl` admits a request only if its whole known prompt fits now;
    `watermark` is the share of blocks that an admission leaves free while something else runs.
    The server refuses with `max_num_queued_reqs` requests in flight, or once the prompts in prefill
    add up to `max_num_queued_tokens` (None: no limit; HTTP 503).
    """

    name: ClassVar[str] = "vllm-v1"
    source: ClassVar[str] = (
        "vLLM 0.33.0, recorded schedules; watermark and queue limits modelled from source"
    )

    max_num_batched_tokens: int = 2048
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    enable_prefix_caching: bool = False
    queue_order: str = "fcfs"
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number("max_num_batched_tokens", self.max_num_batched_tokens, 1, MOST_TOKENS)
        checks.whole_number(
            "long_prefill_token_threshold", self.long_prefill_token_threshold, 0, MOST_TOKENS
        )
        for field in (
            "enable_chunked_prefill",
            "scheduler_reserve_full_isl",
            "enable_prefix_caching",
        ):
            checks.flag(field, getattr(self, field))
        checks.number("watermark", self.watermark, 0.0, 0.99)
        checks.choice("queue_order", self.queue_order, ("fcfs", "priority"))
        for field, most in (
            ("max_num_queued_reqs", MOST_QUEUED),
            ("max_num_queued_tokens", MOST_TOKENS),
        ):
            if getattr(self, field) is not None:
                checks.whole_number(field, getattr(self, field), 0, most)

    def new_queue(self, rank: Callable[[int], tuple]) -> FcfsQueue | PriorityQueue:
        return PriorityQueue(rank) if self.queue_order == "priority" else FcfsQueue()

    def new_cache(self, requests: Requests, blocks: int, block_size: int) -> PrefixCache | None:
        if not self.enable_prefix_caching:
            return None
        return PrefixCache(blocks, block_size, content_keys(requests, block_size))

    @property
    def tokens_per_iteration(self) -> int:
        return self.max_num_batched_tokens

    def reject_reason(self, state: EngineState, request: int) -> int:
        reason = super().reject_reason(state, request)
        if reason or self.enable_chunked_prefill:
            return reason
        too_long = state.prompt[request] > self.max_num_batched_tokens
        return REASON["exceeds_budget"] if too_long else 0

    def refusal(self, state: EngineState, request: int) -> Refused | None:
        return vllm_refusal(state, self.max_num_queued_reqs, self.max_num_queued_tokens)

    def decide(self, state: EngineState, decision: Decision) -> None:
        cap = state.prefill_token_cap
        if self.long_prefill_token_threshold and len(state.running) + len(state.waiting) > 1:
            cap = min(cap, self.long_prefill_token_threshold)
        if not state.running:
            budget = self.max_num_batched_tokens
        else:
            budget = self._serve_all(state, decision, cap)
            if budget < 0:
                budget = self._serve_in_order(state, decision, cap)
        if state.waiting:
            self._admit(state, decision, budget, cap)

    def stable_for(self, state: EngineState, decision: Decision) -> int:
        if decision.changes_queues:
            return 1
        if self.enable_prefix_caching:
            if len(decision.chunks) > 1:
                return 1  # who fills a shared block first decides whose copy is found
            if state.waiting and (decision.chunks or not self.enable_chunked_prefill):
                return 1  # filling or losing shared blocks changes what the head still needs
        return UNBOUNDED

    def _serve_all(self, state: EngineState, decision: Decision, cap: int) -> int:
        """Serve everyone who runs if nothing is short; return the budget left, -1 if it is."""
        budget = self.max_num_batched_tokens - state.decoding
        need = state.decode_demand()
        chunks = []
        if state.prefilling:
            computed, known = state.computed, state.known
            for request in state.prefilling:
                tokens = min(known[request] - computed[request], cap)
                if tokens > budget:
                    # Later ones go short, which is fair only to those that stand behind it.
                    if not state.prefills_are_last():
                        return -1
                    tokens = budget
                if tokens > 0:
                    chunks.append((request, tokens))
                    budget -= tokens
                    blocks = state.blocks_for(computed[request] + tokens) - state.held[request]
                    if blocks > 0:
                        need += blocks
        if budget < 0 or need > state.free:
            return -1
        if state.decoding:
            decision.decodes = True
            state.take(state.decode_demand())
        for request, tokens in chunks:
            state.grow_chunk(request, tokens)
        decision.chunks = chunks
        return budget

    def _serve_in_order(self, state: EngineState, decision: Decision, cap: int) -> int:
        """Serve the running list one by one, preempting when blocks run out; return the budget."""
        by_priority = self.queue_order == "priority"
        budget = self.max_num_batched_tokens
        served: dict[int, tuple[int, int]] = {}  # request -> (tokens, blocks taken by its decode)
        for request in list(state.running):
            if budget <= 0:
                break
            if request not in state.running:
                continue  # preempted for an earlier one
            decodes = state.is_decoding(request)
            if decodes:
                tokens = 1
                need = int(state.context(request) % state.block_size == 0)
            else:
                computed = state.computed[request]
                tokens = min(state.known[request] - computed, cap, budget)
                need = max(0, state.blocks_for(computed + tokens) - state.held[request])
            while need > state.free:
                if by_priority:
                    victim = state.least_important()
                    reason = REASON["lowest_priority"]
                else:
                    victim = next(reversed(state.running))
                    reason = REASON["latest_admitted"]
                tokens_now, taken_now = served.pop(victim, (0, 0))
                budget += tokens_now
                state.drop(
                    victim,
                    REASON["itself"] if victim == request else reason,
                    asking=request,
                    taken_now=taken_now,
                    tokens_now=tokens_now,
                )
                state.waiting.push_back_preempted(victim)
                decision.preempted.append(victim)
                if victim == request:
                    break
            if request not in state.running:
                if by_priority:
                    continue
                break
            if decodes:
                state.take(need)
                served[request] = (1, need)
            else:
                state.grow_chunk(request, tokens)
                served[request] = (tokens, 0)
            budget -= tokens
        decision.chunks = [(r, n) for r, (n, _) in served.items() if not state.is_decoding(r)]
        decision.decodes = len(decision.chunks) < len(served)
        if state.decoding > len(served) - len(decision.chunks):
            decision.skipped = [
                r for r in state.running if state.is_decoding(r) and r not in served
            ]
        return budget

    def _admit(self, state: EngineState, decision: Decision, budget: int, cap: int) -> None:
        """Admit from the head of the queue until something is short."""
        waiting, running = state.waiting, state.running
        head = waiting.head()
        if decision.preempted:
            state.refuse(head, AFTER_PREEMPTION)
            return
        kept_free = watermark_blocks(self.watermark, state.kv_blocks)
        while waiting:
            head = waiting.head()
            if budget <= 0:
                state.refuse(head, NO_BUDGET, tokens=state.known[head], tokens_free=0)
                return
            if len(running) >= self.max_num_seqs:
                state.refuse(head, NO_SLOT, tokens_free=budget)
                return
            known = state.known[head]
            hits: list[int] = []
            unused = 0
            if state.cache is not None:
                hits, unused = state.cache.lookup(head, known)
            cached = len(hits) * state.block_size
            tokens = min(known - cached, cap)
            if tokens > budget:
                if not self.enable_chunked_prefill:
                    state.refuse(head, NO_BUDGET, tokens=tokens, tokens_free=budget)
                    return
                tokens = budget
            must_fit = known if self.scheduler_reserve_full_isl else cached + tokens
            need = state.blocks_for(must_fit) - len(hits) + unused
            keep = kept_free if decision.decodes or decision.chunks else 0
            if need > state.free - keep:
                state.refuse(head, NO_BLOCKS, blocks=need, tokens=tokens, tokens_free=budget)
                return
            waiting.take()
            state.admit(head, tokens, blocks=need, tokens_free=budget, cached=cached)
            if hits:
                state.cache.adopt(head, hits)
                state.free -= unused
                state.held[head] = len(hits)
                decision.cached.append((head, cached))
            state.grow_chunk(head, tokens)
            decision.admitted.append(head)
            decision.chunks.append((head, tokens))
            budget -= tokens
