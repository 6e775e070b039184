"""A sweep beside the page, on the server's workers.

It leaves a :class:`model.experiment.Sweep`. What had finished when it was cancelled is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from model.experiment import sweep
from model.metrics import METRICS
from model.requests import Requests
from model.scenario import Scenario
from model.workers import shared
from ui import background
from ui.background import Job

__all__ = ["Plan", "start"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for."""

    scenario: Scenario
    parameter: str
    values: tuple
    seeds: tuple[int, ...]


def start(plan: Plan, requests: Requests | None) -> Job:
    """Begin; ``requests`` are those of a trace, None where the scenario generates them."""

    def work(job: Job) -> None:
        job.found = sweep(
            plan.scenario,
            plan.parameter,
            plan.values,
            tuple(METRICS),
            plan.seeds,
            requests=requests,
            executor=shared(),
            on_progress=job.progress,
            cancelled=job.cancelled,
        )

    return background.start(plan, work, len(plan.values) * len(plan.seeds))
