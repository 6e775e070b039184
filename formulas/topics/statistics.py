"""Statistics of an A/B test: F33.

======  ==================================================================
F33     Welch's t, F33a its degrees of freedom
F33b    samples per arm for a difference, F33c smallest difference seen
F33d    independent samples that correlated ones are worth
F33e    bound on a rate when nothing was seen (rule of three)
======

Tests here are one-sided: is the new scheduler better? σ is the standard deviation of one sample.
Sources: Welch 1947; Hanley and Lippman-Hand 1983.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import sympy
from sympy import Function, log, sqrt

from formulas.formula import Algorithm, Formula
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Assumption, Definition, Numeric
from formulas.symbols import symbols

m_1, m_2, s_1, s_2, n_1, n_2 = symbols("m_1 m_2 s_1 s_2 n_1 n_2")
alpha, power, sigma, delta, n_arm = symbols("alpha_sig power sigma delta n_arm")


@formula("F33")
def welch_t() -> Formula:
    """``t = (m₁ − m₂)/√(s₁²/n₁ + s₂²/n₂)``: difference over its standard error."""
    t, error = symbols("t_welch se")
    relation = equation(t, (m_1 - m_2) / sqrt(s_1**2 / n_1 + s_2**2 / n_2))
    return Formula(
        relation,
        derivation=(
            Definition("error", equation(error, sqrt(s_1**2 / n_1 + s_2**2 / n_2))),
            Definition("ratio", equation(t, (m_1 - m_2) / error)),
            Algebra("result", relation),
        ),
        assumptions=("independent_samples", "means_nearly_normal"),
    )


@formula("F33a")
def welch_degrees() -> Formula:
    """Degrees of freedom after Welch and Satterthwaite; 2·(n − 1) for equal arms."""
    df, a, b = symbols("df v_1 v_2")
    shape = (a + b) ** 2 / (a**2 / (n_1 - 1) + b**2 / (n_2 - 1))
    relation = equation(df, shape.xreplace({a: s_1**2 / n_1, b: s_2**2 / n_2}))
    return Formula(
        relation,
        derivation=(
            Definition("first", equation(a, s_1**2 / n_1)),
            Definition("second", equation(b, s_2**2 / n_2)),
            Definition("degrees", equation(df, shape)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("equal_arms", equation(df, 2 * (n_1 - 1)), given={n_2: n_1, s_2: s_1}),
        ),
        assumptions=("independent_samples", "means_nearly_normal"),
    )


@formula("F33b")
def samples_per_arm() -> Formula:
    """``n = 2·((z_{1−α} + z_power)·σ/δ)²``: 104 for 5 % at CV 10 %, α = .01, power .9."""
    z = Function("z")
    relation = equation(n_arm, 2 * ((z(1 - alpha) + z(power)) * sigma / delta) ** 2)
    return Formula(
        relation,
        algorithm=Algorithm(
            ("alpha_sig", "power", "sigma", "delta"),
            lambda v: (
                2
                * ((_normal(1 - v["alpha_sig"]) + _normal(v["power"])) * v["sigma"] / v["delta"])
                ** 2
            ),
        ),
        assumptions=("independent_samples", "one_sided"),
    )


@formula("F33c")
def smallest_difference() -> Formula:
    """``δ = (t_{1−α,2n−2} + z_power)·σ·√(2/n)``: 1.883·σ with 7 days an arm at α = .01."""
    z, t = Function("z"), Function("t")
    relation = equation(delta, (t(1 - alpha, 2 * n_arm - 2) + z(power)) * sigma * sqrt(2 / n_arm))
    return Formula(
        relation,
        algorithm=Algorithm(
            ("alpha_sig", "power", "sigma", "n_arm"),
            lambda v: (
                (t_quantile(1 - v["alpha_sig"], 2 * v["n_arm"] - 2) + _normal(v["power"]))
                * v["sigma"]
                * math.sqrt(2 / v["n_arm"])
            ),
        ),
        assumptions=("independent_samples", "one_sided"),
    )


@formula("F33d")
def effective_samples() -> Formula:
    """``n·(1 − r)/(1 + r)``: 168 hourly means with r = .8 are worth 18.7 independent ones."""
    n_eff, n, r, inflation = symbols("n_eff n_smp r_auto v_infl")
    relation = equation(n_eff, n * (1 - r) / (1 + r))
    return Formula(
        relation,
        derivation=(
            Definition("inflation", equation(inflation, 1 + 2 * r / (1 - r))),
            Definition("worth", equation(n_eff, n / inflation)),
            Algebra("result", relation),
        ),
        assumptions=("first_order_correlation", "many_samples"),
    )


@formula("F33e")
def rule_of_three() -> Formula:
    """``p ≤ −ln(α)/n``, 3/n at α = .05: 3,000 interruptions without a drop show < 0.1 %."""
    p, n, exact = symbols("p_up n_smp p_exact")
    balance = equation((1 - exact) ** n, alpha)
    relation = Relation(p, -log(alpha) / n, "≈")
    return Formula(
        relation,
        derivation=(
            Assumption("nothing_seen", balance),
            Algebra("exact", equation(exact, 1 - alpha ** (1 / n)), solves=balance),
            Approximation(
                "result",
                relation,
                of=1 - alpha ** (1 / n),
                within=0.05,
                where={n: (100.0, 1e5), alpha: (0.001, 0.05)},
            ),
        ),
        consequences=(
            Numeric("three", Relation(p * n, sympy.Float("3.0"), "≈"),
                    values={"alpha_sig": 0.05, "n_smp": 1000}),
        ),
        assumptions=("independent_samples", "nothing_seen"),
    )  # fmt: skip


def _normal(share: float) -> float:
    if not 0 < share < 1:
        return math.inf if share >= 1 else -math.inf
    return NormalDist().inv_cdf(share)


def t_distribution(x: float, df: float) -> float:
    """P(T ≤ x) of Student's t: a normal whose scale is random, integrated over the scale."""
    # s² = χ²/df lies around 1; the grid covers all of it that counts for df ≥ 1.
    s, weights = _scales(df)
    normal = 0.5 * (1.0 + np.vectorize(math.erf)(x * s / math.sqrt(2.0)))
    return float(np.sum(weights * normal))


@lru_cache(maxsize=256)
def _scales(df: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the distribution of √(χ²/df)."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    high = 1.0 + 12.0 / math.sqrt(2.0 * df)
    s = high / 2 * (1 + nodes)
    log_density = (
        math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
        + (df - 1) * np.log(s) - df * s**2 / 2
    )  # fmt: skip
    return s, weights * high / 2 * np.exp(log_density)


@lru_cache(maxsize=1024)
def t_quantile(share: float, df: float) -> float:
    """The x with P(T ≤ x) = share; df at least 1."""
    if not 0 < share < 1 or df < 1:
        return math.nan
    low, high = -1.0, 1.0
    while t_distribution(low, df) > share:
        low *= 2
    while t_distribution(high, df) < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_distribution(middle, df) < share else (low, middle)
    return high
