"""Every formula beside its simulation: within its tolerance, or apart where it has to be."""

import numpy as np
import pytest

import formulas
from validation.comparison import DETERMINISTIC, KINDS, curve, record
from validation.table import COMPARISONS, TOPICS, records

COVERED = [
    *("F12", "F13", "F14", "F15", "F16", "F16a", "F16b", "F16c", "F16d", "F17", "F17a", "F19"),
    *("F19a", "F22", "F23", "F23a", "F24", "F24p", "F26", "F26d", "F26e", "F27", "F27a", "F28"),
    *("F28a", "F28b", "F28d", "F28e", "F29", "F30", "F30a", "F30b", "F31", "F31a"),
    *("F34", "F34a", "F34b", "F34c"),
]
CASES = [(name, broken) for name, c in COMPARISONS.items() for broken in ("", *c.broken)]


def found(name, broken=""):
    return record(COMPARISONS[name], broken)


def test_the_table_covers_the_formulas_it_promises():
    assert {f for c in COMPARISONS.values() for f in c.formulas} == set(COVERED)
    assert len(COMPARISONS) == sum(len(group) for group in TOPICS.values())


@pytest.mark.parametrize("name", [n for n, c in COMPARISONS.items() if c.kind == DETERMINISTIC])
def test_without_chance_both_are_equal_to_half_a_percent(name):
    assert abs(found(name).difference) <= min(5e-3, found(name).tolerance)
    assert found(name).verdict == "agrees"


@pytest.mark.parametrize("name", [n for n, c in COMPARISONS.items() if c.kind != DETERMINISTIC])
def test_with_chance_both_are_equal_within_what_is_stated(name):
    assert found(name).tolerance <= 0.06
    assert found(name).verdict == "agrees"


@pytest.mark.parametrize(("name", "broken"), [case for case in CASES if case[1]])
def test_a_broken_assumption_shows(name, broken):
    assert found(name, broken).verdict == "apart"


def test_every_record_stands_in_the_table_once():
    names = [(row.name, row.broken) for row in records()]
    assert names == CASES
    assert {row.kind for row in records()} <= set(KINDS)


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_place_of_the_table_lies_on_the_curve(name):
    comparison = COMPARISONS[name]
    assert comparison.at in comparison.points
    assert list(comparison.points) == sorted(comparison.points)


@pytest.mark.parametrize("name", ["stall", "swap", "little", "padding_given", "chunk_grid"])
def test_along_the_axis_both_stay_together(name):
    along = curve(COMPARISONS[name])
    said = np.interp(along.x, along.line_x, along.line_y)
    if COMPARISONS[name].smooth:
        said = np.array([COMPARISONS[name].predicted(x) for x in along.x])
    assert along.simulated == pytest.approx(said, rel=5e-3)


def test_a_simulation_repeats_itself():
    once = [row.simulated for row in (found("ttft_p99"), found("time_sjf", "guessed"))]
    again = [
        COMPARISONS[name].simulate(COMPARISONS[name].at, broken)
        for name, broken in (("ttft_p99", ""), ("time_sjf", "guessed"))
    ]
    assert once == again


# -- how far apart, where that can be known otherwise ----------------------------------------------


def test_a_prompt_in_one_iteration_makes_static_batching_as_fast_as_its_batch():
    given = dict(found("static_printed").parameters)
    assert found("static_printed", "whole_prompt").simulated == pytest.approx(
        given["B_s"] / given["T_s"], rel=1e-2
    )


def test_prompts_charged_to_continuous_batching_cost_it_their_share_of_a_stay():
    printed = found("continuous_printed")
    share = 200 / (512 + 200)
    assert found("continuous_printed", "prompt_charged").simulated == pytest.approx(
        printed.formula * share, rel=5e-3
    )


def test_prompts_charged_alike_leave_the_ratio_of_the_batches():
    assert found("improvement_printed", "alike").simulated == pytest.approx(130.0, rel=5e-3)


def test_the_simulated_budget_is_that_of_the_domain():
    # 8B on an A100, 32 decodes of 1,500 tokens: known for bounds of 30, 50, 100 and 200 ms.
    along = curve(COMPARISONS["chunk_grid"])
    known = {0.03: 224, 0.05: 416, 0.1: 896, 0.2: 1824}
    simulated = dict(zip(along.x.tolist(), along.simulated.tolist(), strict=True))
    assert {bound: simulated[bound] for bound in known} == known


def test_chunks_stall_a_decode_for_one_iteration_at_most():
    # A full budget of 2,048 tokens less the decode's own token: 2,047 times 0.1 ms.
    assert found("stall", "chunked").simulated == pytest.approx(204.7, abs=1e-6)


def test_overhead_is_a_longer_service():
    longer = {"lambda": 7.0, "D": 0.11}
    said = formulas.get("F26").evaluate(longer) * 1e3
    assert found("ttft_mean", "overhead").simulated == pytest.approx(said, rel=5e-2)


def test_bursts_stay_below_kingmans_bound():
    # λ(σ_a² + σ_s²)/(2(1 − ρ)) with σ_a = 3/λ, above the wait of arrivals at random.
    bound_ms = 7.0 * (3 / 7.0) ** 2 / (2 * 0.3) * 1e3
    bursty = found("ttft_mean", "bursty").simulated - 100
    assert found("ttft_mean").simulated < bursty < bound_ms


def test_an_overhead_lets_fewer_tokens_queue():
    # 250 tokens take 35 instead of 25 ms: 28 prompts go before one that starts within a second.
    assert found("queue_cap").simulated == 10_000
    assert found("queue_cap", "overhead").simulated == 7_000


def test_an_overhead_moves_the_load_that_keeps_a_promise():
    # A tenth more service: x falls to 5/1.1, and so does what of the load is arrivals.
    x = 5 / 1.1
    said = formulas.get("F28b").evaluate({"x_ttft": x, "q_share": 0.99}) / 1.1
    assert found("load_p99", "overhead").simulated == pytest.approx(said, rel=2e-2)


def test_a_half_filled_block_is_moved_whole():
    assert found("swap", "part_block").difference == pytest.approx(256 / 248 - 1, abs=1e-3)


def test_one_way_at_twice_the_bandwidth_is_a_fifth():
    # 64 GB/s once, as printed, against 25 GB/s out and in.
    assert found("swap", "one_way").simulated / found("swap", "one_way").formula == pytest.approx(
        64 / 25 * 2, rel=5e-3
    )


def test_what_rides_beside_decodes_saves_the_fixed_time_and_more():
    alone, beside = (found("recompute", broken).simulated for broken in ("", "beside_decodes"))
    assert beside < alone - 2.0  # ms that an iteration costs without work
