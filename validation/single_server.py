"""One server that takes jobs by arrival, by size, or by what is left of them.

First come first served needs no loop (:mod:`validation.lindley`). By size the server picks the
smallest waiting job when it becomes free and never interrupts it; by remaining time a smaller
newcomer interrupts. Sizes may be guessed: the order then follows the guess, the time the truth.

Public: :func:`times_in_system_s`, :data:`ORDERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from types import MappingProxyType

import numpy as np

from validation.lindley import waits_s

__all__ = ["ORDERS", "times_in_system_s"]


def times_in_system_s(
    order: str,
    arrival_s: np.ndarray,
    service_s: np.ndarray,
    guess_s: np.ndarray | None = None,
) -> np.ndarray:
    """Seconds from each job's arrival (ascending) to its end, under one of :data:`ORDERS`.

    ``guess_s``: what the server takes the sizes for (None: it knows them).
    """
    guess_s = service_s if guess_s is None else guess_s
    return ORDERS[order](arrival_s, service_s, guess_s)


def _by_arrival(arrival_s, service_s, guess_s) -> np.ndarray:
    return waits_s(np.diff(arrival_s), service_s) + service_s


def _by_size(arrival_s, service_s, guess_s) -> np.ndarray:
    arrival, service, guess = arrival_s.tolist(), service_s.tolist(), guess_s.tolist()
    n, joined, clock = len(arrival), 0, 0.0
    waiting: list[tuple[float, int]] = []
    end = [0.0] * n
    for _ in range(n):
        if not waiting and arrival[joined] > clock:
            clock = arrival[joined]
        while joined < n and arrival[joined] <= clock:
            heappush(waiting, (guess[joined], joined))
            joined += 1
        job = heappop(waiting)[1]
        clock += service[job]
        end[job] = clock
    return np.array(end) - arrival_s


def _by_remaining(arrival_s, service_s, guess_s) -> np.ndarray:
    arrival, left, guess = arrival_s.tolist(), service_s.tolist(), guess_s.tolist()
    n, clock = len(arrival), 0.0
    waiting: list[tuple[float, int]] = []
    end = [0.0] * n

    def run_until(limit: float) -> None:
        """Serve from the clock on, up to the next arrival."""
        nonlocal clock
        while waiting and clock < limit:
            guessed, job = heappop(waiting)
            spare = limit - clock
            if left[job] <= spare:
                clock += left[job]
                end[job] = clock
            else:
                left[job] -= spare
                heappush(waiting, (guessed - spare, job))
                clock = limit
        clock = max(clock, limit)

    for job in range(n):
        run_until(arrival[job])
        heappush(waiting, (guess[job], job))
    while waiting:
        job = heappop(waiting)[1]
        clock += left[job]
        end[job] = clock
    return np.array(end) - arrival_s


ORDERS: Mapping[str, Callable[..., np.ndarray]] = MappingProxyType(
    {"fcfs": _by_arrival, "sjf": _by_size, "srpt": _by_remaining}
)
"""First come first served, shortest job first, shortest remaining time first."""
