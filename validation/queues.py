"""The queue in front of a prefill server: F26, F26e, F27, F27a, F29, F34 to F34c.

F26 and F27 are held against the simulated engine (prompts only, one at a time), and a second time
against Lindley's recursion with a million arrivals, which gives the engine's own waiting times to
the last digits (the comparison "recursion" says so). The orders of F34 to F34c are simulated by
:mod:`validation.single_server`, which the engine repeats where it has the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from model.metrics import e2e_s
from validation.comparison import STOCHASTIC, Comparison
from validation.lindley import poisson_gaps, waits_s
from validation.prefill_server import (
    PROMPT,
    SERVICE_S,
    TOKEN_S,
    arrivals_s,
    gaps,
    run,
    ttft_s,
)
from validation.single_server import times_in_system_s

__all__ = ["COMPARISONS"]

_LOADS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
_MANY = 1_000_000
_JOBS = 200_000
_SAME = 4_000
_BATCHES = 100  # of jobs, whose means tell how the luck of two orders goes together
_LOAD_OF_VARIATION = 0.5
_SIZE_LOAD = 0.7
_SEED = 3


def _requests(load: float, broken: str) -> int:
    """Enough for the queue's long memory near full load; of what lies far apart fewer do."""
    if broken:
        return 5_000
    return 20_000 if load >= 0.6 else 10_000


# -- equal prompts: M/D/1 --------------------------------------------------------------------------


def _even(load: float, broken: str) -> Mapping[str, float]:
    return {"lambda": load / SERVICE_S, "D": SERVICE_S, "rho": load, "q_share": 0.99}


@lru_cache(maxsize=64)
def _ttft_of_engine(load: float, broken: str) -> np.ndarray:
    arrivals = arrivals_s(_requests(load, broken), load / SERVICE_S, _SEED, broken)
    return ttft_s(run(arrivals, PROMPT, broken))


def _ttft_of_recursion(load: float, broken: str) -> np.ndarray:
    between = gaps(_MANY - 1, _SEED, broken) * (SERVICE_S / load)
    return waits_s(between, SERVICE_S) + SERVICE_S


def _engine_mean(load: float, broken: str) -> float:
    return _ttft_of_engine(load, broken).mean()


def _recursion_mean(load: float, broken: str) -> float:
    return _ttft_of_recursion(load, broken).mean()


def _p99(load: float, broken: str) -> float:
    """P99 of TTFT over the service time; the engine where the recursion has no such case."""
    by_engine = broken not in ("", "bursty")
    ttft = _ttft_of_engine(load, broken) if by_engine else _ttft_of_recursion(load, broken)
    return float(np.quantile(ttft, 0.99)) / SERVICE_S


# -- the recursion against the engine --------------------------------------------------------------


def _by_recursion(load: float, broken: str) -> Mapping[str, float]:
    """Mean times of arrival and of the first token as the recursion has them."""
    arrivals = arrivals_s(_SAME, load / SERVICE_S, _SEED)
    first = arrivals + waits_s(np.diff(arrivals), SERVICE_S) + SERVICE_S
    return {"t_arr": float(arrivals.mean()), "t_first": float(first.mean())}


def _by_engine(load: float, broken: str) -> float:
    arrivals = arrivals_s(_SAME, load / SERVICE_S, _SEED)
    return ttft_s(run(arrivals, PROMPT, broken)).mean()


# -- prompts of different lengths: M/G/1 -----------------------------------------------------------


def _exponential(load: float, broken: str) -> Mapping[str, float]:
    return {
        "lambda": load / SERVICE_S,
        "rho": load,
        "S_sq": 2 * SERVICE_S**2,
        "S_mean": SERVICE_S,
        "CV": 1.0,
    }


def _drawn_prompts(n: int, seed: int, cv: float | None = None) -> np.ndarray:
    """Whole tokens of mean PROMPT: exponential, or lognormal where a variation is given."""
    rng = np.random.default_rng((seed, 1))
    if cv is None:
        return np.maximum(np.rint(PROMPT * rng.standard_exponential(n)), 1).astype(np.int64)
    spread = np.log1p(cv**2)
    tokens = PROMPT * np.exp(np.sqrt(spread) * rng.standard_normal(n) - spread / 2)
    return np.maximum(np.rint(tokens), 1).astype(np.int64)


def _wait_of_engine(load: float, broken: str) -> float:
    n = _requests(load, broken)
    arrivals = arrivals_s(n, load / SERVICE_S, _SEED, broken)
    prompts = _drawn_prompts(n, _SEED)
    return (ttft_s(run(arrivals, prompts, broken)) - prompts * TOKEN_S).mean()


def _wait_of_recursion(load: float, broken: str) -> float:
    between = gaps(_MANY - 1, _SEED, broken) * (SERVICE_S / load)
    return waits_s(between, _drawn_prompts(_MANY, _SEED) * TOKEN_S).mean()


def _varied(cv: float, broken: str) -> Mapping[str, float]:
    return {"rho": _LOAD_OF_VARIATION, "S_mean": SERVICE_S, "CV": cv}


def _wait_by_variation(cv: float, broken: str) -> float:
    between = gaps(_MANY - 1, _SEED, broken) * (SERVICE_S / _LOAD_OF_VARIATION)
    return waits_s(between, _drawn_prompts(_MANY, _SEED, cv) * TOKEN_S).mean()


# -- Little's law ----------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _stay(rate_per_s: float, broken: str) -> tuple[float, float, float]:
    """(rate, mean stay, mean number in the system) of a run with decodes.

    The whole run, or ("overload") only until the last request arrives: near and above full load
    more come than leave until then.
    """
    result = run(arrivals_s(2_000, rate_per_s, _SEED), PROMPT // 2, "decodes")
    arrival, end = result.requests["arrival_s"], result.requests["end_s"]
    until = float(arrival[-1] if broken else end.max())
    left = end <= until
    edges = np.concatenate((arrival, end))
    change = np.concatenate((np.ones(len(arrival)), -np.ones(len(end))))
    order = np.argsort(edges, kind="stable")
    times = np.minimum(edges[order], until)
    inside = np.cumsum(change[order])[:-1] @ np.diff(times) / until
    return left.sum() / until, float(e2e_s(result.requests)[left].mean()), float(inside)


def _little(rate: float, broken: str) -> Mapping[str, float]:
    per_s, stay_s, _ = _stay(rate, broken)
    return {"lambda": per_s, "W": stay_s}


def _number_inside(rate: float, broken: str) -> float:
    return _stay(rate, broken)[2]


# -- other orders than by arrival ------------------------------------------------------------------


def _load(load: float, broken: str) -> Mapping[str, float]:
    return {"rho": load}


def _jobs(load: float) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals at this load, and exponential sizes of mean 1."""
    arrival = np.concatenate(([0.0], np.cumsum(poisson_gaps(_JOBS - 1, _SEED)))) / load
    return arrival, np.random.default_rng((_SEED, 1)).standard_exponential(_JOBS)


@lru_cache(maxsize=32)
def _in_system(order: str, load: float, broken: str) -> np.ndarray:
    arrival, size = _jobs(load)
    guess = None
    if broken == "guessed":
        guess = size * np.exp(np.random.default_rng((_SEED, 2)).standard_normal(_JOBS))
    elif broken == "unknown":
        guess = np.random.default_rng((_SEED, 2)).random(_JOBS)
    return times_in_system_s(order, arrival, size, guess)


def _mean_by_arrival(load: float, broken: str) -> float:
    sizes = np.random.default_rng((_SEED, 1)).standard_exponential(_MANY)
    return float((waits_s(poisson_gaps(_MANY - 1, _SEED) / load, sizes) + sizes).mean())


def mean_time(order: str, load: float, broken: str = "") -> float:
    """Mean time in the system over the mean size, for exponential sizes.

    First come first served has a known mean. How far the same jobs are from it under that order
    tells how lucky the draw was, which is taken out (a control variate).
    """
    found = _in_system(order, load, broken)
    served = _in_system("fcfs", load, "")
    parts = [column[: _BATCHES * (_JOBS // _BATCHES)].reshape(_BATCHES, -1).mean(axis=1)
             for column in (found, served)]  # fmt: skip
    covariance = np.cov(parts)
    weight = covariance[0, 1] / covariance[1, 1]
    return float(found.mean() - weight * (served.mean() - 1 / (1 - load)))


def _below(size: float, broken: str) -> Mapping[str, float]:
    below = _SIZE_LOAD * (1 - np.exp(-size) * (1 + size))
    return {"lambda": _SIZE_LOAD, "S_sq": 2.0, "rho_below": float(below)}


def _wait_by_size(size: float, broken: str) -> float:
    """Mean wait of the jobs within 15 % of a size."""
    sizes = _jobs(_SIZE_LOAD)[1]
    waited = _in_system("sjf", _SIZE_LOAD, broken) - sizes
    return float(waited[np.abs(sizes / size - 1) < 0.15].mean())


COMPARISONS = (
    Comparison(
        name="recursion",
        formulas=("F30a", "F26"),
        values=_by_recursion,
        simulate=_by_engine,
        axis="rho",
        at=0.7,
        points=_LOADS,
        unit="ms",
        factor=1e3,
        tolerance=1e-9,
        broken=("decodes", "together"),
        smooth=False,
    ),
    Comparison(
        name="ttft_mean",
        formulas=("F26", "F27"),
        values=_even,
        simulate=_engine_mean,
        again=_recursion_mean,
        axis="rho",
        at=0.7,
        points=_LOADS,
        unit="ms",
        factor=1e3,
        tolerance=0.05,
        kind=STOCHASTIC,
        broken=("bursty", "decodes", "together", "overhead"),
    ),
    Comparison(
        name="ttft_p99",
        formulas=("F26e", "F26d"),
        values=_even,
        simulate=_p99,
        axis="rho",
        at=0.7,
        points=_LOADS,
        unit="services",
        tolerance=0.03,
        kind=STOCHASTIC,
        broken=("bursty", "decodes"),
    ),
    Comparison(
        name="wait_mean",
        formulas=("F27", "F27a"),
        values=_exponential,
        simulate=_wait_of_engine,
        again=_wait_of_recursion,
        axis="rho",
        at=0.6,
        points=_LOADS,
        unit="ms",
        factor=1e3,
        tolerance=0.06,
        kind=STOCHASTIC,
        broken=("bursty", "together", "overhead"),
    ),
    Comparison(
        name="wait_variation",
        formulas=("F27a",),
        values=_varied,
        simulate=_wait_by_variation,
        axis="CV",
        at=1.0,
        points=(0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
        unit="ms",
        factor=1e3,
        tolerance=0.02,
        kind=STOCHASTIC,
        broken=("bursty",),
    ),
    Comparison(
        name="little",
        formulas=("F29",),
        values=_little,
        simulate=_number_inside,
        axis="lambda",
        at=20.0,
        points=(4.0, 8.0, 12.0, 16.0, 20.0, 24.0),
        unit="requests",
        broken=("overload",),
        smooth=False,
    ),
    Comparison(
        name="time_fcfs",
        formulas=("F34a", "F27a"),
        values=_load,
        simulate=_mean_by_arrival,
        axis="rho",
        at=0.5,
        points=_LOADS,
        unit="services",
        tolerance=0.02,
        kind=STOCHASTIC,
    ),
    Comparison(
        name="time_sjf",
        formulas=("F34b", "F34"),
        values=_load,
        simulate=lambda load, broken: mean_time("sjf", load, broken),
        axis="rho",
        at=0.8,
        points=_LOADS,
        unit="services",
        tolerance=0.02,
        kind=STOCHASTIC,
        broken=("guessed", "unknown"),
    ),
    Comparison(
        name="wait_by_size",
        formulas=("F34",),
        values=_below,
        simulate=_wait_by_size,
        axis="x_size",
        at=1.0,
        points=(0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
        unit="services",
        tolerance=0.05,
        kind=STOCHASTIC,
        broken=("guessed", "unknown"),
    ),
    Comparison(
        name="time_srpt",
        formulas=("F34c",),
        values=_load,
        simulate=lambda load, broken: mean_time("srpt", load, broken),
        axis="rho",
        at=0.8,
        points=_LOADS,
        unit="services",
        tolerance=0.02,
        kind=STOCHASTIC,
        broken=("guessed",),
    ),
)
