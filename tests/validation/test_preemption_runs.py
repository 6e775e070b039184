"""Evictions in the simulator beside the formulas, and chances by counting."""

from dataclasses import replace

import pytest

from model import catalogue
from model.experiment import with_policy
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.preemption_runs import chances, evictions
from validation.throughput import Engine, engine_of

A100 = Engine("llama-3-8b", "a100-80g-sxm")
LLAMA_2 = Engine("llama-2-7b", "a100-80g-sxm")


@pytest.mark.parametrize("n", [128, 2000, 8000])
def test_one_eviction_agrees_with_the_formulas(n):
    recomputed, swapped = evictions(A100, n)
    assert recomputed.context_tokens == swapped.context_tokens == n - 1
    assert recomputed.blocks == -(-n // 16)
    assert recomputed.event_s == pytest.approx(recomputed.formula_s, rel=2e-3)
    # Whole blocks: at most one block more than the tokens.
    assert 0 <= swapped.iterations_s / swapped.formula_s - 1 <= 16 / n
    assert swapped.iterations_s == pytest.approx(swapped.event_s)


def test_a_recomputation_by_hand():
    """2,000 tokens of 8B on an A100: 214.6 ms, of which 2 ms are the iteration's fixed time."""
    recomputed = evictions(A100, 2000)[0]
    flop = 2 * 8_030_261_248 * 2000 + 4 * 32 * 4096 * 2000 * 2001 / 2
    assert recomputed.iterations_s == pytest.approx(flop / (312e12 * 0.5) + 2e-3)
    assert recomputed.reasons == ("alone", "next_token")


def test_a_short_one_is_bound_by_reading_the_weights():
    """128 tokens: 13.2 ms of compute; 64 tokens: 6.6 ms, less than 9.8 ms of reading."""
    assert "weights" not in evictions(A100, 128)[0].reasons
    short = evictions(A100, 64)[0]
    assert short.reasons[0] == "weights"
    read_s = 2 * 8_030_261_248 / (2.039e12 * 0.8)
    assert short.iterations_s == pytest.approx(read_s + 2e-3, rel=2e-3)


def test_swapping_ends_earlier_by_what_it_saves():
    recomputed, swapped = evictions(A100, 2000)
    assert recomputed.end_s > swapped.end_s > swapped.undisturbed_end_s
    assert recomputed.undisturbed_end_s == swapped.undisturbed_end_s
    gain = recomputed.end_s - swapped.end_s
    # The recomputation's iteration has its fixed time, and gives an output that a decode need not.
    decode_s = 12e-3
    expected = recomputed.iterations_s - swapped.iterations_s - decode_s
    assert gain == pytest.approx(expected, abs=1e-3)


def test_a_context_is_cut_to_what_the_model_and_the_memory_hold():
    assert evictions(LLAMA_2, 128_000)[0].context_tokens < 4096
    large = Engine("gpt-3-175b", "a100-80g-sxm", 8)
    assert evictions(large, 128_000)[0].context_tokens > 1000


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


def test_swaps_are_told_from_recomputations():
    scenario = catalogue.presets()["preemption-storm"].scenario
    assert chances(simulate(scenario), engine_of(scenario)).swaps == 0
    swapping = replace(
        with_policy(scenario, "vllm-v0"),
        policy=POLICIES["vllm-v0"](max_num_seqs=scenario.policy.max_num_seqs,
                                   max_num_batched_tokens=8192, preemption_mode="swap"),
    )  # fmt: skip
    found = chances(simulate(swapping), engine_of(swapping))
    assert found.swaps == found.preemptions > 0


def test_those_hit_again_by_counting():
    scenario = catalogue.presets()["preemption-storm"].scenario
    run = simulate(scenario)
    times = run.requests["preemptions"]
    expected = (times > 1).sum() / (times > 0).sum()
    assert chances(run, engine_of(scenario)).repeated == pytest.approx(expected)


def test_a_run_without_preemptions_has_no_chances():
    scenario = catalogue.presets()["customer-service"].scenario
    assert chances(simulate(scenario), engine_of(scenario)) is None
