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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.prefix_cache import content_keys
from model.radix_cache import RadixCache, RadixTree
from model.schedulers.base import MOST_TOKENS, UNBOUNDED, Decision, Scheduler, register
from model.schedulers.queues import FcfsQueue

if TYPE_CHECKING:
    from model.requests import Requests
    from model.state import EngineState

INITIAL_RATIO = 0.7  # SGLANG_INIT_NEW_TOKEN_RATIO
LOWEST_SHARE = 0.14  # SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR
DECAY_STEPS = 600  # SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS
RETRACT_STEPS = 20  # SGLANG_RETRACT_DECODE_STEPS
MOST_NEW_TOKENS = 4096  # SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION
MOST_MATCHED = 128  # waiting requests up to which prefixes are looked for
REFRESH_PASSES = 32  # passes between two looks at the waiting requests' prefixes
SHORT_PREFIX_TOKENS = 32  # found no more in the cache, and as much in the queue: let another first

NO_BUDGET, NO_SLOT = REASON["no_budget"], REASON["no_slot"]
NO_RESERVATION, BATCH_FULL = REASON["no_reservation"], REASON["batch_full"]
FEWEST_OUTPUTS, ITSELF = REASON["fewest_outputs"], REASON["itself"]


class SglangQueue(FcfsQueue):
    """Retracted requests go to the back; the order that a policy gives the queue stays."""

    def push_back_preempted(self, request: int) -> None:
        self.push(request)

    def put_in_order(self, requests: Iterable[int]) -> None:
        """Stand in the order of `requests`, which are the same ones."""
        for request in requests:
            self.move_to_end(request)


class Memory:
    """What SGLang remembers of one engine from one decision to the next."""

    __slots__ = (
        "full",
        "idle_spells",
        "passes",
        "ratio",
        "reopens",
        "running",
        "since_tick",
        "tried",
    )

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio  # new_token_ratio at ...
        self.since_tick = 0  # ... this decode step, from which on it decays
        self.full = 0  # batch_is_full: why (index into REASONS); nobody is tried until one leaves
        self.tried = -1  # the request that was tried then
        self.reopens = False  # the last step ends with a batch that is not full in any case
        self.running = 0  # requests in the batch after the last decision
        self.idle_spells = 0
        self.passes = 0  # over the waiting queue


class Pass:
    """What one pass over the waiting queue may still give away (PrefillAdder), in tokens."""

    __slots__ = ("block_size", "chosen", "chunk_left", "input_left", "offset")

    def __init__(self, block_size: int, offset: float, input_left: int, chunk_left: int) -> None:
        self.block_size = block_size
        self.offset = offset  # spoken for: the running ones' share, and what this pass admits
        self.input_left = input_left
        self.chunk_left = chunk_left
        self.chosen: list[tuple[int, int]] = []

    def room(self, free_blocks: int) -> float:
        """Tokens of free memory that nobody has spoken for."""
        return free_blocks * self.block_size - self.offset

    def whole_pages(self, tokens: int) -> int:
        return -(-tokens // self.block_size) * self.block_size

    def add(self, request: int, tokens: int, new_tokens: int) -> None:
        """Choose a request with its next prompt tokens; reserve `new_tokens` of its answer."""
        pages = self.whole_pages(tokens)
        self.offset += pages + self.block_size + new_tokens
        self.input_left -= pages
        self.chunk_left -= pages
        self.chosen.append((request, tokens))


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
    def _chunk_size(self) -> int:
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
        return Memory(self.initial_ratio)

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
        if not reason and self.chunks and self._first_chunk(state, UNBOUNDED) <= 0:
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

    @property
    def initial_ratio(self) -> float:
        """Share of the outstanding outputs that is reserved at first."""
        return min(INITIAL_RATIO * self.schedule_conservativeness, 1.0)

    def ratio(self, state: EngineState) -> float:
        """new_token_ratio now: it decays with every decode step down to its lowest value."""
        memory = state.memory
        steps = state.tick - memory.since_tick
        if steps <= 0:
            return memory.ratio
        lowest = self.initial_ratio * LOWEST_SHARE
        decay = (self.initial_ratio - lowest) / DECAY_STEPS
        return max(memory.ratio - steps * decay, lowest)

    def asked_tokens(self, state: EngineState, request: int) -> int:
        """max_new_tokens of a request: no answer is longer, and prompt and answer fit the pool."""
        prompt = state.prompt[request]
        most = (state.kv_blocks - 1) * state.block_size - 1 - prompt
        return max(state.last_token[request] - prompt, min(self.max_new_tokens, most))

    def _outstanding(self, state: EngineState, request: int) -> int:
        """Outputs that a request may still write, clipped."""
        outputs = state.known_tokens(request) - state.prompt[request]
        return min(self.asked_tokens(state, request) - outputs, MOST_NEW_TOKENS)

    def _decoding(self, state: EngineState) -> list[int]:
        return [r for r in state.running if state.offset[r] is not None]

    def _reserved(self, state: EngineState) -> float:
        """Tokens that are kept for those who run."""
        if not state.decoding:
            return 0.0
        rest = sum(self._outstanding(state, r) for r in self._decoding(state))
        return self.ratio(state) * rest + state.decoding * self.mixes

    # -- extend --------------------------------------------------------------------------------

    def _look_around(self, state: EngineState, memory: Memory) -> None:
        """After an idle spell the share starts anew; the batch reopens when somebody has left."""
        if state.idle_spells != memory.idle_spells:
            memory.idle_spells = state.idle_spells
            memory.ratio, memory.since_tick = self.initial_ratio, state.tick
        if memory.reopens or not state.decoding or len(state.running) < memory.running:
            memory.full = 0
        memory.reopens = False

    def _extend(
        self, state: EngineState, memory: Memory, decision: Decision, chunked: int | None
    ) -> None:
        """Continue the chunked request and admit from the head of the queue."""
        if chunked is None and state.decoding >= self.max_num_seqs:
            memory.full, memory.tried = NO_SLOT, -1
            return
        if state.waiting:
            self._put_in_order(state, memory)
        alone = not state.decoding
        beside = state.decoding if self.mixes else 0
        step = Pass(
            state.block_size,
            self._reserved(state),
            self.max_prefill_tokens - beside,
            self._chunk_size - beside,
        )
        if chunked is not None:
            self._continue(state, decision, step, chunked)
        self._admit(state, memory, decision, step)
        for request, tokens in step.chosen:
            state.grow_chunk(request, tokens)
        decision.chunks = step.chosen
        if not step.chosen:
            return
        ends_later = any(
            state.computed[r] + tokens < state.known[r] for r, tokens in step.chosen
        )
        memory.reopens = alone or ends_later
        if beside:
            self._take_decodes_along(state, memory, decision)

    def _first_chunk(self, state: EngineState, chunk_left: int) -> int:
        """Most tokens of a prompt's chunk that does not end it: whole pages.

        A clock that feeds prompts in pieces of its own has no pages.
        """
        left = min(chunk_left, self._chunk_size)
        if state.prefill_token_cap < left:
            return state.prefill_token_cap
        return left // state.block_size * state.block_size

    def _continue(
        self, state: EngineState, decision: Decision, step: Pass, request: int
    ) -> None:
        """The next chunk of the request that has begun; it goes on even where memory is promised.

        Beside decodes that fill the step it waits, and where they have taken all memory it goes.
        """
        if step.chunk_left <= 0:
            return
        left = state.known[request] - state.computed[request]
        room = int(step.room(state.free))
        tokens = min(step.chunk_left, room) if room > 0 else step.chunk_left
        there = state.held[request] + state.free
        tokens = min(
            tokens,
            left,
            state.prefill_token_cap,
            there * state.block_size - state.computed[request],
        )
        if tokens <= 0:
            self._retract(state, decision, request, ITSELF)
            return
        ends = tokens == left
        new_tokens = min(self.asked_tokens(state, request), MOST_NEW_TOKENS)
        step.add(request, tokens, new_tokens if ends else 0)
        if not ends:
            step.chunk_left = 0

    def _admit(
        self, state: EngineState, memory: Memory, decision: Decision, step: Pass
    ) -> None:
        """Admit from the head of the queue until something is short."""
        while state.waiting:
            head = state.waiting.head()
            spent = step.input_left <= 0 or step.chunk_left <= 0
            if spent and step.room(state.free) > 0:
                state.refuse(head, NO_BUDGET, tokens=state.known[head], tokens_free=0)
                return
            if len(state.running) >= self.max_num_seqs:
                memory.full, memory.tried = NO_SLOT, -1
                return
            node, unused = None, 0
            if state.cache is not None:
                node, unused = state.cache.lookup(head, state.known[head])
            cached = node.end * state.block_size if node else 0
            extend = state.known[head] - cached
            wanted = extend + self._outstanding(state, head) + state.block_size
            if wanted >= step.room(state.free - unused):
                missing = int((wanted + step.offset) // state.block_size) + 1 + unused
                state.refuse(head, NO_RESERVATION, blocks=missing, tokens=extend)
                memory.full = BATCH_FULL if state.running else 0
                memory.tried = head
                return
            tokens = self._tokens_of(state, step, extend)
            if tokens <= 0:
                left = max(0, min(step.input_left, step.chunk_left))
                state.refuse(head, NO_BUDGET, tokens=extend, tokens_free=left)
                return
            state.waiting.take()
            state.admit(
                head,
                tokens,
                blocks=state.blocks_for(state.known[head]) - (node.end - unused if node else 0),
                tokens_free=step.chunk_left if self.chunks else step.input_left,
                cached=cached,
            )
            if node is not None:
                state.cache.adopt(head, node)
                state.free -= unused
                state.held[head] = node.end
            if cached:
                decision.cached.append((head, cached))
            decision.admitted.append(head)
            ends = tokens == extend
            new_tokens = min(self.asked_tokens(state, head), MOST_NEW_TOKENS)
            step.add(head, tokens, new_tokens if ends else 0)
            if not ends:
                step.chunk_left = 0
            if step.room(state.free) <= 0:
                memory.full, memory.tried = BATCH_FULL, -1
                return

    def _tokens_of(self, state: EngineState, step: Pass, extend: int) -> int:
        """Prompt tokens that an admitted request gets in this step, 0 if it has to wait."""
        pages = step.whole_pages(extend)
        if not self.chunks and step.chosen and pages >= step.input_left:
            return 0
        if pages <= step.chunk_left and extend <= state.prefill_token_cap:
            return extend
        return self._first_chunk(state, step.chunk_left)

    def _take_decodes_along(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """A mixed step: all decodes, if they fit; they sit out otherwise. No decay."""
        need = state.decode_demand()
        if need > state.free:
            if state.cache is not None:
                state.cache.make_room(need)
            return
        state.take(need)
        decision.decodes = True
        memory.since_tick += 1
        memory.reopens = True
        first = [r for r, _ in decision.chunks]
        state.running = dict.fromkeys([*first, *state.running])

    def _equal_chunks(self, state: EngineState, decision: Decision) -> int:
        """For how many steps the chunked request gets as much as now, and nobody else anything."""
        ((_, tokens), *others) = decision.chunks
        alone = not others and not decision.decodes and state.cache is None
        if not alone or tokens != min(self._chunk_size, state.prefill_token_cap):
            return 1
        pages = -(-tokens // state.block_size) * state.block_size
        room = state.free * state.block_size - self._reserved(state)
        # Each step must leave some memory to promise, or the head is refused for another reason.
        return 1 + max(0, int((room - state.block_size - 1) // pages))

    # -- the order of the queue ----------------------------------------------------------------

    def _put_in_order(self, state: EngineState, memory: Memory) -> None:
        """Sort the queue, which stays as it is sorted; use its prefixes, so that they are kept."""
        waiting, cache = state.waiting, state.cache
        by_prefix = self.schedule_policy == "lpm" and cache is not None
        if by_prefix and len(waiting) <= MOST_MATCHED:
            waiting.put_in_order(sorted(waiting, key=self._prefix_order(state)))
            return
        if self.schedule_policy == "lof":

            def rank(r: int) -> tuple[int, int]:
                important = state.priority[r] if self.enable_priority_scheduling else 0
                return (important, -self.asked_tokens(state, r))

            waiting.put_in_order(sorted(waiting, key=rank))
        elif self.enable_priority_scheduling and not by_prefix:
            waiting.put_in_order(sorted(waiting, key=state.priority.__getitem__))
        if cache is not None:
            if memory.passes % REFRESH_PASSES == 0:
                for request in reversed(list(waiting)[:MOST_MATCHED]):
                    cache.touch(request, state.known[request])
            memory.passes += 1

    def _prefix_order(self, state: EngineState) -> Callable[[int], float]:
        """Longest cached prefix first; last those whose prefix another one may fill first."""
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
        return rank.__getitem__

    # -- decode --------------------------------------------------------------------------------

    def _decode(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """A decode step of all, after retracting whom it does not leave room for."""
        if state.decode_demand() > state.free:
            self._make_way(state, memory, decision)
        state.take(state.decode_demand())
        decision.decodes = True

    def _make_way(self, state: EngineState, memory: Memory, decision: Decision) -> None:
        """Retract those with the fewest outputs, at least one, until the step fits."""
        if state.cache is not None:
            state.cache.make_room(state.decode_demand())
        order = sorted(self._decoding(state), key=self._worth(state), reverse=True)
        best = order[0]
        while len(order) > 1 and (
            not decision.preempted or state.decode_demand() > state.free
        ):
            self._retract(state, decision, order.pop(), FEWEST_OUTPUTS, asking=best)
            if state.cache is not None:
                tokens = RETRACT_STEPS * len(order)
                state.cache.make_room(state.blocks_for(tokens))
                state.cache.make_room(state.decode_demand())
        if state.decode_demand() > state.free:  # a chunked request has the rest
            self._retract(state, decision, next(iter(state.prefilling)), ITSELF)
        written = sum(state.known_tokens(r) - state.prompt[r] for r in order)
        asked = sum(self.asked_tokens(state, r) for r in order)
        memory.ratio = min(1.0, (written + RETRACT_STEPS * len(order)) / (asked + 1))
        memory.since_tick = state.tick + 1
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
        state: EngineState, decision: Decision, victim: int, reason: int, asking: int | None = None
    ) -> None:
        """Free what a request has to itself; what the tree holds of it may survive there."""
        if state.cache is not None:
            state.cache.forget(victim)
        state.drop(victim, reason, asking=victim if asking is None else asking)
        state.waiting.push_back_preempted(victim)
        decision.preempted.append(victim)
