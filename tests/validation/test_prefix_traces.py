"""Replaying the blocks of a trace: counts by hand, a slow second way, and its limits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model import catalogue
from model.iteration_time import CLOCKS
from model.requests import Requests
from model.scenario import TraceReference
from model.simulator import simulate
from model.traces import read_trace
from validation.prefix_traces import hit_shares, reuse, sample

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "mooncake_sample.jsonl"


def requests(rows):
    """Prompts in tokens with the hash ids of their blocks of 10."""
    return Requests.from_columns(
        arrival_s=range(len(rows)),
        prompt_tokens=[tokens for tokens, _ in rows],
        output_tokens=[1] * len(rows),
        hash_ids=[ids for _, ids in rows],
        hash_block_tokens=10,
    )


def test_hits_counted_by_hand():
    """30 tokens; then the same 30, of which the last token is computed; then another end."""
    rows = requests([(30, (1, 2, 3)), (30, (1, 2, 3)), (25, (1, 2, 9)), (30, (7, 2, 3))])
    assert hit_shares(rows, [100])[0] == pytest.approx((20 + 20) / 115)
    # Room for one block: the beginning stays, the end is forgotten first.
    assert hit_shares(rows, [1])[0] == pytest.approx((10 + 10) / 115)


def test_blocks_after_different_beginnings_are_different():
    found = reuse(requests([(30, (1, 2, 3)), (30, (7, 2, 3)), (30, (1, 2, 4))]))
    assert (found.blocks, found.once) == (7, 5)


def slow(rows, most):
    """The least recently used first, by the time of the last use; ends count as used earlier."""
    used, clock, found = {}, 0, 0
    for tokens, ids in rows:
        chain = [tuple(ids[: i + 1]) for i in range(tokens // 10)]
        hits = 0
        while hits < (tokens - 1) // 10 and chain[hits] in used:
            hits += 1
        found += 10 * hits
        for content in reversed(chain):
            clock += 1
            used[content] = clock
        for content in sorted(used, key=used.get)[: max(len(used) - most, 0)]:
            del used[content]
    return found / sum(tokens for tokens, _ in rows)


def test_a_slower_way_finds_the_same():
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(80):
        length = int(rng.integers(1, 6))
        rows.append((10 * length - int(rng.integers(0, 10)), tuple(rng.integers(0, 3, length))))
    sizes = (1, 2, 5, 20, 500)
    shares = hit_shares(requests(rows), sizes)
    assert shares == pytest.approx([slow(rows, most) for most in sizes])
    assert (np.diff(shares) >= 0).all()


def test_the_sample_of_mooncakes_form():
    trace = read_trace(SAMPLE).requests
    shares = hit_shares(trace, [10_000])
    slowly = [(int(n), ids) for n, ids in zip(trace.prompt_tokens, trace.hash_ids, strict=True)]
    hits, seen = 0, set()
    for tokens, ids in slowly:
        chain = [tuple(ids[: i + 1]) for i in range(tokens // 512)]
        for i in range((tokens - 1) // 512):
            if chain[i] not in seen:
                break
            hits += 512
        seen.update(chain)
    assert hits > 0
    assert shares[0] == pytest.approx(hits / int(trace.prompt_tokens.sum()))


def test_made_up_conversations_return():
    found = reuse(sample())
    assert found.requests > 200
    shares = hit_shares(sample(), [3, 100, 10_000])
    assert shares[0] < 0.3 < shares[2] < 0.9


def engine_share(requests, blocks):
    """Share of the prompt tokens that a simulated vLLM V1 finds with room for so many blocks."""
    preset = catalogue.presets()["conversation-turns"].scenario
    scenario = replace(
        preset,
        workload=TraceReference("sample", "0" * 64, len(requests)),
        model=None,
        hardware=None,
        clock=CLOCKS["linear"](),
        memory=replace(preset.memory, max_model_len=blocks * 512, kv_blocks=blocks * 32),
    )
    found = simulate(scenario, requests).requests
    return found["cached_tokens"].sum() / found["prompt_tokens"].sum()


def test_an_engine_finds_what_the_replay_says():
    """To the token where nothing is evicted; running requests take blocks where memory is short."""
    made_up = sample()
    ample, short = hit_shares(made_up, [10_000, 120])
    assert engine_share(made_up, 10_000) == pytest.approx(ample, rel=1e-12)
    assert 0 < short - engine_share(made_up, 120) < 0.1
