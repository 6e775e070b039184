"""The lab's free composition, written from its rules as one plain loop with plain lists."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.common import Blocks, Decision, Engine, Request, blocks_for

PREDICTOR_STREAM = 0x5EED
SEED = 0  # of a recording's scenario


class Lab(Engine):
    """Waiting, running, swapped; every rule is looked up by name."""

    def __init__(self, scheduler):
        super().__init__(scheduler)
        given = scheduler.get
        self.max_num_batched_tokens: int = given("max_num_batched_tokens", 2048)
        self.order: str = given("queue_order", "fcfs")
        self.sigma: float = given("prediction_sigma", 0.0)
        self.aging: float = given("aging_tokens_per_s", 0.0)
        self.patience_s: float = given("fcfs_after_s", 0.0)
        self.prefill: str = given("prefill", "chunks")
        self.target_itl_s: float = given("target_itl_s", 0.05)
        self.quantum_s: float = given("quantum_s", 0.0)
        self.mode: str = given("preemption_mode", "recompute")
        self.victim: str = given("victim", "latest_admitted")
        self.evicts: bool = given("evict_for_waiting", False)
        self.watermark = int(given("watermark", 0.0) * self.blocks.total)
        self.admission: str = given("admission", "open")
        self.host = Blocks(given("num_cpu_blocks", 0), self.block_size)
        self.whole = self.prefill in ("apart", "whole")

    def starts_at(self, time_s: float) -> float:
        if self.quantum_s == 0:
            return time_s
        return max(time_s, math.ceil(time_s / self.quantum_s - 1e-9) * self.quantum_s)

    def leave(self, request: Request) -> None:
        super().leave(request)
        self.host.release(request)

    # ------------------------------------------------------------ on arrival

    def never_fits(self, request: Request) -> bool:
        needs = request.prompt + request.output - (self.mode != "never")
        if blocks_for(needs, self.block_size) > self.blocks.total:
            return True
        if self.whole and request.prompt > self.max_num_batched_tokens:
            return True
        return self.is_refused(request)

    def is_refused(self, request: Request) -> bool:
        present = len(self.waiting) + len(self.running) + len(self.swapped)
        queued = sum(r.known for r in self.waiting)
        limit = self.scheduler.get
        if self.admission == "loss":
            blocks = sum(self.blocks_to_join(r) for r in [*self.waiting, request])
            return present >= self.max_num_seqs or blocks > self.blocks.free
        if self.admission == "queue_cap":
            return len(self.waiting) >= limit("queue_cap_requests")
        if self.admission == "token_cap":
            return queued + request.prompt > limit("queue_cap_tokens")
        if self.admission == "little":
            return present >= limit("system_cap_requests")
        if self.admission == "deadline":
            backlog = queued + request.prompt
            backlog += sum(r.known - r.computed for r in self.running if not self.decodes(r))
            rate = limit("prefill_rate_tokens_per_s", 0.0)
            if rate == 0:
                tokens = min(backlog, self.max_num_batched_tokens)
                rate = tokens / self.seconds(tokens, 0)
            return backlog / rate > limit("ttft_bound_s")
        return False

    # ------------------------------------------------------------ what the rules look at

    def seconds(self, tokens: int, blocks_moved: int) -> float:
        clock = self.iteration_time
        moved_s = clock.get("per_swapped_block_s", 0.0) * blocks_moved
        return clock["base_s"] + clock["per_scheduled_token_s"] * tokens + moved_s

    @staticmethod
    def decodes(request: Request) -> bool:
        """All that it knew when it was admitted is computed."""
        return request.computed >= request.target

    def predicted(self, request: Request) -> float:
        row = int(request.id)
        draws = np.random.default_rng([SEED, PREDICTOR_STREAM]).standard_normal(row + 1)
        return float(request.output * np.exp(self.sigma * draws[row]))

    def blocks_to_join(self, request: Request) -> int:
        tokens = request.prompt + request.output if self.mode == "never" else request.known
        return blocks_for(tokens, self.block_size)

    def rank(self, request: Request) -> tuple:
        """Smaller joins first."""
        if self.order == "priority":
            return (request.priority, request.arrival_s, request.id)
        size = request.prompt + self.predicted(request) + self.aging * request.arrival_s
        if self.patience_s > 0 and request.arrival_s + self.patience_s <= self.now_s:
            return (0, request.arrival_s, int(request.id))
        return (1, size, request.arrival_s, int(request.id))

    def next_to_join(self) -> Request | None:
        """Swapped-out requests wait with the others; among equals they go first."""
        if self.order == "fcfs":
            return (self.swapped + self.waiting + [None])[0]
        return min(self.swapped + self.waiting, key=self.rank, default=None)

    def kept_free(self) -> int:
        return self.watermark if self.running else 0

    # ------------------------------------------------------------ one decision

    def decide(self) -> Decision:
        decision = Decision()
        self.make_way(decision)
        self.left = self.max_num_batched_tokens
        self.protected = sum(map(self.decodes, self.running))  # decodes whose gap is bounded
        if self.prefill == "apart":
            while self.next_to_join() in self.waiting and self.admit(decision):
                pass
            if decision.scheduled:
                return decision
            self.left = math.inf
            if self.serve_running(decision) == 0:
                while self.next_to_join() in self.swapped and self.bring_back(decision):
                    pass
        elif self.serve_running(decision) == 0:
            while (request := self.next_to_join()) is not None:
                joined = self.bring_back if request in self.swapped else self.admit
                if not joined(decision):
                    break
        return decision

    def room(self, decision: Decision, wanted: int) -> int:
        """How many of the wanted prompt tokens this iteration still takes."""
        wanted = min(wanted, self.left)
        if self.prefill != "slo" or self.protected == 0:
            return wanted
        chunks = sum(n for r, n in decision.scheduled.items() if r in self.chunked)
        while wanted > 0:
            tokens = self.protected + chunks + wanted
            if self.seconds(tokens, decision.blocks_moved) <= self.target_itl_s:
                break
            wanted -= 1
        return wanted

    def schedule(self, decision: Decision, request: Request, tokens: int) -> None:
        if not self.decodes(request):
            self.chunked.add(request)
        decision.scheduled[request] = tokens
        self.left -= tokens

    # ------------------------------------------------------------ the running list

    def serve_running(self, decision: Decision) -> int:
        """Serve the list in its order; return how many were evicted."""
        self.chunked: set[Request] = set()
        victims = 0
        for request in list(self.running):
            if self.left <= 0:
                break
            if request not in self.running:
                continue
            tokens = 1
            if not self.decodes(request):
                tokens = self.room(decision, request.known - request.computed)
                if tokens == 0:
                    continue
            until = blocks_for(request.computed + tokens, self.block_size)
            while (need := until - self.blocks.held[request]) > self.blocks.free:
                victim = self.choose_victim(need - self.blocks.free)
                self.take_back(decision, victim)
                self.evict(decision, victim)
                victims += 1
                if victim is request:
                    break
            else:
                self.blocks.hold(request, until)
                self.schedule(decision, request, tokens)
        return victims

    def choose_victim(self, missing: int) -> Request:
        latest_first = self.running[::-1]
        held = self.blocks.held
        if self.victim == "latest_admitted":
            return latest_first[0]
        if self.victim == "lowest_priority":
            return max(self.running, key=lambda r: (r.priority, r.arrival_s))
        if self.victim == "fewest_outputs":
            return min(latest_first, key=lambda r: (r.emitted, -r.prompt))
        if self.victim == "most_remaining":
            return max(latest_first, key=lambda r: self.predicted(r) - r.emitted)
        enough = [r for r in latest_first if held[r] >= missing]
        if enough:
            return min(enough, key=lambda r: held[r])
        return max(latest_first, key=lambda r: held[r])

    def take_back(self, decision: Decision, victim: Request) -> None:
        """What a victim was given in this iteration."""
        if victim not in decision.scheduled:
            return
        self.left += decision.scheduled.pop(victim)
        self.chunked.discard(victim)
        self.blocks.held[victim] = self.held_before[victim]

    def evict(self, decision: Decision, victim: Request) -> None:
        self.running.remove(victim)
        held = self.blocks.held[victim]
        block_s = self.iteration_time.get("per_swapped_block_s", 0.0)
        token_s = self.iteration_time["per_scheduled_token_s"]
        cheaper = 2 * block_s * held < token_s * victim.computed
        swaps = self.mode == "swap" or (self.mode == "cheaper" and cheaper)
        if swaps and blocks_for(victim.known, self.block_size) <= self.host.free:
            self.host.hold(victim, self.blocks.release(victim))
            decision.blocks_moved += held
            decision.swapped_out.append(victim)
            self.swapped.append(victim)
        else:
            self.blocks.release(victim)
            victim.computed = 0
            decision.preempted.append(victim)
            self.waiting.insert(0, victim)

    # ------------------------------------------------------------ joining

    def admit(self, decision: Decision) -> bool:
        head = self.next_to_join()
        if self.left <= 0 or len(self.running) >= self.max_num_seqs:
            return False
        tokens = self.room(decision, head.known)
        if tokens == 0 or (self.whole and tokens < head.known):
            return False
        if self.blocks_to_join(head) > self.blocks.free - self.kept_free():
            return False
        self.waiting.remove(head)
        self.running.append(head)
        head.target = head.known
        if self.mode == "never":
            self.blocks.hold(head, self.blocks_to_join(head))
        else:
            self.blocks.grow(head, tokens)
        self.schedule(decision, head, tokens)
        return True

    def bring_back(self, decision: Decision) -> bool:
        request = self.next_to_join()
        wanted = request.known - request.computed
        tokens = self.room(decision, wanted)
        if tokens == 0 or (self.whole and tokens < wanted):
            return False
        need = blocks_for(request.known, self.block_size)
        if len(self.running) >= self.max_num_seqs:
            return False
        if need > self.blocks.free - self.kept_free():
            return False
        self.swapped.remove(request)
        self.running.append(request)
        decision.blocks_moved += self.host.release(request)
        decision.swapped_in.append(request)
        self.blocks.hold(request, need)
        if wanted == 1 and request.computed >= request.prompt:
            request.target = request.computed
        self.chunked.add(request)  # a decode that comes back is not among the protected
        decision.scheduled[request] = tokens
        self.left -= tokens
        return True

    # ------------------------------------------------------------ evicting for those that wait

    def make_way(self, decision: Decision) -> None:
        self.chunked = set()
        self.held_before = dict(self.blocks.held)
        head = self.next_to_join()
        if not self.evicts or head is None:
            return

        def importance(request: Request) -> tuple:
            return (request.priority, request.arrival_s)

        while self.running:
            full = [r for r in self.running if self.decodes(r)]
            wanted = sum(r.computed % self.block_size == 0 for r in full)
            need = blocks_for(head.known, self.block_size) + wanted
            fits = need <= self.blocks.free - self.kept_free()
            if fits and len(self.running) < self.max_num_seqs:
                return
            victim = max(self.running, key=importance)
            if importance(victim) <= importance(head):
                return
            self.evict(decision, victim)
