"""Metrics of a simulation, gathered: what pages, exports and notebooks import.

The words are defined once: in :mod:`model.metrics.table` as data, and in the docstrings of the
functions, which live by topic in latency, slo, throughput, usage and blocking.
"""

from model.metrics.blocking import (
    head_of_line,
    head_of_line_blocked,
    head_of_line_s,
)
from model.metrics.latency import (
    Window,
    class_means,
    counted_percentiles,
    e2e_s,
    fairness,
    fairness_between_classes,
    itl_counts,
    itl_s,
    jain,
    mean,
    normalized_e2e_s,
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
    slo_attainment,
    slo_throughput_per_s,
    tpot_violation_s,
    ttft_violation_s,
    violation_counts,
    violations_over_time,
)
from model.metrics.summary import (
    class_summary,
    summary,
)
from model.metrics.table import (
    DEFINITIONS,
    METRICS,
    PERCENTILES,
    Metric,
)
from model.metrics.throughput import (
    emitted_tokens,
    output_throughput_per_s,
    prompt_throughput_per_s,
    request_throughput_per_s,
)
from model.metrics.usage import (
    kv_fragmentation,
    kv_use,
    mean_batch,
    overlap_s,
    residency,
    time_mean,
    utilization,
    wasted_tokens,
)

__all__ = [
    "DEFINITIONS",
    "METRICS",
    "PERCENTILES",
    "Metric",
    "Window",
    "class_means",
    "class_summary",
    "counted_percentiles",
    "e2e_s",
    "emitted_tokens",
    "fairness",
    "fairness_between_classes",
    "head_of_line",
    "head_of_line_blocked",
    "head_of_line_s",
    "itl_counts",
    "itl_s",
    "jain",
    "kv_fragmentation",
    "kv_use",
    "mean",
    "mean_batch",
    "meets_slo",
    "meets_tpot",
    "meets_ttft",
    "normalized_e2e_s",
    "output_throughput_per_s",
    "overlap_s",
    "percentiles",
    "prompt_throughput_per_s",
    "queue_s",
    "request_throughput_per_s",
    "residency",
    "share_of",
    "slo_attainment",
    "slo_throughput_per_s",
    "steady_window",
    "summary",
    "time_mean",
    "tpot_s",
    "tpot_violation_s",
    "ttft_s",
    "ttft_violation_s",
    "utilization",
    "violation_counts",
    "violations_over_time",
    "wasted_tokens",
    "whole_run",
]
