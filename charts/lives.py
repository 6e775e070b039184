"""The life of single requests as segments of time: queue, prefill, decode, preemption, swap.

Built from runs (of chunks, of decodes) and from events, never token by token, so a life costs what
changed in it. Without a resolution the segments of a request tile the time from its arrival to its
end without gap or overlap; tests hold them to that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from charts.phases import recomputing_runs
from model.events import EVENT
from model.result import SimulationResult

__all__ = ["STATES", "Segments", "interesting", "lives", "waited_s", "window"]

STATES = (
    "waiting",  # in the queue, before its first iteration
    "prefill",
    "decode",
    "recompute",  # prefill after a preemption
    "paused",  # in the batch, but without a token: others were served
    "preempted",  # back in the queue
    "swapped",  # its KV is in host memory
    "handed",  # its KV waits at the prefill engine, or travels to the decode engine
)

_SAME_MOMENT_S = 1e-9
_WAITS = {
    "arrive": "waiting",
    "preempt": "preempted",
    "swap_out": "swapped",
    "hand_over": "handed",
}
_JOINS = ("admit", "resume", "swap_in", "transfer_end")
_ENDS = ("finish", "reject", "cancel")
_CODES = np.array([EVENT[name] for name in (*_WAITS, *_JOINS, *_ENDS)])


class Segments(NamedTuple):
    """``place`` is an index into the chosen rows; times in seconds."""

    place: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray

    def where(self, mask: np.ndarray) -> Segments:
        """Those that a mask, or a list of indices, chooses."""
        return Segments(*(column[mask] for column in self))

    def joined(self, *others: Segments) -> Segments:
        """These, then the others."""
        return Segments(*map(np.concatenate, zip(self, *others, strict=True)))


def lives(
    result: SimulationResult, rows: np.ndarray, resolution_s: float = 0.0
) -> dict[str, Segments]:
    """Segments of each state of the requests ``rows`` (indices of ``result.requests``).

    With a resolution, neighbors of one state that are closer than it become one segment, and
    pauses shorter than it are left out.
    """
    place = np.full(len(result.inputs), -1)
    place[rows] = np.arange(len(rows))
    outside, stays = _moves(result, place)
    chunks = _chunks(result, place)
    decode = _decodes(result, place, max(resolution_s, _SAME_MOMENT_S))
    found = {
        **outside,
        **chunks,
        "decode": decode,
        "paused": _pauses(stays, decode.joined(*chunks.values())),
    }
    found["paused"] = found["paused"].where(
        found["paused"].end_s - found["paused"].start_s > resolution_s
    )
    return {state: _merged(found[state], resolution_s) for state in STATES}


def waited_s(result: SimulationResult) -> np.ndarray:
    """Seconds that each request spent outside the batch: in the queue, preempted, swapped out."""
    n = len(result.inputs)
    outside, _ = _moves(result, np.arange(n))
    return sum(
        np.bincount(part.place, part.end_s - part.start_s, minlength=n) for part in outside.values()
    )


def interesting(result: SimulationResult, limit: int) -> np.ndarray:
    """At most ``limit`` rows worth a look, by arrival.

    Half of them are the most often preempted, the others those that waited longest; where nobody
    was preempted or waited, the first to arrive.
    """
    arrival_s, preemptions = result.requests["arrival_s"], result.requests["preemptions"]
    came = np.flatnonzero(np.isfinite(arrival_s))
    came = came[np.argsort(arrival_s[came], kind="stable")]
    waited = waited_s(result)
    by_wait = came[np.argsort(-waited[came], kind="stable")]
    by_evictions = by_wait[np.argsort(-preemptions[by_wait], kind="stable")]
    half = by_evictions[preemptions[by_evictions] > 0][: (limit + 1) // 2]
    rest = by_wait[~np.isin(by_wait, half)][: limit - len(half)]
    chosen = np.concatenate((half, rest))
    return came[np.isin(came, chosen)]


def window(
    result: SimulationResult, limit: int, *, first: int = 0, from_s: float | None = None
) -> np.ndarray:
    """``limit`` rows in the order of arrival, from the ``first`` on.

    With ``from_s`` the count begins with the first request that was still there at that time.
    """
    columns = result.requests
    came = np.flatnonzero(np.isfinite(columns["arrival_s"]))
    came = came[np.argsort(columns["arrival_s"][came], kind="stable")]
    if from_s is not None:
        gone = columns["end_s"][came] < from_s  # false where it never ended
        came = came[~gone]
    return came[first : first + limit]


# -- pieces of lives -------------------------------------------------------------------------------


def _moves(result: SimulationResult, place: np.ndarray) -> tuple[dict[str, Segments], Segments]:
    """Stretches outside the batch by state, and the stays in it."""
    events = result.events
    chosen = np.flatnonzero((place[events["request"]] >= 0) & np.isin(events["event"], _CODES))
    where = place[events["request"][chosen]]
    order = np.argsort(where, kind="stable")  # the log is in order of time
    chosen, where = chosen[order], where[order]
    code, time_s = events["event"][chosen], events["time_s"][chosen]
    last_s = max(
        float(result.iterations["end_s"].max(initial=0.0)), float(events["time_s"].max(initial=0.0))
    )
    end_s = np.full(len(where), last_s)
    same = where[1:] == where[:-1]
    end_s[:-1][same] = time_s[1:][same]
    begun = Segments(where, time_s, end_s)

    def of(*names: str) -> Segments:
        return begun.where(np.isin(code, [EVENT[name] for name in names]))

    return {state: of(name) for name, state in _WAITS.items()}, of(*_JOINS)


def _chunks(result: SimulationResult, place: np.ndarray) -> dict[str, Segments]:
    runs, iterations = result.chunks, result.iterations
    where = place[runs["request"]]
    last = runs["row"] + runs["iterations"] - 1
    every = Segments(where, iterations["start_s"][runs["row"]], iterations["end_s"][last])
    again = recomputing_runs(result)
    return {
        "prefill": every.where((where >= 0) & ~again),
        "recompute": every.where((where >= 0) & again),
    }


def _decodes(result: SimulationResult, place: np.ndarray, longest_s: float) -> Segments:
    """Runs of decodes, cut where the next token had to wait longer than ``longest_s``.

    All decodes of an engine advance together, so a run has a gap where other iterations lie
    between two of its ticks.
    """
    runs, ticks = result.decodes, result.tick_rows
    start_s, end_s = result.iterations["start_s"][ticks], result.iterations["end_s"][ticks]
    chosen = place[runs["request"]] >= 0
    where = place[runs["request"]][chosen]
    first, end = runs["first_tick"][chosen], runs["end_tick"][chosen]
    # Cut k: the run goes on at tick k after a gap.
    cuts = np.flatnonzero(start_s[1:] - end_s[:-1] > longest_s) + 1
    low, high = np.searchsorted(cuts, first, side="right"), np.searchsorted(cuts, end)
    count = np.maximum(high - low, 0)
    run = np.repeat(np.arange(len(first)), count)
    inside = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    cut = cuts[low[run] + inside]
    begins = np.concatenate((first, cut))
    stops = np.concatenate((end, cut))
    owner = np.concatenate((np.arange(len(first)), run))
    begins = begins[np.lexsort((begins, owner))]
    order = np.lexsort((stops, owner))
    return Segments(where[owner[order]], start_s[begins], end_s[stops[order] - 1])


def _pauses(stays: Segments, busy: Segments) -> Segments:
    """What is left of the stays in the batch when the busy segments are taken out."""
    n = len(stays.place)
    if not n:
        return stays
    every = stays.joined(busy)
    is_busy = np.arange(len(every.place)) >= n
    order = np.lexsort((is_busy, every.start_s, every.place))
    every, is_busy = every.where(order), is_busy[order]
    stay_end_s = every.end_s[~is_busy][np.maximum(np.cumsum(~is_busy) - 1, 0)]
    free_from_s = np.where(is_busy, every.end_s, every.start_s)
    goes_on = np.append(is_busy[1:], False)
    until_s = np.where(goes_on, np.append(every.start_s[1:], 0.0), stay_end_s)
    gaps = Segments(every.place, free_from_s, until_s)
    return gaps.where(until_s - free_from_s > _SAME_MOMENT_S)


def _merged(segments: Segments, resolution_s: float) -> Segments:
    """Segments by place and time; those closer than the resolution become one."""
    segments = segments.where(segments.end_s > segments.start_s)
    place, start_s, end_s = segments.where(np.lexsort((segments.start_s, segments.place)))
    if not len(place):
        return Segments(place, start_s, end_s)
    apart = start_s[1:] - end_s[:-1] > max(resolution_s, _SAME_MOMENT_S)
    begins = np.append(True, (place[1:] != place[:-1]) | apart)
    first = np.flatnonzero(begins)
    return Segments(place[first], start_s[first], np.maximum.reduceat(end_s, first))
