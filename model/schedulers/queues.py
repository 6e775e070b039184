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
