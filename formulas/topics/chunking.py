"""Long prompts: chunk budget, its cost, free slack and the prefill-first stall: F19–F22.

======  ==================================================================
F19     chunk that just keeps a bound on the time between tokens (compute-bound)
F19a    the same with the whole roofline, on a grid of chunk sizes
F19b    time to the first token of a chunked prompt, without queueing
F20     KV tokens read again by chunking, F20a their time,
F20b    tokens after padding to a tile, F20c number of chunks,
F20d    most that mixing prefill and decode can gain
F21     prompt tokens that ride along with a memory-bound decode for free
F22     stall of running decodes behind prompts that go first
======

Seconds and tokens. Sources: Sarathi-Serve (OSDI 2024) §3–5; derived here.
"""

from __future__ import annotations

import sympy
from sympy import Sum, ceiling, floor, sqrt

from formulas.formula import Algorithm, Formula
from formulas.functions import Largest, LargestSuch
from formulas.registry import formula
from formulas.relation import Relation, equation
from formulas.step import Algebra, Approximation, Assumption, Definition, Inequality
from formulas.symbols import symbols
from formulas.topics.roofline import PER_PAIR, PER_TOKEN, TOKEN_EACH

TBT, t_0, g, P, eta_c, F_dec, Psi_a, n_L, d_a = symbols("TBT t_0 g P eta_c F_dec Psi_a n_L d_a")
C, s, n, N, t_iter = symbols("C s_0 n N_c t_iter")
B, kappa, beta, eta_m, t_p, t_d, B_d, L = symbols("B kappa beta eta_m t_p t_d B_d L")
one_token, one_request = symbols("one_token one_request")
i = sympy.Symbol("i", positive=True, integer=True)


@formula("F19")
def chunk_budget() -> Formula:
    """The chunk C at which an iteration with its decodes takes just the bound TBT.

    Positive root of the work of the chunk (linear, and attention at position s) set equal to what
    is left of the bound. Holds where compute binds; F19a takes the whole roofline.
    """
    left, linear = symbols("F_left f_C")
    square = 2 * PER_PAIR * n_L * d_a
    work = equation(linear * C + square * C**2, left)
    spare = (TBT - t_0) * g * P * eta_c - F_dec
    per_token = 2 * PER_TOKEN * Psi_a + square * (2 * s + one_token)
    root = (sqrt(linear**2 + 4 * square * left) - linear) / (2 * square)
    relation = equation(C, (sqrt(per_token**2 + 4 * square * spare) - per_token) / (2 * square))
    return Formula(
        relation,
        derivation=(
            Definition("left", equation(left, spare)),
            Definition("linear", equation(linear, per_token)),
            Assumption("equal", work),
            Algebra("root", equation(C, root), solves=work),
            Algebra("result", relation),
        ),
        consequences=(
            Approximation(
                "short_chunk",
                Relation(C, left / linear, "≈"),
                within=0.2,
                where={
                    Psi_a: (8.03e9, 8.03e9),
                    n_L: (32.0, 32.0),
                    d_a: (4096.0, 4096.0),
                    s: (0.0, 32768.0),
                    TBT: (0.03, 0.5),
                    t_0: (0.002, 0.002),
                    g: (1.0, 1.0),
                    P: (312e12, 312e12),
                    eta_c: (0.5, 0.5),
                    F_dec: (5e11, 6e11),
                },
            ),
        ),
        assumptions=("compute_bound", "constant_efficiency"),
    )


@formula("F19a")
def chunk_budget_on_a_grid() -> Formula:
    """Largest chunk on a grid whose iteration (F5) stays within TBT. 8B, A100, 50 ms: 416."""
    relation = equation(C, LargestSuch(C, sympy.Le(t_iter, TBT)))
    names = "TBT C_grid B ctx s_0 Psi_a b_w n_L d_a kappa g P eta_c beta eta_m t_0"
    return Formula(
        relation,
        algorithm=Algorithm(tuple(names.split()), _largest_chunk),
        assumptions=("perfect_overlap", "constant_efficiency", "no_communication"),
    )


def _largest_chunk(values) -> float:
    v, start = values, values["s_0"]
    decodes = v["B"] * v["ctx"]
    speed, reads = v["g"] * v["P"] * v["eta_c"], v["g"] * v["beta"] * v["eta_m"]

    def seconds(chunk: float) -> float:
        pairs = decodes + chunk * start + chunk * (chunk + 1) / 2
        work = 2 * v["Psi_a"] * (v["B"] + chunk) + 4 * v["n_L"] * v["d_a"] * pairs
        read = v["b_w"] * v["Psi_a"] + v["kappa"] * (decodes + start + chunk)
        return max(work / speed, read / reads) + v["t_0"]

    low, high = 0, 1
    while seconds(high * v["C_grid"]) <= v["TBT"] and high < 2**40:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seconds(middle * v["C_grid"]) <= v["TBT"] else (low, middle)
    return low * v["C_grid"]


@formula("F19b")
def chunked_first_token() -> Formula:
    """``⌈n/C⌉·t_iter``: 1,500 tokens in chunks of 416 take 4 iterations, 32,768 take 79."""
    chunks, ttft = symbols("N_c TTFT")
    relation = equation(ttft, ceiling(n / C) * t_iter)
    return Formula(
        relation,
        derivation=(
            Definition("chunks", equation(chunks, ceiling(n / C)), formula="F20c"),
            Definition("time", equation(ttft, chunks * t_iter)),
            Algebra("result", relation),
        ),
        consequences=(Inequality("at_least", Relation(ttft, n / C * t_iter, "≥")),),
        assumptions=("no_queue", "full_chunks"),
    )


@formula("F20")
def tokens_read_again() -> Formula:
    """``n·(N − 1)/2`` KV tokens read again by N equal chunks: 245,760 for 32k in chunks of 2k."""
    again = symbols("n_again")[0]
    relation = equation(again, n * (N - 1) / 2)
    return Formula(
        relation,
        derivation=(
            Definition("chunk", equation(C, n / N)),
            Definition("earlier", equation(again, Sum((i - 1) * C, (i, 1, N)))),
            Algebra("result", relation),
        ),
        consequences=(Algebra("one_chunk", equation(again, 0), given={N: sympy.S.One}),),
        assumptions=("equal_chunks",),
    )


@formula("F20a")
def time_of_reading_again() -> Formula:
    """``κ·n·(N − 1)/(2·g·β·η_m)`` seconds. 8B, A100, 32k/2k: 20 ms, 0.4 % of the prefill."""
    again, seconds = symbols("n_again t_again")
    relation = equation(seconds, kappa * n * (N - 1) / (2 * g * beta * eta_m))
    return Formula(
        relation,
        derivation=(
            Definition("tokens", equation(again, n * (N - 1) / 2), formula="F20"),
            Definition("time", equation(seconds, kappa * again / (g * beta * eta_m))),
            Algebra("result", relation),
        ),
        assumptions=("equal_chunks", "constant_efficiency"),
    )


@formula("F20b")
def padded_tokens() -> Formula:
    """``⌈(C + B)/tile⌉·tile``: matrix kernels compute whole tiles; 257 tokens cost as 384."""
    padded, tile = symbols("n_pad n_tile")
    relation = equation(padded, ceiling((C + B * TOKEN_EACH) / tile) * tile)
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("at_least", Relation(padded, C + B * TOKEN_EACH, "≥")),),
        assumptions=("whole_tiles",),
    )


@formula("F20c")
def number_of_chunks() -> Formula:
    """``⌈n/C⌉`` iterations for a prompt: 254 for 130,000 tokens at a budget of 512."""
    relation = equation(N, ceiling(n / C))
    return Formula(
        relation,
        derivation=(Definition("result", relation),),
        consequences=(Inequality("enough", Relation(N * C, n, "≥")),),
        assumptions=("full_chunks",),
    )


@formula("F20d")
def overlap_bound() -> Formula:
    """``(x + y)/max(x, y)``, at most 2: 1.16 for 8B and 1.45 for 70B at 32k in, 8k out."""
    gain, decode, prefill = symbols("G_mix x_d x_p")
    sides = t_d / (B_d * TOKEN_EACH), t_p / (one_request * L)
    relation = equation(gain, (sides[0] + sides[1]) / Largest(*sides))
    more = 1 + sympy.Dummy("z", nonnegative=True)
    cases = (
        {t_d: sides[1] * B_d * TOKEN_EACH * more},
        {t_p: sides[0] * one_request * L * more},
    )
    return Formula(
        relation,
        derivation=(
            Definition("decode", equation(decode, sides[0])),
            Definition("prefill", equation(prefill, sides[1])),
            Definition("gain", equation(gain, (decode + prefill) / Largest(decode, prefill))),
            Algebra("result", relation),
        ),
        consequences=(
            Inequality("at_least_one", Relation(gain, 1, "≥"), cases=cases),
            Inequality("at_most_two", Relation(gain, 2, "≤"), cases=cases),
        ),
        assumptions=("perfect_overlap", "exclusive_prefill"),
    )


@formula("F21")
def free_slack() -> Formula:
    """``(t_m − t_c)·g·P·η_c/(2·Ψ_a)`` prompt tokens fit into a memory-bound decode for free.

    Check: B = 32, context 1,500: 99 (8B, A100), 223 (8B, H100), 73 (70B, 4 A100).
    """
    t_m, t_c, free = symbols("t_m t_c C_free")
    balance = equation(t_c + 2 * PER_TOKEN * Psi_a * free / (g * P * eta_c), t_m)
    relation = equation(free, (t_m - t_c) * g * P * eta_c / (2 * PER_TOKEN * Psi_a))
    return Formula(
        relation,
        derivation=(Assumption("equal", balance), Algebra("result", relation, solves=balance)),
        assumptions=("perfect_overlap", "attention_ignored"),
    )


@formula("F22")
def prefill_first_stall() -> Formula:
    """``⌈k/⌊b/n⌋⌉·t_b``: k prompts go first, ⌊b/n⌋ in an iteration; nobody decodes meanwhile."""
    k, budget, t_b, stall = symbols("k_wait b_tok t_b t_stall")
    each, iterations = symbols("k_each N_stall")
    prompts = k / one_request
    relation = equation(stall, ceiling(prompts / floor(budget / n)) * t_b)
    m = sympy.Dummy("m", positive=True, integer=True)
    z = sympy.Dummy("z", nonnegative=True)
    return Formula(
        relation,
        derivation=(
            Definition("prompts", equation(each, floor(budget / n))),
            Definition("iterations", equation(iterations, ceiling(prompts / each))),
            Definition("stall", equation(stall, iterations * t_b)),
            Algebra("result", relation),
        ),
        consequences=(
            Algebra("no_rest", equation(stall, ceiling(prompts * n / budget) * t_b),
                    given={budget: m * n}),
            Inequality("at_least", Relation(stall, prompts * n / budget * t_b, "≥"),
                       given={budget: n * (1 + z)}),
        ),
        assumptions=("prefill_first", "whole_prompts", "equal_lengths"),
    )  # fmt: skip
