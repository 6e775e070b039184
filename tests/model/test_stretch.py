"""A stretch costs what it holds: nothing is laid out for iterations that an arrival cuts off."""

from __future__ import annotations

import numpy as np
import pytest

from model import engine
from model.events import REASONS
from model.iteration_time import Linear, Textbook
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import VllmV0, VllmV1
from model.simulator import simulate


def scenario(policy, clock, **memory) -> Scenario:
    return Scenario(
        workload=TraceReference("columns", "0" * 64, 1),
        policy=policy,
        clock=clock,
        model=None,
        hardware=None,
        memory=Memory(**memory),
    )


def test_a_long_answer_is_not_laid_out_anew_at_every_arrival(monkeypatch):
    """One seat, an answer of 100,000 tokens, and 500 arrivals that cut it into 500 stretches.

    Each stretch may lay out the iterations that it holds and a few more; without a bound by time
    each would lay out all that are left, about 100,000 x 500 / 2.
    """
    laid_out = []
    original = engine.blocks_ahead

    def counted(*arguments):
        blocks = original(*arguments)
        laid_out.append(len(blocks))
        return blocks

    monkeypatch.setattr(engine, "blocks_ahead", counted)
    requests = Requests.from_columns(
        arrival_s=np.concatenate(([0.0], np.arange(1, 501) * 0.05)),
        prompt_tokens=[8] * 501,
        output_tokens=[100_000] + [1] * 500,
    )
    result = simulate(
        scenario(VllmV1(max_num_seqs=1), Linear(0.001, 0.0), kv_blocks=10_000), requests
    )
    iterations = len(result.iterations["start_s"])
    assert iterations == 100_000 + 500
    assert sum(laid_out) <= iterations + 3 * result.stats["decisions"]


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_serial_clock_feeds_one_prompt_token_an_iteration(chunked, seed):
    """Also to a half computed prompt that comes back from host memory."""
    rng = np.random.default_rng(seed)
    requests = Requests.from_columns(
        arrival_s=np.sort(rng.uniform(0, 20, 30)),
        prompt_tokens=rng.integers(1, 24, 30),
        output_tokens=rng.integers(1, 24, 30),
    )
    policy = VllmV0(
        max_num_seqs=6,
        max_num_batched_tokens=24,
        preemption_mode="swap",
        enable_chunked_prefill=chunked,
    )
    memory = {"kv_blocks": 14, "block_size": 4, "num_cpu_blocks": 200}
    result = simulate(scenario(policy, Textbook(1.0, "serial"), **memory), requests)
    assert result.requests["swapped_blocks"].sum() > 0
    assert result.chunks["tokens"].max() == 1
    reasons = {REASONS[code] for code in result.requests["reason"]}
    assert reasons <= {"none", "exceeds_budget"}, "nobody deadlocks when prompts come in pieces"
