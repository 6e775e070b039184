"""Requests as columns: what the simulator is fed, whether generated or read from a trace."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from model.errors import LabError

LARGEST_TOKENS = 10_000_000
"""No prompt or answer is longer; keeps sums of tokens far from the end of an int64."""

MOST_RETRIES = 100
"""Times that a client tries again at most."""

LABEL = re.compile(r"[\w.][\w.#/+ -]{0,63}|-\d{1,18}")
"""Names of classes: what a spreadsheet never takes for a formula."""

REQUEST_ID = re.compile(r"[\w.][\w.#/+-]{0,63}|-\d{1,18}")
"""Names of requests: as above, and without spaces, which separate them in exports."""

_INTEGER_COLUMNS = {  # column: (default, lowest, highest)
    "prompt_tokens": (None, 1, LARGEST_TOKENS),
    "output_tokens": (None, 1, LARGEST_TOKENS),
    "priority": (0, -(10**9), 10**9),
    "prefix_group": (-1, -1, 10**15),
    "shared_prefix_tokens": (0, 0, LARGEST_TOKENS),
    "request_class": (0, 0, 10**6),
    "follows": (-1, -1, 10**9),
    "retries": (0, 0, MOST_RETRIES),
}
_OPTIONAL_TIMES = {  # column: (lowest, highest)
    "think_s": (0.0, 10**10),
    "patience_s": (0.0, math.inf),
    "retry_after_s": (0.0, 10**10),
    "retry_factor": (1.0, 100.0),
}
_LATEST_S = 10**10
"""Three centuries: later times are faults, and float64 seconds still resolve 2 microseconds."""


@dataclass(frozen=True, eq=False)
class Requests:
    """Columns of equal length, one row a request, sorted stably by ``arrival_s`` (read-only).

    ========================  =====  ============================================================
    column                    dtype  meaning
    ========================  =====  ============================================================
    ``arrival_s``             f8     seconds; nan where another's end releases the request
    ``prompt_tokens``         i8     tokens, 1 or more
    ``output_tokens``         i8     tokens, 1 or more (the first comes with the prefill)
    ``priority``              i8     smaller is more important
    ``cancel_s``              f8     absolute time at which the client gives up, inf: never
    ``prefix_group``          i8     two requests of a group have identical prompts in their
                                     first min(a, b) shared tokens; -1: none
    ``shared_prefix_tokens``  i8     tokens, at most ``prompt_tokens``
    ``request_class``         i8     index into ``class_names``
    ========================  =====  ============================================================

    ``hash_ids`` (Mooncake) names the content of each block of ``hash_block_tokens`` prompt tokens;
    requests with equal leading ids share that prefix.

    Closed loop: ``users`` rows have an arrival time; when any request ends at time x, the next row
    not yet released, say i, arrives at ``x + think_s[i]``.

    Conversations: ``follows[i]`` is the row of the request whose end releases row i (-1: none), and
    no request is followed by two. When it has got all its tokens at time x, row i arrives at
    ``x + think_s[i]`` and its client waits for ``patience_s[i]`` seconds from then on; when it was
    refused or its client gave up, the conversation is over and row i never arrives. A prompt at
    least as long as the followed prompt and answer together begins with both.

    Retries: a request that is refused, but not for good, comes again up to ``retries[i]`` times,
    first after ``retry_after_s[i]`` seconds and then after ``retry_factor[i]`` times as long each.
    """

    arrival_s: np.ndarray
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    priority: np.ndarray
    cancel_s: np.ndarray
    prefix_group: np.ndarray
    shared_prefix_tokens: np.ndarray
    request_class: np.ndarray
    class_names: tuple[str, ...]
    request_id: tuple[str, ...]
    hash_ids: tuple[tuple[int, ...], ...] | None = None
    hash_block_tokens: int = 512
    users: int | None = None
    think_s: np.ndarray | None = None
    follows: np.ndarray | None = None
    patience_s: np.ndarray | None = None
    retries: np.ndarray | None = None
    retry_after_s: np.ndarray | None = None
    retry_factor: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.arrival_s)

    @classmethod
    def from_columns(
        cls,
        *,
        arrival_s,
        prompt_tokens,
        output_tokens,
        priority=None,
        cancel_s=None,
        prefix_group=None,
        shared_prefix_tokens=None,
        request_class=None,
        class_names: Sequence[str] = ("all",),
        request_id: Sequence[str] | None = None,
        hash_ids: Sequence[Sequence[int]] | None = None,
        hash_block_tokens: int = 512,
        users: int | None = None,
        think_s=None,
        follows=None,
        patience_s=None,
        retries=None,
        retry_after_s=None,
        retry_factor=None,
    ) -> Requests:
        """Fill in defaults, check every row, sort stably by arrival.

        ``follows`` counts rows from 0 as given here; those that follow another come last.
        Raises LabError naming the row (counted from 1, as given) and the column.
        Labels default to "0", "1", ... in the order of arrival.
        """
        given = {
            "prompt_tokens": prompt_tokens,
            "output_tokens": output_tokens,
            "priority": priority,
            "prefix_group": prefix_group,
            "shared_prefix_tokens": shared_prefix_tokens,
            "request_class": request_class,
        }
        arrival = _times("arrival_s", arrival_s)
        n = len(arrival)
        columns: dict[str, np.ndarray] = {"arrival_s": arrival}
        for column, values in given.items():
            columns[column] = _integers(column, values, n)
        columns["cancel_s"] = (
            np.full(n, np.inf) if cancel_s is None else _times("cancel_s", cancel_s)
        )
        optional = {"follows": follows, "retries": retries}
        for column, values in optional.items():
            if values is not None:
                columns[column] = _integers(column, values, n)
        times = (think_s, patience_s, retry_after_s, retry_factor)
        for column, values in zip(_OPTIONAL_TIMES, times, strict=True):
            if values is not None:
                columns[column] = _times(column, values)
        labels = None if request_id is None else [str(label) for label in request_id]
        lengths = {name: len(values) for name, values in columns.items()}
        lengths |= {"request_id": n if labels is None else len(labels)}
        lengths |= {"hash_ids": n if hash_ids is None else len(hash_ids)}
        for column, rows in lengths.items():
            if rows != n:
                raise LabError("columns_differ", column=column, rows=rows, expected=n)
        _check(columns, users, len(class_names))

        order = np.argsort(arrival, kind="stable")  # nan (closed loop) goes last
        if "follows" in columns:
            columns["follows"] = _renumbered(columns["follows"], order)
        sorted_columns = {name: values[order] for name, values in columns.items()}
        for values in sorted_columns.values():
            values.setflags(write=False)
        return cls(
            **sorted_columns,
            class_names=tuple(class_names),
            request_id=tuple(map(str, range(n)))
            if labels is None
            else tuple(labels[row] for row in order),
            hash_ids=None if hash_ids is None else tuple(tuple(hash_ids[row]) for row in order),
            hash_block_tokens=hash_block_tokens,
            users=users,
        )

    def take(self, rows: np.ndarray) -> Requests:
        """Requests of the given rows (indices or mask), for example one class or one engine."""
        picked = np.arange(len(self))[rows]
        columns = {
            field.name: getattr(self, field.name)[picked]
            for field in fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        if self.follows is not None:
            columns["follows"] = _renumbered(self.follows, picked)[picked]
        return Requests.from_columns(
            **columns,
            class_names=self.class_names,
            request_id=[self.request_id[row] for row in picked],
            hash_ids=None if self.hash_ids is None else [self.hash_ids[row] for row in picked],
            hash_block_tokens=self.hash_block_tokens,
            users=self.users,
        )


def _times(column: str, values) -> np.ndarray:
    return np.array(values, dtype=np.float64).reshape(-1)


def _integers(column: str, values, n: int) -> np.ndarray:
    default = _INTEGER_COLUMNS[column][0]
    if values is None:
        return np.full(n, default, dtype=np.int64)
    raw = np.array(values).reshape(-1)
    if (raw.dtype.kind in "iu" and raw.dtype.itemsize < 8) or raw.dtype == np.int64 or not len(raw):
        return raw.astype(np.int64)
    try:
        numbers = raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):  # text, None, or integers beyond float64
        numbers = np.array([_float(value) for value in raw])
    _, low, high = _INTEGER_COLUMNS[column]
    wrong = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
    _refuse("request_out_of_range", column, numbers, wrong, low=low, high=high)
    return numbers.astype(np.int64)


def _float(value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _check(columns: dict[str, np.ndarray], users: int | None, n_classes: int) -> None:
    arrival = columns["arrival_s"]
    timely = (arrival >= 0) & (arrival <= _LATEST_S)
    if users is None:
        follows = columns.get("follows", np.full(len(arrival), -1))
        wrong = ~timely & (follows < 0)
        _refuse("request_out_of_range", "arrival_s", arrival, wrong, low=0, high=_LATEST_S)
        _check_follows(follows, arrival)
    else:
        _refuse_all_follows(columns)
        released = np.arange(len(arrival)) >= users
        wrong = np.where(released, ~np.isnan(arrival), ~timely)
        _refuse("closed_loop_arrivals", "arrival_s", arrival, wrong, users=users)
    for column, (_, low, high) in _INTEGER_COLUMNS.items():
        if column not in columns:
            continue
        values = columns[column]
        wrong = (values < low) | (values > high)
        _refuse("request_out_of_range", column, values, wrong, low=low, high=high)
    shared, prompt = columns["shared_prefix_tokens"], columns["prompt_tokens"]
    _refuse("prefix_longer_than_prompt", "shared_prefix_tokens", shared, shared > prompt)
    classes = columns["request_class"]
    _refuse("unknown_class", "request_class", classes, classes >= n_classes, classes=n_classes)
    cancel = columns["cancel_s"]
    wrong = np.isnan(cancel) | (cancel < arrival)
    _refuse("cancel_before_arrival", "cancel_s", cancel, wrong)
    for column, (low, high) in _OPTIONAL_TIMES.items():
        if column in columns:
            values = columns[column]
            wrong = ~((values >= low) & (values <= high))
            _refuse("request_out_of_range", column, values, wrong, low=low, high=high)


def _check_follows(follows: np.ndarray, arrival: np.ndarray) -> None:
    """Refuse circles, forks, and followers that say when they arrive."""
    follower = follows >= 0
    if not follower.any():
        return
    rows = np.arange(len(follows))
    known = np.isfinite(arrival)
    wrong = follower & (known | (follows >= len(follows)))
    _refuse("follows_wrong", "follows", follows, wrong)
    later = follower & ~known[follows] & (follows >= rows)
    _refuse("follows_wrong", "follows", follows, later)
    first = np.zeros(len(follows), dtype=bool)
    first[np.unique(np.where(follower, follows, -1), return_index=True)[1]] = True
    _refuse("follows_wrong", "follows", follows, follower & ~first)


def _refuse_all_follows(columns: dict[str, np.ndarray]) -> None:
    if "follows" in columns:
        follows = columns["follows"]
        _refuse("follows_wrong", "follows", follows, follows >= 0)


def _renumbered(follows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows that are followed, counted in a new order; -1 for rows that are not part of it."""
    place = np.full(len(follows), -1)
    place[order] = np.arange(len(order))
    return np.where(follows >= 0, place[follows], -1)


def _refuse(code: str, column: str, values: np.ndarray, wrong: np.ndarray, **limits) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise LabError(code, row=row + 1, column=column, value=values[row].item(), **limits)
