"""Random small workloads and configurations, for tests that hold for all of them.

Times are mostly sums of powers of two, so that every sum of them is exact and an arrival can
coincide with the end of an iteration; sometimes not, so that rounding shows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.adapter import request_row
from tests.reference.common import blocks_for
from tests.reference.orca import power_of_two_at_least

POLICIES = ("static", "orca", "sarathi", "vllm-v0", "vllm-v1")

TICK_S = 2.0**-10
EXACT = {
    "base_s": 2.0**-7,
    "per_scheduled_token_s": 2.0**-14,
    "per_swapped_block_s": 2.0**-15,
}
ROUNDED = {
    "base_s": 0.0071,
    "per_scheduled_token_s": 5.3e-5,
    "per_swapped_block_s": 1.7e-5,
}


def profile(max_examples: int) -> settings:
    """Always the same examples; LAB_EXAMPLES=N asks for N other ones instead."""
    wanted = os.environ.get("LAB_EXAMPLES")
    return settings(
        max_examples=int(wanted) if wanted else max_examples,
        derandomize=not wanted,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


@dataclass(frozen=True)
class Case:
    config: dict
    requests: list[dict]

    @property
    def policy(self) -> str:
        return self.config["policy"]

    def __repr__(self) -> str:
        return f"Case({self.config!r}, {self.requests!r})"


@st.composite
def cases(
    draw, policy: str, *, cancels: bool = True, rejects: bool = True, tight: bool = True
) -> Case:
    """A workload and a configuration of ``policy``.

    ``tight``: memory for little more than the longest request, else for all of them at once.
    ``rejects``: some requests may be larger than the memory. ``cancels``: clients may give up.
    """
    n = draw(st.integers(1, 10))
    gap_ticks = draw(st.sampled_from([(0,), (0, 0, 1, 8), (0, 5, 9, 30), (1, 8, 16), (10, 60)]))
    longest_prompt = draw(st.sampled_from([4, 20, 60]))
    longest_output = draw(st.sampled_from([1, 6, 24]))
    lengths = st.tuples(st.integers(1, longest_prompt), st.integers(1, longest_output))
    with_priorities = draw(st.booleans())
    with_cancels = cancels and draw(st.sampled_from([False, False, True]))
    with_groups = policy == "vllm-v1" and draw(st.booleans())

    rows = []
    ticks = 0
    for i in range(n):
        ticks += draw(st.sampled_from(gap_ticks))
        prompt, output = draw(lengths)
        row = request_row(str(i), ticks * TICK_S, prompt, output)
        if with_priorities:
            row["priority"] = draw(st.integers(0, 2))
        if with_cancels and draw(st.booleans()):
            row["cancel_s"] = (ticks + draw(st.integers(1, 200))) * TICK_S
        if with_groups:
            row["prefix_group"] = draw(st.integers(-1, 1))
            row["shared_prefix_tokens"] = 0
            if row["prefix_group"] >= 0:
                row["shared_prefix_tokens"] = draw(st.integers(0, prompt))
        rows.append(row)

    scheduler = draw(_scheduler(policy, rows, rejects=rejects, tight=tight))
    iteration_time = draw(st.sampled_from([EXACT, EXACT, EXACT, ROUNDED]))
    config = {"policy": policy, "scheduler": scheduler, "iteration_time": iteration_time}
    return Case(config, rows)


@st.composite
def _scheduler(draw, policy: str, rows: list[dict], *, rejects: bool, tight: bool) -> dict:
    block_size = draw(st.integers(1, 16))
    max_num_seqs = draw(st.integers(1, 8))
    scheduler: dict = {"block_size": block_size, "max_num_seqs": max_num_seqs}
    ends = [row["prompt_tokens"] + row["output_tokens"] for row in rows]
    max_model_len = max(ends) + draw(st.integers(0, 20))
    needs = [blocks_for(end, block_size) for end in ends]

    if policy in ("static", "orca"):
        reserve = "max"
        if policy == "orca":
            reserve = draw(st.sampled_from(["max", "pow2", "oracle"]))
            scheduler["reserve"] = reserve
        if reserve == "max":  # a context larger than the memory is not a valid configuration
            scheduler["max_model_len"] = max_model_len
            rejects = False
            needs = [blocks_for(max_model_len, block_size)] * len(rows)
        elif reserve == "pow2":
            needs = [
                blocks_for(
                    row["prompt_tokens"] + power_of_two_at_least(row["output_tokens"]), block_size
                )
                for row in rows
            ]
    longest = max(needs)

    if not tight:
        scheduler["kv_blocks"] = sum(needs) + longest + len(rows) + 1
    elif rejects and draw(st.sampled_from([False, False, False, True])):
        scheduler["kv_blocks"] = draw(st.integers(1, longest))
    else:
        scheduler["kv_blocks"] = longest + draw(st.integers(0, max(4, longest)))
    # Where a watermark keeps blocks free for good, the longest request still has to fit.
    watermarks = [0.01, 0.0]
    if tight and not rejects:
        scheduler["kv_blocks"] += 1
    elif tight:
        watermarks += [0.2]

    budgets = [8, 16, 40, 100]
    # Without chunking a prompt must fit one iteration, also one that returns with its outputs.
    whole_prompts = st.integers(0, 60).map(lambda extra: max(ends) + extra)
    if rejects:
        whole_prompts |= st.sampled_from(budgets)
    if policy == "sarathi":
        scheduler["chunk_size"] = draw(st.sampled_from(budgets))
        scheduler["watermark"] = draw(st.sampled_from(watermarks))
    elif policy == "vllm-v0":
        scheduler["enable_chunked_prefill"] = draw(st.booleans())
        if scheduler["enable_chunked_prefill"]:
            scheduler["max_num_batched_tokens"] = draw(st.sampled_from(budgets))
        else:
            scheduler["max_num_batched_tokens"] = max(max_num_seqs, draw(whole_prompts))
        scheduler["watermark"] = draw(st.sampled_from(watermarks))
        scheduler["queue_order"] = draw(st.sampled_from(["fcfs", "priority"]))
        scheduler["preemption_mode"] = draw(st.sampled_from(["recompute", "swap"]))
        if scheduler["preemption_mode"] == "swap":
            ample = sum(needs) + len(rows)
            scheduler["num_cpu_blocks"] = ample
            if rejects and draw(st.sampled_from([False, False, False, True])):
                scheduler["num_cpu_blocks"] = longest
    elif policy == "vllm-v1":
        scheduler["enable_chunked_prefill"] = draw(st.sampled_from([True, True, False]))
        if scheduler["enable_chunked_prefill"]:
            scheduler["max_num_batched_tokens"] = draw(st.sampled_from(budgets))
            scheduler["long_prefill_token_threshold"] = draw(st.sampled_from([0, 0, 3, 10]))
        else:
            scheduler["max_num_batched_tokens"] = max(max_num_seqs, draw(whole_prompts))
        scheduler["scheduler_reserve_full_isl"] = draw(st.booleans())
        scheduler["watermark"] = draw(st.sampled_from([0.0, 0.0, 0.1]))
        scheduler["enable_prefix_caching"] = draw(st.booleans())
        scheduler["queue_order"] = draw(st.sampled_from(["fcfs", "priority"]))
    return scheduler
