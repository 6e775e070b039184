"""A run in numbers: one row of the table that compares runs, and the same by class of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.events import EVENT
from model.metrics.blocking import head_of_line, head_of_line_s
from model.metrics.latency import (
    Columns,
    Window,
    counted_percentiles,
    e2e_s,
    fairness,
    fairness_between_classes,
    itl_counts,
    mean,
    percentiles,
    queue_s,
    steady_window,
    tpot_s,
    ttft_s,
    whole_run,
)
from model.metrics.slo import (
    meets_slo,
    meets_tpot,
    meets_ttft,
    share_of,
    slo_throughput_per_s,
    violation_counts,
)
from model.metrics.table import METRICS, PERCENTILES
from model.metrics.throughput import (
    output_throughput_per_s,
    prompt_throughput_per_s,
    request_throughput_per_s,
)
from model.metrics.usage import (
    kv_fragmentation,
    kv_use,
    mean_batch,
    residency,
    utilization,
    wasted_tokens,
)
from model.state import CANCELLED, FINISHED, REJECTED, UNFINISHED

if TYPE_CHECKING:
    from model.result import SimulationResult

Numbers = dict[str, float | int]
_NAN = float("nan")


def summary(
    result: SimulationResult, warm_up_s: float = 0.0, *, window: Window | None = None
) -> Numbers:
    """The run in numbers: exactly the keys of METRICS, whose names carry their units.

    Latencies and attainment are of all requests, throughputs and means over time of the steady
    window, unless another ``window`` is given. nan where a number is not defined (no such request;
    no SLO or hardware in a recording).
    """
    requests, iterations, scenario = result.requests, result.iterations, result.scenario
    run = whole_run(requests)
    if window is None:
        window = steady_window(requests, warm_up_s)
    n_engines = scenario.n_engines if scenario else int(iterations["engine_id"].max(initial=0)) + 1
    numbers: Numbers = _counts(result)
    numbers |= {
        "duration_s": run.length_s,
        "window_start_s": window.start_s,
        "window_end_s": window.end_s,
        "window_is_steady": int(window.is_steady),
    }
    numbers |= _latencies(result)
    numbers |= _promises(result, window)
    numbers |= {
        "throughput_requests_per_s": request_throughput_per_s(result, window),
        "throughput_output_tokens_per_s": output_throughput_per_s(result, window),
        "throughput_prompt_tokens_per_s": prompt_throughput_per_s(result, window),
    }
    numbers |= _usage(result, window, n_engines)
    numbers |= {
        "head_of_line_blocking_s": head_of_line_s(iterations, head_of_line(result)),
        "fairness_jain": fairness(requests),
        "fairness_between_classes_jain": fairness_between_classes(requests),
    }
    return {key: numbers[key] for key in METRICS}


def class_summary(result: SimulationResult) -> dict[str, Numbers]:
    """For each class of requests: counts, request latencies, attainment, fairness within it."""
    table = {}
    for index, name in enumerate(result.inputs.class_names):
        mine = result.requests["request_class"] == index
        requests = {column: values[mine] for column, values in result.requests.items()}
        table[name] = (
            _request_counts(requests)
            | _request_latencies(requests)
            | _request_promises(requests, result)
            | {"fairness_jain": fairness(requests)}
        )
    return table


def _counts(result: SimulationResult) -> Numbers:
    iterations, requests = result.iterations, result.requests
    waste = wasted_tokens(iterations)
    return _request_counts(requests) | {
        "iterations": len(iterations["start_s"]),
        "preemptions": int(requests["preemptions"].sum()),
        "recomputed_tokens": waste.recomputed_tokens,
        "padded_tokens": waste.padded_tokens,
        "wasted_tokens_share": waste.share,
        "retries": int(np.maximum(requests["attempts"] - 1, 0).sum()),
        "refused_attempts": int(np.count_nonzero(result.events["event"] == EVENT["reject"])),
        "cached_tokens": int(requests["cached_tokens"].sum()),
        "cached_again_tokens": int(requests["cached_again_tokens"].sum()),
        "prefix_hit_share": _prefix_hits(requests),
        "transferred_bytes": float(requests["transferred_bytes"].sum()),
        "transfer_mean_s": mean(requests["transfer_s"]),
        "swapped_blocks": int(iterations["swapped_blocks"].sum()),
    }


def _prefix_hits(requests: Columns) -> float:
    prompt = requests["prompt_tokens"][np.isfinite(requests["first_scheduled_s"])].sum()
    return float(requests["cached_tokens"].sum() / prompt) if prompt else _NAN


def _request_counts(requests: Columns) -> Numbers:
    status = requests["status"][np.isfinite(requests["arrival_s"])]
    counts = {"requests": len(status)}
    for name, code in (
        ("finished", FINISHED),
        ("rejected", REJECTED),
        ("cancelled", CANCELLED),
        ("unfinished", UNFINISHED),
    ):
        counts[f"{name}_requests"] = int(np.count_nonzero(status == code))
    return counts


def _latencies(result: SimulationResult) -> Numbers:
    gaps_s, counts = itl_counts(result)
    numbers = _request_latencies(result.requests)
    some = len(gaps_s) > 0
    numbers["itl_mean_s"] = float((gaps_s * counts).sum() / counts.sum()) if some else _NAN
    numbers["itl_max_s"] = float(gaps_s.max()) if some else _NAN
    return numbers | _spread("itl", counted_percentiles(gaps_s, counts, PERCENTILES))


def _request_latencies(requests: Columns) -> Numbers:
    numbers: Numbers = {}
    for key, values in (
        ("ttft", ttft_s(requests)),
        ("tpot", tpot_s(requests)),
        ("e2e", e2e_s(requests)),
        ("queue", queue_s(requests)),
    ):
        numbers[f"{key}_mean_s"] = mean(values)
        numbers |= _spread(key, percentiles(values, PERCENTILES))
    return numbers


def _spread(key: str, values: np.ndarray) -> Numbers:
    return {f"{key}_p{share}_s": float(v) for share, v in zip(PERCENTILES, values, strict=True)}


def _promises(result: SimulationResult, window: Window) -> Numbers:
    numbers = _request_promises(result.requests, result)
    numbers["slo_throughput_requests_per_s"] = _NAN
    if result.scenario:
        numbers["slo_throughput_requests_per_s"] = slo_throughput_per_s(
            result.requests, result.scenario.slo, window
        )
    return numbers


def _request_promises(requests: Columns, result: SimulationResult) -> Numbers:
    names = ("slo", "ttft", "tpot")
    if not result.scenario:
        shares = dict.fromkeys((f"{name}_attainment_share" for name in names), _NAN)
        return shares | dict.fromkeys(("ttft_violations", "tpot_violations"), _NAN)
    slo = result.scenario.slo
    met = (meets_slo, meets_ttft, meets_tpot)
    numbers: Numbers = {
        f"{name}_attainment_share": share_of(requests, meets(requests, slo))
        for name, meets in zip(names, met, strict=True)
    }
    counts = violation_counts(requests, slo)
    return numbers | {f"{name}_violations": counts[name] for name in ("ttft", "tpot")}


def _usage(result: SimulationResult, window: Window, n_engines: int) -> Numbers:
    iterations, scenario = result.iterations, result.scenario
    policy = scenario.policy if scenario else None
    batch = mean_batch(iterations, window, n_engines)
    held = kv_use(iterations, result.kv_blocks, window, n_engines)
    # Where blocks are shared, or hold what is on its way, those who run do not read them all.
    shared = getattr(policy, "enable_prefix_caching", False)
    shared = shared or (scenario is not None and scenario.cluster.prefill_engines > 0)
    mfu = mbu = _NAN
    if scenario and scenario.model_entry and scenario.device:
        mfu, mbu = utilization(
            iterations,
            scenario.model_entry,
            scenario.device,
            scenario.memory,
            scenario.tensor_parallel,
            window,
            n_engines,
        )
    took_s = iterations["end_s"] - iterations["start_s"]
    return {
        "iteration_mean_s": mean(took_s[window.holds(iterations["end_s"])]),
        "mean_batch_decode_requests": batch.decode_requests,
        "mean_batch_prefill_requests": batch.prefill_requests,
        "batch_occupancy_share": batch.total / policy.max_num_seqs if policy else _NAN,
        "kv_use_mean_share": held.mean,
        "kv_use_peak_share": held.peak,
        "kv_fragmentation_share": _NAN
        if shared
        else kv_fragmentation(iterations, result.block_size, window),
        "residency_share": residency(iterations, window, n_engines),
        "mfu_share": mfu,
        "mbu_share": mbu,
    }
