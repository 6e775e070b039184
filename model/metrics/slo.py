"""Promises kept and broken: attainment, throughput within the SLO, and when a promise is lost.

An SLO is anything with ``ttft_s`` and ``tpot_s``, the two bounds in seconds. A bound counts as met
up to a nanosecond, because simulated clocks are sums of rounded numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from model.metrics.latency import Columns, Window, tpot_s, ttft_s
from model.state import FINISHED

TOLERANCE_S = 1e-9


class Bounds(Protocol):
    """The two promises of an SLO."""

    ttft_s: float
    tpot_s: float


def meets_ttft(requests: Columns, slo: Bounds) -> np.ndarray:
    """Finished, with the first token no later than ``slo.ttft_s`` after arrival."""
    in_time = ttft_s(requests) <= slo.ttft_s + TOLERANCE_S
    return in_time & (requests["status"] == FINISHED)


def meets_tpot(requests: Columns, slo: Bounds) -> np.ndarray:
    """Finished, with a TPOT of at most ``slo.tpot_s``; one output token meets every TPOT."""
    in_time = (tpot_s(requests) <= slo.tpot_s + TOLERANCE_S) | (requests["output_tokens"] == 1)
    return in_time & (requests["status"] == FINISHED)


def meets_slo(requests: Columns, slo: Bounds) -> np.ndarray:
    """Both bounds met."""
    return meets_ttft(requests, slo) & meets_tpot(requests, slo)


def slo_attainment(requests: Columns, slo: Bounds, *, finished_only: bool = False) -> float:
    """Share of all arrived requests that meet both bounds; nan where nothing arrived.

    Rejected, cancelled and unfinished requests count as missed, unless ``finished_only`` asks for
    the share of the finished ones.
    """
    return share_of(requests, meets_slo(requests, slo), finished_only=finished_only)


def share_of(requests: Columns, met: np.ndarray, *, finished_only: bool = False) -> float:
    """Share of arrived (or finished) requests for which ``met`` is true."""
    counted = np.isfinite(requests["arrival_s"])
    if finished_only:
        counted &= requests["status"] == FINISHED
    return float(met[counted].mean()) if counted.any() else float("nan")


def slo_throughput_per_s(requests: Columns, slo: Bounds, window: Window) -> float:
    """Requests per second that finish in the window and meet both bounds (at this load).

    Not DistServe's goodput, which is the largest load with 90 % attainment.
    """
    good = meets_slo(requests, slo) & window.holds(requests["last_token_s"])
    return float(good.sum() / window.length_s) if window.length_s > 0 else float("nan")


def ttft_violation_s(requests: Columns, slo: Bounds) -> np.ndarray:
    """When each TTFT violation became certain: at arrival + bound without a token; nan: never.

    A client that left earlier, or a request rejected at once, is missed but violates nothing.
    """
    deadline_s = requests["arrival_s"] + slo.ttft_s
    late = ~(requests["first_token_s"] <= deadline_s + TOLERANCE_S)
    gone = np.isnan(requests["first_token_s"]) & (requests["end_s"] <= deadline_s)
    return np.where(late & ~gone, deadline_s, np.nan)  # nan too where nothing arrived


def tpot_violation_s(requests: Columns, slo: Bounds) -> np.ndarray:
    """When each TPOT violation became certain; nan: never.

    At time t the remaining tokens come at t at the earliest, so even without further delay the
    mean is (t − first)/(L − 1): past the bound from first + bound·(L − 1) on.
    """
    gaps = requests["output_tokens"] - 1
    deadline_s = requests["first_token_s"] + slo.tpot_s * gaps
    finished = requests["status"] == FINISHED
    in_time = finished & (requests["last_token_s"] <= deadline_s + TOLERANCE_S * gaps)
    gone = ~finished & (requests["end_s"] <= deadline_s)
    return np.where((gaps > 0) & ~in_time & ~gone, deadline_s, np.nan)


def violations_over_time(requests: Columns, slo: Bounds) -> dict[str, np.ndarray]:
    """Step functions of certain violations; each value holds from its ``time_s`` to the next.

    ``ttft_now`` and ``tpot_now`` count requests still in the system, ``ttft_total`` and
    ``tpot_total`` all so far.
    """
    columns: dict[str, np.ndarray] = {}
    certain = {"ttft": ttft_violation_s(requests, slo), "tpot": tpot_violation_s(requests, slo)}
    starts = {name: times[~np.isnan(times)] for name, times in certain.items()}
    ends = {}
    for name, times in certain.items():
        # A finished request's last token may precede the certain moment by rounding only.
        end_s = np.maximum(requests["end_s"], times)[~np.isnan(times)]
        ends[name] = end_s[~np.isnan(end_s)]
    columns["time_s"] = np.unique(np.concatenate([*starts.values(), *ends.values()]))
    for name in certain:
        total = _count(starts[name], columns["time_s"])
        columns[f"{name}_now"] = total - _count(ends[name], columns["time_s"])
        columns[f"{name}_total"] = total
    return columns


def _count(times: np.ndarray, at_s: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.sort(times), at_s, side="right")


def violation_counts(requests: Columns, slo: Bounds) -> Mapping[str, int]:
    """How many requests violated each bound for certain in the whole run."""
    return {
        "ttft": int(np.count_nonzero(~np.isnan(ttft_violation_s(requests, slo)))),
        "tpot": int(np.count_nonzero(~np.isnan(tpot_violation_s(requests, slo)))),
    }
