"""Where two runs of the same requests part: the first iteration that their schedulers decide
differently, and what each of them did in it, with its numbers.

Both runs are gone through iteration by iteration, engine by engine. A decision is who gets how many
tokens, who comes and who goes. As long as all of these are equal, clocks and queues are equal too,
so the first difference is one of rules and not of circumstances. Which blocks a request holds is no
part of a decision: two engines may hold memory differently and still schedule alike
(:func:`first_other_memory`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.parting_sides import (
    KINDS,
    Act,
    EngineRun,
    Refusal,
    Side,
    grouped,
    side,
    standing,
    treatments,
)
from model.result import SimulationResult

__all__ = ["KINDS", "Act", "Memory", "Parting", "Refusal", "Side", "first_other_memory", "parting"]

_SAME_MOMENT_S = 1e-9
_TOTALS = (
    *("decode_requests", "prefill_requests", "prefill_tokens", "recompute_tokens"),
    *("padding_tokens", "swapped_blocks"),
)
_AT_ONCE = 4096  # iterations whose schedules are compared together


@dataclass(frozen=True, slots=True)
class Parting:
    """The first decision that differs: ``iteration`` of ``engine_id``, from 0; seconds.

    ``kind`` is the most telling kind of act (KINDS), "padding" where only what is computed for
    nobody differs, "time" where only the moment does.
    """

    engine_id: int
    iteration: int
    time_s: float
    kind: str
    one: Side
    other: Side


@dataclass(frozen=True, slots=True)
class Memory:
    """The first iteration in which two runs hold another number of KV blocks."""

    engine_id: int
    iteration: int
    one_blocks: int
    other_blocks: int


def parting(one: SimulationResult, other: SimulationResult) -> Parting | None:
    """The first decision, by time, in which two runs of the same requests differ; None: nowhere.

    Raises ValueError where the runs are not of the same requests.
    """
    _check_same_requests(one, other)
    found = []
    for engine_id in _engines(one, other):
        pair = EngineRun(one, engine_id), EngineRun(other, engine_id)
        iteration = _first_difference(*pair)
        if iteration is not None:
            found.append(_parting(*pair, iteration))
    return min(found, key=lambda p: (p.time_s, p.engine_id), default=None)


def first_other_memory(one: SimulationResult, other: SimulationResult) -> Memory | None:
    """The first iteration after which the runs hold another number of blocks; None: nowhere."""
    _check_same_requests(one, other)
    for engine_id in _engines(one, other):
        a, b = EngineRun(one, engine_id), EngineRun(other, engine_id)
        n = min(len(a), len(b))
        used = [run.column("blocks_used")[:n] for run in (a, b)]
        rows = np.flatnonzero(used[0] != used[1])
        if len(rows):
            at = int(rows[0])
            return Memory(engine_id, at, int(used[0][at]), int(used[1][at]))
    return None


def _check_same_requests(one: SimulationResult, other: SimulationResult) -> None:
    for name in ("prompt_tokens", "output_tokens"):
        if not np.array_equal(getattr(one.inputs, name), getattr(other.inputs, name)):
            raise ValueError("Two runs can be compared only where they serve the same requests.")


def _engines(one: SimulationResult, other: SimulationResult) -> list[int]:
    ids = np.concatenate([r.events["engine_id"] for r in (one, other)])
    return np.unique(ids).tolist()


# -- the first difference --------------------------------------------------------------------------


def _first_difference(one: EngineRun, other: EngineRun) -> int | None:
    """The first iteration whose decisions differ; None where there is none.

    Totals are compared first, because that is quick; then, up to where they differ, who exactly
    gets how many tokens.
    """
    n = min(len(one), len(other))
    limits = [] if len(one) == len(other) else [n]
    if (moved := _first_other_move(one, other)) is not None:
        limits.append(moved)
    differ = np.zeros(n, dtype=bool)
    for name in _TOTALS:
        differ |= one.column(name)[:n] != other.column(name)[:n]
    differ |= np.abs(one.column("start_s")[:n] - other.column("start_s")[:n]) > _SAME_MOMENT_S
    limits += np.flatnonzero(differ)[:1].tolist()
    found = min(limits, default=None)
    end = n if found is None else min(found, n)
    exact = _first_other_schedule(one, other, end)
    return found if exact is None else exact


def _first_other_move(one: EngineRun, other: EngineRun) -> int | None:
    (at, code), (other_at, other_code) = one.moves, other.moves
    n = min(len(at), len(other_at))
    rows = np.flatnonzero((at[:n] != other_at[:n]) | (code[:n] != other_code[:n]))
    if len(rows):
        return int(min(at[rows[0]], other_at[rows[0]]))
    if len(at) == len(other_at):
        return None
    return int((at if len(at) > n else other_at)[n])


def _first_other_schedule(one: EngineRun, other: EngineRun, end: int) -> int | None:
    """The first iteration before ``end`` in which somebody gets another number of tokens."""
    for first in range(0, end, _AT_ONCE):
        until = min(first + _AT_ONCE, end)
        a, b = one.schedule(first, until), other.schedule(first, until)
        n = min(a.shape[1], b.shape[1])
        rows = np.flatnonzero((a[:, :n] != b[:, :n]).any(axis=0))
        if len(rows):
            return int(min(a[0, rows[0]], b[0, rows[0]]))
        if a.shape[1] != b.shape[1]:
            return int((a if a.shape[1] > n else b)[0, n])
    return None


# -- what each side did ----------------------------------------------------------------------------


def _parting(one: EngineRun, other: EngineRun, iteration: int) -> Parting:
    treated = treatments(one, iteration), treatments(other, iteration)
    involved = sorted(treated[0].keys() | treated[1].keys())
    acts: tuple[dict[int, Act], dict[int, Act]] = ({}, {})
    for request in involved:
        pair = [
            found.get(request) or standing(run, iteration, request)
            for run, found in zip((one, other), treated, strict=True)
        ]
        # An engine without iterations may reject all that is still to come before its first one.
        has_come = all(act.kind != "away" for act in pair)
        if has_come and (pair[0].kind, pair[0].tokens) != (pair[1].kind, pair[1].tokens):
            acts[0][request], acts[1][request] = pair
    sides = [
        side(run, iteration, tuple(grouped(list(own.values()))))
        for run, own in zip((one, other), acts, strict=True)
    ]
    starts = [half.start_s for half in sides if not np.isnan(half.start_s)]
    kinds = [act.kind for half in sides for act in half.acts]
    kind = min(kinds, key=KINDS.index, default="time")
    if not kinds and sides[0].padding_tokens != sides[1].padding_tokens:
        kind = "padding"
    return Parting(one.engine_id, iteration, min(starts, default=0.0), kind, *sides)
