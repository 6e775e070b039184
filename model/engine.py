"""One serving engine on the simulation clock: decide, run, account, repeat.

The engine asks its scheduler for a decision, then lets as many iterations pass at once as the same
decision would be taken again: until the next arrival, cancellation, completion, end of a prefill or
shortage of blocks. The clock is accumulated one iteration after the other whether or not iterations
are joined, so both ways give the same bits.
"""

from __future__ import annotations

from array import array

from model.errors import LabError
from model.events import EVENT, REASON
from model.iteration_time import IterationCost
from model.schedulers.base import Decision
from model.state import CANCELLED, FINISHED, EngineState
from model.stretch import (
    Work,
    blocks_ahead,
    end_times,
    iterations_with_blocks,
    most_iterations,
)

TOLERANCE_S = 1e-9  # two times closer than this are the same moment
MANY_EVICTIONS = 20  # without progress, for every piece of work: a circle
MOST_ITERATIONS = 2_000_000  # of a run: what memory and patience hold
CHUNK_ITERATIONS = 256  # most iterations of equal prefill chunks joined at once

FINISH, FIRST_TOKEN, CANCEL = EVENT["finish"], EVENT["first_token"], EVENT["cancel"]

CONSTANT_FIELDS = (  # the same in every iteration of a stretch
    "decode_requests",
    "prefill_requests",
    "prefill_tokens",
    "recompute_tokens",
    "padding_tokens",
    "waiting",
    "running",
    "swapped",
    "swapped_blocks",
)
STRETCH_FIELDS = (
    "iterations",
    *CONSTANT_FIELDS,
    "attention_pairs",
    "attention_pairs_step",
    "kv_tokens_read",
    "kv_tokens_read_step",
    "ticks",  # 1 if the decodes advanced
)


class Engine:
    """Runs one :class:`EngineState`; the kernel delivers arrivals and cancellations."""

    def __init__(
        self,
        state: EngineState,
        cost: IterationCost,
        *,
        fast_forward: bool = True,
        engines: int = 1,
    ) -> None:
        self.state = state
        self.cost = state.cost = cost
        self.fast_forward = fast_forward
        self.decisions = 0
        self.iteration_time_calls = 0
        self.stuck = False  # somebody waits, nobody can run, and only an outside event can help
        self.most_iterations = MOST_ITERATIONS // engines
        self._decision_stands_until_s = 0.0
        self._evictions = 0  # since the last progress
        self._progress = (0, 0)
        self.stretches = array("q")
        self.stretch_start_s = array("d")
        self.end_s = array("d")
        self.blocks_used = array("q")
        self.chunks = array("q")  # iteration, iterations, request, tokens each, first token
        self.first_tokens = array("q")  # emissions at the end of a prefill: iteration, request
        self.moved = array("q")  # iteration, kind (event code), request, number
        self._finished_rows: list[int] = []  # of a static batch that keeps computing them
        self._finished_rows_context = 0

    # -- what the kernel calls -----------------------------------------------------------------

    def can_decide_before(self, until_s: float) -> bool:
        """Is there a request for which something may be decided before `until_s`?"""
        state = self.state
        busy = bool(state.running or state.waiting or state.swapped or state.inbox)
        return busy and not self.stuck and state.clock_s < until_s - TOLERANCE_S

    @property
    def silent_until_s(self) -> float:
        """Before this time nobody ends here and nothing is fetched, unless something is delivered.

        That is as long as the last decision stands at least.
        """
        return max(self.state.clock_s, self._decision_stands_until_s)

    def deliver(self, request: int, time_s: float) -> None:
        """A request arrives (the engine has run every decision that starts before `time_s`)."""
        state = self.state
        self.wait_until(time_s)
        reason = state.policy.reject_reason(state, request)
        if reason:
            state.reject(request, reason, time_s)
            return
        refused = state.policy.refusal(state, request)
        if refused is not None:
            state.reject(request, refused.reason, time_s, (refused.measured, refused.limit))
            return
        state.log.add(time_s, EVENT["arrive"], state.iteration, request)
        state.waiting.push(request)

    def cancel(self, request: int, time_s: float) -> None:
        """The client of a request has given up; it leaves at the next decision."""
        state = self.state
        self.wait_until(time_s)
        self._forget(request)
        self._close_batch()
        state.status[request] = CANCELLED
        state.log.add(state.clock_s, CANCEL, state.iteration, request)
        self.moved.extend((state.iteration, CANCEL, request, 0))
        state.ended.append((time_s, request))

    def _forget(self, request: int) -> None:
        """Take a request out of whichever queue it is in, with its memory."""
        state = self.state
        if request in state.running:
            state.leave(request)
        elif request in state.swapped:
            del state.swapped[request]
            state.cpu_free += state.held[request]
        else:
            state.waiting.remove(request)

    def wait_until(self, time_s: float) -> None:
        """An engine with nothing to run sleeps until something happens."""
        self.stuck = False
        self._decision_stands_until_s = 0.0
        if not self.state.running and self.state.clock_s < time_s:
            self.state.idle_spells += not self.state.waiting
            self.state.clock_s = self.state.policy.start_not_before(time_s)

    def advance(
        self, until_s: float, *, stop_at_end: bool = False, at_least_one: bool = False
    ) -> None:
        """Run every decision that starts before `until_s`, and `at_least_one` in any case.

        It also returns when it has asked for requests of a prefill pool.
        With `stop_at_end` return as soon as a request, or its prefill in a pool, has ended. When
        nothing can run the engine returns and its clock stands still.
        """
        state = self.state
        limit = until_s - TOLERANCE_S
        policy = state.policy
        while (at_least_one or state.clock_s < limit) and (
            state.running or state.waiting or state.swapped or state.inbox
        ):
            at_least_one = False
            if state.inbox:
                if state.inbox.fetch():
                    return  # the kernel starts the transfers, and may end them at once
                if not (state.running or state.waiting or state.swapped):
                    self.stuck = True
                    return
            decision = Decision()
            ended = len(state.ended)
            policy.decide(state, decision)
            self.decisions += 1
            if decision.decodes or decision.chunks or decision.row_without_tokens:
                self._run(decision, min(limit, decision.stands_until_s))
            elif decision.changes_queues or len(state.ended) > ended:
                pass  # decide again at the same clock
            elif state.running or until_s < float("inf"):
                self.stuck = True
                return
            else:
                self._give_up_on_next()
            victims = decision.preempted or decision.swapped_out
            if victims and self._goes_round_in_circles(len(victims)):
                self._give_up(victims[-1], "livelock")
            if stop_at_end and (state.ended or (state.outbox and state.outbox.ended)):
                return

    def _give_up_on_next(self) -> None:
        """Nothing runs, nothing will arrive, and still the next request cannot join."""
        state = self.state
        if state.swapped:
            self._give_up(next(iter(state.swapped)), "never_returns")
        else:
            short_of_tokens = state.refusal == REASON["no_budget"]
            reason = "exceeds_budget" if short_of_tokens else "never_fits"
            self._give_up(state.waiting.head(), reason)

    def _give_up(self, request: int, reason: str) -> None:
        """Refuse a request for good that has been in the system."""
        self._forget(request)
        self.state.reject(request, REASON[reason])

    def _goes_round_in_circles(self, evictions: int) -> bool:
        """Do requests keep evicting each other although none of them gets any further?

        Some real engines try for ever then. Progress is a new token, output or prompt. Without it
        the head of the running list has at most its known tokens to compute again; more evictions
        than a few for every piece of that are a circle.
        """
        state = self.state
        self._evictions += evictions
        progress = (state.progress, state.tick)
        if progress != self._progress:
            self._progress, self._evictions = progress, 0
            return False
        if self._evictions < MANY_EVICTIONS:
            return False
        present = [*state.running, *state.waiting, *state.swapped]
        budget = state.policy.tokens_per_iteration
        pieces = sum(state.blocks_for(state.known_tokens(r)) for r in present)
        if budget is not None:
            pieces = sum(1 + state.known_tokens(r) // budget for r in present)
        if self._evictions < MANY_EVICTIONS * pieces:
            return False
        self._evictions = 0
        return True

    # -- one decision --------------------------------------------------------------------------

    def _run(self, decision: Decision, limit_s: float) -> None:
        """Let the decision run for as many iterations as it stays the same, and write them down."""
        state = self.state
        decoding = state.decoding if decision.decodes else 0
        context = state.context_sum + decoding if decoding else 0
        if decoding and decision.skipped:
            decoding -= len(decision.skipped)
            context -= sum(state.context(r) + 1 for r in decision.skipped)
        tokens, pairs, reads = decoding, context, context
        prefill = recompute = chunk_pairs_step = chunk_reads_step = 0
        joined = self._joinable(decision) if self.fast_forward else 1
        for request, size in decision.chunks:
            start = state.computed[request]
            again = state.high_water[request] - start
            if again > 0:
                recompute += again if again < size else size
            if joined > 1:
                # Where repeated work turns into new work inside the chunk run, cut there.
                if again > 0:
                    joined = max(1, min(joined, again // size))
                chunk_pairs_step += size * size
                chunk_reads_step += size
            prefill += size
            pairs += size * start + size * (size + 1) // 2
            reads += start + size
        padding = decision.padding_tokens
        rows = len(self._finished_rows)
        if rows and decoding:
            padding += rows
            self._finished_rows_context += rows
            pairs += self._finished_rows_context
            reads += self._finished_rows_context
        pairs += decision.padding_pairs
        reads += decision.padding_tokens
        tokens += prefill + padding
        pairs_step = decoding + chunk_pairs_step
        reads_step = decoding + chunk_reads_step
        if rows and decoding:
            pairs_step += rows
            reads_step += rows

        work = Work(tokens, pairs, pairs_step, reads, reads_step, decision.swapped_blocks)
        self._decision_stands_until_s = 0.0
        if joined > 1:
            shortest_s = self.cost.seconds(tokens, pairs, reads, decision.swapped_blocks)
            stands = min(joined, iterations_with_blocks(state, decision, tokens))
            self._decision_stands_until_s = min(
                state.clock_s + (stands - 1) * shortest_s, decision.stands_until_s
            )
            joined = min(joined, most_iterations(shortest_s, state.clock_s, limit_s))
        blocks = blocks_ahead(state, decision, joined)
        self.iteration_time_calls += 1
        ends = end_times(self.cost, work, state.clock_s, len(blocks), limit_s, state.policy)
        joined = len(ends)

        self.stretch_start_s.append(state.clock_s)
        self.end_s.extend(ends)
        self.blocks_used.extend(blocks[:joined] if joined < len(blocks) else blocks)
        self.stretches.extend(
            (
                joined,
                decoding,
                len(decision.chunks),
                prefill - recompute,
                recompute,
                padding,
                len(state.waiting),
                len(state.running),
                len(state.swapped),
                decision.swapped_blocks,
                pairs,
                pairs_step,
                reads,
                reads_step,
                1 if decoding else 0,
            )
        )
        if decision.changes_queues:
            self._write_moves(decision)
        self._account(decision, joined, decoding, blocks[joined - 1] - blocks[0])

    def _joinable(self, decision: Decision) -> int:
        """For how many iterations the decision may stand, blocks and clock aside."""
        state = self.state
        joined = state.policy.stable_for(state, decision)
        if joined > 1:
            if decision.decodes:
                joined = min(joined, state.next_finish_tick() - state.tick)
            for request, size in decision.chunks:
                left = state.known[request] - state.computed[request] - 1
                joined = min(joined, max(1, left // size), CHUNK_ITERATIONS)
        return joined

    def _write_moves(self, decision: Decision) -> None:
        moved, iteration = self.moved, self.state.iteration
        for kind, requests in (
            ("preempt", decision.preempted),
            ("swap_out", decision.swapped_out),
            ("swap_in", decision.swapped_in),
        ):
            for request in requests:
                moved.extend((iteration, EVENT[kind], request, 0))
        for request, cached in decision.cached:
            moved.extend((iteration, EVENT["admit"], request, cached))

    # -- after the iterations ------------------------------------------------------------------

    def _account(self, decision: Decision, joined: int, decoding: int, grown: int) -> None:
        """Advance contexts, emit tokens, let finished requests go."""
        state = self.state
        first = state.iteration
        state.iteration += joined
        if state.iteration > self.most_iterations:
            raise LabError("too_many_iterations", limit=MOST_ITERATIONS)
        state.clock_s = self.end_s[-1]
        if decoding:
            state.tick += joined
            state.context_sum += state.decoding * joined
            self._finished_rows_context += len(self._finished_rows) * (joined - 1)
            for request in decision.skipped:
                state.skip_decode(request)
        finished: list[int] = []
        for request, size in decision.chunks:
            start = state.computed[request]
            self.chunks.extend((first, joined, request, size, start))
            again = state.high_water[request] - start
            if again > 0:
                state.recomputed_tokens[request] += min(again, size * joined)
            if joined > 1:
                ahead = size * joined
                before = state.held[request]
                held = state.blocks_for(state.computed[request] + ahead)
                if not state.policy.reserves and held > before:
                    state.held[request] = held
                    state.take(held - before)
                    grown -= held - before
                state.computed[request] += ahead
                if state.cache is not None:
                    state.cache.fill(request, state.computed[request])
            else:
                state.computed[request] += size
            if state.computed[request] == state.known[request]:
                self._emit(request, finished)
        if grown:
            state.take(grown)
        if decoding:
            while (tick := state.next_finish_tick()) is not None and tick == state.tick:
                request = state._finish_at[0][1]
                state.stop_decoding(request)
                finished.append(request)
        if finished:
            self._finish(finished)
        if state.policy.on_ticks:
            state.clock_s = state.policy.start_not_before(state.clock_s)

    def _emit(self, request: int, finished: list[int]) -> None:
        """A request has all its known tokens computed: it emits one more."""
        state = self.state
        del state.prefilling[request]
        state.known[request] += 1
        state.progress += 1
        iteration = state.iteration - 1
        self.first_tokens.extend((iteration, request))
        if state.known[request] == state.prompt[request] + 1:
            state.log.add(state.clock_s, FIRST_TOKEN, iteration, request)
        if state.known[request] == state.last_token[request]:
            finished.append(request)
        else:
            state.start_decoding(request)

    def _finish(self, finished: list[int]) -> None:
        """Let requests go, in the order in which they were served."""
        state = self.state
        if len(finished) > 1:
            wanted = set(finished)
            finished = [r for r in state.running if r in wanted]
        keep_rows = state.policy.keeps_finished_rows
        for request in finished:
            if state.outbox is not None and state.outbox.take(request):
                continue
            state.status[request] = FINISHED
            state.log.add(
                state.clock_s, FINISH, state.iteration - 1, request, 0, state.blocks_held(request)
            )
            state.ended.append((state.clock_s, request))
            if keep_rows:
                del state.running[request]
                self._finished_rows.append(request)
                self._finished_rows_context += state.computed[request]
            else:
                state.leave(request)
        self._close_batch()

    def _close_batch(self) -> None:
        """Let the finished rows of a static batch go when nobody runs beside them any more."""
        if self._finished_rows and not self.state.running:
            for request in self._finished_rows:
                self.state.release(request)
            self._finished_rows = []
            self._finished_rows_context = 0
