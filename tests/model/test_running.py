"""Calls on an executor: few at once, cancelled in between, and made again when a process dies."""

import os
import signal
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import pytest

from model.running import answers
from model.workers import Workers


class Slow:
    """An executor whose calls answer when asked to; counts how many it was given."""

    def __init__(self):
        self.given: list[tuple[Future, tuple]] = []

    def submit(self, function, *arguments):
        future = Future()
        self.given.append((future, (function, *arguments)))
        return future

    def answer(self):
        for future, (function, *arguments) in self.given:
            if not future.done():
                future.set_result(function(*arguments))


def squares(n):
    return [(i, (pow, i, 2)) for i in range(n)]


def test_without_an_executor_calls_are_made_in_order():
    assert list(answers(squares(5))) == [(i, i * i) for i in range(5)]


def test_few_calls_are_handed_over_at_once_and_those_not_begun_are_taken_back():
    executor, asked = Slow(), []

    def cancelled():
        asked.append(True)
        if len(asked) == 2:  # the first time nothing has been handed over
            assert len(executor.given) == 4
            executor.answer()
        return len(asked) > 3

    found = dict(answers(squares(20), executor, cancelled))
    assert found == {i: i * i for i in range(4)}
    assert [future.cancelled() for future, _ in executor.given] == [False] * 4 + [True] * 4


def die_once(mark):
    """Kill the process that runs this, as an operating system without memory does."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def pool():
    with Workers() as pool:
        yield pool


def test_what_a_killed_process_was_doing_is_done_again(pool, tmp_path):
    calls = [("killed", (die_once, str(tmp_path / "mark"))), *squares(6)]
    assert dict(answers(calls, pool)) == {"killed": "done", **{i: i * i for i in range(6)}}


def test_a_call_that_kills_its_process_twice_is_given_up_and_others_go_on(pool):
    with pytest.raises(BrokenExecutor):
        list(answers([("killer", (die,))], pool))
    assert dict(answers(squares(3), pool)) == {i: i * i for i in range(3)}
    assert pool.in_processes
