"""Where two runs part, against schedules that can be followed with pencil and paper.

Workload W and its traces are those of ``test_hand_traces``: A (7 in, 4 out), B (6, 4), C (5, 3) at
time 0; six blocks of four tokens.
"""

from __future__ import annotations

import pytest

from model import catalogue
from model.experiment import replace_at, with_policy
from model.parting import Act, Memory, Refusal, first_other_memory, parting
from model.simulator import simulate
from tests.adapter import request_row, simulate_model
from tests.model.test_hand_traces import TRACES, W2, W

A, B, C = range(3)


def run(name, rows=W, **settings):
    policy, scheduler, _ = TRACES[name]
    clock = {"base_s": 1.0, "per_scheduled_token_s": 0.0}
    config = {"policy": policy, "scheduler": scheduler | settings, "iteration_time": clock}
    return simulate_model(config, rows)


def only(acts):
    (act,) = acts
    return act


def test_v1_and_sarathi_compute_the_same_tokens_and_hold_other_blocks():
    one, other = run("vllm-v1"), run("sarathi")
    assert parting(one, other) is None
    # V1 takes A's two blocks and one of B's two, Sarathi the blocks of both prompts at once.
    assert first_other_memory(one, other) == Memory(0, 0, 3, 4)


def test_static_and_orca_run_w_alike_because_c_fits_neither_batch_nor_memory():
    one, other = run("static"), run("orca")
    assert parting(one, other) is None


def test_static_lets_c_wait_until_a_is_done_and_orca_does_not():
    rows = [request_row("A", 0, 7, 4), request_row("B", 0, 6, 2), request_row("C", 0, 5, 3)]
    memory = {"max_num_seqs": 2, "max_model_len": 11}
    found = parting(run("static", rows, **memory), run("orca", rows, **memory))
    # 0: A:7 B:6, 1: A:1 B:1 and B ends; 2: static A:1, Orca A:1 C:5.
    assert (found.iteration, found.time_s, found.kind) == (2, 2.0, "admit")
    waits, joins = only(found.one.acts), only(found.other.acts)
    assert (waits.kind, waits.requests, waits.refusal.reason) == ("wait", (C,), "batch_running")
    # Blocks of one token: C reserves 5 + 3 of the 24 less the 11 of A.
    assert joins == Act("admit", (C,), 5, blocks_needed=8, blocks_free=13)
    assert (found.one.tokens, found.other.tokens) == (1, 6)
    assert (found.one.decodes, found.other.prefills, found.other.prefill_tokens) == (1, 1, 5)


def test_v0_takes_b_whole_and_v1_what_its_smaller_budget_leaves():
    found = parting(run("vllm-v0"), run("vllm-v1"))
    assert (found.iteration, found.kind) == (0, "admit")
    need = {"blocks_needed": 2, "blocks_free": 4}
    assert only(found.one.acts) == Act("admit", (B,), 6, tokens_free=9, **need)
    assert only(found.other.acts) == Act("admit", (B,), 1, tokens_free=1, **need)
    assert (found.one.budget, found.other.budget) == (16, 8)
    assert (found.one.blocks_used, found.other.blocks_used) == (4, 3)


def test_with_one_budget_v0_lets_c_wait_and_v1_cuts_its_prompt():
    found = parting(run("vllm-v0"), run("vllm-v1", max_num_batched_tokens=16))
    assert found.iteration == 0
    waits, joins = only(found.one.acts), only(found.other.acts)
    # 16 − 7 − 6 = 3 tokens are left, C has 5; two of the six blocks are free.
    refusal = Refusal(C, "no_budget", 0, blocks_needed=2, blocks_free=2, tokens=5, tokens_free=3)
    assert waits == Act("wait", (C,), refusal=refusal)
    assert joins == Act("admit", (C,), 3, blocks_needed=2, blocks_free=2, tokens_free=3)


def test_without_the_check_of_the_whole_prompt_v1_admits_b_sooner():
    """W2: A has 3 of 6 blocks, so the 4 of B's prompt are not there, but one for its chunk is."""
    small = {"max_num_batched_tokens": 4}
    whole = run("vllm-v1", W2, scheduler_reserve_full_isl=True, **small)
    chunk = run("vllm-v1", W2, scheduler_reserve_full_isl=False, **small)
    found = parting(whole, chunk)
    assert (found.iteration, found.kind) == (3, "admit")
    refusal = only(found.one.acts).refusal
    assert (refusal.reason, refusal.blocks_needed, refusal.blocks_free) == ("no_blocks", 4, 2)
    assert only(found.other.acts).tokens == 3


def test_v0_lets_decodes_stand_while_it_serves_prompts():
    rows = [request_row("A", 0, 4, 4), request_row("B", 2, 4, 2)]
    found = parting(run("vllm-v0", rows), run("vllm-v1", rows, max_num_batched_tokens=16))
    assert (found.iteration, found.kind) == (2, "decode")
    assert only(found.one.acts) == Act("stall", (A,))
    assert only(found.other.acts) == Act("decode", (A,), 1)
    assert (found.one.decodes, found.one.prefill_tokens) == (0, 4)


def test_recompute_and_swap_part_at_the_first_victim():
    recompute = run("vllm-v0")
    swap = run("vllm-v0", preemption_mode="swap", num_cpu_blocks=6)
    found = parting(recompute, swap)
    assert (found.iteration, found.kind) == (2, "preempt")  # C, as the trace says
    dropped, moved = only(found.one.acts), only(found.other.acts)
    assert (dropped.kind, dropped.requests, dropped.tokens) == ("preempt", (C,), 5)
    assert (moved.kind, moved.requests, moved.blocks_needed) == ("swap_out", (C,), 2)
    assert dropped.reason == moved.reason == "latest_admitted"


def test_a_request_that_only_one_side_rejects():
    rows = [request_row("A", 0, 4, 2), request_row("B", 1, 12, 2)]
    small = {"max_num_batched_tokens": 8}
    found = parting(
        run("vllm-v1", rows, enable_chunked_prefill=False, **small), run("vllm-v1", rows, **small)
    )
    assert (found.iteration, found.kind) == (1, "reject")
    assert only(found.one.acts).reason == "exceeds_budget"
    assert only(found.other.acts).kind == "admit"


def lab(**settings):
    small = {"block_size": 4, "kv_blocks": 6, "max_num_seqs": 3, "max_num_batched_tokens": 18}
    clock = {"base_s": 1.0, "per_scheduled_token_s": 0.0}
    return simulate_model(
        {"policy": "lab", "scheduler": small | settings, "iteration_time": clock}, W
    )


def test_the_order_within_a_decision_is_no_difference_but_the_victim_that_follows_is():
    """All three prompts fit 18 tokens and six blocks, and join together in either order."""
    found = parting(lab(), lab(queue_order="sjf"))
    # 0: all prompts, 1: all decode, 2: A's third block is not there, and the last admitted goes:
    # C where the order is that of arrival, A itself where the shortest has been first.
    assert (found.iteration, found.kind) == (2, "preempt")
    victims = [
        [(act.requests, act.reason) for act in side.acts if act.kind == "preempt"]
        for side in (found.one, found.other)
    ]
    assert victims == [[((C,), "latest_admitted")], [((A,), "itself")]]


def test_the_same_decision_at_another_time_is_a_difference_of_time():
    found = parting(lab(), lab(quantum_s=0.7))
    assert (found.iteration, found.kind, found.one.acts) == (1, "time", ())
    assert (found.one.start_s, found.other.start_s) == (1.0, pytest.approx(1.4))
    assert found.time_s == 1.0


def test_who_has_not_come_yet_on_one_side_is_not_compared():
    """Without chunks nobody fits a budget of 3: all are rejected before the first iteration."""
    rows = [request_row("A", 0, 8, 2), request_row("B", 50, 8, 2)]
    settings = {"max_num_batched_tokens": 3}
    whole = run("vllm-v1", rows, enable_chunked_prefill=False, **settings)
    found = parting(whole, run("vllm-v1", rows, **settings))
    assert (found.iteration, found.time_s, found.kind) == (0, 0.0, "reject")
    assert only(found.one.acts).requests == only(found.other.acts).requests == (A,)


def test_padding_is_a_difference_although_everybody_gets_the_same():
    found = parting(run("static"), run("static", finished_rows="padded"))
    # The prompts of 7 and 6 are padded to 7.
    assert (found.iteration, found.kind, found.one.acts) == (0, "padding", ())
    assert (found.one.padding_tokens, found.other.padding_tokens) == (0, 1)


def test_a_run_does_not_part_from_itself_nor_from_a_repetition():
    one = run("vllm-v0")
    assert parting(one, one) is None
    assert parting(one, run("vllm-v0")) is None
    assert first_other_memory(one, one) is None


def test_runs_of_other_requests_are_refused():
    with pytest.raises(ValueError, match="same requests"):
        parting(run("vllm-v1"), run("vllm-v1", W2))


PRESETS = tuple(catalogue.presets())


@pytest.mark.parametrize("preset", PRESETS)
def test_the_schedules_agree_before_and_differ_at_the_parting(preset):
    """Against the plain comparison of both schedules, row by row."""
    scenario = catalogue.presets()[preset].scenario
    one, other = simulate(scenario), simulate(with_policy(scenario, "vllm-v0"))
    found = parting(one, other)
    assert _rows(one, found.iteration) == _rows(other, found.iteration)
    assert _rows(one, found.iteration + 1) != _rows(other, found.iteration + 1)
    assert found.time_s == one.iterations["start_s"][found.iteration]


def _rows(result, end):
    return [column.tolist() for column in result.scheduled(0, end).values()]


def test_the_other_way_round_the_sides_change_places():
    scenario = catalogue.presets()["preemption-storm"].scenario
    one, other = simulate(scenario), simulate(with_policy(scenario, "sarathi"))
    there, back = parting(one, other), parting(other, one)
    assert (there.iteration, there.kind) == (back.iteration, back.kind)
    assert (there.one, there.other) == (back.other, back.one)


def test_several_engines_are_gone_through_one_by_one():
    scenario = replace_at(catalogue.presets()["conversation"].scenario, "n_engines", 2)
    found = parting(simulate(scenario), simulate(with_policy(scenario, "vllm-v0")))
    assert found.engine_id in (0, 1)
    assert found.one.start_s == found.other.start_s == found.time_s


def test_two_engines_part_at_the_earlier_of_their_moments():
    scenario = replace_at(catalogue.presets()["conversation"].scenario, "n_engines", 2)
    one, other = simulate(scenario), simulate(with_policy(scenario, "vllm-v0"))
    found = parting(one, other)
    # No iteration of any engine that began before is scheduled otherwise.
    before = [
        {
            (int(r), int(n))
            for row, r, n in zip(*result.scheduled().values(), strict=True)
            if result.iterations["start_s"][row] < found.time_s - 1e-9
        }
        for result in (one, other)
    ]
    assert before[0] == before[1]
