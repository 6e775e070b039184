"""Sweeps: one parameter of a scenario against metrics of its runs, over several seeds.

Common random numbers: every value meets the same seeds, and a seed gives each stream the same
luck whatever else changes (see :mod:`model.workload`), so differences between values are not
differences of the draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from model import checks
from model.errors import LabError
from model.intervals import SEEDS_FOR_T, spread_of
from model.metrics import METRICS, summary
from model.parameters import RATE, Parameter, replace_at, sweepable, value_at, with_policy
from model.requests import Requests
from model.running import answers
from model.scenario import Scenario, TraceReference
from model.simulator import simulate

__all__ = [
    "RATE",
    "Impossible",
    "Parameter",
    "Sweep",
    "replace_at",
    "sweep",
    "sweepable",
    "value_at",
    "with_policy",
]

MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class Impossible:
    """A point without a result; ``seed`` is None where the value is impossible for every seed."""

    value: object
    seed: int | None
    error: LabError

    @property
    def sentence(self) -> str:
        return str(self.error)


@dataclass(frozen=True, eq=False, slots=True)
class Sweep:
    """What a sweep found, also when it was cancelled on the way.

    ``columns``: one row a finished run, by value and then by seed: "value", "seed" and a float64
    column for each metric (nan: the metric is not defined in that run).
    ``values`` and ``seeds`` are what was asked for, ``impossible`` what could not run.
    """

    scenario: Scenario
    parameter: str
    values: tuple
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    columns: dict[str, np.ndarray]
    impossible: tuple[Impossible, ...] = ()
    cancelled: bool = False

    @property
    def runs(self) -> int:
        return len(self.columns["seed"])

    def band(self, metric: str) -> str:
        """What low and high of :meth:`curve` are: "t95" or "range", the same along the curve.

        "t95": the 95 % t-interval of the mean, where every point has three seeds or more.
        "range": the lowest and highest run.
        """
        return _band_of(self.curve(metric)["seeds"])

    def curve(self, metric: str) -> dict[str, np.ndarray]:
        """One row a value that ran: value, mean, low, high, and seeds in which it is defined."""
        samples: dict[object, list[float]] = {}
        numbers = self.columns[metric].tolist()
        for value, number in zip(self.columns["value"].tolist(), numbers, strict=True):
            defined = samples.setdefault(value, [])
            if not math.isnan(number):
                defined.append(number)
        counts = np.array([len(sample) for sample in samples.values()], dtype=np.int64)
        how = {"by_t": _band_of(counts) == "t95", "share": metric.endswith("_share")}
        bands = [spread_of(np.array(sample), **how) for sample in samples.values()]
        mean, low, high = np.array(bands, dtype=np.float64).reshape(-1, 3).T
        return {
            "value": _column(list(samples)),
            "mean": mean,
            "low": low,
            "high": high,
            "seeds": counts,
        }


def sweep(
    scenario: Scenario,
    parameter: str,
    values: Iterable,
    metrics: Sequence[str],
    seeds: Iterable[int] = (0,),
    *,
    requests: Requests | None = None,
    warm_up_s: float = 0.0,
    executor: Executor | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Sweep:
    """Run the scenario with each value of ``parameter`` and each seed; gather ``metrics``.

    ``parameter`` is a path of :func:`replace_at`, ``metrics`` are keys of METRICS. ``requests``
    are those of a scenario whose workload is a trace, which has no luck: one seed then stands for
    all. ``executor`` (processes, or threads) runs the points; without it they run here.
    ``on_progress(done, planned)`` is called in this thread after each run. ``cancelled()`` is
    asked between runs; what has finished by then is returned. Runs go seed by seed, so that a
    cancelled sweep has whole curves of fewer seeds rather than half a curve.

    Raises LabError for a parameter, metric or seed that does not exist, or without any value;
    a point that cannot run is kept as :class:`Impossible` instead.
    """
    metrics = tuple(dict.fromkeys(metrics))
    for name in metrics:
        checks.choice("metrics", name, METRICS)
    value_at(scenario, parameter)  # the path exists
    if parameter == "seed":
        raise LabError("sweep_of_seeds")
    values = tuple(dict.fromkeys(v.item() if isinstance(v, np.generic) else v for v in values))
    seeds = tuple(dict.fromkeys(int(seed) for seed in seeds))
    for seed in seeds:
        replace(scenario, seed=seed)
    if isinstance(scenario.workload, TraceReference):
        if requests is None:
            scenario.requests()  # says that the trace is needed
        seeds = seeds[:1]
    checks.whole_number("sweep.runs", len(values) * len(seeds), 1, MOST_RUNS)

    points, impossible = _points(scenario, parameter, values)
    planned = len(values) * len(seeds)
    done = len(impossible) * len(seeds)
    tasks = {
        (index, seed): (_run, replace(point, seed=seed), requests, metrics, warm_up_s)
        for seed in seeds
        for index, point in points.items()
    }
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    report = on_progress or (lambda done, planned: None)
    report(done, planned)
    for key, answer in answers(tasks.items(), executor, cancelled or (lambda: False)):
        if isinstance(answer, LabError):
            impossible.append(Impossible(values[key[0]], key[1], answer))
        else:
            found[key] = answer
        done += 1
        report(done, planned)
    order = {value: index for index, value in enumerate(values)}
    place = {seed: index for index, seed in enumerate((None, *seeds))}
    impossible.sort(key=lambda point: (order[point.value], place[point.seed]))
    return Sweep(
        scenario,
        parameter,
        values,
        seeds,
        metrics,
        _columns(found, values, seeds, metrics),
        tuple(impossible),
        cancelled=done < planned,
    )


def _points(
    scenario: Scenario, parameter: str, values: tuple
) -> tuple[dict[int, Scenario], list[Impossible]]:
    """Scenario of each value by its index, and the values for which there is none."""
    points, impossible = {}, []
    for index, value in enumerate(values):
        try:
            points[index] = replace_at(scenario, parameter, value)
        except LabError as error:
            impossible.append(Impossible(value, None, error))
    return points, impossible


def _run(
    scenario: Scenario, requests: Requests | None, metrics: tuple[str, ...], warm_up_s: float
) -> tuple[float, ...] | LabError:
    """One point. A fault is returned, not raised: raised in a worker it would end the sweep."""
    try:
        numbers = summary(simulate(scenario, requests), warm_up_s)
    except LabError as error:
        return error
    return tuple(float(numbers[name]) for name in metrics)


def _columns(
    found: dict[tuple[int, int], tuple[float, ...]],
    values: tuple,
    seeds: tuple[int, ...],
    metrics: tuple[str, ...],
) -> dict[str, np.ndarray]:
    rows = [(i, seed) for i in range(len(values)) for seed in seeds if (i, seed) in found]
    table = np.array([found[row] for row in rows], dtype=np.float64)
    table = table.reshape(len(rows), len(metrics))
    return {
        "value": _column([values[index] for index, _ in rows]),
        "seed": np.array([seed for _, seed in rows], dtype=np.int64),
        **{name: table[:, i] for i, name in enumerate(metrics)},
    }


def _column(values: list) -> np.ndarray:
    """Numbers as numbers; names, and numbers beside None, as objects."""
    numbers = all(isinstance(value, int | float) for value in values)
    return np.array(values, dtype=None if numbers and values else object)


# -- bands -----------------------------------------------------------------------------------------


def _band_of(counts: np.ndarray) -> str:
    """The band for points of so many seeds; points where nothing is defined do not count."""
    counts = counts[counts > 0]
    return "t95" if len(counts) and counts.min() >= SEEDS_FOR_T else "range"
