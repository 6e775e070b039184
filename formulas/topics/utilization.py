"""Utilization and what it can explain: F38.

======  ==================================================================
F38     most that a busier GPU can gain, F38a what removing idle time gains
F38b    factor that a busier GPU leaves unexplained
F38c    MFU, share of peak compute; F38d MBU, share of peak bandwidth
======

Residency (a kernel runs), MFU and MBU are three different utilizations. Sources: Amdahl 1967;
derived here.
"""

from __future__ import annotations

import sympy
from sympy import Limit

from formulas import step
from formulas.formula import Formula
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Definition, Inequality
from formulas.symbols import symbols

u_old, u_new, gain, f, r = symbols("u_old u_new G_u f_idle r_idle")
one_token, one_flop = symbols("one_token one_flop")


@formula("F38")
def utilization_bound() -> Formula:
    """``u_new/u_old``: from 65 % to 92 % busy is at most 1.415 times as much."""
    X_old, X_new, X_busy = symbols("X_old X_new X_busy")
    relation = equation(gain, u_new / u_old)
    return Formula(
        relation,
        derivation=(
            Definition("before", equation(X_old, u_old * X_busy)),
            Definition("after", equation(X_new, u_new * X_busy)),
            Definition("gain", equation(gain, X_new / X_old)),
            Algebra("result", relation),
        ),
        assumptions=("same_rate_when_busy",),
    )


@formula("F38a")
def idle_removed() -> Formula:
    """``1/(1 − f·r)``: removing a share r of the idle share f. At f = 0.35 at most 1.54."""
    time = symbols("t_rel")[0]
    relation = equation(gain, 1 / (1 - f * r))
    odds = sympy.Dummy("z", positive=True)
    return Formula(
        relation,
        derivation=(
            Definition("time", equation(time, 1 - f * r)),
            Definition("gain", equation(gain, 1 / time)),
            Algebra("result", relation),
        ),
        consequences=(
            step.Limit("all_removed", equation(Limit(gain, r, 1, "-"), 1 / (1 - f))),
            Inequality(
                "ceiling",
                Relation(gain, 1 / (1 - f), "≤"),
                given={f: 1 / (1 + odds)},
            ),
        ),
        assumptions=("same_rate_when_busy",),
    )


@formula("F38b")
def unexplained_factor() -> Formula:
    """``(1 + Δ)/(u_new/u_old)``: of text A's 8.188 times 5.785 remain unexplained."""
    Delta, rest = symbols("Delta G_rest")
    relation = equation(rest, (1 + Delta) * u_old / u_new)
    return Formula(
        relation,
        derivation=(
            Definition("gain", equation(gain, u_new / u_old), formula="F38"),
            Definition("rest", equation(rest, (1 + Delta) / gain)),
            Algebra("result", relation),
        ),
        assumptions=("same_rate_when_busy",),
    )


@formula("F38c")
def mfu() -> Formula:
    """``2·Ψ_a·X_tok/(g·P)``: useful FLOP over peak. 8B, A100, B = 37 decode: 14 %."""
    share, Psi_a, X_tok, g, P, work = symbols("MFU Psi_a X_tok g P F_rate")
    relation = equation(share, 2 * one_flop / one_token * Psi_a * X_tok / (g * P))
    return Formula(
        relation,
        derivation=(
            Definition("work", equation(work, 2 * one_flop / one_token * Psi_a * X_tok)),
            Definition("share", equation(share, work / (g * P))),
            Algebra("result", relation),
        ),
        assumptions=("attention_ignored",),
    )


@formula("F38d")
def mbu() -> Formula:
    """``Q/(t_iter·g·β)``: bytes read over what could be read. 8B, A100, B = 37 decode: 68 %."""
    share, Q, t_iter, g, beta = symbols("MBU Q t_iter g beta")
    relation = equation(share, Q / (t_iter * g * beta))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("bytes_read_once",),
    )
