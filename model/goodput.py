"""Goodput (F31): the largest arrival rate per GPU at which a share of requests keeps both SLOs.

DistServe's definition: the largest load with an attainment of at least 90 % in a stable run. It is
not the SLO throughput, which counts the requests per second that kept both SLOs at one fixed load.

:func:`frontier` measures attainment over arrival rates for several scenarios, :func:`search` looks
for the goodput of one. Both are generators that yield what is known so far as frozen objects: a
rough curve of few requests first, then runs of 2,000 requests with several seeds, run by run.
Common random numbers: a seed means the same arrivals (only closer together at a higher rate) and
the same lengths everywhere, so curves differ by the rules and not by luck. Attainment falls with
the rate only approximately; the answer is therefore a bracket, and says where it is not monotone.

A rate is *good* where the mean attainment of its seeds reaches the share and it is stable in the
sense of :mod:`model.steady_load`. Runs are spared where they cannot change that verdict: when even
full attainment in all seeds to come would not lift the mean to the share, or when the rate is not
below the limit of saturation. Such a point is *settled*, with the seeds that it has.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from model import checks
from model.errors import LabError
from model.experiment import CONFIDENCE, SEEDS_FOR_T, t_quantile
from model.scenario import Scenario
from model.steady_load import Run, affordable, grows, load_run, rate_of, saturation

__all__ = [
    "FULL",
    "ROUGH",
    "SHARE",
    "Bracket",
    "Curve",
    "Effort",
    "Frontier",
    "Point",
    "Spread",
    "frontier",
    "search",
]

SHARE = 0.9
RATE_SHARES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1)
"""Of the largest limit: the arrival rates of a frontier for which none are given."""
_SEARCH_SHARES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
_AT_ONCE = 4  # runs of one study handed to the executor, so that several learners take turns
_POLL_S = 0.05
_MOST_PROBES = 40


@dataclass(frozen=True, slots=True)
class Effort:
    """What a point costs: requests counted in a run, and seeds (from the scenario's own on)."""

    requests: int = 2000
    seeds: int = 3

    def __post_init__(self) -> None:
        checks.whole_number("requests", self.requests, 10, 1_000_000)
        checks.whole_number("seeds", self.seeds, 1, 100)


FULL = Effort()
ROUGH = Effort(250, 1)


class Spread(NamedTuple):
    """Mean over the seeds and its interval: 95 % of t from three seeds on, else their range."""

    mean: float
    low: float
    high: float


class Bracket(NamedTuple):
    """The goodput lies between two rates in requests/s per GPU.

    ``low`` is the largest good rate (0 where none is), ``high`` the next one above it that is not
    good (inf where none is known). ``monotone`` is False where a rate below ``low`` is not good.
    """

    low: float
    high: float
    monotone: bool


@dataclass(frozen=True, slots=True)
class Point:
    """What runs at one arrival rate (requests/s per GPU) gave; ``error`` where none can run.

    ``settled``: no run is missing that could change whether the rate is good.
    """

    rate_per_s: float
    runs: tuple[Run, ...] = ()
    below_limit: bool = True
    settled: bool = False
    error: LabError | None = None

    @property
    def requests(self) -> int:
        """Requests counted in all its runs."""
        return sum(run.requests for run in self.runs)

    @property
    def growing(self) -> bool:
        """Whether the backlog of its runs, taken together, grew with time."""
        return grows(sum(run.growth for run in self.runs), self.requests)

    @property
    def stable(self) -> bool:
        return self.below_limit and not self.growing

    def spread(self, name: str) -> Spread:
        """Mean and interval of a field of :class:`~model.steady_load.Run` over the seeds."""
        sample = np.array([getattr(run, name) for run in self.runs], dtype=float)
        sample = sample[~np.isnan(sample)]
        if not len(sample):
            return Spread(math.nan, math.nan, math.nan)
        mean = float(sample.mean())
        if len(sample) < SEEDS_FOR_T:
            return Spread(mean, float(sample.min()), float(sample.max()))
        error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
        half = t_quantile((1 + CONFIDENCE) / 2, len(sample) - 1) * error
        low, high = mean - half, mean + half
        if name.endswith("_share"):
            low, high = max(low, 0.0), min(high, 1.0)
        return Spread(mean, low, high)

    def good(self, share: float) -> bool:
        """Attainment of at least ``share``, and stable."""
        return bool(self.runs) and self.stable and _mean_attainment(self.runs) >= share


@dataclass(frozen=True, slots=True)
class Curve:
    """Attainment of one scenario over arrival rates; ``points`` by ascending rate.

    ``limit_per_s`` is the rate (per GPU) at which a saturated engine finishes requests, inf where
    there is no such limit, nan while it is not known yet.
    """

    name: str
    scenario: Scenario
    share: float
    limit_per_s: float = math.nan
    points: tuple[Point, ...] = ()

    @property
    def rough(self) -> bool:
        """Whether points still have fewer requests or seeds than they are meant to have."""
        return not all(point.settled for point in self.points)

    @property
    def goodput(self) -> Bracket:
        """Between which rates the goodput lies, of the points there are."""
        rates = [point.rate_per_s for point in self.points]
        good = [point.good(self.share) for point in self.points]
        last = max((i for i, is_good in enumerate(good) if is_good), default=-1)
        low = rates[last] if last >= 0 else 0.0
        high = rates[last + 1] if last + 1 < len(rates) else math.inf
        return Bracket(low, high, all(good[: last + 1]))


@dataclass(frozen=True, slots=True)
class Frontier:
    """What is known so far of several curves; ``done`` of about ``planned`` runs are finished."""

    curves: tuple[Curve, ...]
    done: int
    planned: int
    finished: bool = False
    cancelled: bool = False


def frontier(
    scenarios: Mapping[str, Scenario],
    rates: Iterable[float] | None = None,
    *,
    share: float = SHARE,
    effort: Effort = FULL,
    rough: Effort | None = ROUGH,
    refine: int = 2,
    executor: Executor | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[Frontier]:
    """Attainment over arrival rates (requests/s per GPU) for each scenario, as it becomes known.

    Without ``rates`` they are RATE_SHARES of the largest limit. After the limits come points of
    ``rough`` effort, then all of ``effort``, seed by seed, curve by curve (one that is not through
    shows its rough points); then each bracket is halved ``refine`` times. Runs go to ``executor``
    (threads or processes, which give the same), without it they are made here. ``cancelled()`` is
    asked between runs; the last object then holds what was done.

    Raises LabError no_rate where a scenario's arrivals have no rate, or for a rate out of range.
    """
    bench = _Bench(scenarios, share, effort, executor, on_progress, cancelled)
    given = None if rates is None else _checked(rates)
    n = len(RATE_SHARES if given is None else given)
    per_curve = effort.seeds * (1 + n + refine) + (rough.seeds * n if rough else 0)
    bench.planned = per_curve * len(bench.studies)
    yield from bench.play(bench.limits(range(1)))
    grid = given or bench.rates()
    everywhere = [(study, rate) for study in bench.studies for rate in grid]
    if rough is not None:
        yield from bench.probe(everywhere, rough)
    yield from bench.play(bench.limits(range(1, effort.seeds)))
    yield from bench.probe(everywhere, effort)
    for _ in range(refine):
        halves = [(study, rate) for study in bench.studies for rate in study.middle()]
        yield from bench.probe(halves, effort)
    yield bench.last()


def search(
    scenario: Scenario,
    *,
    share: float = SHARE,
    effort: Effort = FULL,
    rough: Effort = ROUGH,
    tolerance: float = 0.03,
    executor: Executor | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[Frontier]:
    """The goodput of one scenario, as a :class:`Frontier` of one curve that closes in on it.

    The limit of saturation bounds the search from above; runs of ``rough`` effort find where to
    look, then bisection with ``effort`` goes on until the bracket is at most ``tolerance`` of its
    upper end wide. Arguments and errors otherwise as for :func:`frontier`.
    """
    bench = _Bench({"": scenario}, share, effort, executor, on_progress, cancelled)
    (study,) = bench.studies
    bench.planned = effort.seeds * 10 + len(_SEARCH_SHARES)
    yield from bench.play(bench.limits(range(effort.seeds)))
    top = study.limit_per_s if math.isfinite(study.limit_per_s) else 2 * rate_of(scenario)
    yield from bench.probe([(study, top * part) for part in _SEARCH_SHARES], rough)
    guess = study.curve().goodput
    study.forget()
    ends = [rate for rate in (guess.low, guess.high) if 0 < rate < math.inf]
    yield from bench.probe([(study, rate) for rate in ends], effort)
    for _ in range(_MOST_PROBES):
        found = study.curve().goodput
        if bench.stopped or found.high - found.low <= tolerance * found.high:
            break
        if found.low == 0 and found.high < tolerance * top:
            break  # no rate is good
        between = study.middle() or (max(2 * found.low, top),)
        yield from bench.probe([(study, rate) for rate in between], effort)
    yield bench.last()


# -- how runs are gathered -------------------------------------------------------------------------


class _Task(NamedTuple):
    """A run of a study: at a rate, or saturated where there is no rate."""

    study: int
    rate_per_s: float | None
    effort: Effort
    seed: int


@dataclass(eq=False)
class _Study:
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


class _Bench:
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
            _Study(name, scenario, share, effort, affordable(scenario, effort.requests))
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

    def limits(self, seeds: Iterable[int]) -> list[_Task]:
        return [
            _Task(i, None, study.effort, study.scenario.seed + seed)
            for seed in seeds
            for i, study in enumerate(self.studies)
        ]

    def probe(self, where: Sequence[tuple[_Study, float]], effort: Effort) -> Iterator[Frontier]:
        """Points of this effort at these rates, seed by seed, leaving out what is settled."""
        for number in range(effort.seeds):
            tasks = [
                _Task(self.studies.index(study), rate, effort, study.scenario.seed + number)
                for study, rate in where
                if number == 0 or not study.settled(rate, effort)
            ]
            yield from self.play(tasks)

    def play(self, tasks: Sequence[_Task]) -> Iterator[Frontier]:
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

    def _keep(self, task: _Task, answer: Run | float | LabError) -> None:
        study = self.studies[task.study]
        if task.rate_per_s is None:
            study.limits[task.seed] = math.inf if isinstance(answer, LabError) else answer
        elif isinstance(answer, LabError):
            study.errors[task.rate_per_s] = answer
        else:
            efforts = study.runs.setdefault(task.rate_per_s, {})
            efforts.setdefault(task.effort, {})[task.seed] = answer

    def _call(self, task: _Task) -> tuple:
        study = self.studies[task.study]
        scenario, requests = study.scenario, min(task.effort.requests, study.most_requests)
        if task.rate_per_s is None:
            return saturation, scenario, task.seed, requests
        return load_run, scenario, task.rate_per_s, task.seed, requests

    def _answers(self, tasks: Sequence[_Task]) -> Iterator[tuple[_Task, Run | float | LabError]]:
        """(task, answer) as they finish, until cancelled."""
        if self._executor is None:
            for task in tasks:
                if self._is_cancelled():
                    return
                function, *arguments = self._call(task)
                yield task, function(*arguments)
            return
        todo, waiting = deque(tasks), {}
        try:
            while (todo or waiting) and not self._is_cancelled():
                while todo and len(waiting) < _AT_ONCE:
                    task = todo.popleft()
                    waiting[self._executor.submit(*self._call(task))] = task
                finished, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()

    def _is_cancelled(self) -> bool:
        self.stopped = self.stopped or self._cancelled()
        return self.stopped


def _checked(rates: Iterable[float]) -> list[float]:
    """Arrival rates, ascending."""
    rates = sorted({float(rate) for rate in rates})
    for rate in rates:
        checks.number("rate_per_s", rate, 1e-6, 1e6)
    return rates


def _mean_attainment(runs: Sequence[Run]) -> float:
    return sum(run.slo_attainment_share for run in runs) / len(runs)
