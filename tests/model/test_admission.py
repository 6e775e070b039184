"""Admission control: who is refused on arrival, to the request, and with which numbers."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from model.events import EVENT, REASONS
from model.iteration_time import Linear, Textbook
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Lab, VllmV1
from model.simulator import simulate
from model.state import REJECTED


def run(policy, arrival_s, prompt, output, *, clock=Linear(1.0, 0.0), kv_blocks=1000, **columns):  # noqa: B008
    n = len(arrival_s)
    requests = Requests.from_columns(
        arrival_s=arrival_s,
        prompt_tokens=np.broadcast_to(prompt, n),
        output_tokens=np.broadcast_to(output, n),
        **columns,
    )
    scenario = Scenario(
        workload=TraceReference("admission", "0" * 64, n),
        policy=policy,
        clock=clock,
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=kv_blocks, block_size=2),
    )
    return simulate(scenario, requests)


def refused(result) -> list[int]:
    return np.flatnonzero(result.requests["status"] == REJECTED).tolist()


def refusals(result) -> list[tuple[int, str, int, int]]:
    """(request, reason, measured, limit) of each refusal on arrival."""
    events = result.events
    rows = np.flatnonzero(events["event"] == EVENT["reject"])
    return [
        (
            int(events["request"][i]),
            REASONS[events["reason"][i]],
            int(events["tokens"][i]),
            int(events["tokens_free"][i]),
        )
        for i in rows
    ]


def test_a_queue_of_two_holds_two():
    """One slot, answers of ten seconds, an arrival each second: the slot, two wait, no more."""
    policy = Lab(max_num_seqs=1, admission="queue_cap", queue_cap_requests=2)
    result = run(policy, np.arange(6) + 0.5, 2, 10)
    assert refusals(result) == [(i, "queue_full", 2, 2) for i in (3, 4, 5)]
    assert result.requests["emitted_tokens"].tolist() == [10, 10, 10, 0, 0, 0]


def test_a_queue_of_none_still_lets_the_idle_engine_start():
    """An engine decides when an iteration ends, so even the first to come waits for a moment."""
    policy = Lab(max_num_seqs=1, admission="queue_cap", queue_cap_requests=0)
    assert refused(run(policy, [0.0], 2, 2)) == [0]


def test_tokens_are_counted_with_the_newcomers():
    """A runs. B's 6 tokens wait; C's 4 make 10, which is allowed; one more of D's is not."""
    policy = Lab(max_num_seqs=1, admission="token_cap", queue_cap_tokens=10)
    result = run(policy, [0.0, 0.5, 0.6, 0.7], [2, 6, 4, 1], 10)
    assert refusals(result) == [(3, "queued_tokens", 11, 10)]


def test_the_cap_on_the_system_counts_who_runs():
    policy = Lab(max_num_seqs=2, admission="little", system_cap_requests=3)
    result = run(policy, [0.0, 0.1, 0.2, 0.3, 20.0], 2, 10)
    assert refusals(result) == [(3, "system_full", 3, 3)]


def test_a_loss_system_has_no_queue():
    """Two slots; the third is lost, the fourth comes when both have left."""
    policy = Lab(max_num_seqs=2, admission="loss")
    result = run(policy, [0.0, 0.1, 0.2, 30.0], 2, 10)
    assert refusals(result) == [(2, "no_free_slot", 2, 2)]


def test_a_loss_system_also_counts_blocks():
    """10 blocks of 2 tokens: A holds 8, B asks for 4; C's 1 block is there."""
    policy = Lab(max_num_seqs=8, admission="loss")
    result = run(policy, [0.0, 1.5, 1.6], [14, 8, 2], [5, 2, 2], kv_blocks=10)
    assert refusals(result) == [(1, "no_free_blocks", 4, 2)]


@pytest.mark.parametrize("slots", [2, 4])
def test_the_loss_system_loses_what_erlang_says(slots):
    """Blocking is Erlang B whatever the service time; iterations of 10 ms blur it little."""
    load = 3.0  # erlang
    blocking = accumulate(range(1, slots + 1), lambda b, k: load * b / (k + load * b), initial=1)
    arrival_s = np.cumsum(np.random.default_rng(11).exponential(1 / load, 8_000))
    policy = Lab(max_num_seqs=slots, admission="loss")
    result = run(policy, arrival_s, 1, 100, clock=Textbook(0.01, "free"))
    assert len(refused(result)) / 8_000 == pytest.approx(list(blocking)[-1], abs=0.02)


def test_the_deadline_rule_to_the_token():
    """10 tokens/s, bound 1 s: whoever would be the eleventh token to be computed is refused."""
    policy = Lab(
        max_num_seqs=1, admission="deadline", ttft_bound_s=1.0, prefill_rate_tokens_per_s=10.0
    )
    result = run(policy, [0.0, 1.1, 1.2, 1.3, 1.4], [4, 6, 4, 1, 11], 30)
    assert refusals(result) == [
        (3, "ttft_hopeless", 1100, 1000),
        (4, "ttft_hopeless", 2100, 1000),
    ]


def test_the_rate_comes_from_the_cost_if_none_is_given():
    """1 ms a token and 10 ms an iteration of 40: 50 ms for 40 tokens are 800 tokens/s."""
    policy = Lab(
        max_num_seqs=1, max_num_batched_tokens=40, admission="deadline", ttft_bound_s=0.1
    )
    clock = Linear(0.010, 0.001)
    result = run(policy, [0.0, 0.06, 0.07, 0.08], [40, 40, 40, 1], 100, clock=clock)
    assert refusals(result) == [(3, "ttft_hopeless", round(81 / 800 * 1000), 100)]


def test_a_wrong_rate_refuses_whom_the_engine_could_serve():
    """C21: prefill thought ten times slower than it is; nearly all were servable."""
    arrival_s = np.cumsum(np.random.default_rng(5).exponential(0.25, 400))
    clock = Linear(0.002, 1e-4)  # 512 tokens in 53 ms
    good, poor = (
        run(
            Lab(admission="deadline", ttft_bound_s=0.5, prefill_rate_tokens_per_s=rate),
            arrival_s,
            512,
            20,
            clock=clock,
        )
        for rate in (0.0, 960.0)
    )
    assert len(refused(good)) == 0
    assert len(refused(poor)) == 400  # 512 tokens at 960/s are 0.53 s, nobody else present
    ttft_s = good.requests["first_token_s"] - good.requests["arrival_s"]
    assert (ttft_s <= 0.5).all()


# ------------------------------------------------------------------ vLLM's own limits


def test_vllm_counts_requests_in_flight():
    policy = VllmV1(max_num_seqs=1, max_num_queued_reqs=3)
    result = run(policy, [0.0, 0.1, 0.2, 0.3, 60.0], 2, 10)
    assert refusals(result) == [(3, "system_full", 3, 3)]


def test_vllm_counts_whole_prompts_until_the_first_token_and_not_the_newcomers():
    """A's 8 tokens count until its fourth chunk gave a token; B may exceed the limit, C may not."""
    policy = VllmV1(max_num_seqs=2, max_num_batched_tokens=2, max_num_queued_tokens=10)
    result = run(policy, [0.0, 1.5, 1.6, 4.5], [8, 5, 1, 1], 3)
    # At 1.5 A counts 8, at 1.6 A and B 13; at 4.5 A has answered and B alone counts 5.
    assert refusals(result) == [(2, "queued_tokens", 13, 10)]


def test_vllm_checks_requests_before_tokens():
    policy = VllmV1(max_num_queued_reqs=0, max_num_queued_tokens=0)
    assert refusals(run(policy, [0.0], 2, 2)) == [(0, "system_full", 0, 0)]
    assert refusals(run(VllmV1(max_num_queued_tokens=0), [0.0], 2, 2)) == [
        (0, "queued_tokens", 0, 0)
    ]


def test_vllm_has_no_limit_unless_told():
    assert refused(run(VllmV1(max_num_seqs=1), np.zeros(50), 2, 2)) == []
