"""Where each request was and from when to when: in the queue, in the batch, in host memory.

The engines write down moves; a film needs stays, because the state of any iteration is then simply
the stays that cover it. One walk over the events turns the ones into the others, and a test holds
the stays against the counts that the engines wrote down themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.events import EVENT

if TYPE_CHECKING:
    from model.result import SimulationResult

__all__ = ["KEPT", "STAY_FIELDS", "WAIT_FIELDS", "stays"]

ADMITTED, RESUMED, SWAPPED_IN, KEPT = range(4)  # how a stay in the batch began
WAITED, HOSTED = range(2)  # what a stay outside the batch was

WAIT_FIELDS = (
    "request",
    "first",  # the first iteration row after whose decision it was there
    "end",  # the row whose decision ended it
    "kind",  # WAITED in the queue, or HOSTED: its KV is in host memory
    "key",  # order in the queue, smaller first
    "tokens",  # to compute before the next token comes out (prompt, and outputs so far)
    "blocks",  # of host memory
    "preempted",  # 1 if it has been in the batch before
    "first_ns",
    "end_ns",
)
STAY_FIELDS = (
    "request",
    "first",  # the row whose decision let it in
    "end",  # the row after its last
    "kind",  # ADMITTED, RESUMED, SWAPPED_IN, or KEPT: finished, but its row runs on (static)
    "goal",  # tokens computed when the first token of this stay comes out
    "start",  # tokens computed when it came in: cached, or brought back from the host
    "known_before",  # tokens once computed before: below this, work is repeated
    "blocks",  # asked for at admission
    "first_ns",
    "end_ns",
)


def stays(
    result: SimulationResult, engine_id: int, rows: int, *, keeps_finished_rows: bool
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(waits, stays) of one engine's requests, each sorted by first row; times in nanoseconds."""
    walk = _Walk(result, rows, keeps_finished_rows)
    events = result.events
    mine = np.flatnonzero(events["engine_id"] == engine_id)
    columns = [
        events[name][mine].tolist()
        for name in ("event", "iteration", "request", "tokens", "blocks_needed", "cached_tokens")
    ]
    times = np.rint(events["time_s"][mine] * 1e9).astype(np.int64).tolist()
    for code, row, request, tokens, blocks, cached, time in zip(*columns, times, strict=True):
        walk.take(code, min(row, rows), request, tokens, blocks, cached, time)
    walk.close_all(round(float(result.iterations["end_s"].max(initial=0.0)) * 1e9))
    return _table(walk.waits, WAIT_FIELDS), _table(walk.stays, STAY_FIELDS)


class _Walk:
    """The moves of one engine, one after the other."""

    def __init__(self, result: SimulationResult, rows: int, keeps_finished_rows: bool) -> None:
        self.rows = rows
        self.keeps = keeps_finished_rows
        self.waits: list[tuple] = []
        self.stays: list[tuple] = []
        self._known = result.requests["prompt_tokens"].tolist()
        self._computed = [0] * len(self._known)  # most tokens ever computed
        self._waiting: dict[int, tuple] = {}
        self._hosted: dict[int, tuple] = {}
        self._running: dict[int, tuple] = {}
        self._kept: list[tuple] = []
        self._back, self._front = 0, -1
        policy = result.scenario.policy if result.scenario else None
        self._rank = None
        self._preempted_go_last = getattr(policy, "preempted_go_last", False)
        columns = result.requests
        if getattr(policy, "queue_order", "fcfs") == "sjf":
            sizes = policy.sizes(columns, result.scenario.seed)
            order = np.lexsort((columns["arrival_s"], sizes))
            self._rank = np.argsort(order).tolist()
        elif getattr(policy, "queue_order", "fcfs") == "priority":
            ids = np.array([str(name) for name in columns["request_id"]])
            order = np.lexsort((ids, columns["arrival_s"], columns["priority"]))
            self._rank = np.argsort(order).tolist()

    def take(
        self, code: int, row: int, request: int, tokens: int, blocks: int, cached: int, time: int
    ) -> None:
        if code == EVENT["arrive"]:
            self._wait(request, row, time, 0)
        elif code in (EVENT["admit"], EVENT["resume"]):
            self._end_wait(self._waiting, request, row, time)
            kind = RESUMED if code == EVENT["resume"] else ADMITTED
            known = self._known[request]
            self._running[request] = (
                request,
                row,
                kind,
                known,
                cached,
                self._computed[request],
                blocks,
                time,
            )
        elif code in (EVENT["preempt"], EVENT["swap_out"]):
            goal = self._end_stay(request, row, time)
            self._computed[request] = max(self._computed[request], tokens)
            if tokens >= goal:
                self._known[request] = tokens + 1
            if code == EVENT["preempt"]:
                self._wait(request, row, time, 1)
            else:
                self._hosted[request] = (row, time, blocks)
        elif code == EVENT["swap_in"]:
            self._end_wait(self._hosted, request, row, time)
            goal = max(self._known[request], tokens)
            if self._known[request] == tokens + 1:
                goal = tokens  # it decodes at once
            self._running[request] = (
                request,
                row,
                SWAPPED_IN,
                goal,
                tokens,
                self._computed[request],
                blocks,
                time,
            )
        elif code == EVENT["transfer_end"]:
            self._known[request] = tokens + 1
            self._running[request] = (request, row, SWAPPED_IN, tokens, tokens, 0, blocks, time)
        elif code == EVENT["hand_over"]:
            self._end_stay(request, row + 1, time)
        elif code == EVENT["finish"]:
            if self.keeps:
                self._kept.append((*self._running[request], row + 1, time))
            self._end_stay(request, row + 1, time)
            if not self._running:
                self._end_kept(row + 1, time)
        elif code in (EVENT["reject"], EVENT["cancel"]):
            if request in self._waiting:
                self._end_wait(self._waiting, request, row, time)
            elif request in self._hosted:
                self._end_wait(self._hosted, request, row, time)
            elif request in self._running:
                self._end_stay(request, row, time)

    def close_all(self, time: int) -> None:
        """What had not ended when the run did."""
        for request in list(self._waiting):
            self._end_wait(self._waiting, request, self.rows, time)
        for request in list(self._hosted):
            self._end_wait(self._hosted, request, self.rows, time)
        for request in list(self._running):
            self._end_stay(request, self.rows, time)
        self._end_kept(self.rows, time)

    def _wait(self, request: int, row: int, time: int, preempted: int) -> None:
        if self._rank is not None:
            key = self._rank[request]
        elif preempted and not self._preempted_go_last:
            key, self._front = self._front, self._front - 1
        else:
            key, self._back = self._back, self._back + 1
        self._waiting[request] = (row, time, key, preempted)

    def _end_wait(self, where: dict[int, tuple], request: int, row: int, time: int) -> None:
        if where is self._hosted:
            first, since, blocks = where.pop(request)
            kind, key, preempted = HOSTED, 0, 1
        else:
            first, since, key, preempted = where.pop(request)
            kind, blocks = WAITED, 0
        known = self._known[request]
        self.waits.append(
            (request, first, row, kind, key, known, blocks, preempted, since, max(since, time))
        )

    def _end_stay(self, request: int, row: int, time: int) -> int:
        request, first, kind, goal, start, before, blocks, since = self._running.pop(request)
        self.stays.append((request, first, row, kind, goal, start, before, blocks, since, time))
        return goal

    def _end_kept(self, row: int, time: int) -> None:
        for request, _, _, goal, start, before, blocks, _, first, since in self._kept:
            if row > first:
                self.stays.append(
                    (request, first, row, KEPT, goal, start, before, blocks, since, time)
                )
        self._kept = []


def _table(rows: list[tuple], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, len(names))
    table = table[np.argsort(table[:, 1], kind="stable")]
    return {name: table[:, i] for i, name in enumerate(names)}
