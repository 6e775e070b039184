"""Switching LoRA adapters: F36.

======  ==================================================================
F36     throughput when switches take time inside a quantum
F36a    throughput when switches come on top of the quantum
F36b    Δ with switches inside, F36c with switches on top
F36d    switches per quantum up to which Δ stays above a goal
F36e    bytes of an adapter, F36f time to load it
======

Real engines run different adapters in one batch and pay for missing ones, not for each quantum.
Sources: text A; Hu et al. (LoRA, 2022); derived here.
"""

from __future__ import annotations

from formulas.formula import Formula
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Assumption, Definition, Inequality
from formulas.symbols import symbols

X, X_sw, k, t_sw, q = symbols("X X_sw k_sw t_sw q_t")
X_old, Delta, Delta_sw, Delta_goal = symbols("X_old Delta Delta_sw Delta_goal")


@formula("F36")
def switching_inside() -> Formula:
    """``X' = X·(1 − k·t_sw/q)``: k switches of t_sw eat into a quantum of q seconds."""
    left = symbols("t_left")[0]
    relation = equation(X_sw, X * (1 - k * t_sw / q))
    return Formula(
        relation,
        derivation=(
            Definition("left", equation(left, q - k * t_sw)),
            Definition("tokens", equation(X_sw, X * left / q)),
            Algebra("result", relation),
        ),
        assumptions=("fixed_quantum", "switches_serial"),
    )


@formula("F36a")
def switching_on_top() -> Formula:
    """``X' = X/(1 + k·t_sw/q)``: the quantum's work is done, then the switches."""
    whole = symbols("t_whole")[0]
    relation = equation(X_sw, X / (1 + k * t_sw / q))
    return Formula(
        relation,
        derivation=(
            Definition("whole", equation(whole, q + k * t_sw)),
            Definition("tokens", equation(X_sw, X * q / whole)),
            Algebra("result", relation),
        ),
        consequences=(Inequality("milder", Relation(X_sw, X * (1 - k * t_sw / q), "≥")),),
        assumptions=("fixed_quantum", "switches_serial"),
    )


@formula("F36b")
def improvement_inside() -> Formula:
    """``Δ' = (1 + Δ)·(1 − k·t_sw/q) − 1``: 6.53 for text A's 0.8 ms in 10 ms."""
    relation = equation(Delta_sw, (1 + Delta) * (1 - k * t_sw / q) - 1)
    return Formula(
        relation,
        derivation=(
            Definition("before", equation(X, (1 + Delta) * X_old)),
            Definition("switching", equation(X_sw, X * (1 - k * t_sw / q)), formula="F36"),
            Definition("after", equation(Delta_sw, X_sw / X_old - 1)),
            Algebra("result", relation),
        ),
        assumptions=("fixed_quantum", "switches_serial", "old_without_switches"),
    )


@formula("F36c")
def improvement_on_top() -> Formula:
    """``Δ' = (1 + Δ)/(1 + k·t_sw/q) − 1``: 6.58 for text A's 0.8 ms beside 10 ms."""
    relation = equation(Delta_sw, (1 + Delta) / (1 + k * t_sw / q) - 1)
    return Formula(
        relation,
        derivation=(
            Definition("before", equation(X, (1 + Delta) * X_old)),
            Definition("switching", equation(X_sw, X / (1 + k * t_sw / q)), formula="F36a"),
            Definition("after", equation(Delta_sw, X_sw / X_old - 1)),
            Algebra("result", relation),
        ),
        assumptions=("fixed_quantum", "switches_serial", "old_without_switches"),
    )


@formula("F36d")
def most_switches() -> Formula:
    """``k = (1 − (1 + Δ_goal)/(1 + Δ))·q/t_sw``: Δ ≥ 6 allows 1.81 switches per quantum."""
    k_max = symbols("k_max")[0]
    balance = equation((1 + Delta) * (1 - k_max * t_sw / q) - 1, Delta_goal)
    relation = equation(k_max, (1 - (1 + Delta_goal) / (1 + Delta)) * q / t_sw)
    return Formula(
        relation,
        derivation=(Assumption("just_kept", balance), Algebra("result", relation, solves=balance)),
        assumptions=("fixed_quantum", "switches_serial", "old_without_switches"),
    )


@formula("F36e")
def adapter_bytes() -> Formula:
    """``b·n_L·r·Σ(d_in + d_out)`` bytes. 8B, rank 16: 27.3 MB (q, k, v, o), 83.9 MB (all)."""
    size, n_L, r, widths, b_w, numbers = symbols("M_lora n_L r_lora d_sum b_w v_lora")
    relation = equation(size, b_w * n_L * r * widths)
    return Formula(
        relation,
        derivation=(
            Definition("numbers", equation(numbers, r * widths)),
            Definition("bytes", equation(size, n_L * numbers * b_w)),
            Algebra("result", relation),
        ),
        assumptions=("two_thin_matrices",),
    )


@formula("F36f")
def adapter_load_time() -> Formula:
    """Bytes over the host link. 8B, 25 GB/s: 0.55 ms (rank 8, q k v o) to 13.4 ms (64, all)."""
    size, g, beta_h = symbols("M_lora g beta_h")
    relation = equation(t_sw, size / (g * beta_h))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("large_copies",),
    )
