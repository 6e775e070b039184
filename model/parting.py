"""Where two runs of the same requests part: the first iteration that their schedulers decide
differently, and what each of them did in it, with its numbers.

Both runs are gone through iteration by iteration, engine by engine. A decision is who gets how many
tokens, who comes and who goes. As long as all of these are equal, clocks and queues are equal too,
so the first difference is one of rules and not of circumstances. Which blocks a request holds is no
part of a decision: two engines may hold memory differently and still schedule alike
(:func:`first_other_memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.events import EVENT, EVENTS, REASONS
from model.result import SimulationResult

__all__ = ["KINDS", "Act", "Memory", "Parting", "Refusal", "Side", "first_other_memory", "parting"]

KINDS = (
    "reject",  # refused for good
    "preempt",  # its KV dropped, to be recomputed
    "swap_out",
    "swap_in",
    "admit",  # out of the queue, with its first tokens
    "resume",  # the same after a preemption
    "prefill",  # runs already, and gets tokens of its prompt
    "decode",  # runs already, and gets its one token
    "stall",  # runs, and gets nothing
    "wait",  # in the queue
    "hosted",  # swapped out
    "gone",  # finished, rejected or cancelled before
    "away",  # has not arrived
)
"""What may become of a request in a decision, the most telling first."""

_SAME_MOMENT_S = 1e-9
_TOTALS = (
    *("decode_requests", "prefill_requests", "prefill_tokens", "recompute_tokens"),
    *("padding_tokens", "swapped_blocks"),
)
_AT_ONCE = 4096  # iterations whose schedules are compared together
_AFTER_THE_ITERATION = ("first_token", "finish")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the head of the queue waits: the event that said so, and the iteration it is of.

    ``reason`` is one of REASONS; numbers are those of :data:`model.events.FIELDS`.
    """

    request: int
    reason: str
    iteration: int
    blocks_needed: int
    blocks_free: int
    tokens: int
    tokens_free: int


@dataclass(frozen=True, slots=True)
class Act:
    """What became of one request, or alike of several, on one side.

    ``requests`` are rows; ``tokens`` what each of them gets now (of a victim: what is lost or
    moved). Numbers of blocks are of the first request, 0 where there is none; ``tokens_free`` is
    the budget that was left, -1 where there is none. ``other`` is the row for whose sake it
    happened, -1 without any. ``refusal`` says of those who wait why the head of their queue does.
    """

    kind: str
    requests: tuple[int, ...]
    tokens: int = 0
    reason: str = "none"
    blocks_needed: int = 0
    blocks_free: int = 0
    tokens_free: int = -1
    other: int = -1
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side's iteration: its totals, and the acts in which it differs from the other side.

    ``budget`` is the most tokens an iteration may compute (None: no such rule); blocks are those
    held while it runs; ``start_s`` is nan and all is 0 where this side has no such iteration.
    """

    start_s: float
    end_s: float
    decodes: int
    prefills: int
    prefill_tokens: int
    padding_tokens: int
    budget: int | None
    blocks_used: int
    acts: tuple[Act, ...]

    @property
    def tokens(self) -> int:
        """Tokens computed for requests (padding is for nobody)."""
        return self.decodes + self.prefill_tokens


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
        pair = _Run(one, engine_id), _Run(other, engine_id)
        iteration = _first_difference(*pair)
        if iteration is not None:
            found.append(_parting(*pair, iteration))
    return min(found, key=lambda p: (p.time_s, p.engine_id), default=None)


def first_other_memory(one: SimulationResult, other: SimulationResult) -> Memory | None:
    """The first iteration after which the runs hold another number of blocks; None: nowhere."""
    _check_same_requests(one, other)
    for engine_id in _engines(one, other):
        a, b = _Run(one, engine_id), _Run(other, engine_id)
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


# -- one engine of one run -------------------------------------------------------------------------


class _Run:
    """The iterations and events of one engine, found by the number of the iteration."""

    def __init__(self, result: SimulationResult, engine_id: int) -> None:
        self.result = result
        self.engine_id = engine_id
        rows = np.flatnonzero(result.iterations["engine_id"] == engine_id)
        # Iterations of an engine stand together, so its rows are first, first + 1, ...
        self.first = int(rows[0]) if len(rows) else 0
        self.n = len(rows)
        mine = result.events["engine_id"] == engine_id
        self.events = {name: column[mine] for name, column in result.events.items()}

    def __len__(self) -> int:
        return self.n

    def column(self, name: str) -> np.ndarray:
        return self.result.iterations[name][self.first : self.first + self.n]

    @cached_property
    def moves(self) -> tuple[np.ndarray, np.ndarray]:
        """(iteration, code) of everybody who comes, goes or is refused for good, by iteration.

        In which order one decision names them is no difference: all of it happens at once.
        """
        kinds = ("reject", "admit", "resume", "preempt", "swap_out", "swap_in")
        chosen = np.isin(self.events["event"], [EVENT[name] for name in kinds])
        event, request = self.events["event"][chosen], self.events["request"][chosen]
        iteration, code = self.events["iteration"][chosen], request * len(EVENTS) + event
        order = np.lexsort((code, iteration))
        return iteration[order], code[order]

    def schedule(self, first: int, end: int) -> np.ndarray:
        """Rows (iteration, request, tokens) of the iterations from ``first`` to before ``end``."""
        columns = self.result.scheduled(self.first + first, self.first + end)
        return np.stack((columns["row"] - self.first, columns["request"], columns["tokens"]))

    def chunks_at(self, iteration: int) -> dict[int, int]:
        """Request -> prompt tokens, of those that prefill in an iteration."""
        row, chunks = self.first + iteration, self.result.chunks
        here = (chunks["row"] <= row) & (row < chunks["row"] + chunks["iterations"])
        pairs = zip(chunks["request"][here].tolist(), chunks["tokens"][here].tolist(), strict=True)
        return dict(pairs)

    def decodes_at(self, iteration: int) -> list[int]:
        """The requests that decode in an iteration."""
        ticks, decodes = self.result.tick_rows, self.result.decodes
        tick = int(np.searchsorted(ticks, self.first + iteration))
        if tick == len(ticks) or ticks[tick] != self.first + iteration:
            return []
        here = (decodes["first_tick"] <= tick) & (tick < decodes["end_tick"])
        return sorted(decodes["request"][here].tolist())

    def event(self, index: int) -> dict[str, int]:
        return {name: int(self.events[name][index]) for name in _NUMBERS}

    def until(self, iteration: int) -> int:
        """How many events there are up to the decision of an iteration, with those it makes."""
        number = self.events["iteration"]
        is_later = np.isin(self.events["event"], [EVENT[name] for name in _AFTER_THE_ITERATION])
        beyond = np.flatnonzero((number > iteration) | (is_later & (number == iteration)))
        return int(beyond[0]) if len(beyond) else len(number)


_NUMBERS = (
    *("event", "iteration", "request", "reason", "blocks_needed", "blocks_free"),
    *("tokens", "tokens_free", "other"),
)


# -- the first difference --------------------------------------------------------------------------


def _first_difference(one: _Run, other: _Run) -> int | None:
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


def _first_other_move(one: _Run, other: _Run) -> int | None:
    (at, code), (other_at, other_code) = one.moves, other.moves
    n = min(len(at), len(other_at))
    rows = np.flatnonzero((at[:n] != other_at[:n]) | (code[:n] != other_code[:n]))
    if len(rows):
        return int(min(at[rows[0]], other_at[rows[0]]))
    if len(at) == len(other_at):
        return None
    return int((at if len(at) > n else other_at)[n])


def _first_other_schedule(one: _Run, other: _Run, end: int) -> int | None:
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


def _parting(one: _Run, other: _Run, iteration: int) -> Parting:
    treated = _treatments(one, iteration), _treatments(other, iteration)
    involved = sorted(treated[0].keys() | treated[1].keys())
    acts: tuple[dict[int, Act], dict[int, Act]] = ({}, {})
    for request in involved:
        pair = [
            found.get(request) or _standing(run, iteration, request)
            for run, found in zip((one, other), treated, strict=True)
        ]
        # An engine without iterations may reject all that is still to come before its first one.
        has_come = all(act.kind != "away" for act in pair)
        if has_come and (pair[0].kind, pair[0].tokens) != (pair[1].kind, pair[1].tokens):
            acts[0][request], acts[1][request] = pair
    sides = [
        _side(run, iteration, tuple(_grouped(list(own.values()))))
        for run, own in zip((one, other), acts, strict=True)
    ]
    starts = [side.start_s for side in sides if not np.isnan(side.start_s)]
    kinds = [act.kind for side in sides for act in side.acts]
    kind = min(kinds, key=KINDS.index, default="time")
    if not kinds and sides[0].padding_tokens != sides[1].padding_tokens:
        kind = "padding"
    return Parting(one.engine_id, iteration, min(starts, default=0.0), kind, *sides)


def _treatments(run: _Run, iteration: int) -> dict[int, Act]:
    """Of everybody who gets tokens or is moved in a decision: what becomes of it."""
    found: dict[int, Act] = {}
    if iteration < len(run):
        found = {r: Act("decode", (r,), 1) for r in run.decodes_at(iteration)}
        for request, tokens in run.chunks_at(iteration).items():
            found[request] = Act("prefill", (request,), tokens)
    moves = {EVENT[name]: name for name in KINDS if name in EVENT}
    for index in np.flatnonzero(run.events["iteration"] == iteration).tolist():
        event = run.event(index)
        kind, request = moves.get(event["event"]), event["request"]
        if kind is None:
            continue
        tokens = event["tokens"]
        if kind in ("admit", "resume"):
            tokens = found[request].tokens if request in found else tokens
        found[request] = Act(
            kind,
            (request,),
            tokens,
            REASONS[event["reason"]],
            *(event[name] for name in ("blocks_needed", "blocks_free", "tokens_free", "other")),
        )
    return found


def _standing(run: _Run, iteration: int, request: int) -> Act:
    """What becomes of somebody whom the decision leaves where it is."""
    until = run.until(iteration)
    mine = np.flatnonzero(run.events["request"][:until] == request)
    kind = "away"
    for index in mine.tolist():
        kind = _PLACES.get(EVENTS[run.events["event"][index]], kind)
    refusal = _refusal(run, until) if kind == "wait" else None
    return Act(kind, (request,), refusal=refusal)


_PLACES: Mapping[str, str] = {
    "arrive": "wait",
    "preempt": "wait",
    "admit": "stall",
    "resume": "stall",
    "swap_in": "stall",
    "swap_out": "hosted",
    "transfer_end": "stall",  # on a decode engine
    "hand_over": "gone",  # from a prefill engine
    "finish": "gone",
    "cancel": "gone",
    "reject": "gone",
}
"""Where an event leaves its request."""


def _refusal(run: _Run, until: int) -> Refusal | None:
    """The refusal that stands: the last one, unless somebody has been admitted since."""
    codes = [EVENT[name] for name in ("refuse", "admit", "resume")]
    last = np.flatnonzero(np.isin(run.events["event"][:until], codes))[-1:]
    if not len(last) or run.events["event"][last[0]] != EVENT["refuse"]:
        return None
    event = run.event(int(last[0]))
    names = ("iteration", "blocks_needed", "blocks_free", "tokens", "tokens_free")
    return Refusal(event["request"], REASONS[event["reason"]], *(event[name] for name in names))


def _grouped(acts: list[Act]) -> list[Act]:
    """Acts by how telling they are; requests that only stand, decode or wait alike as one act."""
    grouped: dict[tuple, Act] = {}
    for act in sorted(acts, key=lambda act: KINDS.index(act.kind)):
        alone = act.kind in ("reject", "preempt", "swap_out", "swap_in", "admit", "resume")
        key = (act.kind, act.tokens, act.requests if alone else act.refusal)
        if key in grouped:
            before = grouped[key]
            act = Act(
                act.kind, (*before.requests, *act.requests), act.tokens, refusal=act.refusal
            )
        grouped[key] = act
    return list(grouped.values())


def _side(run: _Run, iteration: int, acts: tuple[Act, ...]) -> Side:
    policy = run.result.scenario.policy if run.result.scenario else None
    budget = policy.tokens_per_iteration if policy else None
    if iteration >= len(run):
        return Side(float("nan"), float("nan"), 0, 0, 0, 0, budget, 0, acts)

    def at(name: str) -> int:
        return int(run.column(name)[iteration])

    return Side(
        start_s=float(run.column("start_s")[iteration]),
        end_s=float(run.column("end_s")[iteration]),
        decodes=at("decode_requests"),
        prefills=at("prefill_requests"),
        prefill_tokens=at("prefill_tokens") + at("recompute_tokens"),
        padding_tokens=at("padding_tokens"),
        budget=budget,
        blocks_used=at("blocks_used"),
        acts=acts,
    )
