"""A frontier of goodput beside the page, on the server's workers.

It leaves a :class:`model.goodput.Frontier` after each run.
"""

from __future__ import annotations

from collections.abc import Mapping

from model.goodput import FULL, ROUGH, Effort, frontier
from model.scenario import Scenario
from model.workers import shared
from ui import background
from ui.background import Job

__all__ = ["start"]


def start(scenarios: Mapping[str, Scenario], effort: Effort = FULL, rough: Effort = ROUGH) -> Job:
    """Begin to measure these scenarios; they are the plan of the job."""
    plan = dict(scenarios)

    def work(job: Job) -> None:
        steps = frontier(
            plan,
            effort=effort,
            rough=rough,
            executor=shared(),
            on_progress=job.progress,
            cancelled=job.cancelled,
        )
        for found in steps:
            job.found = found

    return background.start(plan, work)
