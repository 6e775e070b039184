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

POLICIES = ("static", "orca", "sarathi", "vllm-v0", "vllm-v1", "sglang")

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


VARIANTS: dict[str, tuple[str, dict]] = {
    "static": ("static", {}),
    "orca": ("orca", {"reserve": "max"}),
    "orca small reserve": ("orca", {}),
    "sarathi": ("sarathi", {}),
    "vllm-v0": (
        "vllm-v0",
        {
            "enable_chunked_prefill": False,
            "preemption_mode": "recompute",
            "queue_order": "fcfs",
        },
    ),
    "vllm-v0 swap": (
        "vllm-v0",
        {"enable_chunked_prefill": False, "preemption_mode": "swap", "queue_order": "fcfs"},
    ),
    "vllm-v0 priority": (
        "vllm-v0",
        {
            "enable_chunked_prefill": False,
            "preemption_mode": "recompute",
            "queue_order": "priority",
        },
    ),
    "vllm-v0 priority swap": (
        "vllm-v0",
        {"enable_chunked_prefill": False, "preemption_mode": "swap", "queue_order": "priority"},
    ),
    "vllm-v0 chunked": (
        "vllm-v0",
        {"enable_chunked_prefill": True, "preemption_mode": "recompute"},
    ),
    "vllm-v0 chunked swap": (
        "vllm-v0",
        {"enable_chunked_prefill": True, "preemption_mode": "swap"},
    ),
    "vllm-v1": ("vllm-v1", {"enable_prefix_caching": False, "queue_order": "fcfs"}),
    "vllm-v1 priority": ("vllm-v1", {"enable_prefix_caching": False, "queue_order": "priority"}),
    "vllm-v1 prefix cache": ("vllm-v1", {"enable_prefix_caching": True, "queue_order": "fcfs"}),
    "vllm-v1 anything": ("vllm-v1", {}),
    "sglang": (
        "sglang",
        {"disable_radix_cache": True, "enable_mixed_chunk": False, "schedule_policy": "fcfs"},
    ),
    "sglang mixed": ("sglang", {"disable_radix_cache": True, "enable_mixed_chunk": True}),
    "sglang radix cache": (
        "sglang",
        {"disable_radix_cache": False, "enable_mixed_chunk": False, "schedule_policy": "fcfs"},
    ),
    "sglang longest prefix": (
        "sglang",
        {"disable_radix_cache": False, "schedule_policy": "lpm"},
    ),
    "sglang anything": ("sglang", {}),
}
"""Name -> policy and the scheduler settings that are not drawn. Together they cover each policy."""


def uniform(low: int, high: int) -> st.SearchStrategy[int]:
    """Whole numbers without hypothesis's love of the small ones."""
    return st.sampled_from(range(low, high + 1))


@st.composite
def cases(
    draw,
    policy: str,
    fixed: dict | None = None,
    *,
    cancels: bool = True,
    rejects: bool = True,
    tight: bool = True,
) -> Case:
    """A workload and a configuration of ``policy``.

    ``fixed``: scheduler settings that are not drawn. ``tight``: memory for the longest request
    and little more, else for all of them at once. ``rejects``: some requests may be larger than
    the memory. ``cancels``: clients may give up.
    """
    fixed = fixed or {}
    block_size = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 11, 16]))
    n = draw(uniform(1, 12))
    gap_ticks = draw(st.sampled_from([(0,), (0, 0, 1, 8), (0, 5, 9, 30), (1, 8, 16), (10, 60)]))
    lengths = uniform(1, draw(st.sampled_from([4, 20, 60])))
    if draw(st.booleans()):  # full last blocks
        lengths |= uniform(1, 6).map(lambda blocks: blocks * block_size)
    outputs = uniform(1, draw(st.sampled_from([1, 6, 24, 24])))
    if policy == "sglang" and tight and draw(st.sampled_from([True, True, False])):
        # Short prompts that come one after the other and all answer at length: too many get in.
        block_size = draw(st.sampled_from([1, 2, 4]))
        n = draw(uniform(4, 12))
        gap_ticks = draw(st.sampled_from([(1, 8), (8, 16, 30)]))
        lengths, outputs = uniform(1, 12), uniform(8, 60)
        fixed = {"schedule_conservativeness": draw(st.sampled_from([0.0, 0.1]))} | fixed
    with_priorities = fixed.get("queue_order") == "priority" or draw(st.booleans())
    with_cancels = cancels and draw(st.sampled_from([False, False, True]))
    groups = -1
    if policy in ("vllm-v1", "sglang"):
        groups = draw(st.integers(-1, 1))
        if fixed.get("enable_prefix_caching") or fixed.get("schedule_policy") == "lpm":
            groups = max(groups, 0)

    rows = []
    ticks = 0
    for i in range(n):
        ticks += draw(st.sampled_from(gap_ticks))
        prompt = draw(lengths)
        row = request_row(str(i), ticks * TICK_S, prompt, draw(outputs))
        if with_priorities:
            row["priority"] = draw(st.integers(0, 2))
        if with_cancels and draw(st.booleans()):
            row["cancel_s"] = (ticks + draw(st.integers(1, 200))) * TICK_S
        if groups >= 0:
            row["prefix_group"] = draw(st.integers(-1, groups))
            row["shared_prefix_tokens"] = 0
            if row["prefix_group"] >= 0:
                row["shared_prefix_tokens"] = draw(st.just(prompt) | st.integers(0, prompt))
        rows.append(row)

    scheduler = draw(_scheduler(policy, block_size, rows, fixed, rejects=rejects, tight=tight))
    iteration_time = draw(st.sampled_from([EXACT, EXACT, EXACT, ROUNDED]))
    config = {"policy": policy, "scheduler": scheduler, "iteration_time": iteration_time}
    return Case(config, rows)


@st.composite
def _scheduler(
    draw, policy: str, block_size: int, rows: list[dict], fixed: dict, *, rejects: bool, tight: bool
) -> dict:
    max_num_seqs = draw(uniform(1, 8))
    scheduler: dict = {"block_size": block_size, "max_num_seqs": max_num_seqs}
    ends = [row["prompt_tokens"] + row["output_tokens"] for row in rows]
    max_model_len = max(ends) + draw(st.integers(0, 20))
    needs = [blocks_for(end, block_size) for end in ends]
    if policy == "sglang":  # an admission wants a page more, and a token to spare
        needs = [blocks_for(end + block_size + 1, block_size) for end in ends]

    def pick(key: str, values: list):
        scheduler[key] = fixed[key] if key in fixed else draw(st.sampled_from(values))
        return scheduler[key]

    if policy in ("static", "orca"):
        reserve = "max"
        if policy == "orca":
            reserve = pick("reserve", ["pow2", "oracle"])
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
    together = sum(sorted(needs)[-max_num_seqs:])

    if not tight:
        scheduler["kv_blocks"] = sum(needs) + longest + len(rows) + 1
    elif rejects and draw(st.sampled_from([False, False, False, False, True])):
        scheduler["kv_blocks"] = draw(st.integers(1, longest))
    else:
        scheduler["kv_blocks"] = longest + draw(st.integers(0, max(2, (together - longest) // 2)))
    # Where a watermark keeps blocks free for good, the longest request still has to fit.
    watermarks = [0.01, 0.0]
    if tight and not rejects:
        scheduler["kv_blocks"] += 1
    elif tight:
        watermarks += [0.2]

    budgets = [4, 8, 16, 40, 100]
    # Without chunking a prompt must fit one iteration, also one that returns with its outputs.
    whole_prompts = st.integers(0, 60).map(lambda extra: max(ends) + extra)
    if rejects:
        whole_prompts |= st.sampled_from(budgets)

    def pick_budget(chunked: bool) -> None:
        budget = draw(st.sampled_from(budgets) if chunked else whole_prompts)
        scheduler["max_num_batched_tokens"] = max(max_num_seqs, budget)

    if policy == "sarathi":
        pick("chunk_size", budgets)
        pick("watermark", watermarks)
    elif policy == "vllm-v0":
        pick_budget(pick("enable_chunked_prefill", [False, True]))
        pick("watermark", watermarks)
        pick("queue_order", ["fcfs", "priority"])
        if pick("preemption_mode", ["recompute", "swap"]) == "swap":
            scheduler["num_cpu_blocks"] = sum(needs) + len(rows)
            if rejects and draw(st.sampled_from([False, False, False, True])):
                scheduler["num_cpu_blocks"] = longest
    elif policy == "vllm-v1":
        chunked = pick("enable_chunked_prefill", [True, True, True, False])
        pick_budget(chunked)
        if chunked:
            pick("long_prefill_token_threshold", [0, 0, 3, 10])
        pick("scheduler_reserve_full_isl", [True, False])
        pick("watermark", [0.0, 0.0, 0.1, 0.3])
        pick("enable_prefix_caching", [False, True])
        pick("queue_order", ["fcfs", "priority"])
    elif policy == "sglang":
        # A chunk is whole pages; beside decodes it gets what they leave.
        chunk = block_size * draw(st.sampled_from([1, 2, 3, 10])) + draw(st.sampled_from([0, 8]))
        pick("chunked_prefill_size", [chunk, chunk, -1])
        pick("max_prefill_tokens", [4, 40, 1000])
        pick("schedule_policy", ["fcfs", "fcfs", "lpm", "lof"])
        pick("schedule_conservativeness", [1.0, 0.1, 0.0, 2.0])
        for flag in ("enable_mixed_chunk", "disable_radix_cache", "enable_priority_scheduling"):
            pick(flag, [False, True])
        pick("retraction_policy", ["length", "length", "priority"])
        pick("max_new_tokens", [0, 0, 30])
    return scheduler
