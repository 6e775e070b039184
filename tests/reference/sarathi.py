"""Sarathi-Serve: decodes first, then chunks of prompts, within ``chunk_size`` tokens."""

from __future__ import annotations

from tests.reference.common import Decision, Engine, Request, blocks_for


class Sarathi(Engine):
    """Running requests with a computed prompt decode in every iteration; prompts share the rest."""

    def __init__(self, scheduler):
        super().__init__(scheduler)
        self.chunk_size: int = scheduler["chunk_size"]
        self.watermark = int(scheduler.get("watermark", 0.01) * self.blocks.total)

    def never_fits(self, request: Request) -> bool:
        """The engine would keep a prompt that cannot leave the watermark free at the head of its
        queue for ever; it is refused at once here, as all that can never be served.
        """
        need = blocks_for(request.known, self.block_size)
        return super().never_fits(request) or self.blocks.total - need < self.watermark

    def decide(self) -> Decision:
        decision = Decision()
        self.lacking_before_preemption: dict[Request, int] = {}
        used = 0

        # 1. Decodes, in list order. Each wants one free block, even if its last block has room.
        # The victim is the last of those not reached yet, else the request itself.
        unreached = list(self.running)
        kept: list[Request] = []
        partial_prefills: list[Request] = []
        while unreached:
            request = unreached.pop(0)
            if request.computed < request.target:
                partial_prefills.append(request)
                continue
            while self.blocks.free < 1:
                victim = unreached.pop() if unreached else request
                self.preempt(victim, decision)
                if victim is request:
                    break
            else:
                self.blocks.grow(request, request.known)
                decision.scheduled[request] = 1
                used += 1
                kept.append(request)

        # 2. Prompts under way; their blocks were taken at admission.
        for request in partial_prefills:
            kept.append(request)
            chunk = min(request.target - request.computed, self.chunk_size - used)
            if chunk > 0:
                decision.scheduled[request] = chunk
                used += chunk
        self.running = [request for request in self.running if request in kept]

        # 3. New prompts. The whole of it must fit; the first who must wait stops the scan.
        while self.waiting:
            head = self.waiting[0]
            need = blocks_for(head.known, self.block_size)
            if self.blocks.free - need < self.watermark:
                break
            if len(self.running) >= self.max_num_seqs:
                break
            # A victim of this iteration is still measured with its progress before that.
            lacking = self.lacking_before_preemption.get(head, head.known)
            chunk = min(lacking, self.chunk_size - used)
            if chunk <= 0:
                break
            self.waiting.pop(0)
            self.running.append(head)
            self.blocks.grow(head, head.known)
            head.target = head.known
            decision.scheduled[head] = chunk
            used += chunk
        return decision

    def preempt(self, victim: Request, decision: Decision) -> None:
        # 0 for a decode: it will stop the scan of waiting.
        self.lacking_before_preemption[victim] = max(0, victim.target - victim.computed)
        self.blocks.release(victim)
        victim.computed = 0
        self.waiting.insert(0, victim)
        decision.preempted.append(victim)
