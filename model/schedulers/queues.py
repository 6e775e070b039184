"""The kinds of waiting queue: first come first served, by priority, and sorted only at times."""

from __future__ import annotations

import heapq
from bisect import insort_right
from collections import OrderedDict
from collections.abc import Callable, Iterator


class FcfsQueue(OrderedDict):
    """Requests in order of arrival, a preempted one in front; everything in constant time."""

    def head(self) -> int:
        """The next request; StopIteration when empty."""
        return next(iter(self))

    def push(self, request: int) -> None:
        """Add a new arrival at the tail."""
        self[request] = None

    def push_back_preempted(self, request: int) -> None:
        """Put a preempted request in front of everybody."""
        self[request] = None
        self.move_to_end(request, last=False)

    def take(self) -> int:
        """Remove and return the head."""
        return self.popitem(last=False)[0]

    def remove(self, request: int) -> None:
        """Remove a request from anywhere; KeyError when it is not there."""
        del self[request]


class LateSortedQueue(list):
    """V0's priority queue: arrivals stand unsorted at the tail until somebody sorts the queue."""

    def __init__(self, rank: Callable[[int], tuple]) -> None:
        super().__init__()
        self._rank = rank
        self._unsorted_tail = 0
        self._unsorted_front = False

    def head(self) -> int:
        """The next request; IndexError when empty."""
        return self[0]

    def push(self, request: int) -> None:
        """Add a new arrival at the tail."""
        self.append(request)
        self._unsorted_tail += 1

    def push_back_preempted(self, request: int) -> None:
        """Put a preempted request in front of everybody."""
        self.insert(0, request)
        self._unsorted_front = True

    def take(self) -> int:
        """Remove and return the head."""
        self._unsorted_tail = min(self._unsorted_tail, len(self) - 1)
        return self.pop(0)

    def remove(self, request: int) -> None:
        """Remove a request from anywhere; ValueError when it is not there."""
        super().remove(request)
        self._unsorted_front = True

    def sort_by_rank(self) -> bool:
        """Sort by rank, equal ranks in their order; False if everything stood in order already.

        Arrivals are put where they belong one by one, so that a long queue is not sorted for each.
        """
        before = self[0] if self else None
        if self._unsorted_front:
            self.sort(key=self._rank)
        elif self._unsorted_tail:
            arrivals = self[len(self) - self._unsorted_tail :]
            del self[len(self) - self._unsorted_tail :]
            for request in arrivals:
                insort_right(self, request, key=self._rank)
        changed = self._unsorted_front or self._unsorted_tail > 0
        self._unsorted_front, self._unsorted_tail = False, 0
        return changed and before != self[0]


class PriorityQueue:
    """Requests by ``rank`` (smaller first); a preempted one returns to its rank."""

    __slots__ = ("_heap", "_rank", "_waiting")

    def __init__(self, rank: Callable[[int], tuple]) -> None:
        self._rank = rank
        self._waiting: set[int] = set()
        self._heap: list[tuple[tuple, int]] = []  # may hold requests that have been removed

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._waiting, key=self._rank))

    def head(self) -> int:
        """The next request; IndexError when empty."""
        while self._heap[0][1] not in self._waiting:
            heapq.heappop(self._heap)
        return self._heap[0][1]

    def push(self, request: int) -> None:
        """Add a request at its rank."""
        self._waiting.add(request)
        heapq.heappush(self._heap, (self._rank(request), request))

    push_back_preempted = push

    def take(self) -> int:
        """Remove and return the head."""
        head = self.head()
        heapq.heappop(self._heap)
        self._waiting.remove(head)
        return head

    def remove(self, request: int) -> None:
        """Remove a request from anywhere; KeyError when it is not there."""
        self._waiting.remove(request)


class PatientQueue(PriorityQueue):
    """A priority queue in which who has waited for `patience_s` goes first, first come first.

    ``rank`` has the arrival second. Whoever looks at the queue sets ``now_s`` before.
    """

    __slots__ = ("_arrivals", "_patience_s", "now_s")

    def __init__(self, rank: Callable[[int], tuple], patience_s: float) -> None:
        super().__init__(rank)
        self._patience_s = patience_s
        self._arrivals: list[tuple[float, int]] = []  # heap, may hold removed requests
        self.now_s = 0.0

    def head(self) -> int:
        """The longest waiting if it is out of patience, else the best; IndexError when empty."""
        first = self.first_come()
        return first if self.patient_until_s(first) <= self.now_s else super().head()

    def first_come(self) -> int:
        """The request that waits longest; IndexError when empty."""
        while self._arrivals[0][1] not in self._waiting:
            heapq.heappop(self._arrivals)
        return self._arrivals[0][1]

    def patient_until_s(self, request: int) -> float:
        """From when on a request goes before the order."""
        return self._rank(request)[1] + self._patience_s

    def push(self, request: int) -> None:
        """Add a request at its rank."""
        super().push(request)
        heapq.heappush(self._arrivals, (self._rank(request)[1], request))

    push_back_preempted = push

    def take(self) -> int:
        """Remove and return the head."""
        head = self.head()
        self._waiting.remove(head)
        return head
