"""vLLM V0: prompts before decodes, blocks on demand, recompute or swap when they run out.

Source: vLLM 0.6.3.post1 `core/scheduler.py` and `core/block_manager*.py`. Reproduces recorded
schedules of that version decision by decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.schedulers.append_slot import (
    all_decodes_have_slots,
    free_a_slot,
    serve_decodes,
    take_slot,
)
from model.schedulers.base import (
    MOST_TOKENS,
    UNBOUNDED,
    Decision,
    Scheduler,
    register,
    watermark_blocks,
)
from model.schedulers.queues import FcfsQueue, LateSortedQueue

if TYPE_CHECKING:
    from model.state import EngineState


@register
@dataclass(frozen=True)
class VllmV0(Scheduler):
    """vLLM's V0 scheduler under its own parameter names.

    Without chunked prefill an iteration is either prompts only or decodes only. `watermark` is the
    share of blocks that an admission or a swap-in leaves free. `queue_order="priority"` lets a
    waiting request evict a less important running one; chunked mode ignores it, as the engine does.
    """

    name: ClassVar[str] = "vllm-v0"
    source: ClassVar[str] = (
        "vLLM 0.6.3.post1, recorded schedules; chunked prefill with swapping modelled from source"
    )
    needs_free_block: ClassVar[bool] = True

    max_num_batched_tokens: int = 2048
    enable_chunked_prefill: bool = False
    preemption_mode: str = "recompute"
    queue_order: str = "fcfs"
    watermark: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number("max_num_batched_tokens", self.max_num_batched_tokens, 1, MOST_TOKENS)
        checks.flag("enable_chunked_prefill", self.enable_chunked_prefill)
        checks.choice("preemption_mode", self.preemption_mode, ("recompute", "swap"))
        checks.choice("queue_order", self.queue_order, ("fcfs", "priority"))
        checks.number("watermark", self.watermark, 0.0, 0.99)

    def new_queue(self, rank: Callable[[int], tuple]) -> FcfsQueue | LateSortedQueue:
        if self.queue_order == "fcfs" or self.enable_chunked_prefill:
            return FcfsQueue()
        return LateSortedQueue(lambda request: rank(request)[:2])

    @property
    def tokens_per_iteration(self) -> int:
        return self.max_num_batched_tokens

    def reject_reason(self, state: EngineState, request: int) -> int:
        return super().reject_reason(state, request) or self._ignore_reason(
            state, state.prompt[request]
        )

    def decide(self, state: EngineState, decision: Decision) -> None:
        if self.enable_chunked_prefill:
            self._decide_chunked(state, decision)
        else:
            if state.swapped:
                if state.waiting:
                    state.refuse(state.waiting.head(), REASON["swapped_first"])
            else:
                budget, seats = self.max_num_batched_tokens, self.max_num_seqs - len(state.running)
                self._admit(state, decision, budget, seats)
            if not decision.admitted:
                self._decide_decodes(state, decision)
        # An iteration that only evicts still takes its time.
        decision.row_without_tokens = bool(decision.preempted or decision.swapped_out)

    def stable_for(self, state: EngineState, decision: Decision) -> int:
        if decision.changes_queues:
            return 1
        if self.queue_order == "priority" and state.waiting and state.running:
            last = next(reversed(state.running))
            if state.rank(last)[:2] > state.rank(state.waiting.head())[:2]:
                return 1  # it may be evicted as soon as blocks have become short
        return UNBOUNDED

    # -- admission -------------------------------------------------------------------------------

    def _ignore_reason(self, state: EngineState, known: int) -> int:
        """Why a prompt of `known` tokens is dropped rather than left waiting, 0 if it is not."""
        if not self.enable_chunked_prefill and known > self.max_num_batched_tokens:
            return REASON["exceeds_budget"]
        if state.kv_blocks - state.blocks_for(known) < watermark_blocks(
            self.watermark, state.kv_blocks
        ):
            return REASON["never_fits"]
        return 0

    def _admit(self, state: EngineState, decision: Decision, budget: int, seats: int) -> None:
        """Admit from the head of the queue until something is short."""
        keep = watermark_blocks(self.watermark, state.kv_blocks)
        cap = state.prefill_token_cap
        while state.waiting:
            head = state.waiting.head()
            known = state.known[head]
            ignored = self._ignore_reason(state, known)
            if ignored:
                state.waiting.take()
                state.reject(head, ignored)
                decision.queue_changed = True
                continue
            need = state.blocks_for(known)
            tokens = min(known, budget) if self.enable_chunked_prefill else known
            # Blocks last: while nothing moves they only get fewer, so the reason cannot change.
            reason = ""
            if seats < 1:
                reason = "no_slot"
            elif tokens == 0 or tokens > budget:
                reason = "no_budget"
            elif state.free - need < keep:
                reason = "no_blocks"
            if reason:
                state.refuse(head, REASON[reason], blocks=need, tokens=known, tokens_free=budget)
                return
            tokens = min(tokens, cap)
            state.waiting.take()
            state.admit(head, tokens, blocks=need, tokens_free=budget)
            state.take(need)
            state.held[head] = need
            decision.admitted.append(head)
            decision.chunks.append((head, tokens))
            budget -= tokens
            seats -= 1

    # -- decodes and eviction --------------------------------------------------------------------

    def _decide_decodes(self, state: EngineState, decision: Decision) -> None:
        if self.queue_order == "priority":
            self._make_way(state, decision)
        made_way = len(decision.preempted)
        if all_decodes_have_slots(state):
            state.take(state.decode_demand())
            prefills = list(state.prefilling)
        else:
            prefills = serve_decodes(
                state, lambda v, asking: self._evict(state, decision, v, asking)
            )
            self._requeue(state, decision.preempted[made_way:])
        # Only where the clock feeds a prompt token by token is there a prefill left here.
        decision.chunks = [
            (r, min(state.known[r] - state.computed[r], state.prefill_token_cap)) for r in prefills
        ]
        if state.swapped and len(decision.preempted) == made_way and not decision.swapped_out:
            budget = self.max_num_batched_tokens - state.decoding
            self._swap_in(state, decision, budget, self.max_num_seqs - len(state.running))
        decision.decodes = state.decoding > 0

    def _make_way(self, state: EngineState, decision: Decision) -> None:
        """Evict less important requests while the head of the queue does not fit."""

        def rank(request: int) -> tuple:
            return state.rank(request)[:2]

        order = sorted(state.running, key=rank)
        if state.waiting:
            head = state.waiting.head()
            known = state.known[head]
            need = state.blocks_for(known) + watermark_blocks(self.watermark, state.kv_blocks)
            while order and rank(order[-1]) > rank(head):
                seat = len(order) < self.max_num_seqs
                if seat and need <= state.free and known <= self.max_num_batched_tokens:
                    break
                victim = order.pop()
                state.drop(victim, REASON["outranked"], asking=head)
                decision.preempted.append(victim)
                state.waiting.push_back_preempted(victim)
            if state.waiting.sort_by_rank():
                decision.queue_changed = True
        state.running = dict.fromkeys(order)

    def _evict(self, state: EngineState, decision: Decision, victim: int, asking: int) -> None:
        reason = REASON["itself" if victim == asking else "latest_admitted"]
        if self.preemption_mode == "swap":
            decision.swapped_blocks += state.swap_out(victim, reason, asking=asking)
            decision.swapped_out.append(victim)
        else:
            state.drop(victim, reason, asking=asking)
            decision.preempted.append(victim)

    @staticmethod
    def _requeue(state: EngineState, victims: list[int]) -> None:
        for victim in victims:
            state.waiting.push_back_preempted(victim)

    def _swap_in(self, state: EngineState, decision: Decision, budget: int, seats: int) -> int:
        """Bring swapped requests back in swap-out order while blocks, tokens and slots last.

        What is left of a prompt comes back in one piece. Returns the budget left.
        """
        keep = watermark_blocks(self.watermark, state.kv_blocks)
        for request in list(state.swapped):
            left = state.known[request] - state.computed[request]
            tokens = min(left, state.prefill_token_cap)
            need = state.blocks_for(state.known[request])
            if state.free - need < keep or tokens > budget or seats < 1:
                break
            decision.swapped_blocks += state.swap_in(request)
            decision.swapped_in.append(request)
            if request in state.prefilling:
                decision.chunks.append((request, tokens))
            budget -= tokens
            seats -= 1
        return budget

    # -- chunked prefill -------------------------------------------------------------------------

    def _decide_chunked(self, state: EngineState, decision: Decision) -> None:
        """One token budget for the running list, then the swapped, then the waiting requests."""
        served_before = list(state.running)
        budget = self._serve_all(state, decision)
        in_order = budget < 0
        not_reached: list[int] = []
        if in_order:
            budget, not_reached = self._serve_in_order(state, decision)
        served = len(state.running) - len(not_reached)
        if state.swapped and not decision.preempted and not decision.swapped_out:
            budget = self._swap_in(state, decision, budget, self.max_num_seqs - served)
            served += len(decision.swapped_in)
        if state.waiting:
            self._admit(state, decision, budget, self.max_num_seqs - served)
        self._requeue(state, decision.preempted)
        decision.decodes = state.decoding > len(decision.skipped)
        if in_order or decision.swapped_in:
            self._rebuild_running(state, decision, not_reached, served_before)

    def _serve_all(self, state: EngineState, decision: Decision) -> int:
        """Serve everyone who runs if nothing is short; return the budget left, -1 if it is."""
        budget = self.max_num_batched_tokens - state.decoding
        if budget < 0 or not all_decodes_have_slots(state):
            return -1
        chunks = []
        if state.prefilling:
            if state.free - state.decode_demand() < 1 or not state.prefills_are_last():
                return -1
            for request in state.prefilling:
                tokens = min(
                    state.known[request] - state.computed[request], state.prefill_token_cap, budget
                )
                if tokens < 1:
                    return -1
                chunks.append((request, tokens))
                budget -= tokens
        state.take(state.decode_demand())
        decision.chunks = chunks
        return budget

    def _serve_in_order(self, state: EngineState, decision: Decision) -> tuple[int, list[int]]:
        """Serve the running list one by one; return the budget left and who was not reached."""
        budget = self.max_num_batched_tokens
        order = list(state.running)
        i = 0
        while i < len(order) and budget > 0:
            request = order[i]
            i += 1
            decodes = state.is_decoding(request)
            asks = decodes or state.known[request] % state.block_size > 0
            if asks and not free_a_slot(
                state, order, i, request, lambda v, a: self._evict(state, decision, v, a)
            ):
                continue
            if decodes:
                take_slot(state, request)
                budget -= 1
            else:
                left = state.known[request] - state.computed[request]
                tokens = min(left, state.prefill_token_cap, budget)
                decision.chunks.append((request, tokens))
                budget -= tokens
        not_reached = order[i:]
        decision.skipped = [r for r in not_reached if state.is_decoding(r)]
        return budget, not_reached

    @staticmethod
    def _rebuild_running(
        state: EngineState, decision: Decision, not_reached: list[int], before: list[int]
    ) -> None:
        """The order in which V0 puts its running list together again after a chunked iteration."""
        behind = set(not_reached)
        served = [r for r in before if r in state.running and r not in behind]

        def by_phase(requests: list[int]) -> list[int]:
            return [r for r in requests if r not in state.prefilling] + [
                r for r in requests if r in state.prefilling
            ]

        order = not_reached + by_phase(decision.swapped_in) + by_phase(served) + decision.admitted
        state.running = dict.fromkeys(order)
        state.prefilling = {r: None for r in order if r in state.prefilling}
