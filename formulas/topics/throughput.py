"""Throughput of static and continuous batching: F12–F18, as printed and corrected.

======  ==================================================================
F12     static batching as text A prints it, tokens/s
F13     continuous batching as text A prints it, tokens/s
F14     the improvement Δ as text A prints it, a share (7.19 = 719 %)
F15     static batching: joint prefill, then decode until the longest ends
F16     share of rows computed for requests that have ended (padding)
F16a–d  mean of the longest of B outputs, by distribution of lengths
F17     continuous batching with prefill iterations of its own
F17a    the corrected improvement
F17b    share of time that goes into prefill
F18     bound for prefill and decode perfectly mixed, and its two parts
======

Times are seconds, lengths tokens per request, throughputs output tokens per second of one engine
with an endless queue. Sources: text A; Orca (OSDI 2022) §2; derived here.
"""

from __future__ import annotations

import math

import numpy as np
import sympy
from sympy import Function, Integral, Limit, Sum, harmonic, oo

from formulas import step
from formulas.formula import Algorithm, Formula
from formulas.functions import Largest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Definition, Inequality, Numeric
from formulas.symbols import symbols

B_s, B_d, L, L_in, L_max = symbols("B_s B_d L L_in L_max")
T_s, t_p, t_pB, t_d, t_ds = symbols("T_s t_p t_pB t_d t_ds")
X_old, X_new, X_s, X_c, X_h, Delta = symbols("X_old X_new X_s X_c X_h Delta")
Psi_a, b_w, kappa, ctx, g, P, eta_c, beta, eta_m = symbols(
    "Psi_a b_w kappa ctx g P eta_c beta eta_m"
)
one_token, one_request, one_flop = symbols("one_token one_request one_flop")
TOKEN_EACH = one_token / one_request
"""One token per request: what a decode iteration gives."""

SERVICE_CASE = {"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200}
"""Text A's customer-service numbers, with B_s as the unit of batch size."""

_z = sympy.Dummy("z", nonnegative=True)


@formula("F12")
def static_as_printed() -> Formula:
    """``X_old = B_s·L/(T_s·(L_in + L))``: a prompt is charged one iteration per token."""
    iterations, seconds = symbols("I_old t_old")
    relation = equation(X_old, B_s * L / (T_s * (L_in + L) / TOKEN_EACH))
    return Formula(
        relation,
        derivation=(
            Definition("iterations", equation(iterations, (L_in + L) / TOKEN_EACH)),
            Definition("seconds", equation(seconds, T_s * iterations)),
            Definition("throughput", equation(X_old, B_s * L / seconds)),
            Algebra("result", relation),
        ),
        assumptions=("equal_lengths", "constant_forward", "prompt_token_by_token"),
    )


@formula("F13")
def continuous_as_printed() -> Formula:
    """``X_new = B_d/T_s``: every iteration gives one token per request, prompts cost nothing."""
    iterations, seconds = symbols("I_new t_new")
    relation = equation(X_new, B_d * TOKEN_EACH / T_s)
    return Formula(
        relation,
        derivation=(
            Definition("iterations", equation(iterations, L / TOKEN_EACH)),
            Definition("seconds", equation(seconds, T_s * iterations)),
            Definition("throughput", equation(X_new, B_d * L / seconds)),
            Algebra("result", relation),
        ),
        assumptions=("constant_forward", "prompt_free", "endless_queue"),
    )


@formula("F14")
def improvement_as_printed() -> Formula:
    """``Δ = B_d·(L_in + L)/(B_s·L) − 1``: 7.188 for text A's numbers, of which 3.56 is bookkeeping.

    The limit test unmasks it: two equal schedulers (B_d = B_s) still differ by L_in/L.
    """
    X_alike, Delta_alike, batch, bookkeeping = symbols("X_alike Delta_alike G_batch G_book")
    relation = equation(Delta, B_d * (L_in + L) / (B_s * L) - 1)
    return Formula(
        relation,
        derivation=(
            Definition(
                "old",
                equation(X_old, B_s * L / (T_s * (L_in + L) / TOKEN_EACH)),
                formula="F12",
            ),
            Definition("new", equation(X_new, B_d * TOKEN_EACH / T_s), formula="F13"),
            Definition("improvement", equation(Delta, (X_new - X_old) / X_old)),
            Algebra("ratio", equation(Delta, X_new / X_old - 1)),
            Algebra("result", relation),
        ),
        consequences=(
            Definition("batch_factor", equation(batch, B_d / B_s)),
            Definition("bookkeeping_factor", equation(bookkeeping, (L_in + L) / L)),
            Algebra("factors", equation(Delta + 1, batch * bookkeeping)),
            Numeric("number", Relation(Delta, sympy.Float("7.188"), "≈"), values=SERVICE_CASE,
                    within=1e-6),
            Numeric("batch_number", Relation(batch, sympy.Float("2.3"), "≈"),
                    values=SERVICE_CASE, within=1e-6),
            Numeric("bookkeeping_number", Relation(bookkeeping, sympy.Float("3.56"), "≈"),
                    values=SERVICE_CASE, within=1e-6),
            Algebra("same_scheduler", equation(Delta, L_in / L), given={B_d: B_s}),
            step.Limit("long_prompts", equation(Limit(Delta, L_in, oo), oo)),
            Definition("alike", equation(X_alike, B_d * L / (T_s * (L_in + L) / TOKEN_EACH))),
            Definition("improvement_alike", equation(Delta_alike, X_alike / X_old - 1)),
            Algebra("charged_alike", equation(Delta_alike, B_d / B_s - 1)),
            Numeric("number_alike", Relation(Delta_alike, sympy.Float("1.3"), "≈"),
                    values=SERVICE_CASE, within=1e-6),
        ),
        assumptions=("equal_lengths", "constant_forward", "prompt_charged_to_one"),
    )  # fmt: skip


@formula("F15")
def static() -> Formula:
    """``X_s ≈ B_s·L/(t_p(B_s) + L_max·t_d(B_s))``: the batch lasts as long as its longest output.

    The first tokens come out of the prefill, so that L_max − 1 decode iterations follow; leaving
    the 1 out errs by less than 1/L_max.
    """
    t_batch = symbols("t_batch")[0]
    exact = B_s * L / (t_pB + (L_max / TOKEN_EACH - 1) * t_ds)
    relation = Relation(X_s, B_s * L / (t_pB + L_max / TOKEN_EACH * t_ds), "≈")
    unhindered = B_s * L / (t_pB + L / TOKEN_EACH * t_ds)
    return Formula(
        relation,
        derivation=(
            Definition("batch", equation(t_batch, t_pB + (L_max / TOKEN_EACH - 1) * t_ds)),
            Definition("throughput", equation(X_s, B_s * L / t_batch)),
            Algebra("exact", equation(X_s, exact)),
            Approximation("result", relation, within=0.05, where={
                L_max: (20.0, 2000.0), t_pB: (0.01, 1.0), t_ds: (0.01, 0.1)}),
        ),
        consequences=(
            Algebra("equal_lengths", equation(X_s, unhindered), given={L_max: L}),
            Inequality("longest", Relation(X_s, unhindered, "≤"), given={L_max: L + _z}),
            step.Limit("very_long", equation(Limit(X_s, L_max, oo), 0)),
        ),
        assumptions=("joint_prefill", "batch_stays", "endless_queue", "mean_decode_time"),
    )  # fmt: skip


@formula("F16")
def padding_waste() -> Formula:
    """``w = 1 − L/L_max``: rows that wait for the longest output of their batch."""
    w, rows, useful = symbols("w_pad rows useful_rows")
    relation = equation(w, 1 - L / L_max)
    return Formula(
        relation,
        derivation=(
            Definition("rows", equation(rows, B_s * L_max)),
            Definition("useful", equation(useful, B_s * L)),
            Definition("waste", equation(w, 1 - useful / rows)),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("never_negative", Relation(w, 0, "≥"), given={L_max: L + _z}),
            Algebra("none", equation(w, 0), given={L_max: L}),
            step.Limit("all", equation(Limit(w, L_max, oo), 1)),
        ),
        assumptions=("batch_stays",),
    )


@formula("F16a")
def longest_exponential() -> Formula:
    """``L_max = L·H(B_s)`` for exponential lengths; H(n) = 1 + 1/2 + … + 1/n. H(16) = 3.381.

    Without memory, the next of k running requests ends after L/k; the batch waits for all B_s.
    """
    k, B = sympy.Symbol("k", positive=True, integer=True), B_s / one_request
    gap = symbols("gap_k")[0]
    number = symbols("k_run")[0]
    relation = equation(L_max, L * harmonic(B))
    return Formula(
        relation,
        derivation=(
            Definition("gap", equation(gap, L / number)),
            Definition("gaps", equation(L_max, Sum(L / k, (k, 1, B)))),
            Algebra("result", relation),
        ),
        consequences=(
            Approximation(
                "logarithm",
                Relation(harmonic(B), sympy.log(B) + sympy.Float("0.5772") + 1 / (2 * B), "≈"),
                within=0.02,
                where={B_s: (2.0, 256.0)},
            ),
            Numeric("number", Relation(L_max / L, sympy.Float("3.381"), "≈"),
                    values={"B_s": 16, "L": 200}),
        ),
        assumptions=("exponential_lengths", "batch_stays"),
    )  # fmt: skip


@formula("F16b")
def longest_uniform() -> Formula:
    """``L_max = 2·L·B_s/(B_s + 1)`` for lengths uniform between 0 and 2·L."""
    x = symbols("x_len")[0]
    B = B_s / one_request
    tail = 1 - (x / (2 * L)) ** B
    relation = equation(L_max, 2 * L * B_s / (B_s + one_request))
    return Formula(
        relation,
        derivation=(
            Definition("tail", equation(L_max, Integral(tail, (x, 0, 2 * L)))),
            Algebra("result", relation),
        ),
        consequences=(step.Limit("many", equation(Limit(L_max, B_s, oo), 2 * L)),),
        assumptions=("uniform_lengths", "batch_stays"),
    )


@formula("F16c")
def longest_geometric() -> Formula:
    """Sum over the tail for geometric lengths: each token is the last with chance 1/L."""
    k = sympy.Symbol("k", nonnegative=True, integer=True)
    tail = 1 - (1 - (1 - TOKEN_EACH / L) ** k) ** (B_s / one_request)
    return Formula(
        equation(L_max, TOKEN_EACH * Sum(tail, (k, 0, oo))),
        algorithm=Algorithm(("B_s", "L"), _longest_geometric),
        assumptions=("geometric_lengths", "batch_stays"),
    )


def _longest_geometric(values) -> float:
    stay = 1.0 - 1.0 / values["L"]
    if stay <= 0:
        return 1.0
    # P(longest > k) falls below 1e-16 at the latest where B·stay^k does.
    reach = math.ceil((math.log(1e-16) - math.log(values["B_s"])) / math.log(stay)) + 1
    tokens = np.arange(reach)
    return float(np.sum(-np.expm1(values["B_s"] * np.log1p(-(stay ** tokens[1:])))) + 1.0)


@formula("F16d")
def longest_lognormal() -> Formula:
    """Integral over the tail for lognormal lengths with mean L and coefficient of variation CV."""
    x, F = symbols("x_len")[0], Function("F")
    tail = 1 - F(x) ** (B_s / one_request)
    return Formula(
        equation(L_max, Integral(tail, (x, 0, oo))),
        algorithm=Algorithm(("B_s", "L", "CV"), _longest_lognormal),
        assumptions=("lognormal_lengths", "batch_stays"),
    )


def _longest_lognormal(values) -> float:
    spread = math.sqrt(math.log1p(values["CV"] ** 2))
    if spread == 0:
        return values["L"]
    # With x = e^(μ + σy) the integral runs over y; far out F is 0 or 1 to the last digit.
    y = np.linspace(-12.0, 12.0 + 2 * spread, 20_001)
    normal = 0.5 * (1.0 + np.vectorize(math.erf)(y / math.sqrt(2.0)))
    x = np.exp(math.log(values["L"]) - spread**2 / 2 + spread * y)
    return float(x[0] + np.trapezoid((1.0 - normal ** values["B_s"]) * x * spread, y))


@formula("F17")
def continuous() -> Formula:
    """``X_c = 1/(t_d/B_d + t_p/L)``: decode shared by the batch, and one prefill per request.

    Check: Llama-3-8B on an A100, B_d = 37: 1,550 tokens/s.
    """
    N, total = symbols("N_done t_total")
    relation = equation(X_c, 1 / (t_d / (B_d * TOKEN_EACH) + t_p / (one_request * L)))
    return Formula(
        relation,
        derivation=(
            Definition(
                "time",
                equation(total, N / one_request * t_p + N * L / (B_d * TOKEN_EACH) * t_d),
            ),
            Definition("throughput", equation(X_c, N * L / total)),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("bound", Relation(X_c, B_d * TOKEN_EACH / t_d, "≤")),
            step.Limit("free_prefill", equation(Limit(X_c, t_p, 0, "+"), B_d * TOKEN_EACH / t_d)),
            step.Limit("long_outputs", equation(Limit(X_c, L, oo), B_d * TOKEN_EACH / t_d)),
        ),
        assumptions=("exclusive_prefill", "endless_queue", "constant_batch", "mean_decode_time"),
    )


@formula("F17a")
def improvement() -> Formula:
    """The corrected Δ, X_c/X_s − 1: it is 0 for two equal schedulers."""
    Delta_c = symbols("Delta_c")[0]
    shared = t_d / (B_d * TOKEN_EACH) + t_p / (one_request * L)
    relation = equation(Delta_c, (t_pB + L_max / TOKEN_EACH * t_ds) / (B_s * L * shared) - 1)
    return Formula(
        relation,
        derivation=(
            Definition(
                "static",
                Relation(X_s, B_s * L / (t_pB + L_max / TOKEN_EACH * t_ds), "≈"),
                formula="F15",
            ),
            Definition("continuous", equation(X_c, 1 / shared), formula="F17"),
            Definition("improvement", equation(Delta_c, X_c / X_s - 1)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "same_scheduler",
                equation(Delta_c, 0),
                given={B_d: B_s, L_max: L, t_ds: t_d, t_pB: B_s / one_request * t_p},
            ),
        ),
        assumptions=("exclusive_prefill", "joint_prefill", "batch_stays", "endless_queue"),
    )


@formula("F17b")
def prefill_share() -> Formula:
    """Share of the time of continuous batching that goes into prefill iterations."""
    share = symbols("phi_p")[0]
    decode, prefill = t_d / (B_d * TOKEN_EACH), t_p / (one_request * L)
    relation = equation(share, prefill / (decode + prefill))
    return Formula(
        relation,
        derivation=(
            Definition("continuous", equation(X_c, 1 / (decode + prefill)), formula="F17"),
            Definition("share", equation(share, prefill * X_c)),
            Algebra("result", relation),
        ),
        assumptions=("exclusive_prefill", "constant_batch"),
    )


@formula("F18")
def hybrid_bound() -> Formula:
    """``X_h = 1/max(c_tok, m_tok)``: neither compute nor memory can be busy more than always."""
    c_tok, m_tok = symbols("c_tok m_tok")
    relation = equation(X_h, 1 / Largest(c_tok, m_tok))
    seconds = symbols("t_tok")[0]
    return Formula(
        relation,
        derivation=(
            Definition("slower", equation(seconds, Largest(c_tok, m_tok))),
            Definition("throughput", equation(X_h, 1 / seconds)),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("compute", Relation(X_h, 1 / c_tok, "≤")),
            Inequality("memory", Relation(X_h, 1 / m_tok, "≤")),
        ),
        assumptions=("perfect_overlap", "no_fixed_time", "constant_batch"),
    )


@formula("F18a")
def compute_per_token() -> Formula:
    """``c_tok = 2·Ψ_a·(1 + L_in/L)/(g·P·η_c)``: an output token brings L_in/L prompt tokens."""
    c_tok, tokens, work = symbols("c_tok tok_per_out F_out")
    relation = equation(c_tok, 2 * one_flop * Psi_a * (1 + L_in / L) / one_token / (g * P * eta_c))
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(tokens, 1 + L_in / L)),
            Definition("work", equation(work, 2 * one_flop / one_token * Psi_a * tokens)),
            Definition("seconds", equation(c_tok, work / (g * P * eta_c))),
            Algebra("result", relation),
        ),
        assumptions=("linear_work_only", "constant_efficiency"),
    )


@formula("F18b")
def memory_per_token() -> Formula:
    """``m_tok = (b_w·Ψ_a/B_d + κ·ctx)/(g·β·η_m)``: weights are shared, a context is not."""
    m_tok, read = symbols("m_tok Q_out")
    each = b_w * Psi_a / (B_d * TOKEN_EACH) + kappa * ctx / TOKEN_EACH
    relation = equation(m_tok, each / (g * beta * eta_m))
    return Formula(
        relation,
        derivation=(
            Definition("bytes", equation(read, each)),
            Definition("seconds", equation(m_tok, read / (g * beta * eta_m))),
            Algebra("result", relation),
        ),
        assumptions=("constant_efficiency", "constant_batch"),
    )
