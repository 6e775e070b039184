"""Preemption: compute again or swap, and where they cost the same: F23–F25 and F40.

======  ==================================================================
F23p    recompute work as text B prints it, F23q its expectation
F23     recompute work with attention, F23a its time,
F23b    expected work when preempted at most once, F23c again and again
F24p    swap time as text B prints it
F24     swap time, F24a with a cost for every small copy
F25p    text B's crossover: its two costs have a constant ratio
F25     length n* at which recompute stops winning (F_s = F_r, R̂ > 1)
F25a    R̂, swap over recompute per token; F25b of multi-head attention
F25c    crossover at R̂ < 1 from fixed costs, F25d all crossovers
F25e    host bandwidth at which R̂ = 1
F25f    hidden size at which R̂ = 1 (multi-head attention)
F25g    recompute FLOP per freed byte, F25h freed block-seconds per FLOP
F40     tokens that a deadline lets through, F40a time of a full copy,
F40b    of the dirty tail, F40c bandwidth of copying all the time
======

Per request, seconds; g GPUs have a host link and P each. ``w`` is 2 for out and in, 1 for in alone.
Sources: text B; vLLM (SOSP 2023) §4.5, §7.3; derived here.
"""

from __future__ import annotations

import math

import sympy
from sympy import Limit, ceiling, oo, sqrt

from formulas import step
from formulas.formula import Formula
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Assumption, Definition, Inequality
from formulas.symbols import symbols
from formulas.topics.work import PER_PAIR, PER_TOKEN, prompt_work

n, s_p, s_g, p, w, kappa, M_kv = symbols("n s_p s_g p w kappa M_kv")
Psi, Psi_a, n_L, d_a, d, b_w = symbols("Psi Psi_a n_L d_a d b_w")
g, P, eta_c, beta_h = symbols("g P eta_c beta_h")
C_rec, C_exp, t_rec, t_swap, F_r, F_s = symbols("C_rec C_exp t_rec t_swap F_r F_s")
R_hat, r_tok, s_tok, a_sq, n_star = symbols("R_hat r_tok s_tok a_sq n_star")
one_token, one_flop = symbols("one_token one_flop")

r_slope = 2 * PER_TOKEN * Psi_a / (g * P * eta_c)
s_slope = w * kappa / (g * beta_h)
square = 2 * PER_PAIR * n_L * d_a / (g * P * eta_c)
_z = sympy.Dummy("z", positive=True)


@formula("F23p")
def recompute_as_printed() -> Formula:
    """``2·(s_p + s_g)·Ψ``: the linear part alone. 8B, 512 + 200 tokens: 1.1435e13 FLOP."""
    relation = equation(C_rec, 2 * PER_TOKEN * (s_p + s_g) * Psi)
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(n, s_p + s_g)),
            Definition("work", equation(C_rec, 2 * PER_TOKEN * Psi * n)),
            Algebra("result", relation),
        ),
        assumptions=("dense_model", "attention_ignored"),
    )


@formula("F23q")
def expected_recompute_as_printed() -> Formula:
    """``p·2·(s_p + s_g)·Ψ``: right if a request is preempted at most once."""
    relation = equation(C_exp, p * 2 * PER_TOKEN * (s_p + s_g) * Psi)
    return Formula(
        relation,
        derivation=(
            Definition("work", equation(C_rec, 2 * PER_TOKEN * (s_p + s_g) * Psi), formula="F23p"),
            Definition("expected", equation(C_exp, p * C_rec)),
            Algebra("result", relation),
        ),
        assumptions=("preempted_once", "attention_ignored"),
    )


@formula("F23")
def recompute_work() -> Formula:
    """``C_rec ≈ 2·Ψ_a·n + 2·n_L·d_a·n²`` FLOP for a context of n = s_p + s_g tokens."""
    relation = Relation(C_rec, prompt_work(n), "≈")
    f_lin = 2 * PER_TOKEN * Psi_a
    exact = f_lin * n + 2 * PER_PAIR * n_L * d_a * n * (n + one_token)
    share = symbols("a_share")[0]
    return Formula(
        relation,
        derivation=(
            Definition("prefill", equation(C_rec, exact)),
            Approximation("result", relation, of=exact, within=0.002, where={n: (64.0, 32768.0)}),
        ),
        consequences=(
            Definition("share", equation(share, n * n_L * d_a / (Psi_a * one_token)),
                       formula="F2d"),
            Algebra("with_share", equation(C_rec, f_lin * n * (1 + share))),
            Inequality("dearer_than_printed", Relation(C_rec, f_lin * n, ">")),
        ),
        assumptions=("two_flop_per_parameter", "softmax_ignored", "no_prefix_hit"),
    )  # fmt: skip


@formula("F23a")
def recompute_time() -> Formula:
    """``F_r + (2·Ψ_a·n + 2·n_L·d_a·n²)/(g·P·η_c)`` seconds. 8B on an A100, 712 tokens: 74 ms."""
    relation = equation(t_rec, F_r + prompt_work(n) / (g * P * eta_c))
    return Formula(
        relation,
        derivation=(
            Definition("work", Relation(C_rec, prompt_work(n), "≈"), formula="F23"),
            Definition("time", equation(t_rec, F_r + C_rec / (g * P * eta_c))),
            Algebra("result", relation),
        ),
        assumptions=("compute_bound", "constant_efficiency", "no_prefix_hit"),
    )


@formula("F23b")
def expected_recompute_once() -> Formula:
    """``p·C_rec``: expected extra work when a request is preempted at most once."""
    relation = equation(C_exp, p * C_rec)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("preempted_once",),
    )


@formula("F23c")
def expected_recompute_repeated() -> Formula:
    """``p/(1 − p)·C_rec`` when every attempt runs the same risk; p = 0.5 doubles the work."""
    chain = equation(C_exp, p * (C_rec + C_exp))
    relation = equation(C_exp, p / (1 - p) * C_rec)
    return Formula(
        relation,
        derivation=(Assumption("again", chain), Algebra("result", relation, solves=chain)),
        consequences=(
            Inequality("more_than_once", Relation(relation.rhs, p * C_rec, ">")),
            step.Limit("certain", equation(Limit(relation.rhs, p, 1, "-"), oo)),
        ),
        assumptions=("same_risk_again",),
    )


@formula("F24p")
def swap_as_printed() -> Formula:
    """``M_kv/β_pcie`` with 64 GB/s: one way, no fixed cost, twice the real bandwidth."""
    beta_pcie, bytes_kv = symbols("beta_pcie m_kv")
    relation = equation(t_swap, bytes_kv / beta_pcie)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("one_way", "no_fixed_cost"),
    )


@formula("F24")
def swap_time() -> Formula:
    """``F_s + w·κ·n/(g·β_h)`` seconds. 8B on an A100: 5.4 ms for 512 tokens, out and in."""
    moved = symbols("Q_swap")[0]
    relation = equation(t_swap, F_s + w * kappa * n / (g * beta_h))
    return Formula(
        relation,
        derivation=(
            Definition("bytes", equation(moved, w * kappa * n)),
            Definition("time", equation(t_swap, F_s + moved / (g * beta_h))),
            Algebra("result", relation),
        ),
        assumptions=("large_copies", "host_memory_free"),
    )


@formula("F24a")
def swap_time_with_copies() -> Formula:
    """F24 and δ seconds for each copy: 2·n_L pieces a block, ``w·2·n_L·δ·n/bs`` in all."""
    bs, delta, copies = symbols("bs delta_copy n_copy")
    relation = equation(t_swap, F_s + w * kappa * n / (g * beta_h) + 2 * w * n_L * delta * n / bs)
    return Formula(
        relation,
        derivation=(
            Definition("copies", equation(copies, 2 * w * n_L * n / bs)),
            Definition(
                "time",
                equation(t_swap, F_s + w * kappa * n / (g * beta_h) + delta * copies),
            ),
            Algebra("result", relation),
        ),
        assumptions=("paged", "copies_one_after_another"),
    )


@formula("F25p")
def crossover_as_printed() -> Formula:
    """Text B's two costs, ``2·n·Ψ/(g·P·η_c)`` and ``κ·n/β_pcie``: their ratio has no n in it."""
    ratio, beta_pcie = symbols("R_txt beta_pcie")
    relation = equation(ratio, kappa * g * P * eta_c / (2 * PER_TOKEN * Psi * beta_pcie))
    return Formula(
        relation,
        derivation=(
            Definition("swap", equation(t_swap, kappa * n / beta_pcie)),
            Definition("recompute", equation(t_rec, 2 * PER_TOKEN * Psi * n / (g * P * eta_c))),
            Definition("ratio", equation(ratio, t_swap / t_rec)),
            Algebra("result", relation),
        ),
        assumptions=("attention_ignored", "no_fixed_cost"),
    )


@formula("F25")
def crossover() -> Formula:
    """``n* = (R̂ − 1)·Ψ_a/(n_L·d_a)``: above it swap wins, where fixed costs are equal and R̂ > 1.

    Check: Llama-2-7B, an H100's link shared by two: R̂ = 1.539, n* = 27,698 tokens.
    """
    recompute = 2 * PER_TOKEN * Psi_a * n_star / (g * P * eta_c) + square * n_star**2
    swap = w * kappa * n_star / (g * beta_h)
    balance = equation(recompute, swap)
    relation = equation(n_star, (R_hat - 1) * Psi_a * one_token / (n_L * d_a))
    return Formula(
        relation,
        derivation=(
            Definition(
                "ratio",
                equation(R_hat, w * kappa * P * eta_c / (2 * PER_TOKEN * Psi_a * beta_h)),
                formula="F25a",
            ),
            Assumption("equal", balance),
            Algebra("result", relation, solves=balance),
        ),
        consequences=(
            step.Limit(
                "very_long",
                equation(
                    Limit((r_slope * n + square * n**2) / (s_slope * n), n, oo),
                    oo,
                ),
            ),
        ),
        assumptions=("equal_fixed_costs", "large_copies", "compute_bound"),
    )


@formula("F25a")
def swap_over_recompute() -> Formula:
    """``R̂ = w·κ·P·η_c/(2·Ψ_a·β_h)``: swap over linear recompute, per token; g cancels."""
    relation = equation(R_hat, w * kappa * P * eta_c / (2 * PER_TOKEN * Psi_a * beta_h))
    return Formula(
        relation,
        derivation=(
            Definition("swap", equation(s_tok, s_slope)),
            Definition("recompute", equation(r_tok, r_slope)),
            Definition("ratio", equation(R_hat, s_tok / r_tok)),
            Algebra("result", relation),
        ),
        assumptions=("large_copies", "compute_bound"),
    )


@formula("F25b")
def swap_over_recompute_multi_head() -> Formula:
    """``R̂ = w·P·η_c/(6·d·β_h)`` at bf16 for multi-head attention with Ψ = 12·n_L·d²."""
    b_kv = symbols("b_kv")[0]
    relation = equation(R_hat, w * b_kv * P * eta_c / (12 * one_flop * d * beta_h))
    return Formula(
        relation,
        derivation=(
            Definition("kv", equation(kappa, 2 * n_L * d * b_kv / one_token)),
            Definition("parameters", equation(Psi_a, 12 * n_L * d**2)),
            Definition(
                "ratio",
                equation(R_hat, w * kappa * P * eta_c / (2 * PER_TOKEN * Psi_a * beta_h)),
                formula="F25a",
            ),
            Algebra("result", relation),
        ),
        assumptions=("plain_layers", "large_copies", "compute_bound"),
    )


@formula("F25c")
def crossover_from_fixed_costs() -> Formula:
    """``n_0 ≈ (F_s − F_r)/(r − s)``: below it recompute wins though R̂ < 1. Tens to hundreds."""
    n_0 = symbols("n_0")[0]
    relation = Relation(n_0, (F_s - F_r) / (r_tok - s_tok), "≈")
    gap, slope = F_s - F_r, r_tok - s_tok
    exact = (-slope + sqrt(slope**2 + 4 * a_sq * gap)) / (2 * a_sq)
    balance = equation(F_r + r_tok * n_0 + a_sq * n_0**2, F_s + s_tok * n_0)
    return Formula(
        relation,
        derivation=(
            Assumption("equal", balance),
            Algebra("root", equation(n_0, exact), solves=balance),
            Approximation(
                "result",
                relation,
                within=0.02,
                where={
                    F_s: (1e-3, 2e-2),
                    F_r: (0.0, 0.0),
                    r_tok: (1e-4, 2e-4),
                    s_tok: (1e-5, 5e-5),
                    a_sq: (8e-10, 2e-9),
                },
            ),
        ),
        assumptions=("short_context", "compute_bound"),
    )


@formula("F25d")
def crossover_general() -> Formula:
    """The larger root of R(n) = S(n): from there on swap wins for good. Tokens.

    ``crossovers`` tells the whole story: which of the two wins where.
    """
    gap, slope = F_s - F_r, r_tok - s_tok
    balance = equation(F_r + r_tok * n_star + a_sq * n_star**2, F_s + s_tok * n_star)
    relation = equation(n_star, (-slope + sqrt(slope**2 + 4 * a_sq * gap)) / (2 * a_sq))
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("compute_bound",),
    )


def crossovers(values) -> tuple[str, tuple[float, ...]]:
    """Who wins where: the case and the lengths (tokens) at which the winner changes.

    ``values`` has F_s and F_r (s), r_tok and s_tok (s/token), a_sq (s/token²). Cases:
    "swap_always" (); "recompute_then_swap" (n₀,); "swap_recompute_swap" (n₋, n₊), a window in
    which recompute wins. With R(n) − S(n) = (F_r − F_s) + (r − s)·n + a·n² these are all.
    """
    gap = values["F_s"] - values["F_r"]
    slope, square = values["r_tok"] - values["s_tok"], values["a_sq"]
    inside = slope**2 + 4 * square * gap
    if gap > 0 or (gap == 0 and slope < 0):
        return "recompute_then_swap", ((math.sqrt(inside) - slope) / (2 * square),)
    if slope >= 0 or inside <= 0:
        return "swap_always", ()
    root = math.sqrt(inside)
    return "swap_recompute_swap", ((-slope - root) / (2 * square), (-slope + root) / (2 * square))


@formula("F25e")
def break_even_bandwidth() -> Formula:
    """Host bandwidth per GPU at which R̂ = 1: below it recompute is cheaper per token."""
    balance = equation(w * kappa / (g * beta_h), r_slope)
    relation = equation(beta_h, w * kappa * P * eta_c / (2 * PER_TOKEN * Psi_a))
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("large_copies", "compute_bound"),
    )


@formula("F25f")
def critical_hidden_size() -> Formula:
    """Hidden size at which R̂ = 1 for multi-head attention: A100 2,080, H100 3,297."""
    b_kv = symbols("b_kv")[0]
    balance = equation(w * b_kv * P * eta_c / (12 * one_flop * d * beta_h), 1)
    relation = equation(d, w * b_kv * P * eta_c / (12 * one_flop * beta_h))
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("plain_layers", "large_copies", "compute_bound"),
    )


@formula("F25g")
def work_per_freed_byte() -> Formula:
    """``2·Ψ_a/κ·(1 + n·n_L·d_a/Ψ_a)`` FLOP per byte: to first order the length does not matter."""
    cost, freed = symbols("c_freed m_kv")
    share = n * n_L * d_a / (Psi_a * one_token)
    relation = equation(cost, 2 * PER_TOKEN * Psi_a / kappa * (1 + share))
    return Formula(
        relation,
        derivation=(
            Definition("freed", equation(freed, kappa * n)),
            Definition("work", Relation(C_rec, prompt_work(n), "≈"), formula="F23"),
            Definition("ratio", equation(cost, C_rec / freed)),
            Algebra("result", relation),
        ),
        consequences=(
            step.Limit("short", equation(Limit(cost, n, 0, "+"), 2 * PER_TOKEN * Psi_a / kappa)),
        ),
        assumptions=("two_flop_per_parameter", "no_prefix_hit"),
    )


@formula("F25h")
def freed_block_seconds() -> Formula:
    """``⌈n/bs⌉·n_left·t_d/C_rec``: blocks freed times the seconds until they were free anyway.

    Check: 64 blocks with 500 tokens of 20 ms to come and 1e13 FLOP to redo: 6.4e-11 s/FLOP.
    """
    benefit, blocks, n_left, stay, t_d, bs = symbols("v_freed N_blk n_left t_hold t_d bs")
    relation = equation(benefit, ceiling(n / bs) * n_left * t_d / (one_token * C_rec))
    return Formula(
        relation,
        derivation=(
            Definition("blocks", equation(blocks, ceiling(n / bs)), formula="F10"),
            Definition("stay", equation(stay, n_left * t_d / one_token)),
            Definition("ratio", equation(benefit, blocks * stay / C_rec)),
            Algebra("result", relation),
        ),
        assumptions=("paged", "output_known", "blocks_stay"),
    )


@formula("F40")
def checkpoint_tokens() -> Formula:
    """``n_max = β·t/κ`` tokens copied within a deadline: 1,907 in 10 ms (8B, 25 GB/s)."""
    beta_link, deadline, n_fit, g_ = symbols("beta_link t_dead n_fit g")
    balance = equation(kappa * n_fit / (g_ * beta_link), deadline)
    relation = equation(n_fit, g_ * beta_link * deadline / kappa)
    return Formula(
        relation,
        derivation=(Assumption("deadline", balance), Algebra("result", relation, solves=balance)),
        assumptions=("large_copies",),
    )


@formula("F40a")
def checkpoint_time() -> Formula:
    """``κ·n/(g·β)`` seconds to copy a whole context. 8B, 40,960 tokens, 25 GB/s: 215 ms."""
    beta_link, seconds = symbols("beta_link t_ckpt")
    relation = equation(seconds, kappa * n / (g * beta_link))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("large_copies",),
    )


@formula("F40b")
def dirty_tail_time() -> Formula:
    """``κ·bs/(g·β)`` seconds at most when full blocks were copied before: only a tail is left."""
    beta_link, seconds, bs = symbols("beta_link t_tail bs")
    tail = symbols("n_tail")[0]
    relation = equation(seconds, kappa * bs / (g * beta_link))
    return Formula(
        relation,
        derivation=(
            Definition("tail", equation(tail, bs)),
            Definition("time", equation(seconds, kappa * tail / (g * beta_link))),
            Algebra("result", relation),
        ),
        assumptions=("append_only", "paged"),
    )


@formula("F40c")
def checkpoint_bandwidth() -> Formula:
    """``κ·X`` bytes/s for copying every new token once. 8B at 1,550 tokens/s: 0.2 GB/s."""
    X, needed = symbols("X beta_need")
    relation = equation(needed, kappa * X)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        assumptions=("append_only",),
    )
