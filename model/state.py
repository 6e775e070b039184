"""The state of one serving engine: its queues, its KV blocks, and who has computed how much.

Requests that decode all advance together, one token an iteration, so they are kept as a sum and a
histogram instead of one by one. `tick` counts the iterations in which the decodes ran; a decoding
request's context is `offset + tick`, it needs a new block when that is a multiple of the block
size, and it finishes at a tick known from the start. A decision therefore costs what changes, not
what runs.

Tokens are whole numbers; "computed" are tokens whose KV is stored, "known" are prompt plus outputs.
While a request decodes, known = computed + 1: the newest token's KV is written by the iteration
that consumes it.
"""

from __future__ import annotations

import heapq
from array import array
from typing import TYPE_CHECKING

from model.errors import LabError
from model.events import EVENT, EventLog
from model.iteration_time import IterationCost
from model.prefix_cache import PrefixCache
from model.radix_cache import RadixCache
from model.requests import Requests
from model.schedulers.base import Scheduler

if TYPE_CHECKING:
    from model.pools import Inbox, Outbox

UNFINISHED, FINISHED, REJECTED, CANCELLED = range(4)
STATUS = ("unfinished", "finished", "rejected", "cancelled")


class EngineState:
    """Everything a scheduler may look at, and the few moves it may make."""

    def __init__(
        self,
        policy: Scheduler,
        requests: Requests,
        *,
        engine_id: int,
        kv_blocks: int,
        block_size: int,
        cpu_blocks: int,
        max_model_len: int | None,
        prefill_token_cap: int | None,
        seed: int = 0,
    ) -> None:
        n = len(requests)
        self.policy = policy
        self.engine_id = engine_id
        self.kv_blocks = kv_blocks
        self.block_size = block_size
        self.cpu_blocks = cpu_blocks
        self.max_model_len = max_model_len
        self.prefill_token_cap = prefill_token_cap or (1 << 60)

        self.prompt = requests.prompt_tokens.tolist()
        self.last_token = (requests.prompt_tokens + requests.output_tokens).tolist()
        self.priority = requests.priority.tolist()
        self.arrival_s = requests.arrival_s.tolist()  # the kernel fills in a closed loop's
        self.request_id = requests.request_id
        self.predicted_output = policy.predicted_outputs(requests.output_tokens, seed)
        self.cost = IterationCost()  # the engine's own, once there is one

        self.clock_s = 0.0
        self.iteration = 0
        self.tick = 0
        self.free = kv_blocks
        self.cpu_free = cpu_blocks
        self.waiting = policy.new_queue(policy.rank_of(self))
        self.running: dict[int, None] = {}  # in list order
        self.prefilling: dict[int, None] = {}  # those of running that have prompt left, same order
        self.swapped: dict[int, None] = {}  # in swap-out order

        self.decoding = 0  # requests that decode
        self.context_sum = 0  # their computed tokens
        self._phase = [0] * block_size  # how many of them have offset % block_size == i

        self.known = list(self.prompt)
        self.computed = [0] * n  # of requests that do not decode
        self.held = [0] * n  # KV blocks of requests that do not decode, or that reserve
        self.offset: list[int | None] = [None] * n  # not None: the request decodes
        self._segment_start = [0] * n
        self._finish_at: list[tuple[int, int]] = []  # heap of (tick, request), entries may be stale
        self.high_water = [0] * n  # most tokens ever computed: below it, work is repeated
        self.progress = 0  # prompt tokens and prefill outputs gained; decodes are counted by tick
        self.status = [UNFINISHED] * n
        self.reason = [0] * n
        self.preemptions = [0] * n
        self.recomputed_tokens = [0] * n
        self.cached_tokens = [0] * n  # found in the prefix cache at the first admission
        self.cached_again_tokens = [0] * n  # and when it came back after a preemption
        self.admitted_s = [0.0] * n  # at last
        self.swapped_block_count = [0] * n

        self.log = EventLog()
        self.decode_segments = array("q")  # request, first tick, tick after the last
        self.ended: list[tuple[float, int]] = []  # (time, request) since the kernel last looked
        self.inbox: Inbox | None = None  # of an engine that only decodes
        self.outbox: Outbox | None = None  # of one that only prefills
        self._refused = (-1, -1)
        self.cache: PrefixCache | RadixCache | None = None
        self.idle_spells = 0  # how often the engine has slept for want of requests
        self.memory = policy.new_memory()  # what the policy must know from one decision to the next

    # -- reading -------------------------------------------------------------------------------

    def rank(self, request: int) -> tuple[int, float, str]:
        """Order of vLLM's priority policy, smaller first; ids compare as strings there too."""
        return (self.priority[request], self.arrival_s[request], self.request_id[request])

    def blocks_for(self, tokens: int) -> int:
        """KV blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    def decode_demand(self) -> int:
        """Blocks the decodes ask for in this tick."""
        return self._phase[-self.tick % self.block_size]

    def demand_cycle(self) -> list[int]:
        """:meth:`decode_demand` for the next `block_size` ticks."""
        phase = self._phase
        start = -self.tick % self.block_size
        return phase[start::-1] + phase[:start:-1]

    def context(self, request: int) -> int:
        """Tokens of a request whose KV is stored."""
        offset = self.offset[request]
        return self.computed[request] if offset is None else offset + self.tick

    def known_tokens(self, request: int) -> int:
        """Prompt and outputs so far."""
        offset = self.offset[request]
        return self.known[request] if offset is None else offset + self.tick + 1

    def blocks_held(self, request: int) -> int:
        """KV blocks of a request."""
        offset = self.offset[request]
        if offset is None or self.policy.reserves:
            return self.held[request]
        return -(-(offset + self.tick) // self.block_size)

    def next_finish_tick(self) -> int | None:
        """The tick at which the first decoding request emits its last token."""
        heap = self._finish_at
        while heap:
            tick, request = heap[0]
            offset = self.offset[request]
            if offset is not None and offset + tick + 1 == self.last_token[request]:
                return tick
            heapq.heappop(heap)
        return None

    def prefills_are_last(self) -> bool:
        """True if no decode stands behind a request with prompt left in the running list."""
        tail = reversed(self.running)
        return all(next(tail) in self.prefilling for _ in range(len(self.prefilling)))

    @property
    def refusal(self) -> int:
        """Why the head of the queue had to wait at last (index into REASONS)."""
        return self._refused[1]

    # -- blocks --------------------------------------------------------------------------------

    def take(self, blocks: int) -> None:
        """Take blocks from the free pool; the caller has made sure that they are there."""
        self.free -= blocks
        if self.cache is not None:
            self.cache.take(blocks)

    def grow_chunk(self, request: int, tokens: int) -> None:
        """Make room for the next `tokens` prefill tokens of a request."""
        total = self.computed[request] + tokens
        need = -(-total // self.block_size) - self.held[request]
        if need > 0:
            self.take(need)
            self.held[request] += need
        if self.cache is not None:
            self.cache.fill(request, total)

    def release(self, request: int, taken_now: int = 0, tokens_now: int = 0) -> None:
        """Give back all blocks of a request.

        `taken_now` and `tokens_now` are the block and the tokens that this very iteration had
        already given a victim: the prefix cache finds blocks from the moment they are scheduled.
        """
        held = self.blocks_held(request) + taken_now
        if self.cache is None:
            self.free += held
        else:
            self.free += self.cache.release(request, self.context(request) + tokens_now, held)
        self.held[request] = 0

    # -- moves ---------------------------------------------------------------------------------

    def start_decoding(self, request: int) -> None:
        """From the next iteration on the request gets one token a tick."""
        offset = self.computed[request] - self.tick
        self.offset[request] = offset
        self.decoding += 1
        self.context_sum += self.computed[request]
        if not self.policy.reserves:
            self._phase[offset % self.block_size] += 1
        self._segment_start[request] = self.tick
        heapq.heappush(self._finish_at, (self.last_token[request] - 1 - offset, request))

    def stop_decoding(self, request: int) -> None:
        """Take a request out of the sums; its context and blocks are then listed one by one."""
        offset = self.offset[request]
        context = offset + self.tick
        if not self.policy.reserves:
            self.held[request] = -(-context // self.block_size)
            self._phase[offset % self.block_size] -= 1
        self.decoding -= 1
        self.context_sum -= context
        self.computed[request] = context
        self.known[request] = context + 1
        self.offset[request] = None
        if context > self.high_water[request]:
            self.high_water[request] = context
        if self.tick > self._segment_start[request]:
            self.decode_segments.extend((request, self._segment_start[request], self.tick))

    def skip_decode(self, request: int) -> None:
        """After a tick in which the request was left out: it stays where it was."""
        offset = self.offset[request]
        if self.tick - 1 > self._segment_start[request]:
            self.decode_segments.extend((request, self._segment_start[request], self.tick - 1))
        self._segment_start[request] = self.tick
        self.offset[request] = offset - 1
        self.context_sum -= 1
        if not self.policy.reserves:
            self._phase[offset % self.block_size] -= 1
            self._phase[(offset - 1) % self.block_size] += 1
        heapq.heappush(self._finish_at, (self.last_token[request] - offset, request))

    def admit(
        self, request: int, tokens: int, *, blocks: int, tokens_free: int = -1, cached: int = 0
    ) -> None:
        """Move the head of the queue (already taken from it) to the tail of running.

        `blocks` are the KV blocks it asked for, `tokens` its first prefill chunk.
        """
        resumed = self.preemptions[request] > 0
        self.log.add(
            self.clock_s,
            EVENT["resume" if resumed else "admit"],
            self.iteration,
            request,
            0,
            blocks,
            self.free,
            tokens,
            tokens_free,
            -1,
            cached,
        )
        self.running[request] = None
        self.prefilling[request] = None
        self.computed[request] = cached
        (self.cached_again_tokens if resumed else self.cached_tokens)[request] += cached
        self.admitted_s[request] = self.clock_s
        self._refused = (-1, -1)

    def drop(
        self, request: int, reason: int, *, asking: int, taken_now: int = 0, tokens_now: int = 0
    ) -> None:
        """Preempt by recomputation: all blocks are freed, every known token is computed again."""
        free = self.free
        self.leave(request, taken_now, tokens_now)
        self.preemptions[request] += 1
        self.log.add(
            self.clock_s,
            EVENT["preempt"],
            self.iteration,
            request,
            reason,
            self.free - free,
            free,
            self.computed[request],
            -1,
            asking,
        )
        self.computed[request] = 0

    def swap_out(self, request: int, reason: int, *, asking: int) -> int:
        """Move a running request's KV to host memory; return its blocks.

        Raises LabError where host memory is short: the real engine aborts then.
        """
        held = self.blocks_held(request)
        need = self.blocks_for(self.known_tokens(request))
        if need > self.cpu_free:
            raise LabError(
                "host_memory_full",
                request=self.request_id[request],
                needed=need,
                free=self.cpu_free,
                total=self.cpu_blocks,
            )
        free = self.free
        self.leave(request)
        self.held[request] = held
        self.cpu_free -= held
        self.swapped[request] = None
        self.preemptions[request] += 1
        self.swapped_block_count[request] += held
        self.log.add(
            self.clock_s,
            EVENT["swap_out"],
            self.iteration,
            request,
            reason,
            held,
            free,
            self.computed[request],
            -1,
            asking,
        )
        return held

    def swap_in(self, request: int) -> int:
        """Bring a request's KV back, with the block of its next token; return the blocks moved."""
        held, computed = self.held[request], self.computed[request]
        decodes = self.known[request] - computed == 1 and computed >= self.prompt[request]
        need = self.blocks_for(self.known[request])
        self.log.add(
            self.clock_s, EVENT["swap_in"], self.iteration, request, 0, need, self.free, computed
        )
        del self.swapped[request]
        self.cpu_free += held
        self.take(need)
        self.held[request] = need
        self.running[request] = None
        self.swapped_block_count[request] += held
        if decodes:
            self.start_decoding(request)
        else:
            self.prefilling[request] = None
        return held

    def put_decodes_first(self) -> None:
        """Reorder the running list: requests that decode before those that prefill."""
        self.running = dict.fromkeys(
            [r for r in self.running if r not in self.prefilling] + list(self.prefilling)
        )

    def leave(self, request: int, taken_now: int = 0, tokens_now: int = 0) -> None:
        """Take a request out of running and free its blocks (its tokens stay known)."""
        self.running.pop(request, None)
        self.prefilling.pop(request, None)
        if self.offset[request] is not None:
            self.stop_decoding(request)
        elif self.computed[request] > self.high_water[request]:
            self.high_water[request] = self.computed[request]
            self.progress += 1
        self.release(request, taken_now, tokens_now)

    def cancel_outside(self, request: int, time_s: float) -> None:
        """The client of a request that is in no queue here, nor runs, has given up."""
        self.status[request] = CANCELLED
        self.log.add(time_s, EVENT["cancel"], self.iteration, request)
        self.ended.append((time_s, request))

    def refuse(
        self, request: int, reason: int, *, blocks: int = 0, tokens: int = 0, tokens_free: int = -1
    ) -> None:
        """Note why the head of the queue waits; written when the head or the reason changes."""
        if self._refused == (request, reason):
            return
        self._refused = (request, reason)
        self.log.add(
            self.clock_s,
            EVENT["refuse"],
            self.iteration,
            request,
            reason,
            blocks,
            self.free,
            tokens,
            tokens_free,
        )

    def reject(
        self,
        request: int,
        reason: int,
        time_s: float | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> None:
        """Refuse a request for good (it is in no queue any more); by default now.

        `numbers` are what admission control measured and its limit.
        """
        time_s = self.clock_s if time_s is None else time_s
        measured, limit = numbers or (self.last_token[request], self.max_model_len or -1)
        self.status[request] = REJECTED
        self.reason[request] = reason
        self.ended.append((time_s, request))
        self.log.add(
            time_s,
            EVENT["reject"],
            self.iteration,
            request,
            reason,
            self.policy.blocks_for_life(self, request),
            self.kv_blocks,
            measured,
            limit,
        )
