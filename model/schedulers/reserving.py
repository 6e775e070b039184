"""What static batching and Orca share: KV is reserved at admission, so nobody is ever preempted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model.events import REASON
from model.schedulers.base import Decision, Scheduler

if TYPE_CHECKING:
    from model.state import EngineState


@dataclass(frozen=True)
class ReservingScheduler(Scheduler):
    """A request holds the same blocks from admission to its end."""

    reserves: ClassVar[bool] = True

    @property
    def needs_max_model_len(self) -> bool:
        return True

    def tokens_reserved(self, state: EngineState, request: int) -> int:
        """Tokens for which a request reserves KV: the longest sequence that the engine serves."""
        return state.max_model_len

    def blocks_for_life(self, state: EngineState, request: int) -> int:
        return state.blocks_for(self.tokens_reserved(state, request))

    def continue_running(self, state: EngineState, decision: Decision) -> None:
        """Every running request gets its next token, or its next piece of prompt."""
        decision.decodes = state.decoding > 0
        if state.prefilling:
            cap = state.prefill_token_cap
            decision.chunks = [
                (r, min(state.known[r] - state.computed[r], cap)) for r in state.prefilling
            ]

    def admit_waiting(self, state: EngineState, decision: Decision) -> None:
        """Admit from the head of the queue, strictly in order, while slots and blocks last."""
        while state.waiting:
            head = state.waiting.head()
            need = self.blocks_for_life(state, head)
            if need > state.free:
                state.refuse(head, REASON["no_blocks"], blocks=need, tokens=state.known[head])
                return
            if len(state.running) >= self.max_num_seqs:
                state.refuse(head, REASON["no_slot"], blocks=need)
                return
            state.waiting.take()
            tokens = min(state.known[head], state.prefill_token_cap)
            state.admit(head, tokens, blocks=need)
            state.take(need)
            state.held[head] = need
            decision.admitted.append(head)
            decision.chunks.append((head, tokens))
