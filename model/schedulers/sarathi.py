"""Sarathi-Serve: decodes first, then one chunk budget for prefills, so decodes never stall.

Source: Sarathi-Serve (OSDI'24) algorithm 3 and its repository's `sarathi_scheduler.py`.
Reproduces recorded schedules decision by decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.schedulers.append_slot import all_decodes_have_slots, serve_decodes
from model.schedulers.base import MOST_TOKENS, Decision, Scheduler, register, watermark_blocks

if TYPE_CHECKING:
    from model.state import EngineState


@register
@dataclass(frozen=True)
class Sarathi(Scheduler):
    """Sarathi-Serve's scheduler; `chunk_size` is the token budget of an iteration.

    A whole prompt's blocks are taken when its first chunk is admitted; `watermark` is the share of
    blocks that an admission leaves free.
    """

    name: ClassVar[str] = "sarathi"
    source: ClassVar[str] = "Sarathi-Serve repository, recorded schedules"
    needs_free_block: ClassVar[bool] = True

    chunk_size: int = 512
    watermark: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number("chunk_size", self.chunk_size, 1, MOST_TOKENS)
        checks.number("watermark", self.watermark, 0.0, 0.99)

    @property
    def tokens_per_iteration(self) -> int:
        return self.chunk_size

    def reject_reason(self, state: EngineState, request: int) -> int:
        reason = super().reject_reason(state, request)
        if not reason:
            keep = watermark_blocks(self.watermark, state.kv_blocks)
            if state.blocks_for(state.prompt[request]) > state.kv_blocks - keep:
                return REASON["never_fits"]
        return reason

    def decide(self, state: EngineState, decision: Decision) -> None:
        lacking: dict[int, int] = {}  # victims of this iteration -> prompt tokens they lacked
        # Only a clock that feeds prompts token by token lets a later prompt end before an earlier.
        if state.prefilling and not state.prefills_are_last():
            state.put_decodes_first()
        if all_decodes_have_slots(state):
            state.take(state.decode_demand())
            prefills = state.prefilling
        else:

            def preempt(victim: int, asking: int) -> None:
                decodes = state.is_decoding(victim)
                lacking[victim] = 0 if decodes else state.known[victim] - state.computed[victim]
                reason = REASON["itself" if victim == asking else "latest_admitted"]
                state.drop(victim, reason, asking=asking)
                state.waiting.push_back_preempted(victim)
                decision.preempted.append(victim)

            prefills = serve_decodes(state, preempt)
        decision.decodes = state.decoding > 0
        budget = self.chunk_size - state.decoding
        cap = state.prefill_token_cap
        for request in prefills:
            tokens = min(state.known[request] - state.computed[request], cap, budget)
            if tokens > 0:
                decision.chunks.append((request, tokens))
                budget -= tokens
        if state.waiting:
            self._admit(state, decision, budget, lacking)

    def _admit(
        self, state: EngineState, decision: Decision, budget: int, lacking: dict[int, int]
    ) -> None:
        keep = watermark_blocks(self.watermark, state.kv_blocks)
        while state.waiting:
            head = state.waiting.head()
            known = state.known[head]
            need = state.blocks_for(known)
            # Until the iteration is over a victim is measured with the progress it had before.
            tokens = min(lacking.get(head, known), state.prefill_token_cap, budget)
            # Blocks last: while nothing moves they only get fewer, so the reason cannot change.
            reason = ""
            if len(state.running) >= self.max_num_seqs:
                reason = "no_slot"
            elif tokens <= 0:
                reason = "after_preemption" if head in lacking else "no_budget"
            elif need > state.free - keep:
                reason = "no_blocks"
            if reason:
                state.refuse(
                    head, REASON[reason], blocks=need, tokens=known, tokens_free=max(budget, 0)
                )
                return
            state.waiting.take()
            state.admit(head, tokens, blocks=need, tokens_free=budget)
            state.take(need)
            state.held[head] = need
            decision.admitted.append(head)
            decision.chunks.append((head, tokens))
            budget -= tokens
