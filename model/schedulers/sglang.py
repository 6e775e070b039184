"""SGLang: prompts before decodes, optimistic reservations that decay, retraction of the youngest.

A step is an extend (prompts) or a decode of all. A request is admitted if its prompt and its whole
answer fit beside a share of what the running ones may still write; the share decays while nothing
goes wrong. Where a decode step does not fit, requests with the fewest outputs are retracted to the
back of the queue, and the share is set anew.

Source: SGLang 0.5.23, `managers/scheduler.py` (get_next_batch_to_run, update_running_batch),
`managers/schedule_policy.py` (SchedulePolicy, PrefillAdder), `managers/schedule_batch.py`
(retract_decode), `mem_cache/prefill_budget.py`, `mem_cache/radix_cache.py`. Modelled from source:
no recorded schedule exists. Without the overlapped loop, speculation, LoRA, hierarchical caches,
preemption by priority and the queue orders that need them. Where a chunk beside decodes finds no
memory the engine aborts; here its request is retracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.prefix_cache import content_keys
from model.radix_cache import RadixCache
from model.schedulers.base import MOST_TOKENS, UNBOUNDED, Decision, Scheduler, register
from model.schedulers.sglang_extend import ExtendStep, Memory
from model.schedulers.sglang_queue import (
    MOST_MATCHED,
    REFRESH_PASSES,
    SglangQueue,
    sort_by_prefix,
    touch_prefixes,
)
from model.schedulers.sglang_reservation import (
    MOST_NEW_TOKENS,
    RETRACT_STEPS,
    NewTokenRatio,
)

if TYPE_CHECKING:
    from model.requests import Requests
    from model.state import EngineState

NO_SLOT = REASON["no_slot"]
FEWEST_OUTPUTS, ITSELF = REASON["fewest_outputs"], REASON["itself"]


@register
@dataclass(frozen=True)
class Sglang(Scheduler):
    """SGLang's scheduler under its own parameter names; `max_num_seqs` is max_running_requests.

    Of the others, `page_size` is the memory's block size. `chunked_prefill_size` -1 switches
    chunking off, then `max_prefill_tokens` limits the prompts of a step. `max_new_tokens` is what
    every client asks for at most (0: exactly what it will get): the reservation goes by it, the
    answer ends earlier. Smaller priorities are more important
    (`--schedule-low-priority-values-first`).
    """

    name: ClassVar[str] = "sglang"
    source: ClassVar[str] = "SGLang 0.5.23, modelled from source"
    preempted_go_last: ClassVar[bool] = True
    works_in_pools: ClassVar[bool] = False  # it keeps count of what it has admitted itself

    chunked_prefill_size: int = 8192
    max_prefill_tokens: int = 16384
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    enable_mixed_chunk: bool = False
    disable_radix_cache: bool = False
    enable_priority_scheduling: bool = False
    retraction_policy: str = "length"
    max_new_tokens: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number("chunked_prefill_size", self.chunked_prefill_size, -1, MOST_TOKENS)
        checks.whole_number("max_prefill_tokens", self.max_prefill_tokens, 1, MOST_TOKENS)
        checks.choice("schedule_policy", self.schedule_policy, ("fcfs", "lpm", "lof"))
        checks.number("schedule_conservativeness", self.schedule_conservativeness, 0.0, 10.0)
        for field in ("enable_mixed_chunk", "disable_radix_cache", "enable_priority_scheduling"):
            checks.flag(field, getattr(self, field))
        checks.choice("retraction_policy", self.retraction_policy, ("length", "priority"))
        checks.whole_number("max_new_tokens", self.max_new_tokens, 0, MOST_TOKENS)

    # -- what the engine asks ------------------------------------------------------------------

    @property
    def enable_prefix_caching(self) -> bool:
        """True if requests share blocks, in the words of the other engines."""
        return not self.disable_radix_cache

    @property
    def chunks(self) -> bool:
        """True if a prompt may take several steps."""
        return self.chunked_prefill_size > 0

    @property
    def chunk_size(self) -> int:
        """Most prompt tokens of a step."""
        return self.chunked_prefill_size if self.chunks else UNBOUNDED

    @property
    def mixes(self) -> bool:
        """True if an extend step takes the decodes along."""
        return self.enable_mixed_chunk and self.chunks

    @property
    def tokens_per_iteration(self) -> int | None:
        return self.chunked_prefill_size if self.chunks else None

    def new_queue(self, rank: Callable[[int], tuple]) -> SglangQueue:
        return SglangQueue()

    def new_memory(self) -> Memory:
        return Memory(NewTokenRatio(self.schedule_conservativeness))

    def new_cache(self, requests: Requests, blocks: int, block_size: int) -> RadixCache | None:
        if self.disable_radix_cache:
            return None
        return RadixCache(
            blocks,
            block_size,
            content_keys(requests, block_size),
            requests.prompt_tokens.tolist(),
            content_keys(requests, 1),
        )

    def blocks_for_life(self, state: EngineState, request: int) -> int:
        """An admission wants its prompt, its answer and a page more, and one token to spare."""
        return state.blocks_for(state.last_token[request] + state.block_size + 1)

    def reject_reason(self, state: EngineState, request: int) -> int:
        reason = super().reject_reason(state, request)
        if not reason and self.chunks and self.first_chunk(state, UNBOUNDED) <= 0:
            return REASON["exceeds_budget"]
        return reason

    def decide(self, state: EngineState, decision: Decision) -> None:
        memory = state.memory
        if state.cache is not None:
            state.free += state.cache.settle()
        self._look_around(state, memory)
        chunked = next(iter(state.prefilling), None)
        if chunked is not None or (state.waiting and not memory.full):
            self._extend(state, memory, decision, chunked)
        if state.waiting and memory.full:
            head = state.waiting.head()
            if memory.full == NO_SLOT or not (memory.reopens or head == memory.tried):
                state.refuse(head, memory.full)
        if not decision.chunks and state.decoding:
            self._decode(state, memory, decision)
        memory.running = len(state.running)

    def stable_for(self, state: EngineState, decision: Decision) -> int:
        if decision.changes_queues:
            return 1
        if decision.chunks:
            return self._equal_chunks(state, decision)
        tries_again = state.waiting and not state.memory.full
        return 1 if tries_again or state.prefilling else UNBOUNDED

    # -- the share that is reserved (F42) ------------------------------------------------------

    def asked_tokens(self, state: EngineState, request: int) -> int:
        """max_new_tokens of a request: no answer is longer, and prompt and answer fit the pool."""
        prompt = state.prompt[request]
        most = (state.kv_blocks - 1) * state.block_size - 1 - prompt
        return max(state.last_token[request] - prompt, min(self.max_new_tokens, most))

    def outstanding(self, state: EngineState, request: int) -> int:
        """Outputs that a request may still write, clipped."""
        outputs = state.known_tokens(request) - state.prompt[request]
        return min(self.asked_tokens(state, request) - outputs, MOST_NEW_TOKENS)

    def _decoding(self, state: EngineState) -> list[int]:
        return [r for r in state.running if state.is_decoding(r)]

    def _reserved(self, state: EngineState) -> float:
        """Tokens that are kept for those who run."""
        if not state.decoding:
            return 0.0
        rest = sum(self.outstanding(state, r) for r in self._decoding(state))
        return state.memory.ratio.at(state.tick) * rest

    # -- extend --------------------------------------------------------------------------------

    def _look_around(self, state: EngineState, memory: Memory) -> None:
        """After an idle spell the share starts anew; the batch reopens when somebody has left."""
        if state.idle_spells != memory.idle_spells:
            memory.idle_spells = state.idle_spells
            memory.ratio.reset(state.tick)
        if memory.reopens or not state.decoding or len(state.running) < memory.running:
            memory.full = 0
        memory.reopens = False

    def _extend(
        self, state: EngineState, memory: Memory, decision: Decision, chunked: int | None
    ) -> None:
        """Continue the chunked request and admit from the head of the queue."""
        if chunked is None and state.decoding >= self.max_num_seqs:
            memory.close(NO_SLOT)
            return
        if state.waiting:
            self._put_in_order(state, memory)
        alone, beside = not state.decoding, state.decoding and self.mixes
        step = ExtendStep(self, state, decision, self._reserved(state))
        if chunked is not None and not step.go_on(chunked):
            self._retract(state, decision, chunked, ITSELF, asking=chunked)
        step.admit(memory)
        if not step.chosen:
            return
        known, computed = state.known, state.computed
        goes_on = any(computed[r] + tokens < known[r] for r, tokens in step.chosen)
        memory.reopens = alone or goes_on
        for request, tokens in step.chosen:
            state.grow_chunk(request, tokens)
        decision.chunks = step.chosen
        if beside:
            self._take_decodes_along(state, memory, decision)

    def first_chunk(self, state: EngineState, chunk_left: int) -> int:
        """Most tokens of a prompt's chunk that does not end it: whole pages.

        A clock that feeds prompts in pieces of its own has no pages.
        """
        left = min(chunk_left, self.chunk_size)
        if state.prefill_token_cap < left:
            return state.prefill_token_cap
        return left // state.block_size * state.block_size

    def _take_decodes_along(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """A mixed step: all decodes, if they fit; they sit out otherwise. No decay."""
        need = state.decode_demand()
        if need > state.free:
            if state.cache is not None:
                state.cache.make_room(need)
            return
        state.take(need)
        decision.decodes = True
        memory.ratio.skip_tick()
        memory.reopens = True
        first = [r for r, _ in decision.chunks]
        state.running = dict.fromkeys([*first, *state.running])

    def _equal_chunks(self, state: EngineState, decision: Decision) -> int:
        """For how many steps the chunked request gets as much as now, and nobody else anything."""
        ((_, tokens), *others) = decision.chunks
        alone = not others and not decision.decodes and state.cache is None
        if not alone or tokens != min(self.chunk_size, state.prefill_token_cap):
            return 1
        pages = -(-tokens // state.block_size) * state.block_size
        room = state.free * state.block_size - self._reserved(state) - state.decoding * self.mixes
        # Each step must leave some memory to promise, or the head is refused for another reason.
        return 1 + max(0, int((room - state.block_size - 1) // pages))

    def _put_in_order(self, state: EngineState, memory: Memory) -> None:
        """Sort the queue; look its prefixes up now and then, so that they stay in the cache."""
        cache, waiting, priority = state.cache, state.waiting, state.priority
        by_prefix = self.schedule_policy == "lpm" and cache is not None
        if by_prefix and len(waiting) <= MOST_MATCHED:
            sort_by_prefix(state)
            return
        by_importance = self.enable_priority_scheduling
        if self.schedule_policy == "lof":
            waiting.sort(lambda r: (priority[r] * by_importance, -self.asked_tokens(state, r)))
        elif by_importance and not by_prefix:
            waiting.sort(priority.__getitem__)
        if cache is not None:
            if memory.passes % REFRESH_PASSES == 0:
                touch_prefixes(state)
            memory.passes += 1

    # -- decode --------------------------------------------------------------------------------

    def _decode(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """A decode step of all, after retracting whom it does not leave room for."""
        if state.decode_demand() > state.free:
            self._make_way(state, memory, decision)
        state.take(state.decode_demand())
        decision.decodes = True

    def _make_way(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """Retract those with the fewest outputs until the step fits; at least one is kept."""
        if state.cache is not None:
            state.cache.make_room(state.decode_demand())
        order = sorted(self._decoding(state), key=self._worth(state), reverse=True)
        while len(order) > 1 and state.decode_demand() > state.free:
            self._retract(state, decision, order.pop(), FEWEST_OUTPUTS)
            if state.cache is not None:
                tokens = RETRACT_STEPS * len(order)
                state.cache.make_room(state.blocks_for(tokens))
                state.cache.make_room(state.decode_demand())
        if state.decode_demand() > state.free:  # a chunked request has the rest
            self._retract(state, decision, next(iter(state.prefilling)), FEWEST_OUTPUTS)
        written = sum(state.known_tokens(r) - state.prompt[r] for r in order)
        asked = sum(self.asked_tokens(state, r) for r in order)
        memory.ratio.retracted(state.tick, running=len(order), written=written, asked=asked)
        memory.full = 0

    def _worth(self, state: EngineState) -> Callable[[int], tuple]:
        """Who is kept longest: most outputs, then the shortest prompt."""
        by_priority = self.retraction_policy == "priority"

        def worth(r: int) -> tuple[int, int, int]:
            important = -state.priority[r] if by_priority else 0
            return (important, state.known_tokens(r) - state.prompt[r], -state.prompt[r])

        return worth

    @staticmethod
    def _retract(
        state: EngineState, decision: Decision, victim: int, reason: int, asking: int = -1
    ) -> None:
        """Free what a request has to itself; what the tree holds of it may survive there.

        A decode step that does not fit asks for nobody in particular.
        """
        if state.cache is not None:
            state.cache.forget(victim)
        state.drop(victim, reason, asking=asking)
        state.waiting.push_back_preempted(victim)
        decision.preempted.append(victim)
