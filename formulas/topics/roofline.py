"""Intensity, the roofline and the time of an iteration: F4–F7.

======  ==================================================================
F4      ridge of a device, F4a intensity of linear layers,
F4b     of decode attention, F4c of a FlashAttention tile
F5      time of an iteration from its tokens, attention pairs and KV reads
F5a     of B decodes, F5b of the joint prefill of k prompts
F5c     tensor-parallel communication of an iteration
F6      critical batch of the linear layers
F7      KV tokens in flight at which KV reads exceed weight reads
======

Efficiencies (η_c = 0.5, η_m = 0.8) and the fixed time (t_0 = 2 ms) are teaching constants.
Sources: DistServe App. A; Sarathi-Serve §3.1; derived here.
"""

from __future__ import annotations

import sympy

from formulas.formula import Formula
from formulas.functions import Largest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Assumption, Definition, Inequality
from formulas.symbols import symbols

Psi_a, b_w, n_L, d, d_a, H, H_kv, h, b_kv = symbols("Psi_a b_w n_L d d_a H H_kv h b_kv")
kappa, g, P, eta_c, beta, eta_m, t_0 = symbols("kappa g P eta_c beta eta_m t_0")
B, ctx, n, k, T, A, R = symbols("B ctx n k_p T A R_kv")
t_iter, t_c, t_m, F, Q = symbols("t_iter t_c t_m F Q")
one_token, one_request, one_flop, one_gpu = symbols("one_token one_request one_flop one_gpu")
PER_TOKEN = one_flop / one_token
PER_PAIR = one_flop / one_token**2
TOKEN_EACH = one_token / one_request


def compute_seconds(tokens: sympy.Expr, pairs: sympy.Expr) -> sympy.Expr:
    """Seconds of computing ``tokens`` with ``pairs`` attention pairs."""
    return (2 * PER_TOKEN * Psi_a * tokens + 4 * PER_PAIR * n_L * d_a * pairs) / (g * P * eta_c)


def memory_seconds(kv_tokens: sympy.Expr) -> sympy.Expr:
    """Seconds of reading the weights once and the KV of ``kv_tokens``."""
    return (b_w * Psi_a + kappa * kv_tokens) / (g * beta * eta_m)


@formula("F4")
def ridge() -> Formula:
    """``I_ridge = P/β``: FLOP per byte at which compute and memory take equally long. A100 153."""
    I_ridge = symbols("I_ridge")[0]
    balance = equation(I_ridge * Q / (g * P), Q / (g * beta))
    relation = equation(I_ridge, P / beta)
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("peak_rates",),
    )


@formula("F4a")
def linear_intensity() -> Formula:
    """``I ≈ 2·T/b_w``: a weight is read once and used by all T tokens; T FLOP/byte at bf16."""
    intensity, work, read = symbols("I_lin F_lin Q_w")
    relation = equation(intensity, 2 * PER_TOKEN * T / b_w)
    return Formula(
        relation,
        derivation=(
            Definition("work", equation(work, 2 * PER_TOKEN * Psi_a * T)),
            Definition("bytes", equation(read, b_w * Psi_a)),
            Definition("intensity", equation(intensity, work / read)),
            Algebra("result", relation),
        ),
        assumptions=("weights_dominate",),
    )


@formula("F4b")
def decode_attention_intensity() -> Formula:
    """``I ≈ 2·(H/H_kv)/b``: the size of the query group at bf16, at every batch."""
    intensity, work, read = symbols("I_att F_att Q_kv")
    relation = equation(intensity, 2 * one_flop * H / (H_kv * b_kv))
    return Formula(
        relation,
        derivation=(
            Definition("width", equation(d_a, H * h)),
            Definition("kv", equation(kappa, 2 * n_L * H_kv * h * b_kv / one_token), formula="F3"),
            Definition("work", equation(work, 4 * PER_PAIR * n_L * d_a * one_token * n)),
            Definition("bytes", equation(read, kappa * n)),
            Definition("intensity", equation(intensity, work / read)),
            Algebra("result", relation),
        ),
        assumptions=("gqa_or_mha", "softmax_ignored"),
    )


@formula("F4c")
def tile_intensity() -> Formula:
    """``I ≈ 4·b/(3·e)``, 2b/3 at bf16: two products per tile; query and output move three times."""
    intensity, block, element, work, moved = symbols("I_tile b_blk b_el F_tile Q_tile")
    relation = equation(intensity, 4 * PER_TOKEN * block / (3 * element))
    return Formula(
        relation,
        derivation=(
            Definition("work", equation(work, 4 * PER_PAIR * block**2 * h)),
            Definition("bytes", equation(moved, 3 * block / one_token * h * element)),
            Definition("intensity", equation(intensity, work / moved)),
            Algebra("result", relation),
        ),
        assumptions=("tile_keeps_keys", "softmax_ignored"),
    )


@formula("F5")
def iteration_time() -> Formula:
    """``t = max((2Ψ_a·T + 4·n_L·d_a·A)/(gPη_c), (b_w·Ψ_a + κ·R)/(gβη_m)) + t_0``.

    T tokens in the iteration; A attention pairs (the context of each decode, C·s + C(C+1)/2 of a
    chunk); R KV tokens read. Seconds.
    """
    relation = equation(t_iter, t_0 + Largest(compute_seconds(T, A), memory_seconds(R)))
    return Formula(
        relation,
        derivation=(
            Definition(
                "work",
                equation(F, 2 * PER_TOKEN * Psi_a * T + 4 * PER_PAIR * n_L * d_a * A),
            ),
            Definition("bytes", equation(Q, b_w * Psi_a + kappa * R)),
            Definition("compute", equation(t_c, F / (g * P * eta_c))),
            Definition("memory", equation(t_m, Q / (g * beta * eta_m))),
            Definition("overlap", equation(t_iter, t_0 + Largest(t_c, t_m))),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("not_below_compute", Relation(t_iter, t_0 + compute_seconds(T, A), "≥")),
            Inequality("not_below_memory", Relation(t_iter, t_0 + memory_seconds(R), "≥")),
        ),
        assumptions=("perfect_overlap", "constant_efficiency", "no_communication"),
    )


@formula("F5a")
def decode_time() -> Formula:
    """F5 for B decodes with a mean context: T = B, A = R = B·ctx."""
    t_dec = symbols("t_dec")[0]
    tokens, context = B * TOKEN_EACH, B * ctx
    relation = equation(
        t_dec,
        t_0 + Largest(compute_seconds(tokens, context * one_token), memory_seconds(context)),
    )
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(T, tokens)),
            Definition("pairs", equation(A, context * one_token)),
            Definition("reads", equation(R, context)),
            Definition(
                "time",
                equation(t_dec, t_0 + Largest(compute_seconds(T, A), memory_seconds(R))),
            ),
            Algebra("result", relation),
        ),
        assumptions=("perfect_overlap", "constant_efficiency", "no_communication"),
    )


@formula("F5b")
def prefill_time() -> Formula:
    """F5 for k whole prompts of n tokens: T = k·n, A = k·n(n + 1)/2, R = k·n."""
    t_pre = symbols("t_pre")[0]
    prompts = k / one_request
    tokens, pairs = prompts * n, prompts * n * (n + one_token) / 2
    longer = Largest(compute_seconds(tokens, pairs), memory_seconds(tokens))
    relation = equation(t_pre, t_0 + longer)
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(T, tokens)),
            Definition("pairs", equation(A, pairs)),
            Definition("reads", equation(R, tokens)),
            Definition(
                "time",
                equation(t_pre, t_0 + Largest(compute_seconds(T, A), memory_seconds(R))),
            ),
            Algebra("result", relation),
        ),
        assumptions=("perfect_overlap", "constant_efficiency", "no_communication"),
    )


@formula("F5c")
def communication_time() -> Formula:
    """Two ring all-reduces a layer: ``2·n_L·(2(g − 1)/g)·T·d·b/β_link`` seconds."""
    t_tp, beta_link, b_a, moved = symbols("t_tp beta_link b_act Q_tp")
    each = 2 * (g - one_gpu) / g * T / one_token * d * b_a / one_gpu
    relation = equation(t_tp, 2 * n_L * each / beta_link)
    return Formula(
        relation,
        derivation=(
            Definition("ring", equation(moved, each)),
            Definition("layers", equation(t_tp, 2 * n_L * moved / beta_link)),
            Algebra("result", relation),
        ),
        assumptions=("ring_all_reduce", "latency_ignored"),
    )


@formula("F6")
def critical_batch() -> Formula:
    """``B* = P·η_c·b_w/(2·β·η_m)``: below it a decode is memory-bound. A100 153 at η = 1, else 96.

    Linear layers only; attention stays memory-bound at every batch.
    """
    B_star = symbols("B_star")[0]
    balance = equation(
        2 * PER_TOKEN * TOKEN_EACH * Psi_a * B_star / (g * P * eta_c),
        b_w * Psi_a / (g * beta * eta_m),
    )
    relation = equation(B_star, P * eta_c * b_w / (2 * PER_TOKEN * TOKEN_EACH * beta * eta_m))
    z = sympy.Dummy("z", positive=True)
    compute = 2 * PER_TOKEN * TOKEN_EACH * Psi_a * B / (g * P * eta_c)
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        consequences=(
            Inequality(
                "below",
                Relation(compute, b_w * Psi_a / (g * beta * eta_m), "<"),
                given={B: relation.rhs / (1 + z)},
            ),
        ),
        assumptions=("linear_layers_only", "weights_dominate", "constant_efficiency"),
    )


@formula("F7")
def kv_dominates() -> Formula:
    """``N_eq = b_w·Ψ_a/κ`` KV tokens in flight: beyond, KV reads exceed weight reads."""
    N_eq = symbols("N_eq")[0]
    balance = equation(kappa * N_eq, b_w * Psi_a)
    relation = equation(N_eq, b_w * Psi_a / kappa)
    z = sympy.Dummy("z", positive=True)
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        consequences=(
            Inequality(
                "beyond",
                Relation(kappa * R, b_w * Psi_a, ">"),
                given={R: b_w * Psi_a / kappa * (1 + z)},
            ),
            Approximation(
                "flat",
                Relation(b_w * Psi_a + kappa * R, b_w * Psi_a, "≈"),
                within=0.1,
                where={
                    Psi_a: (7e9, 7e10),
                    b_w: (2.0, 2.0),
                    kappa: (1e5, 8e5),
                    R: (100.0, 1500.0),
                },
            ),
        ),
        assumptions=("dense_model",),
    )
