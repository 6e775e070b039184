"""KV memory: what is left for it and how many requests it holds: F8–F11.

======  ==================================================================
F8      bytes left for KV, F8a in tokens, F8b in blocks, F8c tokens of blocks
F9      requests that fit when each reserves the context limit (Orca-Max)
F9a     requests that fit in whole blocks (paged)
F10     blocks of n tokens, F10a mean waste in the last block,
F10b    its share, F10c prompt tokens that a prefix cache has, F10d their share
F11     share of reserved KV that holds tokens
======

Bytes are of all GPUs of an engine together. Sources: vLLM (SOSP 2023) §2–4; vLLM's start-up
profiling; derived here.
"""

from __future__ import annotations

import sympy
from sympy import Sum, ceiling, floor

from formulas.formula import Formula
from formulas.functions import Smallest
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Assumption, Definition, Inequality
from formulas.symbols import symbols

u, M, M_act, M_kv, g, b_w, Psi, kappa = symbols("u M M_act M_kv g b_w Psi kappa")
N_kv, N_blocks, bs, n, n_max, B_max = symbols("N_kv N_blocks bs n n_max B_max")
one_token, one_request = symbols("one_token one_request")


@formula("F8")
def kv_pool() -> Formula:
    """``M_kv = u·M·g − b_w·Ψ − M_act·g`` bytes. Llama-3-8B on an A100 80G: 53.9 GB."""
    usable, weights, reserve = symbols("M_use M_w M_res")
    relation = equation(M_kv, u * M * g - b_w * Psi - M_act * g)
    return Formula(
        relation,
        derivation=(
            Definition("usable", equation(usable, u * M * g)),
            Definition("weights", equation(weights, b_w * Psi)),
            Definition("reserve", equation(reserve, M_act * g)),
            Definition("rest", equation(M_kv, usable - weights - reserve)),
            Algebra("result", relation),
        ),
        assumptions=("weights_split_evenly", "reserve_constant"),
    )


@formula("F8a")
def kv_tokens() -> Formula:
    """``⌊M_kv/κ⌋`` tokens. Llama-3-8B on an A100 80G: 411,525."""
    relation = equation(N_kv, floor(M_kv / (kappa * one_token)) * one_token)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(
            Inequality("fits", Relation(kappa * N_kv, M_kv, "≤")),
            Inequality("one_more", Relation(kappa * (N_kv + one_token), M_kv, ">")),
        ),
        assumptions=("gqa_or_mha",),
    )


@formula("F8b")
def kv_blocks() -> Formula:
    """``⌊N_kv/bs⌋`` blocks."""
    relation = equation(N_blocks, floor(N_kv / bs))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("fits", Relation(N_blocks * bs, N_kv, "≤")),),
    )


@formula("F8c")
def tokens_of_blocks() -> Formula:
    """``N_kv = N_blocks·bs``: 1,478 blocks of 16 hold 23,648 tokens, so that 29k cannot run."""
    relation = equation(N_kv, N_blocks * bs)
    return Formula(relation, derivation=(Definition("result", relation),))


@formula("F9")
def reserved_batch() -> Formula:
    """``⌊N_kv/n_max⌋`` requests when each reserves the context limit. 8B, A100, 8,192: 50."""
    held = symbols("n_held")[0]
    relation = equation(B_max, floor(N_kv / n_max) * one_request)
    return Formula(
        relation,
        derivation=(
            Definition("held", equation(held, n_max)),
            Assumption("all_fit", Relation(B_max / one_request * held, N_kv, "≤")),
            Definition("result", relation),
        ),
        consequences=(
            Inequality("fits", Relation(B_max / one_request * n_max, N_kv, "≤")),
            Inequality("one_more", Relation((B_max / one_request + 1) * n_max, N_kv, ">")),
        ),
        assumptions=("reserves_limit",),
    )


@formula("F9a")
def paged_batch() -> Formula:
    """``⌊N_kv/(⌈n/bs⌉·bs)⌋`` requests of mean context n in whole blocks. 8B, A100, 612: 672."""
    blocks, held = symbols("N_blk n_held")
    relation = equation(B_max, floor(N_kv / (ceiling(n / bs) * bs)) * one_request)
    return Formula(
        relation,
        derivation=(
            Definition("blocks", equation(blocks, ceiling(n / bs)), formula="F10"),
            Definition("held", equation(held, blocks * bs)),
            Definition("requests", equation(B_max, floor(N_kv / held) * one_request)),
            Algebra("result", relation),
        ),
        consequences=(Inequality("holds", Relation(held, n, "≥")),),
        assumptions=("paged", "mean_context"),
    )


@formula("F10")
def blocks_of_tokens() -> Formula:
    """``⌈n/bs⌉`` blocks hold n tokens."""
    blocks = symbols("N_blk")[0]
    relation = equation(blocks, ceiling(n / bs))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(
            Inequality("holds", Relation(blocks * bs, n, "≥")),
            Inequality("no_block_too_many", Relation((blocks - 1) * bs, n, "<")),
        ),
        assumptions=("paged",),
    )


@formula("F10a")
def block_waste() -> Formula:
    """``(bs − 1)/2`` tokens wasted on average where n mod bs is uniform: 7.5 at bs = 16."""
    waste = symbols("n_waste")[0]
    r = sympy.Symbol("r", positive=True, integer=True)
    relation = equation(waste, (bs - one_token) / 2)
    return Formula(
        relation,
        derivation=(
            Definition(
                "mean",
                equation(waste, Sum(bs - r * one_token, (r, 1, bs / one_token)) / (bs / one_token)),
            ),
            Algebra("result", relation),
        ),
        assumptions=("paged", "uniform_remainder"),
    )


@formula("F10b")
def block_waste_share() -> Formula:
    """Wasted share of the blocks of n tokens: 1.48 % for 500 tokens at bs = 16."""
    waste, share = symbols("n_waste w_blk")
    relation = equation(share, (bs - one_token) / (2 * n + bs - one_token))
    return Formula(
        relation,
        derivation=(
            Definition("waste", equation(waste, (bs - one_token) / 2), formula="F10a"),
            Definition("share", equation(share, waste / (n + waste))),
            Algebra("result", relation),
        ),
        assumptions=("paged", "uniform_remainder"),
    )


@formula("F10c")
def cached_tokens() -> Formula:
    """``bs·⌊min(n_kv, n − 1)/bs⌋``: of a prompt of 1,640 after 1,579 stored tokens 1,568 are found.

    Only full blocks are found, and the last token of a prompt is always computed.
    """
    same, usable, hit = symbols("n_old n_use n_hit")
    relation = equation(hit, bs * floor(Smallest(same, n - one_token) / bs))
    return Formula(
        relation,
        derivation=(
            Definition("usable", equation(usable, Smallest(same, n - one_token))),
            Definition("full", equation(hit, bs * floor(usable / bs))),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("at_most_stored", Relation(hit, same, "≤")),
            Inequality("one_left", Relation(hit, n - one_token, "≤")),
        ),
        assumptions=("paged", "still_cached"),
    )


@formula("F10d")
def hit_rate() -> Formula:
    """Hit rate of a prompt: 95.6 % for 1,568 of 1,640 tokens."""
    same, hit, share = symbols("n_old n_hit H_hit")
    relation = equation(share, bs / n * floor(Smallest(same, n - one_token) / bs))
    return Formula(
        relation,
        derivation=(
            Definition(
                "found",
                equation(hit, bs * floor(Smallest(same, n - one_token) / bs)),
                formula="F10c",
            ),
            Definition("share", equation(share, hit / n)),
            Algebra("result", relation),
        ),
        consequences=(Inequality("below_one", Relation(share, 1, "<")),),
        assumptions=("paged", "still_cached"),
    )


@formula("F11")
def effective_share() -> Formula:
    """Share of reserved KV that holds tokens: mean context over mean reservation."""
    share, reserved = symbols("s_eff n_res")
    B = symbols("B")[0]
    used, held = symbols("n_used n_all")
    relation = equation(share, n / reserved)
    return Formula(
        relation,
        derivation=(
            Definition("used", equation(used, B / one_request * n)),
            Definition("reserved", equation(held, B / one_request * reserved)),
            Definition("share", equation(share, used / held)),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("at_most_all", Relation(share, 1, "≤"),
                       given={reserved: n + sympy.Dummy("z", nonnegative=True)}),
        ),
    )  # fmt: skip
