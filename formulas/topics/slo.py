"""Latency metrics and admission: F28, F30 and F31.

======  ==================================================================
F28p    text B's condition for certain TTFT violations
F28     load that keeps a bound on the mean TTFT, F28a the load itself,
F28b    load that keeps it for a share of requests (P99),
F28c    arrival rate that KV memory allows, F28d queue cap in tokens,
F28e    time until an overloaded queue breaks the bound
F30     TPOT, F30a TTFT, F30b time from arrival to the last token
F31     goodput, F31a rate that keeps a TTFT bound for a share of requests,
F31b    price of a million output tokens
======

Seconds, tokens, requests per second. Sources: text B; DistServe (OSDI 2024) §1, §3.1; vLLM pull
request 49445 (queue cap); derived here.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import floor

from formulas.formula import Algorithm, Formula
from formulas.functions import LargestSuch
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Assumption, Definition, Inequality
from formulas.symbols import symbols
from formulas.topics.queues import waiting_probability

lam, rho, rho_max, s_mean, C_p, D, D_ttft, x = symbols(
    "lambda rho rho_max s_mean C_p D D_ttft x_ttft"
)
TTFT, TPOT, E2E, L_i, t_first, t_last, t_arr = symbols("TTFT TPOT E2E L_i t_first t_last t_arr")
one_token, one_request = symbols("one_token one_request")


@formula("F28p")
def admission_as_printed() -> Formula:
    """``λ·s̄_p > C_p·ρ_max``: text B says that TTFT then must be missed. It is instability."""
    relation = Relation(lam * s_mean, C_p * rho_max, ">")
    return Formula(
        relation,
        derivation=(Assumption("result", relation),),
        assumptions=("prefill_share",),
    )


@formula("F28")
def load_for_mean() -> Formula:
    """``ρ* = 2(x − 1)/(2x − 1)`` with x = D_ttft/D: 0.667 at x = 2, 0.889 at x = 5."""
    rho_star = symbols("rho_star")[0]
    bound = equation(D + rho_star * D / (2 * (1 - rho_star)), x * D)
    relation = equation(rho_star, 2 * (x - 1) / (2 * x - 1))
    z = sympy.Dummy("z", positive=True)
    y = sympy.Dummy("y", nonnegative=True)
    lower = relation.rhs / (1 + y)
    return Formula(
        relation,
        derivation=(Assumption("just_kept", bound), Algebra("result", relation, solves=bound)),
        consequences=(
            Inequality("always_below_one", Relation(rho_star, 1, "<"), given={x: 1 + z}),
            Inequality(
                "kept_below",
                Relation(D + rho * D / (2 * (1 - rho)), x * D, "≤"),
                given={rho: lower.xreplace({x: 1 + z}), x: 1 + z},
            ),
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


@formula("F28a")
def prefill_load() -> Formula:
    """``ρ = λ·s̄_p/(C_p·ρ_max)``: below 1 the queue is stable, which is needed but not enough."""
    load = symbols("rho_load")[0]
    brought, served = symbols("r_in r_out")
    relation = equation(load, lam * s_mean / (C_p * rho_max))
    return Formula(
        relation,
        derivation=(
            Definition("brought", equation(brought, lam * s_mean)),
            Definition("served", equation(served, C_p * rho_max)),
            Definition("load", equation(load, brought / served)),
            Algebra("result", relation),
        ),
        assumptions=("prefill_share",),
    )


@formula("F28b")
def load_for_quantile() -> Formula:
    """Largest load at which a share q keeps TTFT ≤ x·D. P99: 0.135 at x = 2, 0.561 at x = 5."""
    q, rho_q = symbols("q_share rho_q")
    kept = sympy.Function("P")(sympy.Le(TTFT, x * D))
    relation = equation(rho_q, LargestSuch(rho, sympy.Ge(kept, q)))
    return Formula(
        relation,
        algorithm=Algorithm(
            ("x_ttft", "q_share"), lambda v: load_for_share(v["x_ttft"], v["q_share"])
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


def load_for_share(bound: float, share: float) -> float:
    """Largest load of M/D/1 at which P(TTFT ≤ bound·D) ≥ share; 0 where there is none."""
    if bound < 1:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(48):
        middle = (low + high) / 2
        kept = waiting_probability(middle, bound - 1) >= share
        low, high = (middle, high) if kept else (low, middle)
    return low


@formula("F28c")
def rate_for_memory() -> Formula:
    """``λ ≤ ⌊M_kv/(κ·n̄)⌋/W``: Little's law gives the concurrency that memory must hold."""
    M_kv, kappa, ctx, W, B_max = symbols("M_kv kappa ctx W B_max")
    lam_max = symbols("lambda_max")[0]
    held = floor(M_kv / (kappa * ctx * one_request)) * one_request
    relation = equation(lam_max, held / W)
    return Formula(
        relation,
        derivation=(
            Definition("batch", equation(B_max, held)),
            Definition("little", equation(lam_max, B_max / W)),
            Algebra("result", relation),
        ),
        assumptions=("stable", "mean_context"),
    )


@formula("F28d")
def queue_cap() -> Formula:
    """``D_ttft·C_p`` queued tokens at most: whoever joins a longer queue is late already."""
    cap = symbols("N_queue")[0]
    balance = equation(cap / C_p, D_ttft)
    relation = equation(cap, D_ttft * C_p)
    return Formula(
        relation,
        derivation=(Assumption("just_kept", balance), Algebra("result", relation, solves=balance)),
        assumptions=("fcfs", "constant_prefill_rate"),
    )


@formula("F28e")
def time_to_violation() -> Formula:
    """``(D_ttft − D)·C_p/(λ·s̄_p − C_p)`` seconds until a growing queue breaks the bound."""
    t_break, backlog = symbols("t_break N_backlog")
    balance = equation(D + backlog / C_p, D_ttft)
    relation = equation(t_break, (D_ttft - D) * C_p / (lam * s_mean - C_p))
    return Formula(
        relation,
        derivation=(
            Definition("backlog", equation(backlog, (lam * s_mean - C_p) * t_break)),
            Assumption("just_broken", balance),
            Algebra("result", relation, solves=balance),
        ),
        assumptions=("fcfs", "constant_prefill_rate", "overload"),
    )


@formula("F30")
def time_per_output_token() -> Formula:
    """``TPOT = (t_last − t_first)/(L − 1)``: the mean of the gaps; undefined for one output."""
    span, gaps = symbols("t_span n_gaps")
    relation = equation(TPOT, (t_last - t_first) / (L_i / one_token - 1))
    return Formula(
        relation,
        derivation=(
            Definition("span", equation(span, t_last - t_first)),
            Definition("gaps", equation(gaps, L_i / one_token - 1)),
            Definition("mean", equation(TPOT, span / gaps)),
            Algebra("result", relation),
        ),
        assumptions=("own_outputs",),
    )


@formula("F30a")
def time_to_first_token() -> Formula:
    """``TTFT = t_first − t_arrival``: waiting in the queue is part of it."""
    queued, prefill, sampled = symbols("t_queue t_p t_smp")
    relation = equation(TTFT, t_first - t_arr)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(
            Definition("parts", equation(t_first, t_arr + queued + prefill + sampled)),
            Algebra("queue_counts", equation(TTFT, queued + prefill + sampled)),
        ),
    )


@formula("F30b")
def end_to_end() -> Formula:
    """``E2E = TTFT + (L − 1)·TPOT``: from arrival to the last token."""
    relation = equation(E2E, TTFT + (L_i / one_token - 1) * TPOT)
    return Formula(
        relation,
        derivation=(
            Definition("first", equation(TTFT, t_first - t_arr), formula="F30a"),
            Definition(
                "mean",
                equation(TPOT, (t_last - t_first) / (L_i / one_token - 1)),
                formula="F30",
            ),
            Definition("whole", equation(E2E, t_last - t_arr)),
            Algebra("result", relation),
        ),
        assumptions=("own_outputs",),
    )


@formula("F31")
def goodput_per_gpu() -> Formula:
    """``G = R_max/g``: largest rate with attainment of at least 90 %, per GPU.

    :func:`goodput` finds R_max from an attainment curve.
    """
    G, R_max, g = symbols("G_put R_max g")
    relation = equation(G, R_max / g)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("same_requests", "attainment_falls"),
    )


def goodput(
    attainment: Callable[[float], float],
    low: float,
    high: float,
    goal: float = 0.9,
    tolerance: float = 1e-3,
) -> float:
    """Largest rate between ``low`` and ``high`` with ``attainment(rate) ≥ goal``, by halving.

    Attainment on one seeded set of requests falls with the rate only approximately; the result is
    one edge, to within ``tolerance`` (relative). 0 where even ``low`` misses the goal.
    """
    if attainment(low) < goal:
        return 0.0
    if attainment(high) >= goal:
        return high
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (middle, high) if attainment(middle) >= goal else (low, middle)
    return low


@formula("F31a")
def rate_for_ttft() -> Formula:
    """``ρ_q(D_ttft/D)/D`` requests/s: M/D/1 keeps the bound for a share q up to this rate."""
    R, q = symbols("R_max q_share")
    kept = sympy.Function("P")(sympy.Le(TTFT, D_ttft))
    relation = equation(R, LargestSuch(lam, sympy.Ge(kept, q)))
    return Formula(
        relation,
        algorithm=Algorithm(
            ("D", "D_ttft", "q_share"),
            lambda v: load_for_share(v["D_ttft"] / v["D"], v["q_share"]) / v["D"],
        ),
        assumptions=("poisson", "equal_prompts", "one_at_a_time", "no_decode_interference"),
    )


@formula("F31b")
def price_of_a_million() -> Formula:
    """``10⁶·N_gpu·p_gpu/X``: 8 GPUs at 2 an hour and 5,000 tokens/s: 0.889 for a million."""
    price, gpus, p_gpu, X = symbols("c_M N_gpu p_gpu X")
    per_s = symbols("p_all")[0]
    relation = equation(price, 10**6 * one_token * gpus * p_gpu / X)
    return Formula(
        relation,
        derivation=(
            Definition("all", equation(per_s, gpus * p_gpu)),
            Definition("million", equation(price, per_s * (10**6 * one_token / X))),
            Algebra("result", relation),
        ),
        assumptions=("gpus_paid_always",),
    )
