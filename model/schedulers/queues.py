"""The two kinds of waiting queue: first come first served, and by priority."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator


class FcfsQueue(deque):
    """Requests in order of arrival; a preempted one goes back to the front."""

    def head(self) -> int:
        """The next request; IndexError when empty."""
        return self[0]

    def push(self, request: int) -> None:
        """Add a new arrival at the tail."""
        self.append(request)

    def push_back_preempted(self, request: int) -> None:
        """Put a preempted request in front of everybody."""
        self.appendleft(request)

    def take(self) -> int:
        """Remove and return the head."""
        return self.popleft()


class PriorityQueue:
    """Requests by ``rank`` (smaller first); a preempted one returns to its rank."""

    __slots__ = ("_heap", "_rank")

    def __init__(self, rank: Callable[[int], tuple]) -> None:
        self._rank = rank
        self._heap: list[tuple[tuple, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[int]:
        return (request for _, request in sorted(self._heap))

    def head(self) -> int:
        """The next request; IndexError when empty."""
        return self._heap[0][1]

    def push(self, request: int) -> None:
        """Add a request at its rank."""
        heapq.heappush(self._heap, (self._rank(request), request))

    push_back_preempted = push

    def take(self) -> int:
        """Remove and return the head."""
        return heapq.heappop(self._heap)[1]

    def remove(self, request: int) -> None:
        """Remove a request from anywhere; ValueError when it is not there."""
        self._heap.remove((self._rank(request), request))
        heapq.heapify(self._heap)
