"""A sweep in a thread of its own: it says how far it is, and ends when asked to.

The thread knows no session: it gets a scenario and its requests, and leaves a
:class:`model.experiment.Sweep`. What had finished when it was cancelled is kept.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from model.errors import LabError
from model.experiment import Sweep, sweep
from model.metrics import METRICS
from model.requests import Requests
from model.scenario import Scenario

__all__ = ["Job", "Plan", "start"]

AT_ONCE = 2
"""Sweeps of all learners that run at the same time; the others wait for their turn."""

_turn = threading.BoundedSemaphore(AT_ONCE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for."""

    scenario: Scenario
    parameter: str
    values: tuple
    seeds: tuple[int, ...]


@dataclass(eq=False)
class Job:
    """A sweep that runs, waits for its turn, or has ended (with ``found`` or ``error``)."""

    plan: Plan
    done: int = 0
    planned: int = 0
    waiting: bool = True
    found: Sweep | None = None
    error: LabError | None = None
    failed: bool = False
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def cancel(self) -> None:
        """Ask it to end after the run it is at."""
        self.stop.set()

    def _progress(self, done: int, planned: int) -> None:
        self.done, self.planned = done, planned


def start(plan: Plan, requests: Requests | None) -> Job:
    """Begin; ``requests`` are those of a trace, None where the scenario generates them."""
    job = Job(plan, planned=len(plan.values) * len(plan.seeds))
    threading.Thread(target=_work, args=(job, requests), name="sweep", daemon=True).start()
    return job


def _work(job: Job, requests: Requests | None) -> None:
    try:
        while not _turn.acquire(timeout=0.1):
            if job.stop.is_set():
                return
        try:
            job.waiting = False
            job.found = sweep(
                job.plan.scenario,
                job.plan.parameter,
                job.plan.values,
                tuple(METRICS),
                job.plan.seeds,
                requests=requests,
                on_progress=job._progress,
                cancelled=job.stop.is_set,
            )
        finally:
            _turn.release()
    except LabError as error:
        job.error = error
    except Exception:  # a thread that dies in silence would leave a bar that never moves
        _log.exception("sweep of %s", job.plan.parameter)
        job.failed = True
    finally:
        job.ended.set()
