"""What one side of a comparison did in an iteration: who got what, and why others did not.

An :class:`EngineRun` finds the iterations and events of one engine by the number of the iteration;
the acts are made of its schedule and of the events of the decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.events import EVENT, EVENTS, REASONS
from model.result import SimulationResult

__all__ = [
    "KINDS",
    "Act",
    "EngineRun",
    "Refusal",
    "Side",
    "grouped",
    "side",
    "standing",
    "treatments",
]

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
    ``cached`` tokens of an admission are found in the prefix cache, and not computed.
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
    cached: int = 0


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


# -- one engine of one run -------------------------------------------------------------------------


class EngineRun:
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
    *("tokens", "tokens_free", "other", "cached_tokens"),
)


# -- what each side did ----------------------------------------------------------------------------


def treatments(run: EngineRun, iteration: int) -> dict[int, Act]:
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
            cached=event["cached_tokens"],
        )
    return found


def standing(run: EngineRun, iteration: int, request: int) -> Act:
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


def _refusal(run: EngineRun, until: int) -> Refusal | None:
    """The refusal that stands: the last one, unless somebody has been admitted since."""
    codes = [EVENT[name] for name in ("refuse", "admit", "resume")]
    last = np.flatnonzero(np.isin(run.events["event"][:until], codes))[-1:]
    if not len(last) or run.events["event"][last[0]] != EVENT["refuse"]:
        return None
    event = run.event(int(last[0]))
    names = ("iteration", "blocks_needed", "blocks_free", "tokens", "tokens_free")
    return Refusal(event["request"], REASONS[event["reason"]], *(event[name] for name in names))


def grouped(acts: list[Act]) -> list[Act]:
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


def side(run: EngineRun, iteration: int, acts: tuple[Act, ...]) -> Side:
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
