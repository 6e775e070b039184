"""Recompute and swap: borders solved independently, and the simulator beside the formulas."""

import pytest
import sympy

from model import catalogue
from model.simulator import simulate
from validation.preemption import Costs, borders, case_of, chances, curves, evictions, ratio, values
from validation.throughput import Engine, engine_of

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


@pytest.mark.parametrize("n", [128, 2000, 8000])
def test_one_eviction_agrees_with_the_formulas(n):
    recomputed, swapped = evictions(Costs(A100, context_tokens=n))
    assert recomputed.context_tokens == swapped.context_tokens == n - 1
    assert recomputed.blocks == -(-n // 16)
    assert recomputed.event_s == pytest.approx(recomputed.formula_s, rel=2e-3)
    # Whole blocks: at most one block more than the tokens.
    assert 0 <= swapped.iterations_s / swapped.formula_s - 1 <= 16 / n
    assert swapped.iterations_s == pytest.approx(swapped.event_s)


def test_a_recomputation_by_hand():
    """2,000 tokens of 8B on an A100: 214.6 ms, of which 2 ms are the iteration's fixed time."""
    recomputed = evictions(Costs(A100))[0]
    flop = 2 * 8_030_261_248 * 2000 + 4 * 32 * 4096 * 2000 * 2001 / 2
    assert recomputed.iterations_s == pytest.approx(flop / (312e12 * 0.5) + 2e-3)
    assert recomputed.reasons == ("alone", "next_token")


def test_a_short_one_is_bound_by_reading_the_weights():
    """128 tokens: 13.2 ms of compute; 64 tokens: 6.6 ms, less than 9.8 ms of reading."""
    assert "weights" not in evictions(Costs(A100, context_tokens=128))[0].reasons
    short = evictions(Costs(A100, context_tokens=64))[0]
    assert short.reasons[0] == "weights"
    read_s = 2 * 8_030_261_248 / (2.039e12 * 0.8)
    assert short.iterations_s == pytest.approx(read_s + 2e-3, rel=2e-3)


def test_swapping_ends_earlier_by_what_it_saves():
    recomputed, swapped = evictions(Costs(A100))
    assert recomputed.end_s > swapped.end_s > swapped.undisturbed_end_s
    assert recomputed.undisturbed_end_s == swapped.undisturbed_end_s
    gain = recomputed.end_s - swapped.end_s
    # The recomputation's iteration has its fixed time, and gives an output that a decode need not.
    decode_s = 12e-3
    expected = recomputed.iterations_s - swapped.iterations_s - decode_s
    assert gain == pytest.approx(expected, abs=1e-3)


def test_a_context_is_cut_to_what_the_model_and_the_memory_hold():
    assert evictions(Costs(LLAMA_2, context_tokens=128_000))[0].context_tokens < 4096
    large = Engine("gpt-3-175b", "a100-80g-sxm", 8)
    assert evictions(Costs(large, context_tokens=128_000))[0].context_tokens > 1000


def test_chances_of_the_storm_by_counting():
    scenario = catalogue.presets()["preemption-storm"].scenario
    run = simulate(scenario)
    found = chances(run, engine_of(scenario))
    times = run.requests["preemptions"]
    assert (found.requests, found.hit) == (len(times), int((times > 0).sum()))
    assert found.preemptions == times.sum()
    assert found.again == pytest.approx(times.sum() / (times.sum() + len(times)))
    assert found.at_least == tuple((times > k).mean() for k in range(times.max()))
    assert found.context_tokens == pytest.approx(run.requests["recomputed_tokens"].sum() /
                                                 times.sum(), rel=0.01)  # fmt: skip
    # Every attempt's chance gives the mean; once per request leaves two thirds out.
    assert found.again_flop == pytest.approx(found.measured_flop, rel=5e-3)
    assert found.once_flop < 0.4 * found.measured_flop


def test_a_run_without_preemptions_has_no_chances():
    scenario = catalogue.presets()["customer-service"].scenario
    assert chances(simulate(scenario), engine_of(scenario)) is None
