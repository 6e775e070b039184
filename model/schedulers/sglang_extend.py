"""One extend step of SGLang: which prompt goes on, and who is admitted with how many tokens.

Source: SGLang 0.5.23, `managers/schedule_policy.py` (PrefillAdder), `mem_cache/prefill_budget.py`,
`managers/scheduler.py` (_get_new_batch_prefill_raw).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.events import REASON
from model.schedulers.base import Decision
from model.schedulers.sglang_reservation import MOST_NEW_TOKENS, NewTokenRatio

if TYPE_CHECKING:
    from model.schedulers.sglang import Sglang
    from model.state import EngineState

NO_BUDGET, NO_SLOT = REASON["no_budget"], REASON["no_slot"]
NO_RESERVATION, BATCH_FULL = REASON["no_reservation"], REASON["batch_full"]


class Memory:
    """What SGLang remembers of one engine from one decision to the next."""

    __slots__ = ("full", "idle_spells", "passes", "ratio", "reopens", "running", "tried")

    def __init__(self, ratio: NewTokenRatio) -> None:
        self.ratio = ratio
        self.full = 0  # batch_is_full: why (index into REASONS); nobody is tried until one leaves
        self.tried = -1  # the request that was tried then
        self.reopens = False  # the last step ends with a batch that is not full in any case
        self.running = 0  # requests in the batch after the last decision
        self.idle_spells = 0
        self.passes = 0  # over the waiting queue

    def close(self, reason: int, tried: int = -1) -> None:
        """The batch is full, as this request found out."""
        self.full, self.tried = reason, tried


class ExtendStep:
    """What one step may still give away, in tokens; `reserved` are kept for those who run."""

    __slots__ = (
        "chosen",
        "chunk_left",
        "decision",
        "input_left",
        "offset",
        "policy",
        "state",
    )

    def __init__(
        self, policy: Sglang, state: EngineState, decision: Decision, reserved: float
    ) -> None:
        beside = state.decoding if policy.mixes else 0
        self.policy = policy
        self.state = state
        self.decision = decision
        self.offset = reserved + beside  # spoken for, with what this step gives away
        self.input_left = policy.max_prefill_tokens - beside
        self.chunk_left = policy.chunk_size - beside
        self.chosen: list[tuple[int, int]] = []  # request, prompt tokens

    def room(self, free_blocks: int) -> float:
        """Tokens of free memory that nobody has spoken for."""
        return free_blocks * self.state.block_size - self.offset

    def go_on(self, request: int) -> bool:
        """The next chunk of the request that has begun, even where memory is promised to others.

        Beside decodes that fill the step it waits. False if they have taken all memory.
        """
        state = self.state
        if self.chunk_left <= 0:
            return True
        room = int(self.room(state.free))
        computed = state.computed[request]
        left = state.known[request] - computed
        tokens = min(
            min(self.chunk_left, room) if room > 0 else self.chunk_left,
            left,
            state.prefill_token_cap,
            (state.held[request] + state.free) * state.block_size - computed,
        )
        if tokens > 0:
            self._choose(request, tokens, ends=tokens == left)
        return tokens > 0

    def admit(self, memory: Memory) -> None:
        """Admit from the head of the queue until something is short."""
        state, waiting = self.state, self.state.waiting
        while waiting:
            head = waiting.head()
            spent = self.input_left <= 0 or self.chunk_left <= 0
            if spent and self.room(state.free) > 0:
                state.refuse(head, NO_BUDGET, tokens=state.known[head], tokens_free=0)
                return
            if len(state.running) >= self.policy.max_num_seqs:
                memory.close(NO_SLOT)
                return
            node, unused = None, 0
            if state.cache is not None:
                node, unused = state.cache.lookup(head, state.known[head])
            found = node.end if node else 0
            extend = state.known[head] - found * state.block_size
            wanted = extend + self.policy.outstanding(state, head) + state.block_size
            if wanted >= self.room(state.free - unused):
                missing = int((wanted + self.offset) // state.block_size) + 1 + unused
                state.refuse(head, NO_RESERVATION, blocks=missing, tokens=extend)
                if state.running:
                    memory.close(BATCH_FULL, head)
                return
            tokens = self._tokens_of(extend)
            if tokens <= 0:
                left = max(0, min(self.input_left, self.chunk_left))
                state.refuse(head, NO_BUDGET, tokens=extend, tokens_free=left)
                return
            waiting.take()
            state.admit(
                head,
                tokens,
                blocks=state.blocks_for(state.known[head]) - found + unused,
                tokens_free=self.chunk_left if self.policy.chunks else self.input_left,
                cached=found * state.block_size,
            )
            if node is not None:
                state.cache.adopt(head, node)
                state.free -= unused
                state.held[head] = found
            if found:
                self.decision.cached.append((head, found * state.block_size))
            self.decision.admitted.append(head)
            self._choose(head, tokens, ends=tokens == extend)
            if self.room(state.free) <= 0:
                memory.close(BATCH_FULL)
                return

    def _tokens_of(self, extend: int) -> int:
        """Prompt tokens that an admitted request gets in this step, 0 if it has to wait."""
        whole = self._whole_blocks(extend)
        if not self.policy.chunks and self.chosen and whole >= self.input_left:
            return 0
        if whole <= self.chunk_left and extend <= self.state.prefill_token_cap:
            return extend
        return self.policy.first_chunk(self.state, self.chunk_left)

    def _choose(self, request: int, tokens: int, *, ends: bool) -> None:
        """Give prompt tokens; with the last ones the answer is reserved.

        Only one prompt may be in pieces, so where more is left of it others get nothing.
        """
        taken = self._whole_blocks(tokens)
        self.offset += taken + self.state.block_size
        self.input_left -= taken
        self.chunk_left -= taken
        if ends:
            self.offset += min(self.policy.asked_tokens(self.state, request), MOST_NEW_TOKENS)
        else:
            self.chunk_left = 0
        self.chosen.append((request, tokens))

    def _whole_blocks(self, tokens: int) -> int:
        return self.state.blocks_for(tokens) * self.state.block_size
