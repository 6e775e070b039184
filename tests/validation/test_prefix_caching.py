"""What a prefix cache finds: formula, simulation and counts by hand."""

from dataclasses import replace

import numpy as np
import pytest

from model import metrics
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Workload
from validation.prefix_caching import (
    Talk,
    admissions,
    alone,
    cached_or_not,
    conversations,
    crowded,
    fleet,
    has_shared_prompts,
    open_histories,
    refusals,
    simulated_turns,
    steady,
    turns,
    with_blocks,
)


@pytest.mark.parametrize("block_size", [1, 16, 64])
@pytest.mark.parametrize(
    "sizes", [(600, 60, 200), (100, 1, 60), (16, 16, 16), (15, 1, 1), (160, 7, 33)]
)
def test_formula_and_simulation_agree_to_the_token(sizes, block_size):
    talk = Talk(*sizes, turns=7, block_size=block_size)
    for said, found in zip(turns(talk), simulated_turns(talk), strict=True):
        assert said.tolist() == found.tolist()


def test_an_answer_that_fills_its_block_leaves_it_one_token_short():
    """100 + 60 tokens fill 10 blocks of 16, but the last token has no KV: 9 are found."""
    found = simulated_turns(Talk(100, 1, 60, turns=2))
    assert found.prompt.tolist() == [100, 161]
    assert found.found.tolist() == [0, 144]


def test_both_settings_serve_the_same_requests():
    for policy in ("vllm-v1", "sglang"):
        off, on = (simulate(cached_or_not(conversations(), policy, c)) for c in (False, True))
        assert off.requests["prompt_tokens"].tolist() == on.requests["prompt_tokens"].tolist()
        assert off.requests["cached_tokens"].sum() == 0
        assert on.requests["cached_tokens"].sum() > 0.9 * on.requests["prompt_tokens"].sum()


def test_blocks_of_another_size_are_the_same_memory():
    tokens = with_blocks(crowded(1500), 1).memory
    assert (tokens.block_size, tokens.kv_blocks) == (1, 24_000)


def test_own_blocks_make_a_preemption_cheap():
    off, on = (
        metrics.summary(simulate(cached_or_not(crowded(), "vllm-v1", c))) for c in (False, True)
    )
    assert on["recomputed_tokens"] / on["preemptions"] < 0.2 * off["recomputed_tokens"] / 57
    assert off["preemptions"] == 57
    assert on["cached_again_tokens"] > 5 * on["recomputed_tokens"]


def test_histories_are_evicted_where_memory_is_short():
    short, ample = (simulate(steady(n, 8.0)).requests for n in (1000, 7000))
    assert short["cached_tokens"].sum() < 0.6 * ample["cached_tokens"].sum()


def test_open_conversations_counted_again():
    """At each arrival, count the conversations that have begun and not ended."""
    result = simulate(steady(7000, 2.0, 60))
    requests, follows = result.requests, result.inputs.follows
    talk = np.arange(len(follows))
    for row, before in enumerate(follows):
        talk[row] = talk[before] if before >= 0 else row
    starts = [requests["arrival_s"][talk == t].min() for t in np.unique(talk)]
    ends = [requests["end_s"][talk == t].max() for t in np.unique(talk)]
    most = max(sum(s <= at < e for s, e in zip(starts, ends, strict=True)) for at in starts)
    assert open_histories(result).conversations == most


def test_admissions_say_what_the_scheduler_asked_for():
    result = simulate(crowded())
    listed = admissions(result)
    assert len(listed) > 400
    for one in listed:
        assert 0 <= one.idle_blocks <= one.found_blocks
        assert one.needed_blocks <= one.free_blocks
        assert 0 < one.tokens <= min(one.prompt_tokens - one.found_tokens, one.budget_tokens)
    assert any(one.idle_blocks for one in listed)
    assert any(one.idle_blocks < one.found_blocks for one in listed)


def test_found_blocks_that_nobody_holds_save_no_memory():
    """Turn 2 of a chat alone: 860 tokens are 54 blocks; 799 stored fill 49, all without a user."""
    first, *_ = admissions(simulate(alone(Talk(600, 60, 200, turns=2))))
    assert (first.prompt_tokens, first.found_tokens) == (860, 784)
    assert (first.whole_blocks, first.found_blocks, first.idle_blocks) == (54, 49, 49)
    assert first.needed_blocks == 54


def test_found_blocks_that_somebody_holds_save_memory():
    """Two prompts of 100 tokens with 64 in common at once: 7 blocks, 4 of them in use already."""
    preset = conversations()
    (stream,) = preset.workload.streams
    both = replace(
        stream,
        n_requests=2,
        arrivals=Arrivals("constant", rate_per_s=20.0),
        prompt=Lengths("fixed", 100.0),
        output=Lengths("fixed", 100.0),
        prefix_groups=1,
        shared_prefix_tokens=64,
        turns=replace(stream.turns, mean_turns=1.0),
    )
    (second,) = admissions(simulate(replace(preset, workload=Workload((both,)))))
    assert (second.whole_blocks, second.found_blocks, second.idle_blocks) == (7, 4, 0)
    assert second.needed_blocks == 3


def test_refusals_are_counted_by_reason():
    counts = refusals(simulate(crowded()))
    assert set(counts) == {"no_blocks", "no_budget"}
    assert counts["no_blocks"] > 0


def test_a_router_that_knows_prefixes_finds_more():
    turn, aware = (
        simulate(fleet(router, 8, 8.0)).requests for router in ("round_robin", "prefix_aware")
    )
    assert np.bincount(turn["engine_id"]).tolist() == [125] * 4
    assert aware["cached_tokens"].sum() > 1.5 * turn["cached_tokens"].sum()


def test_which_workloads_share_prompts():
    preset = conversations()
    assert has_shared_prompts(preset)
    (stream,) = preset.workload.streams
    alone = replace(
        stream, prefix_groups=0, shared_prefix_tokens=0, turns=replace(stream.turns, mean_turns=1)
    )
    workload = replace(preset.workload, streams=(alone,))
    assert not has_shared_prompts(replace(preset, workload=workload))
