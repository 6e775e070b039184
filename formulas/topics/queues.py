"""Queues in front of a prefill server: F26, F27, F29 and F34.

======  ==================================================================
F26     mean TTFT of M/D/1 (one instance), F26a with two pipeline stages,
F26b    with intra-operator parallelism, F26c load at which these cross
F26d    distribution of the waiting time of M/D/1, F26e its TTFT quantile
F27     mean wait of M/G/1 (Pollaczek and Khinchine), F27a by CV
F29     Little's law, F29a time in the system, F29b KV tokens in flight
F34     mean wait of a job of size x under shortest job first
F34a–c  mean time in the system for exponential sizes: FCFS, SJF, SRPT
======

λ requests per second arrive at random (Poisson). A prefill takes D seconds, ρ is the load. A
continuous-batching engine is not a single server: these are for its waiting queue. Sources:
DistServe (OSDI 2024) §3.1; Kleinrock 1975; Schrage and Miller 1966.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
import sympy
from sympy import Limit, Sum, factorial, floor, oo, sqrt

from formulas import step
from formulas.formula import Algorithm, Formula
from formulas.functions import SmallestSuch
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Assumption, Definition, Inequality, Numeric
from formulas.symbols import symbols

lam, rho, D, K, TTFT, W_q = symbols("lambda rho D K_s TTFT W_q")
S_mean, S_sq, CV, W, N, L, TPOT = symbols("S_mean S_sq CV W N_sys L TPOT")
one_token, one_request = symbols("one_token one_request")
rate = lam / one_request
"""Arrivals per second as a bare number per second."""


@formula("F26")
def mean_ttft() -> Formula:
    """``TTFT = D + λ·D²/(2·(1 − λ·D))`` seconds: 1.5·D at half load, 5.5·D at 0.9."""
    relation = equation(TTFT, D + rate * D**2 / (2 * (1 - rate * D)))
    return Formula(
        relation,
        derivation=(
            Definition("service", equation(S_mean, D)),
            Definition("square", equation(S_sq, D**2)),
            Definition("load", equation(rho, rate * S_mean)),
            Definition("wait", equation(W_q, rate * S_sq / (2 * (1 - rho))), formula="F27"),
            Definition("first_token", equation(TTFT, D + W_q)),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("not_below_service", Relation(TTFT, D, "≥"), given=_stable()),
            step.Limit(
                "full_load",
                equation(Limit(TTFT, lam, one_request / D, "-"), oo),
            ),
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


def _stable() -> dict:
    """λ·D = 1/(1 + z), below 1."""
    z = sympy.Dummy("z", positive=True)
    return {lam: one_request / (D * (1 + z))}


@formula("F26a")
def mean_ttft_two_stages() -> Formula:
    """``D + λ·D²/(4·(2 − λ·D))``: two pipeline stages; only the first one has a queue."""
    stage = symbols("D_stage")[0]
    relation = equation(TTFT, D + rate * D**2 / (4 * (2 - rate * D)))
    return Formula(
        relation,
        derivation=(
            Definition("stage", equation(stage, D / 2)),
            Definition("wait", equation(W_q, rate * stage**2 / (2 * (1 - rate * stage)))),
            Definition("first_token", equation(TTFT, D + W_q)),
            Algebra("result", relation),
        ),
        assumptions=("poisson", "equal_prompts", "equal_stages", "no_decode_interference"),
    )


@formula("F26b")
def mean_ttft_intra_operator() -> Formula:
    """``D/K + λ·D²/(2·K·(K − λ·D))``: two GPUs share every layer and are K times as fast, K < 2."""
    fast = symbols("D_fast")[0]
    relation = equation(TTFT, D / K + rate * D**2 / (2 * K * (K - rate * D)))
    return Formula(
        relation,
        derivation=(
            Definition("service", equation(fast, D / K)),
            Definition("wait", equation(W_q, rate * fast**2 / (2 * (1 - rate * fast)))),
            Definition("first_token", equation(TTFT, fast + W_q)),
            Algebra("result", relation),
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


@formula("F26c")
def parallelism_crossing() -> Formula:
    """Load λ·D below which sharing every layer beats two stages: 0.936 at K = 1.5."""
    x = symbols("rho_x")[0]
    balance = equation(1 + x / (4 * (2 - x)), 1 / K + x / (2 * K * (K - x)))
    relation = equation(x, (K + 2 - sqrt((2 - K) * (16 * K - 4 - 3 * K**2) / (3 * K - 2))) / 2)
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("poisson", "equal_prompts", "equal_stages", "no_decode_interference"),
    )


@formula("F26d")
def waiting_distribution() -> Formula:
    """``P(W ≤ t)`` of M/D/1, an alternating sum that needs many digits."""
    k = sympy.Symbol("k", nonnegative=True, integer=True)
    t, P_W = symbols("t_w P_W")
    x = lam / one_request * (k * D - t)
    relation = equation(
        P_W, (1 - rho) * Sum(x**k / factorial(k) * sympy.exp(-x), (k, 0, floor(t / D)))
    )
    return Formula(
        relation,
        algorithm=Algorithm(
            ("rho", "t_w", "D"), lambda v: waiting_probability(v["rho"], v["t_w"] / v["D"])
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


_EXACT_UP_TO = 20.0
"""Service times; beyond, the slowest exponential is the whole tail to 12 digits."""


@lru_cache(maxsize=65_536)
def waiting_probability(load: float, services: float) -> float:
    """P(wait ≤ ``services`` service times) of M/D/1; 0 for negative times and from load 1 on."""
    if services < 0 or load >= 1:
        return 0.0
    if services > _EXACT_UP_TO:
        rate = _decay(load)
        return 1.0 - (1 - load) / (load * math.exp(rate) - 1) * math.exp(-rate * services)
    with localcontext() as context:
        # Terms grow up to e^(ρt) and cancel: as many digits more as they have before the point.
        context.prec = 30 + int(load * services) * 2 + int(services)
        total, factorial_, rho_, t = Decimal(0), Decimal(1), Decimal(load), Decimal(services)
        for k in range(int(services) + 1):
            factorial_ *= max(k, 1)
            x = rho_ * (k - t)
            power = x**k if k else Decimal(1)  # 0⁰ is 1 here
            total += power / factorial_ * (-x).exp()
        return min(max(float((1 - rho_) * total), 0.0), 1.0)


@lru_cache(maxsize=4096)
def _decay(load: float) -> float:
    """The positive root θ of ρ·(e^θ − 1) = θ: the tail of the wait falls like e^(−θt)."""
    low, high = 0.0, 1.0
    while load * math.expm1(high) < high:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if load * math.expm1(middle) < middle else (low, middle)
    return high


@formula("F26e")
def ttft_quantile() -> Formula:
    """TTFT over D that a share q of requests keeps: P99 is 4.34 at ρ = .5, 22.9 at .9."""
    q, x = symbols("q_share x_ttft")
    kept = sympy.Function("P")(sympy.Le(TTFT, x * D))
    relation = equation(x, SmallestSuch(x, sympy.Ge(kept, q)))
    return Formula(
        relation,
        algorithm=Algorithm(("rho", "q_share"), lambda v: _ttft_quantile(v["rho"], v["q_share"])),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


@lru_cache(maxsize=4096)
def _ttft_quantile(load: float, share: float) -> float:
    """1 + the smallest wait (in service times) with P(wait ≤ t) ≥ share."""
    if load >= 1 or share >= 1:
        return float("inf")
    high = 1.0
    while waiting_probability(load, high) < share:
        high *= 2
    low = high / 2 if high > 1 else 0.0
    if waiting_probability(load, 0.0) >= share:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if waiting_probability(load, middle) < share:
            low = middle
        else:
            high = middle
    return 1.0 + high


@formula("F27")
def mean_wait() -> Formula:
    """``W_q = λ·E[S²]/(2·(1 − ρ))`` (Pollaczek and Khinchine).

    An arrival waits for the rest of the job in service, and for those in the queue before it.
    """
    rest, queue = symbols("S_rest N_q")
    balance = equation(W_q, rest + queue / one_request * S_mean)
    relation = equation(W_q, rate * S_sq / (2 * (1 - rho)))
    return Formula(
        relation,
        derivation=(
            Definition("rate", equation(lam, rho * one_request / S_mean)),
            Definition("rest", equation(rest, rate * S_sq / 2)),
            Definition("queue", equation(queue, lam * W_q)),
            Assumption("sees_the_average", balance),
            Algebra("result", relation, solves=balance),
        ),
        consequences=(step.Limit("full_load", equation(Limit(relation.rhs, rho, 1, "-"), oo)),),
        assumptions=("poisson", "general_service", "one_at_a_time"),
    )


@formula("F27a")
def mean_wait_by_variation() -> Formula:
    """``W_q = ρ·E[S]·(1 + CV²)/(2·(1 − ρ))``: variation alone multiplies the wait by 1 + CV²."""
    relation = equation(W_q, rho * S_mean * (1 + CV**2) / (2 * (1 - rho)))
    W_even = symbols("W_even")[0]
    return Formula(
        relation,
        derivation=(
            Definition("rate", equation(lam, rho * one_request / S_mean)),
            Definition("square", equation(S_sq, S_mean**2 * (1 + CV**2))),
            Definition("wait", equation(W_q, rate * S_sq / (2 * (1 - rho))), formula="F27"),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("exponential", equation(W_q, rho * S_mean / (1 - rho)), given={CV: 1}),
            Definition("even", equation(W_even, rho * S_mean / (2 * (1 - rho)))),
            Algebra("factor", equation(W_q / W_even, 1 + CV**2)),
            Numeric("azure", Relation(1 + CV**2, sympy.Float("1.92"), "≈"), values={"CV": 0.96}),
        ),
        assumptions=("poisson", "general_service", "one_at_a_time"),
    )


@formula("F29")
def little() -> Formula:
    """``N = λ·W``: 5.53 requests/s that stay 6.63 s are 36.7 requests in the system."""
    area, tau, count = symbols("A_req tau n_req")
    relation = equation(N, lam * W)
    return Formula(
        relation,
        derivation=(
            Definition("rate", equation(lam, count / tau)),
            Definition("stay", equation(W, area / count)),
            Definition("number", equation(N, area / tau)),
            Algebra("result", relation),
        ),
        assumptions=("stable", "counts_match"),
    )


@formula("F29a")
def time_in_system() -> Formula:
    """``W = TTFT + L·TPOT`` seconds."""
    relation = equation(W, TTFT + L / (one_token / one_request) * TPOT)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("mean_length",),
    )


@formula("F29b")
def kv_in_flight() -> Formula:
    """``N·n̄`` KV tokens in flight, each κ bytes."""
    tokens, ctx = symbols("N_flight ctx")
    relation = equation(tokens, lam * W * ctx)
    return Formula(
        relation,
        derivation=(
            Definition("number", equation(N, lam * W), formula="F29"),
            Definition("tokens", equation(tokens, N * ctx)),
            Algebra("result", relation),
        ),
        assumptions=("stable", "mean_context"),
    )


@formula("F34")
def shortest_first_wait() -> Formula:
    """``W(x) = λ·E[S²]/(2·(1 − ρ(x))²)``: only shorter jobs, load ρ(x), come before size x."""
    below, wait = symbols("rho_below W_sjf")
    relation = equation(wait, rate * S_sq / (2 * (1 - below) ** 2))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("later_for_longer", Relation(wait, rate * S_sq / 2, "≥")),),
        assumptions=("poisson", "sizes_known", "no_preemption"),
    )


@formula("F34a")
def fcfs_exponential() -> Formula:
    """Mean time in the system over E[S], FCFS, exponential sizes: 1/(1 − ρ)."""
    T = symbols("T_resp")[0]
    relation = equation(T, 1 / (1 - rho))
    return Formula(
        relation,
        derivation=(
            Definition("variation", equation(CV, 1)),
            Definition(
                "wait",
                equation(W_q, rho * S_mean * (1 + CV**2) / (2 * (1 - rho))),
                formula="F27a",
            ),
            Definition("time", equation(T, (S_mean + W_q) / S_mean)),
            Algebra("result", relation),
        ),
        assumptions=("poisson", "exponential_service", "one_at_a_time"),
    )


def _expected(load: float, response) -> float:
    """∫ response(x, load of jobs up to x) e^−x dx for exponential sizes of mean 1."""
    x, weights = _POINTS
    below = load * -np.expm1(-x) - load * x * np.exp(-x)  # ρ·(1 − e^−x·(1 + x))
    return float(np.sum(weights * np.exp(-x) * response(x, below)))


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """Gauss points on pieces of (0, 60), dense near 0."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.array([0.0, 0.5, 1, 2, 3, 4, 6, 8, 10, 13, 17, 22, 30, 40, 60])
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return (
        (middle[:, None] + half[:, None] * nodes).ravel(),
        (half[:, None] * weights).ravel(),
    )


_POINTS = _grid()


@formula("F34b")
def sjf_exponential() -> Formula:
    """Mean time in the system over E[S], shortest job first, exponential sizes."""
    T, x, W_x = symbols("T_resp")[0], sympy.Symbol("x"), sympy.Function("W")
    relation = equation(T, 1 + sympy.Integral(W_x(x) * sympy.exp(-x), (x, 0, oo)))
    return Formula(
        relation,
        algorithm=Algorithm(
            ("rho",),
            lambda v: 1.0 + _expected(v["rho"], lambda _, below: v["rho"] / (1 - below) ** 2),
        ),
        assumptions=("poisson", "exponential_service", "sizes_known", "no_preemption"),
    )


@formula("F34c")
def srpt_exponential() -> Formula:
    """Mean time in the system over E[S], shortest remaining time first, exponential sizes."""
    T, x, T_x = symbols("T_resp")[0], sympy.Symbol("x"), sympy.Function("T")
    relation = equation(T, sympy.Integral(T_x(x) * sympy.exp(-x), (x, 0, oo)))
    return Formula(
        relation,
        algorithm=Algorithm(("rho",), lambda v: _srpt(v["rho"])),
        assumptions=("poisson", "exponential_service", "sizes_known", "preemption_free"),
    )


def _srpt(load: float) -> float:
    """Schrage and Miller: the wait until a job first runs, and its time in service."""
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def served(x: np.ndarray) -> np.ndarray:
        t = x[:, None] / 2 * (1 + nodes)
        below = load * (1 - np.exp(-t) * (1 + t))
        return np.sum(weights / (1 - below), axis=1) * x / 2

    def response(x: np.ndarray, below: np.ndarray) -> np.ndarray:
        squares = 2 - np.exp(-x) * (x**2 + 2 * x + 2)  # ∫₀ˣ t² e^−t dt
        waited = load * (squares + x**2 * np.exp(-x)) / (2 * (1 - below) ** 2)
        return waited + served(x)

    return _expected(load, response)
