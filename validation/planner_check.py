"""A plan put to the test: its deployment simulated, and the fewest engines that keep the promise.

:func:`check` is a generator: the planned deployment and the two pools first, then the same knobs on
more or fewer engines until the smallest number is known that reaches an attainment of 90 % and does
not lose it with time. A number is judged by several seeds, each at least 500 requests after warm-up
and long enough for every engine to fill up (twelve mean stays).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from model.errors import LabError
from model.goodput import SHARE
from model.metrics import meets_slo
from model.metrics.latency import Columns, Window
from model.metrics.usage import time_mean
from model.running import answers
from model.scenario import LARGEST_ENGINES, Scenario, Slo
from model.simulator import simulate
from model.steady_load import (
    Run,
    affordable,
    counted_window,
    measured,
    rate_of,
    with_warm_up,
)

__all__ = ["SEEDS", "Found", "Iterations", "Outcome", "check", "measure", "requests_for", "tried"]

SEEDS = (0, 1, 2)
FEWEST_REQUESTS, MOST_REQUESTS = 500, 12_000
_STAYS = 12  # a backlog near its limit fills slowly; shorter runs take that for growth
_MOST_ITERATIONS = 1_000_000  # of a run


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iterations of a run after warm-up: mean decodes of an engine over time, how long those with
    prompt tokens took (seconds; nan where there is none), and how many kept the TPOT bound.

    ``late_share`` is the attainment of the later half of the requests: a queue that grows shows
    there first.
    """

    decodes_mean: float
    mixed_p50_s: float
    mixed_max_s: float
    kept_share: float
    late_share: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Runs of one deployment, one a seed; ``error`` where it cannot run."""

    engines: int
    prefill_engines: int
    runs: tuple[Run, ...] = ()
    iterations: tuple[Iterations, ...] = ()
    error: LabError | None = None

    @property
    def attainment(self) -> float:
        """Share of requests that kept both SLOs, the mean over the seeds."""
        return self.mean("slo_attainment_share")

    @property
    def good(self) -> bool:
        """Attainment of at least 90 %, in the later half of the requests as well."""
        return min(self.attainment, self.mean("late_share")) >= SHARE

    @property
    def sinks(self) -> bool:
        """Whether enough promises are kept at first and too few later on."""
        return self.attainment >= SHARE > self.mean("late_share")

    def mean(self, name: str) -> float:
        """Mean over the seeds of a field of a run or of its iterations."""
        rows = self.iterations if name in Iterations.__slots__ else self.runs
        sample = [getattr(row, name) for row in rows]
        return float(np.mean(sample)) if sample else math.nan


@dataclass(frozen=True, slots=True)
class Found:
    """What is known so far; ``needed`` engines are the fewest, None while that is open.

    ``tried`` are outcomes of the planned knobs by ascending engines, the planned number among
    them. ``bounded``: not even the largest number that was tried is enough.
    """

    planned: int
    split: Outcome | None = None
    tried: tuple[Outcome, ...] = ()
    runs: int = 0
    needed: int | None = None
    bounded: bool = False
    finished: bool = False
    cancelled: bool = False

    @property
    def outcome(self) -> Outcome | None:
        """Of the planned number of engines."""
        return next((one for one in self.tried if one.engines == self.planned), None)


def requests_for(scenario: Scenario, stay_s: float) -> int:
    """Requests after warm-up in a run: so many that it is twelve stays long, within limits.

    Many engines with long answers get fewer, so that a run has about a million iterations.
    """
    gpus = scenario.tensor_parallel * scenario.n_engines
    rate = rate_of(scenario) * gpus
    long = math.ceil(_STAYS * stay_s * rate)
    shortest_s = scenario.cost().seconds(1, 1, 1)
    short = int(_MOST_ITERATIONS * shortest_s / scenario.n_engines * rate)
    return affordable(scenario, max(min(max(FEWEST_REQUESTS, long), MOST_REQUESTS, short), 50))


def measure(scenario: Scenario, seed: int, requests: int) -> tuple[Run, Iterations] | LabError:
    """One run at the scenario's own rate; a fault is returned, not raised."""
    try:
        result = simulate(replace(with_warm_up(scenario, requests), seed=seed))
    except LabError as error:
        return error
    follows = result.inputs.follows
    begins = None if follows is None else follows < 0
    window = counted_window(result.requests, begins)
    rows = result.iterations
    inside = (rows["start_s"] >= window.start_s) & (rows["end_s"] <= window.end_s)
    took_s = (rows["end_s"] - rows["start_s"])[inside]
    mixed = rows["prefill_tokens"][inside] > 0
    mixed_s = took_s[mixed]
    decodes = time_mean(rows, rows["decode_requests"], window, scenario.n_engines)
    kept = took_s <= scenario.slo.tpot_s + 1e-9
    facts = Iterations(
        decodes_mean=decodes,
        mixed_p50_s=float(np.median(mixed_s)) if len(mixed_s) else math.nan,
        mixed_max_s=float(mixed_s.max()) if len(mixed_s) else math.nan,
        kept_share=float(kept.mean()) if len(kept) else math.nan,
        late_share=_late_attainment(result.requests, scenario.slo, window),
    )
    return measured(result.requests, scenario, seed, begins), facts


def _late_attainment(requests: Columns, slo: Slo, window: Window) -> float:
    """Of the later half of the requests that came in the window."""
    arrival_s = requests["arrival_s"]
    inside = (arrival_s >= window.start_s) & (arrival_s <= window.end_s)
    late = inside & (arrival_s >= np.median(arrival_s[inside]))
    return float(meets_slo(requests, slo)[late].mean())


def check(
    deploy: Callable[[int], Scenario],
    planned: int,
    split: Scenario | None,
    stay_s: float,
    *,
    executor: Executor | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Found]:
    """Simulate ``deploy(planned)`` and ``split``, then look for the fewest engines.

    ``deploy`` gives the planned knobs on a number of engines and may raise LabError; at most
    LARGEST_ENGINES are tried.
    """
    bench = _Bench(stay_s, executor, cancelled)
    outcomes: dict[int, Outcome] = {}
    pools, complete = None, False

    def known(**more) -> Found:
        by_size = tuple(outcomes[n] for n in sorted(outcomes))
        return Found(planned, pools, by_size, bench.runs, cancelled=bench.stopped, **more)

    search = tried(planned)
    engines = next(search)
    while not bench.stopped:
        outcome = bench.outcome(engines, lambda n=engines: deploy(n))
        if outcome is None:
            break
        outcomes[engines] = outcome
        yield known()
        if split is not None and pools is None:
            pools = bench.outcome(split.n_engines, lambda: split)
            yield known()
        if outcome.error is not None:
            break
        try:
            engines = search.send(outcome.good)
        except StopIteration:
            complete = True
            break
    needed = min((n for n, outcome in outcomes.items() if outcome.good), default=None)
    if not complete:
        needed = None
    yield known(needed=needed, bounded=complete and needed is None, finished=True)


def tried(planned: int) -> Generator[int, bool, None]:
    """Numbers of engines to try, the planned one first; each is answered by ``send(is it enough)``.

    From the plan in steps that double, down while it is enough and up while it is not, then by
    halving between the largest that is not and the smallest that is.
    """
    low, high = 0, LARGEST_ENGINES + 1  # low is not enough, high is (or is out of reach)
    engines, step, direction = planned, 1, 0
    while high - low > 1:
        enough = yield engines
        low, high = (low, min(high, engines)) if enough else (max(low, engines), high)
        direction = direction or (-1 if enough else 1)
        turned = enough is (direction > 0)
        step = 0 if turned or not step else step
        if step:
            engines = min(max(engines + direction * step, low + 1), high - 1)
            step *= 2
        else:
            engines = (low + high) // 2


class _Bench:
    """Runs deployments, here or on an executor, until somebody asks to stop."""

    def __init__(self, stay_s: float, executor: Executor | None, cancelled) -> None:
        self._stay_s = stay_s
        self._executor = executor
        self._cancelled = cancelled
        self.runs = 0
        self.stopped = False

    def outcome(self, engines: int, deploy: Callable[[], Scenario]) -> Outcome | None:
        """All seeds of a deployment; None where it was stopped before they were through."""
        try:
            scenario = deploy()
        except LabError as error:
            return Outcome(engines, 0, error=error)
        requests = requests_for(scenario, self._stay_s)
        tasks = [(scenario, seed, requests) for seed in SEEDS]
        found = self._play(tasks)
        if found is None:
            return None
        cluster = scenario.cluster
        faults = [answer for answer in found if isinstance(answer, LabError)]
        sizes = scenario.n_engines, cluster.prefill_engines
        if faults:
            return Outcome(*sizes, error=faults[0])
        runs, iterations = zip(*found, strict=True)
        return Outcome(*sizes, runs, iterations)

    def _play(self, tasks: list) -> list | None:
        calls = enumerate((measure, *task) for task in tasks)
        found = {}
        for place, answer in answers(calls, self._executor, self._is_stopped):
            found[place] = answer
            self.runs += 1
        return [found[place] for place in range(len(tasks))] if len(found) == len(tasks) else None

    def _is_stopped(self) -> bool:
        self.stopped = self.stopped or self._cancelled()
        return self.stopped
