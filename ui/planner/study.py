"""A check of a plan in a thread of its own: it shows what it has, and ends when asked to.

The thread knows no session: it gets a plan, hands runs to the server's shared workers, and leaves a
:class:`validation.planner_check.Found` after each deployment.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from model.errors import LabError
from model.scenario import Scenario
from model.workers import shared
from validation.planner import Plan, deployment
from validation.planner_check import Found, check
from validation.planner_split import Split, split_deployment

__all__ = ["Study", "start"]

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Study:
    """A check that runs, or has ended (with ``found`` or ``failed``); ``split_error`` is why pools
    cannot be simulated."""

    scenario: Scenario
    plan: Plan
    split: Split | None
    found: Found | None = None
    split_error: LabError | None = None
    failed: bool = False
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def is_of(self, scenario: Scenario, plan: Plan) -> bool:
        """Whether it checks this plan."""
        return self.scenario == scenario and self.plan == plan

    def cancel(self) -> None:
        """Ask it to end; what is done is kept."""
        self.stop.set()


def start(scenario: Scenario, plan: Plan, split: Split | None) -> Study:
    """Begin to simulate a plan, and the pools beside it where there are any."""
    study = Study(scenario, plan, split)
    threading.Thread(target=_work, args=(study,), name="planner", daemon=True).start()
    return study


def _work(study: Study) -> None:
    scenario, plan = study.scenario, study.plan
    try:
        steps = check(
            lambda engines: deployment(scenario, plan, engines),
            plan.engines,
            _pools(study),
            plan.stay_s,
            executor=shared(),
            cancelled=study.stop.is_set,
        )
        for found in steps:
            study.found = found
    except Exception:  # a thread that dies in silence would leave a bar that never moves
        _log.exception("planner")
        study.failed = True
    finally:
        study.ended.set()


def _pools(study: Study) -> Scenario | None:
    if study.split is None:
        return None
    try:
        return split_deployment(study.scenario, study.split)
    except LabError as error:
        study.split_error = error
        return None
