"""Schedules small enough to follow with pencil and paper, one iteration a line.

Workload W: three requests at time 0, six blocks of four tokens. Each line says what is scheduled
(``X:n``: n tokens of X), who is preempted, who ends, and the blocks free after the iteration.
Iterations last one second, so the clock counts them.
"""

from __future__ import annotations

import pytest

from model.recording import load
from model.schedulers.base import Decision
from model.state import EngineState
from tests.adapter import request_row, run_model, run_reference
from tests.reference import ENGINES
from tests.reference.common import Request, blocks_for

W = [request_row("A", 0, 7, 4), request_row("B", 0, 6, 4), request_row("C", 0, 5, 3)]
MEMORY = {"block_size": 4, "kv_blocks": 6, "max_num_seqs": 3}

TRACES = {
    "static": (
        "static",
        MEMORY | {"max_num_seqs": 2, "max_model_len": 11},
        """
        A:7 B:6
        A:1 B:1
        A:1 B:1
        A:1 B:1  end A B
        C:5
        C:1
        C:1      end C
        """,
    ),
    # Blocks of one token: what is reserved is prompt + outputs to the token, 21 and then 8 of 24.
    "orca": (
        "orca",
        MEMORY | {"block_size": 1, "kv_blocks": 24, "reserve": "oracle", "max_model_len": 11},
        """
        A:7 B:6            free 3
        A:1 B:1            free 3
        A:1 B:1            free 3
        A:1 B:1  end A B   free 24
        C:5                free 16
        C:1                free 16
        C:1      end C     free 24
        """,
    ),
    # C is preempted at t = 2 although A's last block still has room: V0 wants a free block.
    "vllm-v0": (
        "vllm-v0",
        MEMORY | {"max_num_batched_tokens": 16, "watermark": 0},
        """
        A:7 B:6            free 2
        C:5                free 0
        A:1 B:1  pre C     free 2
        C:6                free 0
        A:1 B:1  pre C     free 1
        A:1 B:1  end A B   free 6
        C:7      end C     free 6
        """,
    ),
    "vllm-v1": (
        "vllm-v1",
        MEMORY | {"max_num_batched_tokens": 8},
        """
        A:7 B:1            free 3
        A:1 B:5 C:2        free 1
        A:1 B:1  pre C     free 1
        A:1 B:1  end A     free 4
        B:1 C:5  end B     free 4
        C:1                free 4
        C:1      end C     free 6
        """,
    ),
    # The same tokens as V1, other blocks: the whole prompt's are taken at admission.
    "sarathi": (
        "sarathi",
        MEMORY | {"chunk_size": 8, "watermark": 0},
        """
        A:7 B:1            free 2
        A:1 B:5 C:2        free 0
        A:1 B:1  pre C     free 1
        A:1 B:1  end A     free 4
        B:1 C:5  end B     free 4
        C:1                free 4
        C:1      end C     free 6
        """,
    ),
}
TOTAL_TOKENS = {"static": 26, "orca": 26, "vllm-v0": 37, "vllm-v1": 28, "sarathi": 28}

W2 = [request_row("A", 0, 12, 6), request_row("B", 1, 16, 2)]
WITHOUT_FULL_PROMPT_CHECK = """
    A:4
    A:4
    A:4
    A:1 B:3
    A:1 B:3
    A:1      pre B
    A:1 B:3
    A:1      pre B
    B:4
    B:4
    B:4
    B:4
    B:1
"""
WITH_FULL_PROMPT_CHECK = """
    A:4
    A:4
    A:4
    A:1
    A:1
    A:1
    A:1
    A:1
    B:4
    B:4
    B:4
    B:4
    B:1
"""

BACKENDS = pytest.mark.parametrize(
    "run", [run_reference, run_model], ids=["reference", "simulator"]
)


def config_of(policy: str, scheduler: dict) -> dict:
    return {
        "policy": policy,
        "scheduler": scheduler,
        "iteration_time": {"base_s": 1.0, "per_scheduled_token_s": 0.0},
    }


def parse(trace: str) -> list[dict]:
    """Lines of a trace; ``end`` and ``free`` are None where the trace does not say."""
    lines = []
    for line in trace.strip().splitlines():
        words = line.split()
        step = {"scheduled": {}, "pre": [], "end": [], "free": None}
        into = None
        for word in words:
            if word in ("pre", "end", "free"):
                into = word
            elif into is None:
                request, tokens = word.split(":")
                step["scheduled"][request] = int(tokens)
            elif into == "free":
                step["free"] = int(word)
            else:
                step[into].append(word)
        lines.append(step)
    return lines


@BACKENDS
@pytest.mark.parametrize("name", TRACES)
def test_workload_w(name, run):
    policy, scheduler, trace = TRACES[name]
    iterations = run(config_of(policy, scheduler), W)
    expected = parse(trace)

    assert [i["scheduled"] for i in iterations] == [step["scheduled"] for step in expected]
    assert [i["preempted"] for i in iterations] == [step["pre"] for step in expected]
    assert [i["start_s"] for i in iterations] == list(range(len(expected)))
    assert sum(sum(i["scheduled"].values()) for i in iterations) == TOTAL_TOKENS[name]

    # A request's last iteration is the last that serves it.
    last = {r: n for n, i in enumerate(iterations) for r in i["scheduled"]}
    ends = [[r for r in sorted(last) if last[r] == n] for n in range(len(iterations))]
    assert ends == [step["end"] for step in expected]

    lengths = {row["request_id"]: (row["prompt_tokens"], row["output_tokens"]) for row in W}
    for iteration, step in zip(iterations, expected, strict=True):
        if step["free"] is None:
            continue
        free = scheduler["kv_blocks"] - iteration["blocks_used"]
        for request in step["end"]:  # its blocks come back after the iteration
            prompt, output = lengths[request]
            held = prompt + output - (0 if policy == "orca" else 1)
            free += blocks_for(held, scheduler["block_size"])
        assert free == step["free"], iteration


@BACKENDS
@pytest.mark.parametrize("full_prompt_check", [False, True])
def test_thrashing_costs_tokens_but_not_always_time(full_prompt_check, run):
    scheduler = MEMORY | {
        "max_num_batched_tokens": 4,
        "scheduler_reserve_full_isl": full_prompt_check,
    }
    iterations = run(config_of("vllm-v1", scheduler), W2)
    expected = parse(WITH_FULL_PROMPT_CHECK if full_prompt_check else WITHOUT_FULL_PROMPT_CHECK)

    assert [i["scheduled"] for i in iterations] == [step["scheduled"] for step in expected]
    assert [i["preempted"] for i in iterations] == [step["pre"] for step in expected]
    needed = sum(row["prompt_tokens"] + row["output_tokens"] - 1 for row in W2)
    wasted = sum(sum(i["scheduled"].values()) for i in iterations) - needed
    assert wasted == (0 if full_prompt_check else 6 + 3)
    assert len(iterations) - 1 == 12  # the same last iteration either way


def reference_decision(policy: str, budget: dict) -> dict[str, int]:
    """What the reference schedules next when [A with 10 prompt tokens left, B decoding] run."""
    engine = ENGINES[policy](BIG | budget)
    a = Request("A", 0.0, prompt=12, output=2, computed=2)
    b = Request("B", 0.0, prompt=3, output=5, computed=3, emitted=1)
    for request in (a, b):
        engine.running.append(request)
        request.target = request.prompt
        engine.blocks.hold(request, blocks_for(request.known, engine.block_size))
    return {request.id: n for request, n in engine.decide().scheduled.items()}


def model_decision(policy: str, budget: dict) -> dict[str, int]:
    """The same of the simulator's scheduler."""
    rows = [request_row("A", 0, 12, 2), request_row("B", 0, 3, 5)]
    scenario, requests = load(config_of(policy, BIG | budget), rows)
    state = EngineState(
        scenario.policy,
        requests,
        engine_id=0,
        kv_blocks=BIG["kv_blocks"],
        block_size=BIG["block_size"],
        cpu_blocks=0,
        max_model_len=None,
        prefill_token_cap=None,
    )
    for request, computed in ((0, 2), (1, 3)):
        state.admit(request, computed, blocks=3)
        state.take(3)
        state.held[request] = 3
        state.computed[request] = computed
    del state.prefilling[1]
    state.start_decoding(1)
    decision = Decision()
    scenario.policy.decide(state, decision)
    scheduled = {"AB"[request]: tokens for request, tokens in decision.chunks}
    if decision.decodes and 1 not in decision.skipped:
        scheduled["B"] = 1
    return scheduled


BIG = {"block_size": 4, "kv_blocks": 100, "max_num_seqs": 4}


@pytest.mark.parametrize("decide", [reference_decision, model_decision])
@pytest.mark.parametrize(
    ("policy", "budget", "expected"),
    [
        ("vllm-v1", {"max_num_batched_tokens": 4}, {"A": 4}),
        ("lab", {"max_num_batched_tokens": 4}, {"A": 4}),
        ("sarathi", {"chunk_size": 4}, {"A": 3, "B": 1}),
    ],
)
def test_a_chunk_before_a_decode(policy, budget, expected, decide):
    """V1 and the lab serve their list in order, and A takes the budget; Sarathi never delays."""
    assert decide(policy, budget) == expected
