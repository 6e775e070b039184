"""Head-of-line blocking by hand, and against a loop over the queue of simulated runs."""

import math

import numpy as np
import pytest

from model import metrics
from model.events import EVENTS, REASONS
from model.iteration_time import Linear
from model.kv_cache import Memory, blocks_for_tokens
from model.scenario import Scenario
from model.schedulers import POLICIES
from model.simulator import simulate
from model.state import STATUS
from model.workload import Arrivals, Lengths, Stream, Workload
from tests.hand_made import after_arrivals, answered, events, iterations, requests

# Ten blocks of 16. Request 0 (160 tokens) is refused; 1 (16 tokens) comes at 2 and runs at 4.
QUEUE = requests(
    answered(0.0, 9.0, prompt_tokens=160, first_scheduled_s=5.0),
    answered(2.0, 9.0, prompt_tokens=16, first_scheduled_s=4.0),
    answered(0.0, 9.0, prompt_tokens=999, first_scheduled_s=0.0),
)
FULL = iterations(
    *({"start_s": s, "end_s": s + 1, "blocks_used": 9, "running": 1} for s in range(6))
)


def blocked(log, run=FULL, queue=QUEUE, **options) -> list[bool]:
    options = {"kv_blocks": 10, "block_size": 16} | options
    log = after_arrivals(log, queue)
    return metrics.head_of_line_blocked(run, log, queue, **options).tolist()


NO_BLOCKS = events(("refuse", 0, 0, "no_blocks", 10), ("admit", 5, 0))
FROM_TWO_TO_FOUR = [False, False, True, True, False, False]


def test_the_head_blocks_while_a_later_request_would_fit():
    marks = blocked(NO_BLOCKS)
    assert marks == FROM_TWO_TO_FOUR
    assert metrics.head_of_line_s(FULL, np.array(marks)) == 2.0


def test_the_refusal_ends_with_an_admission_or_when_the_head_leaves():
    assert blocked(events(("refuse", 0, 0, "no_blocks", 10), ("admit", 3, 2))) == [
        *(False, False, True, False, False, False)
    ]
    assert blocked(events(("refuse", 0, 0, "no_blocks", 10), ("cancel", 3, 0))) == [
        *(False, False, True, False, False, False)
    ]
    # somebody else's cancellation moves nothing
    assert blocked(events(("refuse", 0, 0, "no_blocks", 10), ("cancel", 3, 2))) == FROM_TWO_TO_FOUR


@pytest.mark.parametrize("reason", ["no_slot", "after_preemption", "batch_running"])
def test_other_reasons_are_not_the_heads_fault(reason):
    assert not any(blocked(events(("refuse", 0, 0, reason))))


def test_nobody_fits_without_blocks_above_the_watermark_or_without_a_slot():
    assert not any(blocked(NO_BLOCKS, watermark_blocks=1))
    assert not any(blocked(NO_BLOCKS, max_num_seqs=1))
    assert blocked(NO_BLOCKS, max_num_seqs=2) == FROM_TWO_TO_FOUR
    assert not any(blocked(NO_BLOCKS, run=FULL | {"blocks_used": np.full(6, 10)}))
    assert not any(blocked(NO_BLOCKS, tokens_needed=np.array([160, 32, 160])))


def test_a_long_head_blocks_a_short_prompt_that_fits_the_budget():
    assert blocked(events(("refuse", 0, 0, "no_budget", 16))) == FROM_TWO_TO_FOUR
    assert not any(blocked(events(("refuse", 0, 0, "no_budget", 15))))


def test_a_head_that_would_fit_itself_blocks_nobody():
    # V0 does not look at the queue in an iteration that preempts, whatever is free then
    roomy = FULL | {"blocks_used": np.array([9, 9, 9, 0, 9, 9])}
    assert blocked(NO_BLOCKS, run=roomy) == [False, False, True, False, False, False]


def test_rejected_requests_do_not_wait():
    gone = QUEUE | {"status": np.array([1, 2, 1]), "first_scheduled_s": np.array([5, np.nan, 0])}
    assert not any(blocked(NO_BLOCKS, queue=gone))


def naive_blocked(result) -> np.ndarray:
    """Head-of-line blocking by walking the events and looking at every waiting request."""
    iterations, requests, events = result.iterations, result.requests, result.events
    policy = result.scenario.policy
    marks = np.zeros(len(iterations["start_s"]), dtype=bool)
    for row in range(len(marks)):
        engine, number = iterations["engine_id"][row], iterations["iteration"][row]
        head = reason = budget = need = None
        for i in range(len(events["event"])):
            if events["engine_id"][i] != engine or events["iteration"][i] > number:
                continue
            kind, who = EVENTS[events["event"][i]], events["request"][i]
            if kind == "refuse":
                head, reason = who, REASONS[events["reason"][i]]
                need = events["blocks_needed"][i] if reason == "no_blocks" else math.inf
                budget = events["tokens_free"][i] if reason == "no_budget" else math.inf
            elif kind in ("admit", "resume") or (kind in ("cancel", "reject") and who == head):
                head = reason = None
        if reason not in ("no_blocks", "no_budget"):
            continue
        if iterations["running"][row] >= policy.max_num_seqs:
            continue
        free = result.kv_blocks - iterations["blocks_used"][row]
        free -= int(getattr(policy, "watermark", 0) * result.kv_blocks)
        if need <= free:
            continue
        now = iterations["start_s"][row]
        for who in range(len(requests["arrival_s"])):
            began = requests["first_scheduled_s"][who]
            gone = requests["end_s"][who] if math.isnan(began) else began
            if requests["engine_id"][who] != engine or who == head:
                continue
            if STATUS[requests["status"][who]] == "rejected":
                continue
            size = requests["prompt_tokens"][who]
            if policy.name in ("orca", "lab"):
                size += requests["output_tokens"][who]
            waits = requests["arrival_s"][who] <= now + 1e-9 and gone > now + 1e-9
            if waits and blocks_for_tokens(size, result.block_size) <= free and size <= budget:
                marks[row] = True
                break
    return marks


LENGTHS = {
    "prompt": Lengths("lognormal", 400, cv=1.2, max_tokens=1200),
    "output": Lengths("geometric", 60, max_tokens=200),
}
MIX = Workload(
    (
        Stream("chat", 25, Arrivals("gamma", 20.0, cv=3.0), **LENGTHS, patience_s=20.0),
        Stream("batch", 25, Arrivals("at_once"), **LENGTHS, start_s=1.0),
    )
)


@pytest.mark.parametrize(
    "policy",
    [
        POLICIES["vllm-v1"](max_num_seqs=32, max_num_batched_tokens=512),
        POLICIES["vllm-v1"](
            max_num_seqs=64, max_num_batched_tokens=2048, enable_chunked_prefill=False
        ),
        POLICIES["vllm-v0"](max_num_seqs=32),
        POLICIES["sarathi"](max_num_seqs=32),
        POLICIES["orca"](max_num_seqs=16, reserve="oracle"),
        POLICIES["lab"](max_num_seqs=16, preemption_mode="never"),
    ],
    ids=["v1", "v1 whole prompts", "v0", "sarathi", "orca oracle", "lab reserving"],
)
@pytest.mark.parametrize("n_engines", [1, 2])
def test_blocking_agrees_with_a_loop_over_the_queue(policy, n_engines):
    scenario = Scenario(
        MIX,
        policy,
        Linear(0.02, 1e-4),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=150, max_model_len=2048),
        seed=5,
        n_engines=n_engines,
    )
    run = simulate(scenario)
    marks = metrics.head_of_line(run)
    np.testing.assert_array_equal(marks, naive_blocked(run))
    assert n_engines == 2 or marks.any()
