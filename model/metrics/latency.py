"""How long users waited (F30), and over which stretch of a run means are taken.

Functions take the ``requests`` columns of a result (one row a request; times in seconds, nan where
nothing happened) and return one value a row, nan where the word is not defined for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from model.state import FINISHED

Columns = Mapping[str, np.ndarray]


def ttft_s(requests: Columns) -> np.ndarray:
    """Time to first token: from arrival, so queueing is included, to the first output token."""
    return requests["first_token_s"] - requests["arrival_s"]


def tpot_s(requests: Columns) -> np.ndarray:
    """Time per output token after the first: (last − first)/(tokens − 1).

    Of the tokens emitted, so a cancelled request counts with what it got. Undefined (nan) for a
    request with fewer than two tokens.
    """
    gaps = requests["emitted_tokens"] - 1
    span_s = requests["last_token_s"] - requests["first_token_s"]
    return np.divide(span_s, gaps, out=np.full(len(gaps), np.nan), where=gaps > 0)


def e2e_s(requests: Columns) -> np.ndarray:
    """End to end: from arrival to the last token, of requests that finished."""
    finished = requests["status"] == FINISHED
    return np.where(finished, requests["last_token_s"] - requests["arrival_s"], np.nan)


def queue_s(requests: Columns) -> np.ndarray:
    """From arrival to the first iteration in which the request was scheduled."""
    return requests["first_scheduled_s"] - requests["arrival_s"]


def normalized_e2e_s(requests: Columns) -> np.ndarray:
    """E2E per output token, the "normalized latency" of the Orca and vLLM papers."""
    return e2e_s(requests) / requests["output_tokens"]


def itl_s(result) -> np.ndarray:
    """Inter-token latency: each single gap between two output tokens of a request."""
    return result.itl_s()[0]


def itl_counts(result) -> tuple[np.ndarray, np.ndarray]:
    """The same gaps as (seconds, how many gaps of that length), without listing each of them.

    All decodes of an iteration share its gap, so this is about as long as the list of iterations,
    where :func:`itl_s` is as long as the list of output tokens.
    """
    decodes, ends, end_s = result.decodes, result.prefill_ends, result.iterations["end_s"]
    tick_s = end_s[result.tick_rows]
    first, last = decodes["first_tick"], decodes["end_tick"] - 1
    n = len(tick_s)
    # Inside runs of decodes: how many runs contain both this tick and the next?
    change = np.bincount(first, minlength=n) - np.bincount(last, minlength=n)
    inside = np.cumsum(change)[:-1]
    # Between runs of one request; a prefill that ends emits one token and is a run of its own.
    request = np.concatenate((decodes["request"], ends["request"]))
    begin_s = np.concatenate((tick_s[first], end_s[ends["row"]]))
    close_s = np.concatenate((tick_s[last], end_s[ends["row"]]))
    order = np.lexsort((begin_s, request))
    same = request[order][1:] == request[order][:-1]
    between = (begin_s[order][1:] - close_s[order][:-1])[same]
    values = np.concatenate((np.diff(tick_s)[inside > 0], between))
    counts = np.concatenate((inside[inside > 0], np.ones(len(between), dtype=np.int64)))
    return values, counts


def percentiles(values: np.ndarray, shares: Sequence[float] = (50, 90, 99)) -> np.ndarray:
    """Percentiles (numpy's, linear between ranks) of the defined values; nan without any."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return np.full(len(shares), np.nan)
    return np.percentile(defined, shares)


def mean(values: np.ndarray) -> float:
    """Mean of the defined values; nan where there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def counted_percentiles(
    values: np.ndarray, counts: np.ndarray, shares: Sequence[float] = (50, 90, 99)
) -> np.ndarray:
    """:func:`percentiles` of a list that holds each value ``counts`` times."""
    if not len(values):
        return np.full(len(shares), np.nan)
    order = np.argsort(values)
    values, until = values[order], np.cumsum(counts[order])
    rank = (until[-1] - 1) * np.asarray(shares) / 100
    below = np.floor(rank).astype(np.int64)
    low = values[np.searchsorted(until, below, side="right")]
    high = values[np.searchsorted(until, np.minimum(below + 1, until[-1] - 1), side="right")]
    return low + (high - low) * (rank - below)


class Window(NamedTuple):
    """A stretch of a run, from ``start_s`` (excluded) to ``end_s`` (included)."""

    start_s: float
    end_s: float
    is_steady: bool

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def holds(self, times_s: np.ndarray) -> np.ndarray:
        """Which of the moments lie in the window."""
        return (times_s > self.start_s) & (times_s <= self.end_s)


def steady_window(requests: Columns, warm_up_s: float = 0.0) -> Window:
    """From the first completion after warm-up to the last arrival.

    Warm-up are the first ``warm_up_s`` seconds after the first arrival; by default it has no
    length, so that the window begins with the first completion. Before it the batch is still
    filling, after it draining. Where no completion precedes the last arrival (all requests come
    at once, or very few) there is no steady state: the window is then the whole run, from the
    first arrival to the last end, and ``is_steady`` is False.
    """
    arrival_s = requests["arrival_s"][np.isfinite(requests["arrival_s"])]
    if not len(arrival_s):
        return Window(0.0, 0.0, False)
    first_s, last_s = float(arrival_s.min()), float(arrival_s.max())
    done_s = requests["last_token_s"][requests["status"] == FINISHED]
    done_s = done_s[done_s >= first_s + warm_up_s]
    if len(done_s) and done_s.min() < last_s:
        return Window(float(done_s.min()), last_s, True)
    return whole_run(requests)


STEADY_COMPLETIONS = 10  # fewer say nothing about a steady state


def measuring_window(requests: Columns, warm_up_s: float = 0.0) -> Window:
    """The steady window, or the whole run where fewer than STEADY_COMPLETIONS end inside it.

    A rate over a window in which hardly anybody finishes would be an accident of its ends.
    """
    window = steady_window(requests, warm_up_s)
    done_s = requests["last_token_s"][requests["status"] == FINISHED]
    inside = (done_s > window.start_s) & (done_s <= window.end_s)
    return window if inside.sum() >= STEADY_COMPLETIONS else whole_run(requests)


def whole_run(requests: Columns) -> Window:
    """From the first arrival to the last end."""
    arrival_s = requests["arrival_s"][np.isfinite(requests["arrival_s"])]
    if not len(arrival_s):
        return Window(0.0, 0.0, False)
    end_s = requests["end_s"][np.isfinite(requests["end_s"])]
    first_s = float(arrival_s.min())
    return Window(first_s, float(end_s.max()) if len(end_s) else first_s, False)


def jain(values: np.ndarray) -> float:
    """Jain's fairness index (Σx)²/(n·Σx²) of the defined values: 1 is equal, 1/n one has all."""
    x = values[~np.isnan(values)]
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if (x > 0).any() else float("nan")


def class_means(values: np.ndarray, request_class: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean of the defined values of each class; nan for a class without any."""
    defined = ~np.isnan(values)
    counts = np.bincount(request_class[defined], minlength=n_classes)
    sums = np.bincount(request_class[defined], weights=values[defined], minlength=n_classes)
    return np.divide(sums, counts, out=np.full(n_classes, np.nan), where=counts > 0)


def fairness(requests: Columns) -> float:
    """Jain's index over the normalized E2E (seconds per output token) of finished requests."""
    return jain(normalized_e2e_s(requests))


def fairness_between_classes(requests: Columns) -> float:
    """Jain's index over the classes' mean normalized E2E: 1 where no class is favored."""
    classes = requests["request_class"]
    n_classes = int(classes.max()) + 1 if len(classes) else 0
    return jain(class_means(normalized_e2e_s(requests), classes, n_classes))
