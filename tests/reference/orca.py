"""Orca: iteration-level batching with memory reserved for a request's whole life."""

from __future__ import annotations

from tests.reference.common import Decision, Engine, Request, blocks_for


def power_of_two_at_least(n: int) -> int:
    power = 1
    while power < n:
        power *= 2
    return power


class Orca(Engine):
    """Decodes and whole prompts share an iteration; nothing is chunked, nobody is preempted.

    ``reserve``: how many tokens an admitted request reserves until its end. ``max`` (the recorded
    engine): the longest sequence the model allows. ``pow2``: prompt and the power of two at or
    above its outputs. ``oracle``: prompt and outputs.
    """

    def reserved_blocks(self, request: Request) -> int:
        reserve = self.scheduler.get("reserve", "max")
        if reserve == "max":
            tokens = self.scheduler["max_model_len"]
        elif reserve == "pow2":
            tokens = request.prompt + power_of_two_at_least(request.output)
        else:
            tokens = request.prompt + request.output
        return blocks_for(tokens, self.block_size)

    def never_fits(self, request: Request) -> bool:
        return super().never_fits(request) or self.reserved_blocks(request) > self.blocks.total

    def may_admit(self) -> bool:
        return True

    def decide(self) -> Decision:
        decision = Decision()
        may_admit = self.may_admit()
        for request in self.running:  # each has had its prompt computed in its first iteration
            decision.scheduled[request] = 1
        while may_admit and self.waiting:
            head = self.waiting[0]
            if len(self.running) >= self.max_num_seqs:
                break
            if self.reserved_blocks(head) > self.blocks.free:
                break  # nobody overtakes the head
            self.waiting.pop(0)
            self.running.append(head)
            self.blocks.hold(head, self.reserved_blocks(head))
            decision.scheduled[head] = head.prompt
        return decision
