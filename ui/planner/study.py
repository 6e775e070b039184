"""A check of a plan beside the page, on the server's workers.

It leaves a :class:`validation.planner_check.Found` after each deployment.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from model.errors import LabError
from model.scenario import Scenario
from model.workers import shared
from ui import background
from ui.background import Job
from validation.planner import Plan, deployment
from validation.planner_check import SEEDS, Found, check
from validation.planner_split import Split, split_deployment

__all__ = ["Study", "start"]


@dataclass(eq=False)
class Study:
    """What is checked; ``split_error`` is why pools cannot be simulated."""

    scenario: Scenario
    plan: Plan
    split: Split | None
    split_error: LabError | None = None
    job: Job = field(init=False, repr=False)

    @property
    def found(self) -> Found | None:
        """What is known so far."""
        return self.job.found

    @property
    def running(self) -> bool:
        return self.job.running

    @property
    def ended(self) -> threading.Event:
        return self.job.ended

    @property
    def failed(self) -> bool:
        return self.job.failed or self.job.error is not None

    def is_of(self, scenario: Scenario, plan: Plan) -> bool:
        """Whether it checks this plan."""
        return self.scenario == scenario and self.plan == plan

    def cancel(self) -> None:
        """Ask it to end; what is done is kept."""
        self.job.cancel()


def start(scenario: Scenario, plan: Plan, split: Split | None) -> Study:
    """Begin to simulate a plan, and the pools beside it where there are any."""
    study = Study(scenario, plan, split)

    def work(job: Job) -> None:
        steps = check(
            lambda engines: deployment(scenario, plan, engines),
            plan.engines,
            _pools(study),
            plan.stay_s,
            executor=shared(),
            cancelled=job.cancelled,
        )
        for found in steps:
            job.found = found
            job.progress(found.runs, found.runs + len(SEEDS))  # nobody knows how many it takes

    study.job = background.start(plan, work)
    return study


def _pools(study: Study) -> Scenario | None:
    if study.split is None:
        return None
    try:
        return split_deployment(study.scenario, study.split)
    except LabError as error:
        study.split_error = error
        return None
