"""The state of one serving engine: its queues, its KV blocks, and who has computed how much.

Requests that decode are a sum and a histogram (:mod:`model.decodes`), the others are kept one by
one. A decision therefore costs what changes, not what runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.decodes import Decodes
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


class EngineState(Decodes):
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
        super().__init__(requests, block_size, policy)
        n = len(requests)
        self.engine_id = engine_id
        self.kv_blocks = kv_blocks
        self.cpu_blocks = cpu_blocks
        self.max_model_len = max_model_len
        self.prefill_token_cap = prefill_token_cap or (1 << 60)

        self.priority = requests.priority.tolist()
        self.arrival_s = requests.arrival_s.tolist()  # the kernel fills in a closed loop's
        self.request_id = requests.request_id
        self.predicted_output = policy.predicted_outputs(requests.output_tokens, seed)
        self.cost = IterationCost()  # the engine's own, once there is one

        self.clock_s = 0.0
        self.iteration = 0
        self.free = kv_blocks
        self.cpu_free = cpu_blocks
        self.waiting = policy.new_queue(policy.rank_of(self))
        self.running: dict[int, None] = {}  # in list order
        self.prefilling: dict[int, None] = {}  # those of running that have prompt left, same order
        self.swapped: dict[int, None] = {}  # in swap-out order

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

    def least_important(self) -> int:
        """The running request with the largest (priority, arrival); somebody must run."""
        return max(self.running, key=lambda request: self.rank(request)[:2])

    def blocks_for(self, tokens: int) -> int:
        """KV blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_size)

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
        *,
        cannot: EngineState | None = None,
    ) -> None:
        """Refuse a request for good (it is in no queue any more); by default now.

        `numbers` are what admission control measured and its limit. `cannot` is the engine that
        could never serve it, where that is another one.
        """
        time_s = self.clock_s if time_s is None else time_s
        cannot = cannot or self
        measured, limit = numbers or (cannot.last_token[request], self.max_model_len or -1)
        self.status[request] = REJECTED
        self.reason[request] = reason
        self.ended.append((time_s, request))
        self.log.add(
            time_s,
            EVENT["reject"],
            self.iteration,
            request,
            reason,
            self.policy.blocks_for_life(cannot, request),
            self.kv_blocks,
            measured,
            limit,
        )
