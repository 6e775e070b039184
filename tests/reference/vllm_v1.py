"""vLLM V1 (0.33): no phases; every request closes the gap between known and computed tokens."""

from __future__ import annotations

from tests.reference.common import Blocks, Decision, Engine, Request, blocks_for
from tests.reference.vllm_v1_prefix_cache import PrefixCache


class PlainBlocks(Blocks):
    """Memory without prefix caching, in the words of ``PrefixCache``."""

    def lookup(self, request: Request) -> list[int]:
        return []

    def need(self, request: Request, tokens: int, hits: list[int]) -> int:
        return blocks_for(tokens, self.block_size) - self.held.get(request, 0)

    def allocate(self, request: Request, tokens: int, hits: list[int]) -> None:
        self.grow(request, tokens)


class VllmV1(Engine):
    """Running requests in list order, then waiting ones if nobody was preempted; no swapping."""

    def __init__(self, scheduler):
        super().__init__(scheduler)
        memory = PrefixCache if scheduler.get("enable_prefix_caching", False) else PlainBlocks
        self.blocks = memory(scheduler["kv_blocks"], self.block_size)
        self.max_num_batched_tokens: int = scheduler["max_num_batched_tokens"]
        self.chunked: bool = scheduler.get("enable_chunked_prefill", True)
        self.threshold: int = scheduler.get("long_prefill_token_threshold", 0)
        self.whole_prompt_must_fit: bool = scheduler.get("scheduler_reserve_full_isl", True)
        self.by_priority: bool = scheduler.get("queue_order", "fcfs") == "priority"
        self.watermark = int(scheduler.get("watermark", 0.0) * self.blocks.total)

    def never_fits(self, request: Request) -> bool:
        """Also a prompt that must be computed at once and does not fit an iteration: the engine
        refuses a configuration in which it could arrive.
        """
        too_long = not self.chunked and request.prompt > self.max_num_batched_tokens
        return super().never_fits(request) or too_long

    def decide(self) -> Decision:
        decision = Decision()
        self.budget = self.max_num_batched_tokens
        alone = len(self.running) + len(self.waiting) == 1
        self.cap = self.threshold if self.threshold > 0 and not alone else None

        self.serve_running(decision)
        if not decision.preempted:
            self.admit(decision)
        return decision

    def capped(self, tokens: int) -> int:
        return tokens if self.cap is None else min(tokens, self.cap)

    def serve_running(self, decision: Decision) -> None:
        """The running list, in its order: decodes and chunks alike."""
        position = 0
        while position < len(self.running) and self.budget > 0:
            request = self.running[position]
            tokens = min(self.capped(request.known - request.computed), self.budget)
            until = request.computed + tokens
            while self.blocks.need(request, until, []) > self.blocks.free:
                victim = self.choose_victim()
                place = self.running.index(victim)
                self.running.pop(place)
                if victim in decision.scheduled:  # priority only: it was served before
                    self.budget += decision.scheduled.pop(victim)
                if place < position:
                    position -= 1
                self.preempt(victim, decision)
                if victim is request:
                    break
            else:
                self.blocks.allocate(request, until, [])
                decision.scheduled[request] = tokens
                self.budget -= tokens
                position += 1
                continue
            # The request itself had to go. FCFS: it was the last. Priority: on with the next,
            # which has moved to this position.

    def choose_victim(self) -> Request:
        if self.by_priority:
            return max(self.running, key=lambda request: (request.priority, request.arrival_s))
        return self.running[-1]

    def preempt(self, victim: Request, decision: Decision) -> None:
        self.blocks.release(victim)
        victim.computed = 0
        self.waiting.insert(0, victim)  # where it stands only matters under FCFS
        decision.preempted.append(victim)

    def head_of_waiting(self) -> Request:
        if self.by_priority:
            return min(self.waiting, key=lambda r: (r.priority, r.arrival_s, r.id))
        return self.waiting[0]

    def admit(self, decision: Decision) -> None:
        while self.waiting and self.budget > 0 and len(self.running) < self.max_num_seqs:
            head = self.head_of_waiting()
            hits = self.blocks.lookup(head)
            cached = len(hits) * self.block_size
            tokens = self.capped(head.known - cached)
            if tokens > self.budget:
                if not self.chunked:
                    break
                tokens = self.budget
            keep_free = self.watermark if self.running else 0
            must_fit = [cached + tokens]
            if self.whole_prompt_must_fit:
                must_fit.append(head.known)
            if any(
                self.blocks.need(head, until, hits) + keep_free > self.blocks.free
                for until in must_fit
            ):
                break
            self.waiting.remove(head)
            self.running.append(head)
            self.blocks.allocate(head, cached + tokens, hits)
            head.computed = cached
            decision.scheduled[head] = tokens
            self.budget -= tokens
            if cached:
                decision.cached[head] = cached
