"""Calls handed to an executor a few at a time, and what they answer, until somebody says stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from typing import TypeVar

__all__ = ["answers"]

_AT_ONCE = 4
"""Calls of one study in the hands of the executor, so that several learners take turns."""
_POLL_S = 0.05  # how soon a cancellation is noticed while workers run

Key = TypeVar("Key", bound=Hashable)


def answers(
    calls: Iterable[tuple[Key, tuple]],
    executor: Executor | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Key, object]]:
    """(key, answer) of each ``(key, (function, *arguments))`` as they finish, until cancelled.

    Without ``executor`` (threads, or processes: all must then be picklable) the calls are made
    here, in order. A call that was lost because a worker process died is made once more. Raises
    what a call raises, and BrokenExecutor for a call that is lost twice.
    """
    if executor is None:
        for key, (function, *arguments) in calls:
            if cancelled():
                return
            yield key, function(*arguments)
        return
    todo, again, waiting = iter(calls), deque(), {}
    lost = set()
    try:
        while not cancelled():
            while len(waiting) < _AT_ONCE:
                one = again.popleft() if again else next(todo, None)
                if one is None:
                    break
                key, call = one
                waiting[executor.submit(*call)] = one
            if not waiting:
                return
            finished, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for future in finished:
                key, call = waiting.pop(future)
                try:
                    answer = future.result()
                except BrokenExecutor:
                    if key in lost:
                        raise
                    lost.add(key)
                    again.append((key, call))
                else:
                    yield key, answer
    finally:
        for future in waiting:
            future.cancel()
