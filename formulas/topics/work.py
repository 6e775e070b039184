"""Parameters, FLOP and KV bytes of a transformer: F1–F3.

======  ==================================================================
F1      parameters of a dense transformer
F2      FLOP to prefill a whole prompt of n tokens
F2a     attention FLOP of one decoded token
F2b     attention FLOP of a chunk of a prompt
F2c     context at which attention costs as much as the linear layers
F2d     attention's share of the linear work at a context
F2e     experts of a layer that T tokens touch
F2f     FLOP to prefill a prompt whose beginning is cached
F3      KV bytes per token (MHA, GQA), F3a of a latent cache (MLA),
F3b     KV bytes per token on one of g GPUs
======

FLOP counts one multiply and one add as 2. Sources: Kaplan et al. 2020 §2.1; DistServe App. A;
vLLM (SOSP 2023) §1; DeepSeek-V2 §2.1.
"""

from __future__ import annotations

import sympy
from sympy import Sum

from formulas import step
from formulas.formula import Formula
from formulas.functions import Largest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Assumption, Definition, Inequality
from formulas.symbols import symbols

Psi, Psi_a, n_L, d, d_ff, d_a, H, H_kv, h = symbols("Psi Psi_a n_L d d_ff d_a H H_kv h")
b_kv, kappa, n, ctx, C, s = symbols("b_kv kappa n ctx C s_0")
one_token, one_flop, one_gpu = symbols("one_token one_flop one_gpu")
PER_TOKEN = one_flop / one_token
PER_PAIR = one_flop / one_token**2
i = sympy.Symbol("i", positive=True, integer=True)


def prompt_work(tokens: sympy.Expr) -> sympy.Expr:
    """FLOP of a whole prompt (F2)."""
    return 2 * PER_TOKEN * Psi_a * tokens + 2 * PER_PAIR * n_L * d_a * tokens**2


@formula("F1")
def parameters() -> Formula:
    """``Ψ = n_L·(2·d·H·h + 2·d·H_kv·h + m·d·d_ff) + e·V·d``; norms and biases are left out."""
    m, e, V, attention, feed_forward, embedding = symbols("m_ff e_emb V Psi_att Psi_ff Psi_emb")
    relation = equation(Psi, n_L * (2 * d * H * h + 2 * d * H_kv * h + m * d * d_ff) + e * V * d)
    return Formula(
        relation,
        derivation=(
            Definition("attention", equation(attention, d * H * h + 2 * d * H_kv * h + H * h * d)),
            Definition("feed_forward", equation(feed_forward, m * d * d_ff)),
            Definition("embedding", equation(embedding, e * V * d)),
            Definition("sum", equation(Psi, n_L * (attention + feed_forward) + embedding)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "plain_layer",
                equation(Psi, 12 * n_L * d**2),
                given={H: d / h, H_kv: d / h, m: 2, d_ff: 4 * d, e: 0},
            ),
        ),
        assumptions=("dense_model", "small_parts_left_out"),
    )


@formula("F2")
def prompt_flop() -> Formula:
    """``F ≈ 2·Ψ_a·n + 2·n_L·d_a·n²``: linear layers, and each token's attention to those before."""
    F, linear, attention, f_lin, f_i, i_n = symbols("F_pre F_lin F_att f_lin f_att i_pos")
    relation = Relation(F, prompt_work(n), "≈")
    each = 4 * PER_PAIR * n_L * d_a
    return Formula(
        relation,
        derivation=(
            Definition("per_token", equation(f_lin, 2 * PER_TOKEN * Psi_a)),
            Definition("linear", equation(linear, f_lin * n)),
            Definition("one_position", equation(f_i, each * i_n)),
            Definition(
                "positions",
                equation(attention, Sum(each * i * one_token**2, (i, 1, n / one_token))),
            ),
            Algebra("triangle", equation(attention, each * n * (n + one_token) / 2)),
            Definition("total", equation(F, linear + attention)),
            Algebra(
                "exact",
                equation(F, f_lin * n + 2 * PER_PAIR * n_L * d_a * n * (n + one_token)),
            ),
            Approximation("result", relation, within=0.002, where={n: (64.0, 32768.0)}),
        ),
        assumptions=("two_flop_per_parameter", "softmax_ignored"),
    )


@formula("F2a")
def decode_attention_flop() -> Formula:
    """``4·n_L·d_a·ctx`` for one decoded token: scores and weighted sum, 2 FLOP each per number."""
    F, scores, mixing = symbols("F_att F_score F_mix")
    each = PER_PAIR * n_L * d_a * ctx * one_token * symbols("one_request")[0]
    relation = equation(F, 4 * each)
    return Formula(
        relation,
        derivation=(
            Definition("scores", equation(scores, 2 * each)),
            Definition("mixing", equation(mixing, 2 * each)),
            Definition("sum", equation(F, scores + mixing)),
            Algebra("result", relation),
        ),
        assumptions=("softmax_ignored",),
    )


@formula("F2b")
def chunk_attention_flop() -> Formula:
    """``4·n_L·d_a·(C·s + C·(C + 1)/2)`` for C tokens that start at position s."""
    F = symbols("F_att")[0]
    each = 4 * PER_PAIR * n_L * d_a
    relation = equation(F, each * (C * s + C * (C + one_token) / 2))
    return Formula(
        relation,
        derivation=(
            Definition(
                "positions",
                equation(F, each * Sum((s + i * one_token) * one_token, (i, 1, C / one_token))),
            ),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("from_start", equation(F, each * C * (C + one_token) / 2), given={s: 0}),
        ),
        assumptions=("softmax_ignored",),
    )


@formula("F2c")
def equal_context() -> Formula:
    """``n_eq = Ψ_a/(n_L·d_a)``: 61,266 tokens for Llama-3-8B."""
    n_eq = symbols("n_eq")[0]
    balance = equation(2 * PER_TOKEN * Psi_a * n_eq, 2 * PER_PAIR * n_L * d_a * n_eq**2)
    relation = equation(n_eq, Psi_a * one_token / (n_L * d_a))
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("two_flop_per_parameter", "softmax_ignored"),
    )


@formula("F2d")
def attention_share() -> Formula:
    """Attention over linear work at n tokens: 0.134 at 8k and 0.535 at 32k for Llama-3-8B."""
    share, linear, attention, n_eq = symbols("a_share F_lin F_att n_eq")
    relation = equation(share, n * n_L * d_a / (Psi_a * one_token))
    return Formula(
        relation,
        derivation=(
            Definition("linear", equation(linear, 2 * PER_TOKEN * Psi_a * n)),
            Definition("attention", equation(attention, 2 * PER_PAIR * n_L * d_a * n**2)),
            Definition("share", equation(share, attention / linear)),
            Algebra("result", relation),
        ),
        consequences=(
            Definition("equal", equation(n_eq, Psi_a * one_token / (n_L * d_a)), formula="F2c"),
            Algebra("in_units", equation(share, n / n_eq)),
        ),
        assumptions=("two_flop_per_parameter", "softmax_ignored"),
    )


@formula("F2e")
def touched_experts() -> Formula:
    """``E·(1 − (1 − k/E)^T)``: distinct experts of a layer that T tokens need."""
    E, k, T, miss, touched = symbols("E_x k_x T p_miss E_hit")
    relation = equation(touched, E * (1 - (1 - k / E) ** (T / one_token)))
    return Formula(
        relation,
        derivation=(
            Definition("missed", equation(miss, (1 - k / E) ** (T / one_token))),
            Definition("expected", equation(touched, E * (1 - miss))),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("one_token", equation(touched, k), given={T: one_token}),
            step.Limit("many", equation(sympy.Limit(touched, T, sympy.oo), E),
                       given={k: E * (1 - 1 / (1 + sympy.Dummy("z", positive=True)))}),
        ),
        assumptions=("uniform_routing",),
    )  # fmt: skip


@formula("F2f")
def rest_of_a_prompt_flop() -> Formula:
    """``2·Ψ_a·(n − c) + 2·n_L·d_a·(n² − c²)``: a whole prompt (F2) less its cached beginning."""
    F, whole, saved, c = symbols("F_new F_pre F_hit n_hit")
    relation = Relation(F, prompt_work(n) - prompt_work(c), "≈")
    return Formula(
        relation,
        derivation=(
            Definition("whole", Relation(whole, prompt_work(n), "≈"), formula="F2"),
            Definition("saved", Relation(saved, prompt_work(c), "≈")),
            Definition("rest", equation(F, whole - saved)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("nothing_found", Relation(F, prompt_work(n), "≈"), given={c: 0}),
        ),
        assumptions=("two_flop_per_parameter", "softmax_ignored", "still_cached"),
    )


@formula("F3")
def kv_bytes() -> Formula:
    """``κ = 2·n_L·H_kv·h·b`` bytes per token: a key and a value per KV head and layer."""
    numbers, layer = symbols("v_layer kappa_layer")
    relation = equation(kappa, 2 * n_L * H_kv * h * b_kv / one_token)
    return Formula(
        relation,
        derivation=(
            Definition("numbers", equation(numbers, 2 * H_kv * h / one_token)),
            Definition("layer", equation(layer, numbers * b_kv)),
            Definition("all_layers", equation(kappa, n_L * layer)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra(
                "multi_head",
                equation(kappa, 2 * n_L * d * b_kv / one_token),
                given={H_kv: d / h},
            ),
        ),
        assumptions=("gqa_or_mha",),
    )


@formula("F3a")
def latent_kv_bytes() -> Formula:
    """``κ = n_L·(r_kv + d_rope)·b``: one latent vector serves as key and value."""
    r_kv, d_rope, numbers = symbols("r_kv d_rope v_layer")
    relation = equation(kappa, n_L * (r_kv + d_rope) * b_kv / one_token)
    return Formula(
        relation,
        derivation=(
            Definition("numbers", equation(numbers, (r_kv + d_rope) / one_token)),
            Definition("all_layers", equation(kappa, n_L * numbers * b_kv)),
            Algebra("result", relation),
        ),
        assumptions=("mla",),
    )


@formula("F3b")
def kv_bytes_per_gpu() -> Formula:
    """``κ_gpu = κ·max(1/g, 1/H_kv)``: more GPUs than KV heads hold copies."""
    g, per_gpu = symbols("g kappa_gpu")
    relation = equation(per_gpu, kappa * Largest(1 / g, 1 / (H_kv * one_gpu)))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(
            Inequality("share", Relation(per_gpu, kappa / g, "≥")),
            Inequality("one_head", Relation(per_gpu, kappa / (H_kv * one_gpu), "≥")),
        ),
        assumptions=("even_heads",),
    )
