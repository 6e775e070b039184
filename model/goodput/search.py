"""Attainment over arrival rates for several scenarios, and the goodput of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor

from model import checks
from model.goodput.bench import RATE_SHARES, Bench
from model.goodput.records import FULL, ROUGH, SHARE, Effort, Frontier
from model.scenario import Scenario
from model.steady_load import rate_of

__all__ = ["frontier", "search"]

_SEARCH_SHARES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
_MOST_PROBES = 40


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
    bench = Bench(scenarios, share, effort, executor, on_progress, cancelled)
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
    bench = Bench({"": scenario}, share, effort, executor, on_progress, cancelled)
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


def _checked(rates: Iterable[float]) -> list[float]:
    """Arrival rates, ascending."""
    rates = sorted({float(rate) for rate in rates})
    for rate in rates:
        checks.number("rate_per_s", rate, 1e-6, 1e6)
    return rates
