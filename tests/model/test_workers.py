"""Worker processes: bounded, without the script that started them, and threads in their place."""

import os
import subprocess
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from model import workers
from model.workers import MOST_WORKERS, Workers

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
print("script read")
import sys, threading, types
from model.workers import shared
script = sys.modules["__main__"]
def other_sessions():  # which put their own script there while workers start
    while True:
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.modules["__main__"].__file__ = script.__file__
threading.Thread(target=other_sessions, daemon=True).start()
pool = shared()
found = {pool.submit(__import__("os").getpid).result() for _ in range(20)}
print(pool.in_processes, len(found) <= 2, __import__("os").getpid() in found)
"""


@pytest.fixture
def pool():
    with Workers() as pool:
        yield pool


def test_work_is_done_by_few_other_processes(pool):
    assert pool.in_processes
    found = {future.result() for future in [pool.submit(os.getpid) for _ in range(30)]}
    assert 1 <= len(found) <= MOST_WORKERS
    assert os.getpid() not in found


def test_the_model_is_there_before_the_first_task(pool):
    assert pool.submit(eval, "'model.goodput' in __import__('sys').modules").result()


def test_a_worker_does_not_run_the_script_that_started_it(tmp_path):
    """Under Streamlit the main module is the page; each worker would run the app."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.splitlines() == ["script read", "True True False"]


def test_threads_where_no_process_can_be_started(monkeypatch):
    def refused(size):
        raise PermissionError("not here")

    monkeypatch.setattr(workers, "_processes", refused)
    with Workers() as pool:
        assert pool.submit(os.getpid).result() == os.getpid()
        assert not pool.in_processes


def test_new_processes_when_one_has_died(pool):
    with pytest.raises(BrokenProcessPool):
        pool.submit(os._exit, 1).result()
    assert pool.submit(os.getpid).result() != os.getpid()
    assert pool.in_processes


def test_threads_if_asked_for():
    with Workers(processes=False) as pool:
        name = pool.submit(lambda: threading.current_thread().name).result()
        assert name.startswith("worker")
