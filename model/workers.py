"""Worker processes for simulations: one small pool for a whole server, however many learners.

Workers are started once, with what they need imported, and stay. Where processes cannot be started
the same work is done by threads: slower, because they share one interpreter, but the same.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import spawn

__all__ = ["MOST_WORKERS", "Workers", "shared"]

MOST_WORKERS = 2
_START_S = 60.0
_log = logging.getLogger(__name__)


class Workers(Executor):
    """An executor that starts when it is first used, and never more than ``MOST_WORKERS`` at once.

    ``processes=False`` asks for threads. Functions and arguments must be picklable either way.
    A pool of which a process has died is replaced by a new one, for the work that comes after;
    what it was doing is lost (:func:`model.running.answers` asks for it once more).
    """

    def __init__(self, processes: bool = True) -> None:
        self._wanted = processes
        self._lock = threading.Lock()
        self._pool: Executor | None = None

    @property
    def size(self) -> int:
        """How many simulations run at the same time."""
        return max(1, min(MOST_WORKERS, os.cpu_count() or 1))

    @property
    def in_processes(self) -> bool:
        """Whether work goes to processes (starts them if nothing has yet)."""
        return isinstance(self._running(), ProcessPoolExecutor)

    def warm_up(self) -> None:
        """Start now what the first task would wait for."""
        self._running()

    def submit(self, function, /, *args, **kwargs) -> Future:
        pool = self._running()
        try:
            with _without_script():  # a pool may start its processes one task after the other
                return pool.submit(function, *args, **kwargs)
        except BrokenProcessPool:
            _log.warning("a worker process has died; new ones are started")
            self._discard(pool)
            with _without_script():
                return self._running().submit(function, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait, cancel_futures=cancel_futures)

    def _running(self) -> Executor:
        with self._lock:
            if self._pool is None:
                self._pool = self._start()
            return self._pool

    def _discard(self, broken: Executor) -> None:
        """Let go of this pool, unless another thread has done so already."""
        with self._lock:
            if self._pool is broken:
                self._pool = None

    def _start(self) -> Executor:
        if self._wanted:
            try:
                return _processes(self.size)
            except (OSError, RuntimeError, ImportError, ValueError, TimeoutError) as error:
                _log.warning("no worker processes (%s); threads do their work", error)
        return ThreadPoolExecutor(self.size, "worker")


_SHARED = Workers()


def shared() -> Workers:
    """The workers of this server process."""
    return _SHARED


def _processes(size: int) -> ProcessPoolExecutor:
    """A pool whose processes have all started. Raises where that is not possible."""
    _leave_out_script()
    context = multiprocessing.get_context(_start_method())
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["model.goodput"])
    pool = ProcessPoolExecutor(size, mp_context=context, initializer=_initialize)
    try:
        with _without_script():
            barrier = [pool.submit(_ready) for _ in range(size)]
        for future in barrier:
            future.result(timeout=_START_S)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return pool


def _start_method() -> str:
    """Never fork: the server has threads, whose locks a forked child would inherit as they are."""
    known = multiprocessing.get_all_start_methods()
    return "forkserver" if "forkserver" in known else "spawn"


class _Starting(threading.local):
    """Whether this thread is starting workers."""

    workers = False


_starting = _Starting()


@contextmanager
def _without_script() -> Iterator[None]:
    """Processes that this thread starts do not import the main module.

    Under Streamlit it is the script of the page, and a worker would run the whole app. Hiding
    ``sys.modules["__main__"]`` would not do, because other sessions set it at any time.
    """
    _starting.workers = True
    try:
        yield
    finally:
        _starting.workers = False


def _leave_out_script() -> None:
    """Let multiprocessing tell workers nothing of the main module (done once)."""
    tell = spawn.get_preparation_data
    if getattr(tell, "leaves_out_script", False):
        return

    def preparation(name: str) -> dict:
        told = tell(name)
        if _starting.workers:
            told = {key: value for key, value in told.items() if not key.startswith("init_main")}
        return told

    preparation.leaves_out_script = True
    spawn.get_preparation_data = preparation


def _initialize() -> None:
    """In a new process: import what tasks need, and end with the server that started it."""
    import model.experiment
    import model.goodput  # noqa: F401

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent) -> None:
    parent.join()
    os._exit(0)


def _ready() -> int:
    """Work that does nothing, so that a process is started for it."""
    return os.getpid()
