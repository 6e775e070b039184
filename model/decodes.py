"""Requests that decode: all advance together, one token an iteration, so they are a sum.

`tick` counts the iterations in which the decodes ran; a decoding request's context is `offset +
tick`, it needs a new block when that is a multiple of the block size, and it finishes at a tick
known from the start.

Tokens are whole numbers; "computed" are tokens whose KV is stored, "known" are prompt plus outputs.
While a request decodes, known = computed + 1: the newest token's KV is written by the iteration
that consumes it.
"""

from __future__ import annotations

import heapq
from array import array

from model.requests import Requests
from model.schedulers.base import Scheduler


class Decodes:
    """How far each request is, and those that decode as a sum and a histogram of contexts."""

    def __init__(self, requests: Requests, block_size: int, policy: Scheduler) -> None:
        n = len(requests)
        self.policy = policy
        self.block_size = block_size
        self.prompt = requests.prompt_tokens.tolist()
        self.last_token = (requests.prompt_tokens + requests.output_tokens).tolist()
        self.known = list(self.prompt)  # of requests that do not decode
        self.computed = [0] * n  # likewise
        self.held = [0] * n  # KV blocks of requests that do not decode, or that reserve
        self.high_water = [0] * n  # most tokens ever computed: below it, work is repeated

        self.tick = 0
        self.decoding = 0  # requests that decode
        self.context_sum = 0  # their computed tokens
        self.offset: list[int | None] = [None] * n  # not None: the request decodes
        self.segments = array("q")  # request, first tick, tick after the last
        self._phase = [0] * block_size  # how many of them have offset % block_size == i
        self._segment_start = [0] * n
        self._finish_at: list[tuple[int, int]] = []  # heap of (tick, request), entries may be stale

    def is_decoding(self, request: int) -> bool:
        """True if a request runs and has all but its newest token computed."""
        return self.offset[request] is not None

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

    def decode_demand(self) -> int:
        """Blocks the decodes ask for in this tick."""
        return self._phase[-self.tick % self.block_size]

    def demand_cycle(self) -> list[int]:
        """:meth:`decode_demand` for the next `block_size` ticks."""
        phase = self._phase
        start = -self.tick % self.block_size
        return phase[start::-1] + phase[:start:-1]

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

    def advance(self, ticks: int) -> None:
        """So many iterations gave every decoding request a token each."""
        self.tick += ticks
        self.context_sum += self.decoding * ticks

    def stop_finished(self) -> list[int]:
        """Take those out that have emitted their last token at this tick."""
        finished: list[int] = []
        while self.next_finish_tick() == self.tick:
            request = self._finish_at[0][1]
            self.stop_decoding(request)
            finished.append(request)
        return finished

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
            self.segments.extend((request, self._segment_start[request], self.tick))

    def skip_decode(self, request: int) -> None:
        """After a tick in which the request was left out: it stays where it was."""
        offset = self.offset[request]
        if self.tick - 1 > self._segment_start[request]:
            self.segments.extend((request, self._segment_start[request], self.tick - 1))
        self._segment_start[request] = self.tick
        self.offset[request] = offset - 1
        self.context_sum -= 1
        if not self.policy.reserves:
            self._phase[offset % self.block_size] -= 1
            self._phase[(offset - 1) % self.block_size] += 1
        heapq.heappush(self._finish_at, (self.last_token[request] - offset, request))
