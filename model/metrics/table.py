"""Every key of a summary: its unit, which way is better, and its definition, written once.

Pages, exports and the glossary take their words from here (translated by key). ``DEFINITIONS`` are
the words that the sentences use.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Metric(NamedTuple):
    """``better`` is "higher", "lower" or "" where neither is; a unit of "1" is a pure number."""

    unit: str
    better: str
    definition: str


DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "steady_window": "From the first completion after warm-up to the last arrival; the whole "
        "run where no completion precedes the last arrival.",
        "warm_up": "The first seconds after the first arrival that are left out, by default none: "
        "the window then begins with the first completion.",
        "mean_batch": "Time-weighted number of requests scheduled, decodes and prefills told "
        "apart; idle time counts as zero.",
        "ttft": "Time from arrival, queueing included, to the first output token.",
        "tpot": "(last − first token) / (outputs − 1); undefined for one output.",
        "itl": "Each single gap between two output tokens of a request (also called TBT).",
        "e2e": "Time from arrival to the last token, of finished requests.",
        "queue": "Time from arrival to the first iteration that schedules the request.",
        "violation": "A TTFT violation is certain at arrival + bound without a token, a TPOT "
        "violation when even zero further delay cannot bring the mean below the bound.",
        "attainment": "Share of all arrived requests that meet both bounds; rejected, cancelled "
        "and unfinished ones count as missed.",
        "goodput": "DistServe's: the largest arrival rate per GPU with an attainment of at least "
        "90 % in a stable run. Found by several simulations, so it is in no summary.",
        "head_of_line_blocking": "Time in which the head of the queue waits while a later request "
        "would fit.",
        "fairness": "Jain's index over E2E per output token: 1 is equal, 1/n one has all.",
    }
)


def _table() -> dict[str, Metric]:
    table = {
        "requests": Metric("requests", "", "Requests that arrived."),
        "finished_requests": Metric("requests", "higher", "Requests that got all their tokens."),
        "rejected_requests": Metric(
            "requests", "lower", "Requests refused for good: never to fit, or by admission control."
        ),
        "retries": Metric("times", "lower", "Times a refused request came again."),
        "refused_attempts": Metric("times", "lower", "Arrivals that were refused, with retries."),
        "cancelled_requests": Metric("requests", "lower", "Requests whose client gave up."),
        "unfinished_requests": Metric("requests", "lower", "Requests still there at the end."),
        "iterations": Metric("iterations", "", "Iterations of all engines."),
        "duration_s": Metric("s", "lower", "From the first arrival to the last end."),
        "window_start_s": Metric("s", "", "Begin of the steady window."),
        "window_end_s": Metric("s", "", "End of the steady window."),
        "window_is_steady": Metric(
            "0/1", "", "0 where there is no steady window and means are of the whole run."
        ),
    }
    for key, word, what in (
        ("ttft", "TTFT", "time from arrival to the first token"),
        ("tpot", "TPOT", "mean time per token after the first"),
        ("itl", "ITL", "single gap between two tokens"),
        ("e2e", "E2E", "time from arrival to the last token"),
        ("queue", "queueing time", "time from arrival to the first scheduled iteration"),
    ):
        of = "all gaps" if key == "itl" else "all requests that have one"
        table[f"{key}_mean_s"] = Metric("s", "lower", f"Mean {word} ({what}) of {of}.")
        for share in PERCENTILES:
            sentence = f"{share} % of the {word} values ({what}) are at most this."
            table[f"{key}_p{share}_s"] = Metric("s", "lower", sentence)
    table |= {
        "itl_max_s": Metric("s", "lower", "Longest gap between two tokens of a request."),
        "slo_attainment_share": Metric(
            "1", "higher", "Share of arrived requests that finished and met both bounds."
        ),
        "ttft_attainment_share": Metric(
            "1", "higher", "Share of arrived requests that finished and met the TTFT bound."
        ),
        "tpot_attainment_share": Metric(
            "1", "higher", "Share of arrived requests that finished and met the TPOT bound."
        ),
        "ttft_violations": Metric("requests", "lower", "Requests whose TTFT bound was lost."),
        "tpot_violations": Metric("requests", "lower", "Requests whose TPOT bound was lost."),
        "slo_throughput_requests_per_s": Metric(
            "requests/s",
            "higher",
            "Requests meeting both bounds that end in the window, per second.",
        ),
        "throughput_requests_per_s": Metric(
            "requests/s", "higher", "Requests that finish in the window, per second."
        ),
        "throughput_output_tokens_per_s": Metric(
            "tokens/s", "higher", "Output tokens emitted in the window, per second."
        ),
        "throughput_prompt_tokens_per_s": Metric(
            "tokens/s", "higher", "New prompt tokens computed in the window, per second."
        ),
        "iteration_mean_s": Metric("s", "", "Mean duration of the iterations in the window."),
        "mean_batch_decode_requests": Metric(
            "requests", "higher", "Time-weighted number of decodes scheduled on an engine."
        ),
        "mean_batch_prefill_requests": Metric(
            "requests", "", "Time-weighted number of prefills scheduled on an engine."
        ),
        "batch_occupancy_share": Metric(
            "1", "higher", "Mean number of requests scheduled, over max_num_seqs."
        ),
        "kv_use_mean_share": Metric("1", "", "Time-weighted share of KV blocks held."),
        "kv_use_peak_share": Metric("1", "", "Largest share of KV blocks held."),
        "kv_fragmentation_share": Metric(
            "1", "lower", "Share of the token slots in held KV blocks that hold no token."
        ),
        "residency_share": Metric(
            "1",
            "",
            "Share of the time in which an iteration is running (nvidia-smi's utilization).",
        ),
        "mfu_share": Metric("1", "higher", "Model FLOP/s over the GPUs' dense bf16 peak."),
        "mbu_share": Metric("1", "higher", "Bytes moved per second over the GPUs' bandwidth."),
        "preemptions": Metric(
            "times", "lower", "Times a request lost its place (recompute or swap)."
        ),
        "recomputed_tokens": Metric("tokens", "lower", "Tokens computed again after a preemption."),
        "padded_tokens": Metric("tokens", "lower", "Padding that a static batch computes."),
        "wasted_tokens_share": Metric(
            "1", "lower", "Recomputed and padded tokens over all tokens computed."
        ),
        "cached_tokens": Metric(
            "tokens", "higher", "Prompt tokens found in the prefix cache at the first admission."
        ),
        "cached_again_tokens": Metric(
            "tokens",
            "higher",
            "Tokens that requests found in the prefix cache on coming back after a preemption.",
        ),
        "prefix_hit_share": Metric(
            "1", "higher", "Prompt tokens found in the prefix cache, over those of all admitted."
        ),
        "transferred_bytes": Metric(
            "B", "", "KV that prefill engines have sent to decode engines."
        ),
        "transfer_mean_s": Metric(
            "s", "lower", "Mean time for which a request's KV transfer occupies its link."
        ),
        "swapped_blocks": Metric("blocks", "lower", "KV blocks moved to host memory or back."),
        "head_of_line_blocking_s": Metric(
            "s", "lower", "Time the queue's head waits while a later one would fit, all engines."
        ),
        "fairness_jain": Metric(
            "1", "higher", "Jain's index over the finished requests' E2E per output token."
        ),
        "fairness_between_classes_jain": Metric(
            "1", "higher", "Jain's index over the classes' mean E2E per output token."
        ),
    }
    return table


PERCENTILES = (50, 90, 99)
METRICS: Mapping[str, Metric] = MappingProxyType(_table())
