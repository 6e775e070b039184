"""What a simulation leaves behind: columns, expanded from what the engines wrote down.

Engines write one row per stretch of equal iterations, per chunk run and per run of decodes; here
the rows become whole-array columns. Iterations of several engines follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from model.engine import Engine
from model.engine_record import (
    CHUNK_FIELDS,
    CONSTANT_FIELDS,
    FIRST_TOKEN_FIELDS,
    MOVE_FIELDS,
    STRETCH_FIELDS,
)
from model.events import EVENT, EVENTS, REASONS
from model.iteration_time import IterationCost
from model.requests import Requests
from model.state import STATUS, UNFINISHED

if TYPE_CHECKING:
    from model.scenario import Scenario

__all__ = ["EVENTS", "REASONS", "STATUS", "SimulationResult"]

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Columns of equal length in each table; they go to pandas, CSV and charts unchanged.

    ``iterations``: one row an iteration (``start_s``, ``end_s`` in seconds, tokens, blocks).
    ``requests``: one row a request, in the order of arrival; times are nan where nothing happened.
    ``events``: one row a decision; codes index EVENTS and REASONS; ``recompute_s`` and ``swap_s``
    say what a preemption costs, done either way.
    ``chunks``: runs of equal prefill chunks (first iteration row, iterations, request, tokens each,
    position of the first token).
    ``decodes``: runs of decodes (request, first tick, tick after the last); ``tick_rows`` gives the
    iteration row of a tick.
    ``prefill_ends``: tokens emitted by prefills (iteration row, request).
    """

    scenario: Scenario | None
    inputs: Requests
    kv_blocks: int
    block_size: int
    iterations: Columns
    requests: Columns
    events: Columns
    chunks: Columns
    decodes: Columns
    prefill_ends: Columns
    moves: Columns
    tick_rows: np.ndarray = field(repr=False)
    stats: dict[str, int]

    @cached_property
    def _tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """(iteration row, request) of every output token, request by request, in order."""
        decodes, ends = self.decodes, self.prefill_ends
        rows = np.concatenate((self.tick_rows, ends["row"]))
        request = np.concatenate((decodes["request"], ends["request"]))
        first = np.concatenate(
            (decodes["first_tick"], len(self.tick_rows) + np.arange(len(ends["row"])))
        )
        length = np.concatenate(
            (decodes["end_tick"] - decodes["first_tick"], np.ones(len(ends["row"]), dtype=np.int64))
        )
        order = np.lexsort((rows[first], request))
        request, first, length = request[order], first[order], length[order]
        return rows[_ranges(first, length)], np.repeat(request, length)

    @cached_property
    def _token_bounds(self) -> np.ndarray:
        return np.searchsorted(self._tokens[1], np.arange(len(self.inputs) + 1))

    def token_times(self, request: int) -> np.ndarray:
        """Seconds at which a request's output tokens were emitted, in order."""
        first, last = self._token_bounds[request : request + 2]
        return self.iterations["end_s"][self._tokens[0][first:last]]

    @cached_property
    def _itl(self) -> tuple[np.ndarray, np.ndarray]:
        rows, request = self._tokens
        times = self.iterations["end_s"][rows]
        same = request[1:] == request[:-1]
        return np.diff(times)[same], request[1:][same]

    def itl_s(self) -> tuple[np.ndarray, np.ndarray]:
        """Every gap between two output tokens of a request (seconds), and the request's row."""
        return self._itl

    def scheduled(self, first: int = 0, end: int | None = None) -> Columns:
        """Who ran when: one row per request and iteration (row, request, tokens), by iteration.

        Of the iteration rows from `first` to before `end`; the whole schedule of a long run is as
        large as all its tokens.
        """
        chunks, decodes = self.chunks, self.decodes
        end = len(self.iterations["start_s"]) if end is None else end
        start = np.clip(chunks["row"], first, end)
        n = np.clip(chunks["row"] + chunks["iterations"], first, end) - start
        bounds = np.searchsorted(self.tick_rows, (first, end))
        tick = np.clip(decodes["first_tick"], *bounds)
        length = np.clip(decodes["end_tick"], *bounds) - tick
        ticks = self.tick_rows[_ranges(tick, length)]
        row = np.concatenate((_ranges(start, n), ticks))
        request = np.concatenate(
            (np.repeat(chunks["request"], n), np.repeat(decodes["request"], length))
        )
        tokens = np.concatenate(
            (np.repeat(chunks["tokens"], n), np.ones(len(ticks), dtype=np.int64))
        )
        order = np.lexsort((request, row))
        return {"row": row[order], "request": request[order], "tokens": tokens[order]}


@dataclass(frozen=True, slots=True)
class Travel:
    """Where requests have been, a value a request (-1, nan: never there).

    ``engine`` took the request in first and ``last_engine`` last; ``decode_engine`` is where it
    decoded. ``attempts`` are its arrivals. Transfers are None without a prefill pool.
    """

    engine: list[int]
    decode_engine: list[int]
    last_engine: list[int]
    arrival_s: list[float]
    attempts: list[int]
    bytes_per_token: float = 0.0
    transfer_start_s: list[float] | None = None
    transfer_end_s: list[float] | None = None


def collect(
    scenario: Scenario | None, requests: Requests, engines: list[Engine], travel: Travel
) -> SimulationResult:
    """Expand what the engines wrote down into one result."""
    parts = [_engine_columns(engine) for engine in engines]
    rows = np.cumsum([0] + [len(p["iterations"]["start_s"]) for p in parts])
    ticks = np.cumsum([0] + [len(p["tick_rows"]) for p in parts])
    for i, part in enumerate(parts):
        for table in ("chunks", "prefill_ends", "moves"):
            part[table]["row"] = part[table]["row"] + rows[i]
        part["tick_rows"] = part["tick_rows"] + rows[i]
        for name in ("first_tick", "end_tick"):
            part["decodes"][name] = part["decodes"][name] + ticks[i]
    tables = {
        table: {name: np.concatenate([p[table][name] for p in parts]) for name in parts[0][table]}
        for table in ("iterations", "events", "chunks", "decodes", "prefill_ends", "moves")
    }
    tables["events"] |= _seconds_at_stake(tables["events"], engines[0].cost)
    if len(engines) > 1:
        # By time, but each engine's own order stays: an arrival during an iteration is written
        # down after it, and clocks that mean the same moment may differ in their last bit.
        keys = [np.maximum.accumulate(p["events"]["time_s"]) for p in parts]
        order = np.argsort(np.concatenate(keys), kind="stable")
        tables["events"] = {name: column[order] for name, column in tables["events"].items()}
    tick_rows = np.concatenate([p["tick_rows"] for p in parts])
    state = engines[0].state
    return SimulationResult(
        scenario=scenario,
        inputs=requests,
        kv_blocks=state.kv_blocks,
        block_size=state.block_size,
        requests=_request_columns(requests, engines, travel, tables, tick_rows),
        tick_rows=tick_rows,
        stats={
            "decisions": sum(e.decisions for e in engines),
            "iteration_time_calls": sum(e.iteration_time_calls for e in engines),
            "stretches": sum(len(e.record.stretch_start_s) for e in engines),
            "events": len(tables["events"]["event"]),
        },
        **tables,
    )


def _engine_columns(engine: Engine) -> dict:
    record = engine.record
    stretches = _table(record.stretches, STRETCH_FIELDS)
    length = stretches["iterations"]
    total = int(length.sum())
    stretch = np.repeat(np.arange(len(length)), length)
    first = np.cumsum(length) - length
    inside = np.arange(total) - first[stretch]
    end_s = np.array(record.end_s)
    start_s = np.empty(total)
    start_s[1:] = engine.state.policy.start_not_before(end_s[:-1])
    start_s[first] = np.array(record.stretch_start_s)

    def column(name: str) -> np.ndarray:
        return stretches[name][stretch]

    iterations = {
        "iteration": np.arange(total),
        "engine_id": np.full(total, engine.state.engine_id),
        "start_s": start_s,
        "end_s": end_s,
    }
    # What swaps or pads prompts stands for one iteration, so repeating these columns is right.
    for name in CONSTANT_FIELDS:
        iterations[name] = column(name)
    iterations["tokens"] = sum(
        iterations[name]
        for name in ("decode_requests", "prefill_tokens", "recompute_tokens", "padding_tokens")
    )
    iterations["blocks_used"] = np.array(record.blocks_used)
    for name in ("attention_pairs", "kv_tokens_read"):
        iterations[name] = column(name) + column(name + "_step") * inside
    events = engine.state.log.columns()
    events["engine_id"] = np.full(len(events["event"]), engine.state.engine_id)
    return {
        "iterations": iterations,
        "events": events,
        "chunks": _table(record.chunks, CHUNK_FIELDS),
        "decodes": _table(engine.state.segments, ("request", "first_tick", "end_tick")),
        "prefill_ends": _table(record.first_tokens, FIRST_TOKEN_FIELDS),
        "moves": _table(record.moves, MOVE_FIELDS),
        "tick_rows": np.flatnonzero(column("ticks")),
    }


def _request_columns(
    requests: Requests,
    engines: list[Engine],
    travel: Travel,
    tables: dict,
    tick_rows: np.ndarray,
) -> Columns:
    n = len(requests)
    last_engine = np.array(travel.last_engine)
    states = [e.state for e in engines]

    def pick(name: str) -> np.ndarray:
        columns = np.array([getattr(s, name) for s in states], dtype=np.int64)
        return columns[np.maximum(last_engine, 0), np.arange(n)]

    def total(name: str) -> np.ndarray:
        return sum(np.array(getattr(s, name), dtype=np.int64) for s in states)

    end_s = tables["iterations"]["end_s"]
    decodes, ends, events = tables["decodes"], tables["prefill_ends"], tables["events"]
    first_row, last_row = np.full(n, -1), np.full(n, -1)
    first_row[ends["request"][::-1]] = ends["row"][::-1]
    np.maximum.at(last_row, ends["request"], ends["row"])
    np.maximum.at(last_row, decodes["request"], tick_rows[decodes["end_tick"] - 1])
    emitted = np.bincount(ends["request"], minlength=n)
    np.add.at(emitted, decodes["request"], decodes["end_tick"] - decodes["first_tick"])

    def at(rows: np.ndarray) -> np.ndarray:
        times = np.full(n, np.nan)
        times[rows >= 0] = end_s[rows[rows >= 0]]
        return times

    def event_time(*names: str, first: bool = False) -> np.ndarray:
        times = np.full(n, np.nan)
        chosen = np.flatnonzero(np.isin(events["event"], [EVENT[name] for name in names]))
        chosen = chosen[::-1] if first else chosen  # of several, the last one written counts
        times[events["request"][chosen]] = events["time_s"][chosen]
        return times

    ended_s = event_time("finish", "reject", "cancel")
    ended_s[pick("status") == UNFINISHED] = np.nan

    return {
        "request_id": np.array(requests.request_id, dtype=object),
        "engine_id": np.array(travel.engine),
        "request_class": requests.request_class,
        "priority": requests.priority,
        "arrival_s": np.array(travel.arrival_s),
        "prompt_tokens": requests.prompt_tokens,
        "output_tokens": requests.output_tokens,
        "status": pick("status"),
        "reason": pick("reason"),
        "first_scheduled_s": event_time("admit", first=True),
        "first_token_s": at(first_row),
        "last_token_s": at(last_row),
        "end_s": ended_s,
        "emitted_tokens": emitted,
        "preemptions": total("preemptions"),
        "recomputed_tokens": total("recomputed_tokens"),
        "cached_tokens": total("cached_tokens"),
        "swapped_blocks": total("swapped_block_count"),
        "cached_again_tokens": total("cached_again_tokens"),
        "attempts": np.array(travel.attempts),
        "decode_engine_id": np.array(travel.decode_engine),
    } | _transfers(requests, travel)


def _transfers(requests: Requests, travel: Travel) -> Columns:
    """Bytes of KV sent, and the seconds that took on the link (0, nan: none were)."""
    n = len(requests)
    if travel.transfer_end_s is None:
        return {"transferred_bytes": np.zeros(n), "transfer_s": np.full(n, np.nan)}
    start_s, end_s = np.array(travel.transfer_start_s), np.array(travel.transfer_end_s)
    sent = np.isfinite(end_s)
    return {
        "transferred_bytes": np.where(sent, travel.bytes_per_token * requests.prompt_tokens, 0.0),
        "transfer_s": end_s - start_s,
    }


def _seconds_at_stake(events: Columns, cost: IterationCost) -> Columns:
    """What each preemption costs either way, nan for other events and where the clock is silent."""
    evicts = np.isin(events["event"], [EVENT["preempt"], EVENT["swap_out"]])
    seconds = {
        "recompute_s": cost.recompute_s(events["tokens"]),
        "swap_s": cost.swap_s(events["blocks_needed"]),
    }
    return {
        name: np.where(evicts & (values > 0), values, np.nan) for name, values in seconds.items()
    }


def _table(values, names: tuple[str, ...]) -> Columns:
    table = np.array(values, dtype=np.int64).reshape(-1, len(names))
    return {name: table[:, i] for i, name in enumerate(names)}


def _ranges(first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """first[0], first[0]+1, ... (length[0] of them), first[1], ..."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - (ends - length), length)
