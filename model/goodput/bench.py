"""How runs are gathered: which are made in a phase, what is spared, what is known after each.

Public: :class:`Bench`, :class:`Study`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from model import checks
from model.errors import LabError
from model.goodput.records import Curve, Effort, Frontier, Point
from model.running import answers
from model.scenario import Scenario
from model.steady_load import Run, affordable, load_run, rate_of, saturation

__all__ = ["RATE_SHARES", "Bench", "Study"]

RATE_SHARES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1)
"""Of the largest limit: the arrival rates of a frontier for which none are given."""


class Task(NamedTuple):
    """A run of a study: at a rate, or saturated where there is no rate."""

    study: int
    rate_per_s: float | None
    effort: Effort
    seed: int


@dataclass(eq=False)
class Study:
    """One scenario while its points are gathered."""

    name: str
    scenario: Scenario
    share: float
    effort: Effort
    most_requests: int
    limits: dict[int, float] = field(default_factory=dict)
    runs: dict[float, dict[Effort, dict[int, Run]]] = field(default_factory=dict)
    errors: dict[float, LabError] = field(default_factory=dict)

    @property
    def limit_per_s(self) -> float:
        """The mean over the seeds so far."""
        return float(np.mean(list(self.limits.values()))) if self.limits else math.nan

    def settled(self, rate_per_s: float, effort: Effort) -> bool:
        """Whether more seeds at a rate cannot change whether it is good."""
        if rate_per_s in self.errors:
            return True
        runs = self.runs.get(rate_per_s, {}).get(effort, {})
        missing = effort.seeds - len(runs)
        if not runs or not missing:
            return not missing
        best = sum(run.slo_attainment_share for run in runs.values()) + missing
        return best / effort.seeds < self.share or rate_per_s >= self.limit_per_s

    def middle(self) -> tuple[float, ...]:
        """The rate that halves the bracket; nothing where it has no end."""
        low, high, _ = self.curve().goodput
        return ((low + high) / 2,) if math.isfinite(high) else ()

    def forget(self) -> None:
        """Leave out the points of a rough look."""
        self.runs.clear()
        self.errors.clear()

    def curve(self, mixed: bool = True) -> Curve:
        """What is known; unless ``mixed``, rough points stand until the whole curve has better."""
        better = mixed or all(self.effort in efforts for efforts in self.runs.values())
        points = []
        for rate in sorted(self.runs.keys() | self.errors.keys()):
            efforts = self.runs.get(rate, {})
            full = self.effort in efforts and (better or len(efforts) == 1)
            runs = efforts[self.effort] if full else next(iter(efforts.values()), {})
            points.append(
                Point(
                    rate,
                    tuple(runs[seed] for seed in sorted(runs)),
                    below_limit=not rate >= self.limit_per_s,
                    settled=self.settled(rate, self.effort) if full or not runs else False,
                    error=self.errors.get(rate),
                )
            )
        return Curve(self.name, self.scenario, self.share, self.limit_per_s, tuple(points))


class Bench:
    """Hands runs to the executor phase by phase, and keeps what comes back.

    Which runs a phase has depends only on the phases before it, never on which run was faster, so
    that every executor gives the same.
    """

    def __init__(
        self,
        scenarios: Mapping[str, Scenario],
        share: float,
        effort: Effort,
        executor: Executor | None,
        on_progress: Callable[[int, int], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        checks.number("share", share, 0.01, 1.0)
        for scenario in scenarios.values():
            rate_of(scenario)  # says where there is none
        self.studies = [
            Study(name, scenario, share, effort, affordable(scenario, effort.requests))
            for name, scenario in scenarios.items()
        ]
        self.planned = self.done = 0
        self.stopped = False
        self._executor = executor
        self._report = on_progress or (lambda done, planned: None)
        self._cancelled = cancelled or (lambda: False)

    def rates(self) -> list[float]:
        """RATE_SHARES of the largest limit, or of twice the rate that the scenarios have."""
        limits = [s.limit_per_s for s in self.studies if math.isfinite(s.limit_per_s)]
        top = max(limits) if limits else 2 * max(rate_of(s.scenario) for s in self.studies)
        return [top * part for part in RATE_SHARES]

    def limits(self, seeds: Iterable[int]) -> list[Task]:
        return [
            Task(i, None, study.effort, study.scenario.seed + seed)
            for seed in seeds
            for i, study in enumerate(self.studies)
        ]

    def probe(self, where: Sequence[tuple[Study, float]], effort: Effort) -> Iterator[Frontier]:
        """Points of this effort at these rates, seed by seed, leaving out what is settled."""
        for number in range(effort.seeds):
            tasks = [
                Task(self.studies.index(study), rate, effort, study.scenario.seed + number)
                for study, rate in where
                if number == 0 or not study.settled(rate, effort)
            ]
            yield from self.play(tasks)

    def play(self, tasks: Sequence[Task]) -> Iterator[Frontier]:
        """Run these; what is known after each of them."""
        for task, answer in self._answers(tasks):
            self._keep(task, answer)
            self.done += 1
            self.planned = max(self.planned, self.done)
            self._report(self.done, self.planned)
            yield self._now()

    def last(self) -> Frontier:
        if not self.stopped:
            self.planned = self.done
        return self._now(finished=True)

    def _now(self, finished: bool = False) -> Frontier:
        curves = tuple(study.curve(mixed=finished) for study in self.studies)
        return Frontier(curves, self.done, self.planned, finished, finished and self.stopped)

    def _keep(self, task: Task, answer: Run | float | LabError) -> None:
        study = self.studies[task.study]
        if task.rate_per_s is None:
            study.limits[task.seed] = math.inf if isinstance(answer, LabError) else answer
        elif isinstance(answer, LabError):
            study.errors[task.rate_per_s] = answer
        else:
            efforts = study.runs.setdefault(task.rate_per_s, {})
            efforts.setdefault(task.effort, {})[task.seed] = answer

    def _call(self, task: Task) -> tuple:
        study = self.studies[task.study]
        scenario, requests = study.scenario, min(task.effort.requests, study.most_requests)
        if task.rate_per_s is None:
            return saturation, scenario, task.seed, requests
        return load_run, scenario, task.rate_per_s, task.seed, requests

    def _answers(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Run | float | LabError]]:
        """(task, answer) as they finish, until cancelled."""
        calls = ((task, self._call(task)) for task in tasks)
        return answers(calls, self._executor, self._is_cancelled)

    def _is_cancelled(self) -> bool:
        self.stopped = self.stopped or self._cancelled()
        return self.stopped
