"""A simulation as a film: everything a player needs to show any iteration, in few bytes.

A film is cut into windows of at most :data:`WINDOW_BYTES`. Each stands alone: it begins with the
stays that reach into it (its key frame) and goes on with what changes (runs of chunks and of
decodes, moves, events), so that the state of an iteration follows from what covers it. Numbers are
those of the result; times are rounded to nanoseconds. Pure NumPy; the file format is that of
:mod:`model.film_packing`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from model.errors import LabError
from model.events import EVENT, EVENTS, FIELDS, REASONS
from model.film_packing import pack
from model.film_stays import stays
from model.metrics import tpot_violation_s, ttft_violation_s
from model.scenario import Slo

if TYPE_CHECKING:
    from model.result import SimulationResult

__all__ = ["MARKS", "VERSION", "WINDOW_BYTES", "Film", "film"]

VERSION = 1
LONGEST_S = 100 * 86400  # nanoseconds of longer films are no whole numbers in JavaScript
WINDOW_BYTES = 1 << 20
MOST_MARKS = 4000
"""Marks of a kind that a window carries of the rest of the run, for the overview bar."""

MARKS = ("arrive", "refuse", "preempt", "swap", "reject", "miss")
"""Kinds of moments to jump to; "reject" holds cancellations too, "miss" a promise surely lost."""

_MARK_OF = {
    "arrive": "arrive",
    "refuse": "refuse",
    "preempt": "preempt",
    "swap_out": "swap",
    "swap_in": "swap",
    "reject": "reject",
    "cancel": "reject",
}
_ROW_COLUMNS = (
    "decode_requests",
    "prefill_requests",
    "prefill_tokens",
    "recompute_tokens",
    "padding_tokens",
    "blocks_used",
    "waiting",
    "running",
    "swapped",
    "swapped_blocks",
    "attention_pairs",
    "kv_tokens_read",
)
_COST = ("fixed_s", "token_s", "compute_token_s", "compute_pair_s", "weights_read_s")
_COST += ("kv_token_read_s", "swapped_block_s")
_REQUEST_TOKENS = ("prompt_tokens", "output_tokens", "priority", "request_class", "status")
_REQUEST_TIMES = ("arrival_s", "first_token_s", "last_token_s", "end_s")


@dataclass(frozen=True)
class Film:
    """The windows of a run; ``bounds`` has one more entry than there are windows."""

    windows: tuple[bytes, ...]
    bounds: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Iterations."""
        return self.bounds[-1]

    def window_at(self, row: int) -> int:
        """Index of the window that shows an iteration; the nearest where there is none such."""
        found = int(np.searchsorted(self.bounds, row, side="right")) - 1
        return min(max(found, 0), len(self.windows) - 1)

    @cached_property
    def digest(self) -> str:
        """Names the content: equal for equal films."""
        return hashlib.sha256(b"".join(self.windows)).hexdigest()[:16]


def film(result: SimulationResult, engine_id: int = 0, *, window_bytes: int = WINDOW_BYTES) -> Film:
    """The film of one engine of a result.

    Raises IndexError where there is no such engine, LabError film_too_long.
    """
    engines = result.scenario.n_engines if result.scenario else 1
    if not 0 <= engine_id < engines:
        raise IndexError(f"engine {engine_id} of {engines}")
    longest_s = float(result.iterations["end_s"].max(initial=0.0))
    if longest_s > LONGEST_S:
        raise LabError("film_too_long", limit=LONGEST_S // 86400, days=round(longest_s / 86400))
    cutter = _Cutter(result, engine_id)
    bounds = [0, cutter.rows]
    first = cutter.window(0, cutter.rows, bounds)
    if len(first) <= window_bytes or cutter.rows < 2:
        return Film((first,), tuple(bounds))
    # Cut evenly to begin with; what is still too large is halved.
    pieces = min(cutter.rows, len(first) // window_bytes + 2)
    bounds = sorted({round(i * cutter.rows / pieces) for i in range(pieces + 1)})
    while True:
        windows = [cutter.window(a, b, bounds) for a, b in pairwise(bounds)]
        large = [i for i, data in enumerate(windows) if len(data) > window_bytes]
        halves = [(bounds[i] + bounds[i + 1]) // 2 for i in large]
        grown = sorted({*bounds, *halves})
        if grown == bounds:
            return Film(tuple(windows), tuple(bounds))
        bounds = grown


def _ns(seconds: np.ndarray) -> np.ndarray:
    """Whole nanoseconds; -1 where there is no time."""
    known = np.isfinite(seconds)
    return np.where(known, np.rint(np.where(known, seconds, 0.0) * 1e9), -1).astype(np.int64)


class _Cutter:
    """The columns of one engine, ready to be cut into windows."""

    def __init__(self, result: SimulationResult, engine_id: int) -> None:
        self.result = result
        table = result.iterations
        mine = np.flatnonzero(table["engine_id"] == engine_id)
        self.rows = len(mine)
        self.offset = int(mine[0]) if self.rows else 0
        span = slice(self.offset, self.offset + self.rows)
        self.start_ns, self.end_ns = _ns(table["start_s"][span]), _ns(table["end_s"][span])
        self.columns = {name: table[name][span] for name in _ROW_COLUMNS}
        policy = result.scenario.policy if result.scenario else None
        self.waits, self.stays = stays(
            result,
            engine_id,
            self.rows,
            keeps_finished_rows=getattr(policy, "keeps_finished_rows", False),
        )
        self._runs(span)
        self._events(engine_id)
        self._misses(engine_id)
        self._marks()
        self.header = self._header(engine_id)

    # -- columns of the whole run -----------------------------------------------------------------

    def _runs(self, span: slice) -> None:
        """Runs of equal chunks, and of decodes with the context that they begin with."""
        result = self.result
        ticks = result.tick_rows
        self.ticks = np.zeros(self.rows, dtype=np.int64)
        mine = (ticks >= span.start) & (ticks < span.stop)
        self.ticks[ticks[mine] - span.start] = 1
        first_tick = int(np.argmax(mine)) if mine.any() else 0

        chunks = result.chunks
        mine = (chunks["row"] >= span.start) & (chunks["row"] < span.stop)
        self.chunks = {name: column[mine] for name, column in chunks.items()}
        ends = result.prefill_ends
        n = len(result.inputs)
        emits = np.isin(
            (self.chunks["row"] + self.chunks["iterations"] - 1) * n + self.chunks["request"],
            ends["row"] * n + ends["request"],
        )
        self.chunks["row"] = self.chunks["row"] - span.start
        self.chunks["emits"] = emits.astype(np.int64)

        # While a request decodes, all but its newest token are computed.
        decodes = result.decodes
        length = decodes["end_tick"] - decodes["first_tick"]
        row = np.concatenate((ticks[decodes["first_tick"]], ends["row"]))
        request = np.concatenate((decodes["request"], ends["request"]))
        tokens = np.concatenate((length, np.ones(len(ends["row"]), dtype=np.int64)))
        order = np.lexsort((row, request))
        before = np.cumsum(tokens[order]) - tokens[order]
        starts = np.flatnonzero(np.diff(request[order], prepend=-1))
        counts = np.diff(starts, append=len(order))
        emitted = np.empty(len(order), dtype=np.int64)
        emitted[order] = before - np.repeat(before[starts], counts)
        context = result.requests["prompt_tokens"][decodes["request"]] - 1
        context = context + emitted[: len(length)]
        first_row = ticks[decodes["first_tick"]] if len(length) else length
        mine = (first_row >= span.start) & (first_row < span.stop)
        self.decodes = {
            "request": decodes["request"][mine],
            "row": first_row[mine] - span.start,
            "first_tick": decodes["first_tick"][mine] - first_tick,
            "end_tick": decodes["end_tick"][mine] - first_tick,
            "context": context[mine],
        }
        for table in (self.chunks, self.decodes):
            order = np.argsort(table["row"], kind="stable")
            for name in table:
                table[name] = table[name][order]

    def _events(self, engine_id: int) -> None:
        events = self.result.events
        mine = events["engine_id"] == engine_id
        self.events = {name: events[name][mine] for name in FIELDS if name != "iteration"}
        # What happened after the last iteration is shown with it.
        last = max(self.rows - 1, 0)
        self.events["row"] = np.minimum(events["iteration"][mine], last)
        for name in ("time_s", "recompute_s", "swap_s"):
            self.events[name.replace("_s", "_ns")] = _ns(events[name][mine])

    def _misses(self, engine_id: int) -> None:
        """Promises surely lost: when, whose, and which (0: TTFT, 1: TPOT)."""
        requests = self.result.requests
        slo = self.result.scenario.slo if self.result.scenario else Slo()
        lost = (ttft_violation_s(requests, slo), tpot_violation_s(requests, slo))
        self.lost_ns = [_ns(times) for times in lost]
        places = (requests["engine_id"], requests["decode_engine_id"])
        found = [
            np.flatnonzero((times >= 0) & (place == engine_id))
            for times, place in zip(self.lost_ns, places, strict=True)
        ]
        time = np.concatenate([times[at] for times, at in zip(self.lost_ns, found, strict=True)])
        row = np.minimum(np.searchsorted(self.end_ns, time, side="right"), max(self.rows - 1, 0))
        which = np.repeat([0, 1], [len(at) for at in found])
        order = np.lexsort((which, time))
        self.misses = {
            "row": row[order],
            "request": np.concatenate(found)[order],
            "which": which[order],
            "time_ns": time[order],
        }

    def _marks(self) -> None:
        """Rows of each kind of moment, over the whole run."""
        code = np.full(len(EVENTS), -1)
        for event, mark in _MARK_OF.items():
            code[EVENT[event]] = MARKS.index(mark)
        kinds, rows = code[self.events["event"]], self.events["row"]
        self.marks = [np.unique(rows[kinds == i]) for i in range(len(MARKS))]
        self.marks[MARKS.index("miss")] = np.unique(self.misses["row"])

    def _header(self, engine_id: int) -> dict[str, object]:
        result = self.result
        scenario = result.scenario
        policy = scenario.policy if scenario else None
        slo = scenario.slo if scenario else Slo()
        watermark = int(getattr(policy, "watermark", 0.0) * result.kv_blocks)
        budget = policy.tokens_per_iteration if policy else None
        reserves = getattr(policy, "reserves", False)
        whole_prompt = getattr(policy, "needs_free_block", False)
        header: dict[str, object] = {
            "version": VERSION,
            "rows": self.rows,
            "engine": engine_id,
            "engines": scenario.n_engines if scenario else 1,
            "policy": policy.name if policy else "",
            "order": getattr(policy, "queue_order", "fcfs"),
            # How blocks are held: for a whole life, for a whole prompt, or as they fill.
            "holds": "life" if reserves else "prompt" if whole_prompt else "tokens",
            "slots": policy.max_num_seqs if policy else 0,
            "budget": budget,
            "quantum_ns": round(getattr(policy, "quantum_s", 0.0) * 1e9),
            "kv_blocks": result.kv_blocks,
            "block_size": result.block_size,
            "watermark": watermark,
            "host_blocks": scenario.kv_capacity().cpu_blocks if scenario else 0,
            "shares": bool(getattr(policy, "enable_prefix_caching", False)),
            "slo": {"ttft_s": slo.ttft_s, "tpot_s": slo.tpot_s},
            "requests": len(result.inputs),
            "classes": list(result.inputs.class_names),
            "events": EVENTS,
            "reasons": REASONS,
            "marks": MARKS,
            "start_ns": int(self.start_ns[0]) if self.rows else 0,
            "end_ns": int(self.end_ns[-1]) if self.rows else 0,
        }
        if scenario:
            cost = scenario.cost()
            header["clock"] = scenario.clock.name
            header["cost"] = {name: getattr(cost, name) for name in _COST}
            if cost.weights_read_table_s is not None:
                header["cost"]["weights_read_table_s"] = list(cost.weights_read_table_s)
        return header

    # -- one window -------------------------------------------------------------------------------

    def window(self, first: int, end: int, bounds: list[int]) -> bytes:
        """Rows ``first`` to ``end`` (excluded) as a file."""
        whole = end - first == self.rows
        seen = self._seen(first, end)
        spoken = _within(self.events["row"], first, end)
        spoken[self._refusal_before(first)] = True
        rows = {name: column[first:end] for name, column in self.columns.items()}
        rows["end_ns"] = self.end_ns[first:end]
        rows["tick"] = self.ticks[first:end]
        start_ns = self.start_ns[first:end]
        after = np.concatenate((start_ns[:1], rows["end_ns"][:-1]))
        gaps = np.flatnonzero(start_ns != after)
        tables = {
            "rows": rows,
            "gaps": {"row": gaps, "start_ns": start_ns[gaps]},
            "waits": self._of(self.waits, seen, self.waits["first"] < end),
            "stays": self._of(self.stays, seen, self.stays["first"] < end),
            "chunks": self._of(self.chunks, seen, self.chunks["row"] < end),
            "decodes": self._of(self.decodes, seen, self.decodes["row"] < end),
            "events": self._of(self.events, seen, spoken),
            "misses": self._of(self.misses, seen, _within(self.misses["row"], first, end)),
            "requests": self._requests(seen),
        }
        header = self.header | {
            "first": first,
            "end": end,
            "window_start_ns": int(start_ns[0]) if len(start_ns) else 0,
            "ticks_before": int(self.ticks[:first].sum()),
            "emitted_before": self._emitted_before(first),
        }
        names = [str(name) for name in self.result.requests["request_id"][seen]]
        if any(name != str(row) for name, row in zip(names, seen.tolist(), strict=True)):
            header["names"] = names
        if not whole:
            header["windows"] = [
                [a, int(self.start_ns[a]), int(self.end_ns[b - 1])] for a, b in pairwise(bounds)
            ]
            tables["marks"] = self._outside_marks()
        return pack(header, tables)

    def _seen(self, first: int, end: int) -> np.ndarray:
        """Requests that are there, come, go or are spoken of in these rows."""
        seen = [
            table["request"][(table["first"] < end) & (table["end"] >= first)]
            for table in (self.waits, self.stays)
        ]
        inside = _within(self.events["row"], first, end)
        other = self.events["other"][inside]
        seen += [self.events["request"][inside], other[other >= 0]]
        seen.append(self.misses["request"][_within(self.misses["row"], first, end)])
        return np.unique(np.concatenate(seen))

    @staticmethod
    def _of(
        table: dict[str, np.ndarray], seen: np.ndarray, chosen: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The chosen rows of these requests, with requests numbered as in ``seen``."""
        chosen = chosen & np.isin(table["request"], seen)
        columns = {name: column[chosen] for name, column in table.items()}
        columns["request"] = np.searchsorted(seen, columns["request"])
        if "other" in columns:
            other = columns["other"]
            columns["other"] = np.where(other >= 0, np.searchsorted(seen, other), -1)
        return columns

    def _requests(self, seen: np.ndarray) -> dict[str, np.ndarray]:
        requests = self.result.requests
        columns = {"row": seen}
        columns |= {name: requests[name][seen] for name in _REQUEST_TOKENS}
        columns |= {name.replace("_s", "_ns"): _ns(requests[name][seen]) for name in _REQUEST_TIMES}
        columns["ttft_lost_ns"] = self.lost_ns[0][seen]
        columns["tpot_lost_ns"] = self.lost_ns[1][seen]
        return columns

    def _refusal_before(self, first: int) -> np.ndarray:
        """Index of the refusal that still stands when a window begins (none: empty)."""
        event, request = self.events["event"], self.events["request"]
        before = np.arange(len(event)) < np.searchsorted(self.events["row"], first)
        refusals = np.flatnonzero(before & (event == EVENT["refuse"]))
        if not len(refusals):
            return refusals
        last = refusals[-1:]
        gone = np.isin(event, [EVENT["cancel"], EVENT["reject"]]) & (request == request[last])
        joined = np.isin(event, [EVENT["admit"], EVENT["resume"]])
        after = before & (np.arange(len(event)) > last)
        return last[:0] if (after & (gone | joined)).any() else last

    def _emitted_before(self, first: int) -> int:
        emits = self.chunks["emits"] & (self.chunks["row"] + self.chunks["iterations"] <= first)
        return int(self.columns["decode_requests"][:first].sum() + emits.sum())

    def _outside_marks(self) -> dict[str, np.ndarray]:
        """Moments of the whole run for the overview, thinned where there are very many."""
        kept = []
        for rows in self.marks:
            step = -(-len(rows) // MOST_MARKS) if len(rows) else 1
            kept.append(rows[::step])
        kind = np.repeat(np.arange(len(kept)), [len(rows) for rows in kept])
        row = np.concatenate(kept)
        time = self.start_ns[row] if self.rows else row
        return {"kind": kind, "row": row, "time_ns": time}


def _within(rows: np.ndarray, first: int, end: int) -> np.ndarray:
    """Rows of a window; without any iteration everything is in the only one."""
    return (rows >= first) & (rows < max(end, 1))
