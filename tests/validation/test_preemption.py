"""Recompute and swap: tables, and borders solved independently."""

import pytest
import sympy

from validation.preemption import (
    Costs,
    borders,
    case_of,
    curves,
    ratio,
    riding,
    values,
)
from validation.throughput import Engine

A100 = Engine("llama-3-8b", "a100-80g-sxm")
LLAMA_2 = Engine("llama-2-7b", "a100-80g-sxm")


@pytest.mark.parametrize(
    ("engine", "rows"),
    [
        (A100, {1: 11, 5: 54, 20: 215}),
        (LLAMA_2, {1: 22, 5: 112, 20: 442}),
        (Engine("llama-3-70b", "a100-80g-sxm", 8), {1: 9, 5: 46, 20: 182}),
    ],
)
def test_fixed_costs_draw_the_border(engine, rows):
    """Milliseconds of F_s and the length below which recomputing wins."""
    for fixed_ms, length in rows.items():
        found = borders(Costs(engine, swap_fixed_s=fixed_ms / 1e3))
        assert found.case == "fixed"
        assert found.lengths[0] == pytest.approx(length, abs=0.6)
        assert [found.winner(n) for n in (1, length + 2, 1e9)] == ["recompute", "swap", "swap"]


@pytest.mark.parametrize(
    ("engine", "gpus_per_link", "ratio_is", "length"),
    [
        (LLAMA_2, 4, 1.94, 48_400),
        (Engine("llama-2-7b", "h100-sxm"), 2, 1.54, 27_700),
        (Engine("llama-2-13b", "h100-sxm"), 2, 1.25, 15_500),
        (Engine("llama-2-7b", "b200-sxm"), 1, 1.75, 38_600),
    ],
)
def test_a_slow_link_draws_another_border(engine, gpus_per_link, ratio_is, length):
    costs = Costs(engine, gpus_per_link=gpus_per_link, swap_fixed_s=0.0)
    found = borders(costs)
    assert values(costs)["R_hat"] == pytest.approx(ratio_is, abs=0.006)
    assert found.lengths == pytest.approx((length,), rel=0.01)
    assert found.case == "window"  # F_s = F_r: its lower end is at 0
    assert (found.winner(100), found.winner(2 * length)) == ("recompute", "swap")


@pytest.mark.parametrize(
    "costs",
    [
        Costs(A100, copy_s=5e-6),
        Costs(LLAMA_2, gpus_per_link=4, swap_fixed_s=0.0, recompute_fixed_s=0.01),
        Costs(LLAMA_2, gpus_per_link=4, swap_fixed_s=0.02),
        Costs(A100, swap_fixed_s=0.0, recompute_fixed_s=0.01),
    ],
)
def test_borders_are_the_roots_that_sympy_finds(costs):
    """R(n) − S(n) written out here, from the costs of a token by hand."""
    n = sympy.Symbol("n", positive=True)
    given = {name: sympy.Float(value) for name, value in values(costs).items()}
    speed = given["g"] * given["P"] * given["eta_c"]
    work = 2 * given["Psi_a"] * n + 2 * given["n_L"] * given["d_a"] * n**2
    swap = given["w"] * given["kappa"] * n / (given["g"] * given["beta_h"])
    swap += given["w"] * 2 * given["n_L"] * given["delta_copy"] * n / given["bs"]
    gap = given["F_r"] + work / speed - given["F_s"] - swap
    roots = sorted(float(root) for root in sympy.Poly(gap, n).nroots() if root > 0)
    assert borders(costs).lengths == pytest.approx(roots)


@pytest.mark.parametrize(
    ("case", "fixed", "slope"),
    [("swap_always", 0, 0), ("fixed", 1, 0), ("window", 0, 1), ("long", 1, 1)],
)
def test_the_four_cases(case, fixed, slope):
    given = {"F_s": fixed, "F_r": 0.5, "s_tok": slope, "r_tok": 0.5}
    assert case_of(given) == case


@pytest.mark.parametrize(
    ("block_size", "swap_us"), [(1, 865), (8, 165.5), (16, 115), (64, 78)]
)
def test_small_copies_bring_parity_near_blocks_of_eight(block_size, swap_us):
    """OPT-13B on an A100, 5 µs a copy; a recomputation takes 165 µs a token."""
    costs = Costs(Engine("opt-13b"), copy_s=5e-6, block_size=block_size)
    assert values(costs)["s_tok"] * 1e6 == pytest.approx(swap_us, rel=0.006)
    assert values(costs)["r_tok"] * 1e6 == pytest.approx(165, rel=0.005)
    found = curves(costs)
    place = list(found.block_size).index(block_size)
    assert found.swap_over_blocks_s[place] == values(costs)["t_swap"]


def test_the_printed_costs_never_meet():
    found = curves(Costs(A100))
    ratios = found.printed_swap_s / found.printed_recompute_s
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert (found.recompute_s < found.swap_s)[0]
    assert (found.recompute_s > found.swap_s)[-1]


def test_the_map_ratio_does_not_depend_on_fixed_costs_or_length():
    found = ratio(A100, copies=2, gpus_per_link=1, link_share=None)
    assert found == pytest.approx(0.102, abs=5e-4)
    assert ratio(A100, copies=1, gpus_per_link=1, link_share=None) == pytest.approx(found / 2)
    nominal = ratio(A100, copies=2, gpus_per_link=1, link_share=1.0)
    assert nominal == pytest.approx(found * 25 / 32)


@pytest.mark.parametrize(
    ("engine", "free"),
    [
        (A100, 99),
        (Engine("llama-3-8b", "h100-sxm"), 223),
        (Engine("llama-3-70b", "a100-80g-sxm", 4), 73),
    ],
)
def test_tokens_that_ride_along(engine, free):
    found = riding(Costs(engine))
    assert found.tokens == free
    assert found.iterations == -(-2000 // free)
    assert found.wait_s == pytest.approx(found.iterations * found.iteration_s)


def test_nothing_rides_along_where_compute_binds():
    found = riding(Costs(A100), batch=256, context_tokens=16)
    assert (found.tokens, found.iterations, found.wait_s) == (0, 0, 0)


def test_a_latent_cache_is_one_piece_a_layer():
    """DeepSeek-V3: 61 copies of 5 µs a block each way, spread over 16 tokens."""
    engine = Engine("deepseek-v3", "h200-sxm", 16)
    slow, plain = (values(Costs(engine, copy_s=copy_s))["s_tok"] for copy_s in (5e-6, 0.0))
    assert slow - plain == pytest.approx(2 * 61 * 5e-6 / 16)
