"""How well an engine was used: batch, KV cache, arithmetic, bandwidth, wasted work.

Functions take the ``iterations`` columns of a result (one row an iteration, engines one after the
other) and a window, in which means over time are taken. Time in which no iteration runs counts,
with zero: a mean batch is B̄ = ∫B dt / window, so that B̄/T is a throughput also where the engine
idles at times. Divide by :func:`residency` for the mean over running time alone.
With several engines a mean is that of one engine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from model.catalogue import Device, Model
from model.iteration_time import Roofline
from model.kv_cache import Memory
from model.metrics.latency import Columns, Window

_PEAK = Roofline(compute_efficiency=1.0, memory_efficiency=1.0, fixed_s=0.0, communication=False)


def overlap_s(iterations: Columns, window: Window) -> np.ndarray:
    """Seconds of each iteration that lie in the window."""
    start_s = np.maximum(iterations["start_s"], window.start_s)
    return np.maximum(np.minimum(iterations["end_s"], window.end_s) - start_s, 0.0)


def time_mean(iterations: Columns, values: np.ndarray, window: Window, n_engines: int = 1) -> float:
    """Mean over the window's time of a value that each iteration has; 0 while none runs."""
    total_s = window.length_s * n_engines
    if total_s <= 0:
        return float("nan")
    return float((values * overlap_s(iterations, window)).sum() / total_s)


class MeanBatch(NamedTuple):
    """Time-weighted number of requests scheduled; ``total`` is their sum."""

    decode_requests: float
    prefill_requests: float

    @property
    def total(self) -> float:
        return self.decode_requests + self.prefill_requests


def mean_batch(iterations: Columns, window: Window, n_engines: int = 1) -> MeanBatch:
    """B̄d and B̄p: decodes and prefills (recomputation included) scheduled at a time."""
    return MeanBatch(
        time_mean(iterations, iterations["decode_requests"], window, n_engines),
        time_mean(iterations, iterations["prefill_requests"], window, n_engines),
    )


def residency(iterations: Columns, window: Window, n_engines: int = 1) -> float:
    """Share of the time in which an iteration is running (what nvidia-smi calls utilization)."""
    ones = np.ones(len(iterations["start_s"]))
    return min(time_mean(iterations, ones, window, n_engines), 1.0)  # up to rounding of the sum


class KvUse(NamedTuple):
    """Share of KV blocks held: time-weighted mean in the window, and peak of the whole run."""

    mean: float
    peak: float


def kv_use(iterations: Columns, kv_blocks: int, window: Window, n_engines: int = 1) -> KvUse:
    """Blocks held over blocks there are."""
    used = iterations["blocks_used"] / kv_blocks
    peak = float(used.max()) if len(used) else float("nan")
    return KvUse(time_mean(iterations, used, window, n_engines), peak)


def kv_fragmentation(iterations: Columns, block_size: int, window: Window) -> float:
    """Internal fragmentation: share of the token slots in held blocks that hold no token.

    The unfilled rest of last blocks, and what a policy reserves ahead. Taken over the iterations
    in which everybody who holds blocks runs, since only those read all stored tokens; nan where
    there are none. With shared prefixes the same block is read by several, so it is not defined.
    """
    slots = iterations["blocks_used"] * block_size
    stored = iterations["kv_tokens_read"]
    everybody = (
        iterations["decode_requests"] + iterations["prefill_requests"] == iterations["running"]
    )
    known = everybody & (iterations["padding_tokens"] == 0) & (slots > 0) & (stored <= slots)
    weight = overlap_s(iterations, window) * known
    held = (slots * weight).sum()
    return float(1 - (stored * weight).sum() / held) if held > 0 else float("nan")


class Utilization(NamedTuple):
    """Model FLOP/s over peak FLOP/s, and bytes/s moved over peak bandwidth."""

    mfu: float
    mbu: float


def utilization(
    iterations: Columns,
    model: Model,
    device: Device,
    memory: Memory,
    tensor_parallel: int,
    window: Window,
    n_engines: int = 1,
) -> Utilization:
    """MFU and MBU of an engine's GPUs (audit A11).

    MFU: 2Ψ_a a token and 4·n_L·d_a an attention pair (F2), over the dense bf16 peak. MBU: weights
    read once an iteration and the KV tokens read (F5), over HBM bandwidth. Recomputed and padded
    tokens count: it is what the hardware did, useful or not.
    """
    shares = utilization_by_iteration(iterations, model, device, memory, tensor_parallel)
    return Utilization(*(time_mean(iterations, share, window, n_engines) for share in shares))


def utilization_by_iteration(
    iterations: Columns, model: Model, device: Device, memory: Memory, tensor_parallel: int
) -> tuple[np.ndarray, np.ndarray]:
    """MFU and MBU of each iteration: the seconds its work takes at peak rate, over those it took.

    0 for an iteration without tokens.
    """
    peak = _PEAK.cost(model, device, memory, tensor_parallel)
    compute_s, memory_s, _ = peak.parts(
        iterations["tokens"], iterations["attention_pairs"], iterations["kv_tokens_read"]
    )
    took_s = iterations["end_s"] - iterations["start_s"]
    works = (iterations["tokens"] > 0) & (took_s > 0)
    took_s = np.where(works, took_s, np.inf)
    return compute_s / took_s, memory_s / took_s


class Waste(NamedTuple):
    """Tokens computed in vain in the whole run, and their share of all tokens computed."""

    recomputed_tokens: int
    padded_tokens: int
    share: float


def wasted_tokens(iterations: Columns) -> Waste:
    """Recomputed after a preemption, or padding of a static batch."""
    recomputed = int(iterations["recompute_tokens"].sum())
    padded = int(iterations["padding_tokens"].sum())
    tokens = int(iterations["tokens"].sum())
    return Waste(recomputed, padded, (recomputed + padded) / tokens if tokens else float("nan"))
