"""One serving engine on the simulation clock: decide, run, account, repeat.

The engine asks its scheduler for a decision, then lets as many iterations pass at once as the same
decision would be taken again: until the next arrival, cancellation, completion, end of a prefill or
shortage of blocks. The clock is accumulated one iteration after the other whether or not iterations
are joined, so both ways give the same bits.
"""

from __future__ import annotations

from model.circles import Circles
from model.engine_record import EngineRecord
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
MOST_ITERATIONS = 2_000_000  # of a run: what memory and patience hold
CHUNK_ITERATIONS = 256  # most iterations of equal prefill chunks joined at once

FINISH, FIRST_TOKEN, CANCEL = EVENT["finish"], EVENT["first_token"], EVENT["cancel"]


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
        self._most_iterations = MOST_ITERATIONS // engines
        self._decision_stands_until_s = 0.0
        self.record = EngineRecord()
        self._circles = Circles(state)
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
        self.record.move(state.iteration, CANCEL, request)
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
            if victims and self._circles.close(len(victims)):
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

        self.record.add_stretch(
            state.clock_s,
            ends,
            blocks[:joined] if joined < len(blocks) else blocks,
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
            ),
        )
        if decision.changes_queues:
            self.record.add_moves(state.iteration, decision)
        state.clock_s = ends[-1]
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

    # -- after the iterations ------------------------------------------------------------------

    def _account(self, decision: Decision, joined: int, decoding: int, grown: int) -> None:
        """Advance contexts, emit tokens, let finished requests go."""
        state = self.state
        first = state.iteration
        state.iteration += joined
        if state.iteration > self._most_iterations:
            raise LabError("too_many_iterations", limit=self._most_iterations)
        if decoding:
            state.advance(joined)
            self._finished_rows_context += len(self._finished_rows) * (joined - 1)
            for request in decision.skipped:
                state.skip_decode(request)
        finished: list[int] = []
        for request, size in decision.chunks:
            start = state.computed[request]
            self.record.chunks.extend((first, joined, request, size, start))
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
            finished += state.stop_finished()
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
        self.record.first_tokens.extend((iteration, request))
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
