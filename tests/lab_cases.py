"""Random small cases of the lab's scheduler: every combination of its rules that is possible."""

from __future__ import annotations

from hypothesis import strategies as st

from model.schedulers.admission import RULES
from model.schedulers.lab import PREFILL
from model.schedulers.lab_order import RANKS
from model.schedulers.lab_victims import SWAPS, VICTIMS
from tests.cases import Case, cases
from tests.reference.common import blocks_for

KEPT = ("block_size", "kv_blocks", "max_num_seqs", "max_num_batched_tokens", "watermark")
PLAIN_V1 = {
    "enable_prefix_caching": False,
    "long_prefill_token_threshold": 0,
    "scheduler_reserve_full_isl": True,
}


@st.composite
def lab_cases(draw, fixed: dict | None = None, *, tight: bool = True, rejects: bool = True) -> Case:
    """A workload and a composition; ``fixed`` are settings of the lab that are not drawn."""
    fixed = fixed or {}

    def pick(key: str, values):
        return fixed[key] if key in fixed else draw(st.sampled_from(list(values)))

    prefill = pick("prefill", PREFILL)
    order = pick("queue_order", RANKS)
    mode = pick("preemption_mode", SWAPS)
    admission = pick("admission", ["open", "open", *RULES])
    v1 = {"enable_chunked_prefill": prefill in ("chunks", "slo")}
    if order == "priority":
        v1["queue_order"] = order
    # Where requests are refused on arrival it matters whether somebody left before.
    case = draw(
        cases("vllm-v1", PLAIN_V1 | v1, cancels=admission == "open", tight=tight, rejects=rejects)
    )
    scheduler = {key: case.config["scheduler"][key] for key in KEPT}
    scheduler |= {
        "prefill": prefill,
        "queue_order": order,
        "preemption_mode": mode,
        "admission": admission,
        "victim": pick("victim", VICTIMS),
    }
    if order == "priority" and mode != "never":
        scheduler["evict_for_waiting"] = pick("evict_for_waiting", [False, True])
    if order == "sjf":
        scheduler["aging_tokens_per_s"] = pick("aging_tokens_per_s", [0.0, 0.0, 128.0, 2048.0])
        scheduler["fcfs_after_s"] = pick("fcfs_after_s", [0.0, 2.0**-6, 2.0**-4, 0.3])
    if order == "sjf" or scheduler["victim"] == "most_remaining":
        scheduler["prediction_sigma"] = pick("prediction_sigma", [0.0, 0.5, 1.5])
    if prefill == "slo":
        scheduler["target_itl_s"] = pick("target_itl_s", [2.0**-8, 2.0**-7, 0.009, 0.012])
    if mode in ("swap", "cheaper"):
        scheduler["num_cpu_blocks"] = draw(st.sampled_from([0, 3, 400]))
    scheduler["quantum_s"] = pick("quantum_s", [0.0, 0.0, 2.0**-6, 0.01])
    limits = {
        "queue_cap": {"queue_cap_requests": [0, 1, 3]},
        "token_cap": {"queue_cap_tokens": [0, 10, 60]},
        "little": {"system_cap_requests": [1, 2, 5]},
        "deadline": {
            "ttft_bound_s": [2.0**-7, 0.02, 0.1],
            "prefill_rate_tokens_per_s": [0.0, 500.0, 4096.0],
        },
    }
    for key, values in limits.get(admission, {}).items():
        scheduler[key] = pick(key, values)
    if mode == "never" and not rejects:
        longest = max(r["prompt_tokens"] + r["output_tokens"] for r in case.requests)
        needed = blocks_for(longest, scheduler["block_size"])
        scheduler["kv_blocks"] = max(scheduler["kv_blocks"], needed)
    return Case(case.config | {"policy": "lab", "scheduler": scheduler}, case.requests)
