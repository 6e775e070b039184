"""vLLM V0 (0.6.3): three queues; prompts first, or chunked prefill with decodes first."""

from __future__ import annotations

import math

from tests.reference.common import (
    Blocks,
    Decision,
    Engine,
    OutOfHostBlocks,
    Request,
    blocks_for,
)


def rank(request: Request) -> tuple[int, float]:
    """Smaller is more important."""
    return (request.priority, request.arrival_s)


def is_prefill(request: Request) -> bool:
    """Until all it knew when it was admitted is computed (one token left is still a prefill)."""
    return request.computed < request.target


class VllmV0(Engine):
    """Waiting, running, swapped; a prompt's blocks are taken as a whole at admission."""

    empty_decision_is_a_row = True

    def __init__(self, scheduler):
        super().__init__(scheduler)
        self.max_num_batched_tokens: int = scheduler["max_num_batched_tokens"]
        self.chunked: bool = scheduler.get("enable_chunked_prefill", False)
        self.by_swapping: bool = scheduler.get("preemption_mode", "recompute") == "swap"
        self.by_priority: bool = scheduler.get("queue_order", "fcfs") == "priority"
        self.longest_prompt = min(
            self.max_num_batched_tokens, scheduler.get("max_model_len") or math.inf
        )
        self.watermark = int(scheduler.get("watermark", 0.01) * self.blocks.total)
        self.host = Blocks(scheduler.get("num_cpu_blocks", 0), self.block_size)

    def leave(self, request: Request) -> None:
        super().leave(request)
        self.host.release(request)

    def never_fits(self, request: Request) -> bool:
        """The engine drops these when they come to the head of its queue; refused at once here,
        as all that can never be served, they differ in the length of the queue only.
        """
        return super().never_fits(request) or self.must_be_ignored(request)

    def must_be_ignored(self, request: Request) -> bool:
        if not self.chunked and request.known > self.longest_prompt:
            return True
        need = blocks_for(request.known, self.block_size)
        return self.blocks.total - need < self.watermark

    # ------------------------------------------------------------ the two orders of service

    def decide(self) -> Decision:
        self.tokens_left = self.max_num_batched_tokens
        self.seqs_left = self.max_num_seqs
        self.victims: list[Request] = []  # of serve_running, to be recomputed
        return self.decide_chunked() if self.chunked else self.decide_prompts_first()

    def decide_prompts_first(self) -> Decision:
        decision = Decision()
        # An iteration computes prompts, if any can be admitted, and else decodes. Swapped
        # requests go before new prompts.
        if not self.swapped:
            self.seqs_left = self.max_num_seqs - len(self.running)
            admitted = self.admit(decision)
            if admitted:
                self.running += admitted
                return decision
            self.seqs_left = self.max_num_seqs  # each running request takes one when served

        if self.by_priority:
            self.drop_for_more_important(decision)
        served, unreached, _ = self.serve_running(decision)
        assert not unreached
        returned = self.swap_in(decision)
        self.waiting = self.victims[::-1] + self.waiting
        self.running = served + returned
        return decision

    def decide_chunked(self) -> Decision:
        # Priorities play no part here: the queues are sorted only where prompts come first.
        decision = Decision()
        served, unreached, prefills = self.serve_running(decision)
        returned = self.swap_in(decision)
        admitted = self.admit(decision)
        # Only now do victims join the queue: later arrivals may have overtaken them.
        self.waiting = self.victims[::-1] + self.waiting
        self.running = (
            unreached
            + [request for request in returned if not is_prefill(request)]
            + [request for request in returned if is_prefill(request)]
            + [request for request in served if request not in prefills]
            + [request for request in served if request in prefills]
            + admitted
        )
        return decision

    # ------------------------------------------------------------ admission

    def admit(self, decision: Decision) -> list[Request]:
        """Take prompts from the head of waiting while blocks, tokens and places last."""
        admitted: list[Request] = []
        while self.waiting:
            head = self.waiting[0]
            if self.must_be_ignored(head):  # it has grown since it arrived
                decision.ignored.append(self.waiting.pop(0))
                continue
            tokens = min(head.known, self.tokens_left) if self.chunked else head.known
            need = blocks_for(head.known, self.block_size)  # of the whole prompt, chunked or not
            if self.blocks.free - need < self.watermark:
                break
            if tokens == 0 or tokens > self.tokens_left or self.seqs_left < 1:
                break
            self.waiting.pop(0)
            head.target = head.known
            self.blocks.grow(head, head.known)
            self.schedule(head, tokens, decision)
            admitted.append(head)
        return admitted

    def schedule(self, request: Request, tokens: int, decision: Decision) -> None:
        decision.scheduled[request] = tokens
        self.tokens_left -= tokens
        self.seqs_left -= 1

    # ------------------------------------------------------------ running requests

    def serve_running(
        self, decision: Decision
    ) -> tuple[list[Request], list[Request], set[Request]]:
        """Serve the running list as it stands.

        Returns the served requests, those not reached for want of tokens, and which of the served
        are prefills.
        """
        # Without chunking a decode needs no budget: max_num_batched_tokens limits prompts.
        served: list[Request] = []
        prefills: set[Request] = set()
        unreached = self.running
        while unreached:
            request = unreached[0]
            tokens = request.known - request.computed
            if self.chunked:
                tokens = min(tokens, self.tokens_left)
                if tokens == 0:
                    break
            unreached.pop(0)
            while not self.has_slot(request):
                victim = unreached.pop() if unreached else request
                self.preempt(victim, decision)
                if victim is request:
                    break
            else:
                if is_prefill(request):
                    prefills.add(request)
                else:
                    self.blocks.grow(request, request.known)
                self.schedule(request, tokens, decision)
                served.append(request)
        self.running = []
        return served, unreached, prefills

    def has_slot(self, request: Request) -> bool:
        """One block must be free, even if the request's last block has room."""
        if is_prefill(request) and request.target % self.block_size == 0:
            return True
        return self.blocks.free >= 1

    def preempt(self, victim: Request, decision: Decision) -> None:
        if self.by_swapping:
            if self.host.free < blocks_for(victim.known, self.block_size):
                raise OutOfHostBlocks(victim.id)
            moved = self.blocks.release(victim)
            self.host.hold(victim, moved)
            decision.blocks_moved += moved
            decision.swapped_out.append(victim)
            self.swapped.append(victim)
        else:
            self.drop(victim, decision)
            self.victims.append(victim)

    def drop(self, victim: Request, decision: Decision) -> None:
        self.blocks.release(victim)
        victim.computed = 0
        decision.preempted.append(victim)

    def swap_in(self, decision: Decision) -> list[Request]:
        """Bring swapped requests back, first out first in, if everyone running was served."""
        returned: list[Request] = []
        if self.victims or decision.swapped_out:
            return returned
        while self.swapped:
            head = self.swapped[0]
            tokens = head.known - head.computed  # never a part of them
            if self.blocks.free - blocks_for(head.known, self.block_size) < self.watermark:
                break
            if tokens > self.tokens_left or self.seqs_left < 1:
                break
            self.swapped.pop(0)
            decision.blocks_moved += self.host.release(head)
            decision.swapped_in.append(head)
            self.blocks.grow(head, head.known)
            self.schedule(head, tokens, decision)
            returned.append(head)
        return returned

    # ------------------------------------------------------------ priority

    def drop_for_more_important(self, decision: Decision) -> None:
        """Drop the least important running requests until the head of waiting would fit.

        The head is admitted in the next decision, not in this one.
        """
        self.running.sort(key=rank)
        if not self.waiting:
            return
        head = self.waiting[0]

        def fits() -> bool:
            need = blocks_for(head.known, self.block_size)
            return (
                self.blocks.free - need >= self.watermark
                and self.blocks.total - need >= self.watermark
                and head.known <= self.tokens_left
                and len(self.running) < self.max_num_seqs
            )

        while self.running and rank(self.running[-1]) > rank(head) and not fits():
            victim = self.running.pop()
            self.drop(victim, decision)
            self.waiting.insert(0, victim)
        # In front of the victims until the sort, which keeps the order of equals.
        self.waiting.remove(head)
        self.waiting.insert(0, head)
        self.waiting.sort(key=rank)
