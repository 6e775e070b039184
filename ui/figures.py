"""The key figures of a run: a big number with its unit, what belongs to it, its definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import streamlit as st

from model.result import REASONS, STATUS, SimulationResult
from ui.language import definition, t
from ui.units import count, duration, figure, percent, rate, setting, significant

__all__ = ["key_figures", "rejections"]

REJECTED = STATUS.index("rejected")


def key_figures(result: SimulationResult, numbers: Mapping[str, float]) -> None:
    """Six figures in a row; ``numbers`` are :func:`model.metrics.summary` of the result."""
    slo, policy = result.scenario.slo, result.scenario.policy
    batch = numbers["mean_batch_decode_requests"] + numbers["mean_batch_prefill_requests"]
    row = iter(st.columns(6))
    _figure(
        next(row),
        "throughput",
        figure(*rate(numbers["throughput_output_tokens_per_s"])),
        f"{definition('throughput_output_tokens_per_s')} {definition('steady_window')}",
        rate=f"{significant(numbers['throughput_requests_per_s'])} {t('unit.requests_per_s')}",
    )
    for key, bound_s in (("ttft", slo.ttft_s), ("tpot", slo.tpot_s)):
        _figure(
            next(row),
            key,
            figure(*duration(numbers[f"{key}_p50_s"])),
            definition(key),
            more="figure.latency.more",
            p99=" ".join(duration(numbers[f"{key}_p99_s"])),
            bound=" ".join(setting(bound_s)),
        )
    _figure(
        next(row),
        "attainment",
        figure(*percent(numbers["slo_attainment_share"])),
        definition("attainment"),
        ttft=" ".join(percent(numbers["ttft_attainment_share"])),
        tpot=" ".join(percent(numbers["tpot_attainment_share"])),
    )
    _figure(
        next(row),
        "batch",
        figure(significant(batch), t("unit.requests")),
        definition("mean_batch"),
        n=policy.max_num_seqs,
    )
    _figure(
        next(row),
        "preemptions",
        count(numbers["preemptions"]),
        definition("preemptions"),
        tokens=count(numbers["recomputed_tokens"]),
    )


def _figure(
    column, key: str, value: str, help: str, *, more: str | None = None, **values: object
) -> None:
    column.metric(
        t(f"figure.{key}"),
        value,
        delta=t(more or f"figure.{key}.more", **values),
        delta_color="off",
        delta_arrow="off",
        help=help,
    )


def rejections(result: SimulationResult) -> str:
    """A sentence on the requests that were refused for good, empty where there are none."""
    refused = result.requests["status"] == REJECTED
    reasons = Counter(REASONS[code] for code in result.requests["reason"][refused])
    if not reasons:
        return ""
    listed = t("list.separator").join(t(f"reason.{reason}") for reason in reasons)
    return t("figure.rejected", n=int(refused.sum()), reasons=listed)
