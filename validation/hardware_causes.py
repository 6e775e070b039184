"""What the seconds of a run went into: computing, reading weights, reading KV, fixed time, nothing.

Public: :data:`CAUSES`, :class:`Causes`, :func:`causes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from model.iteration_time import IterationCost
from model.result import SimulationResult

__all__ = ["CAUSES", "Causes", "causes"]

CAUSES = ("compute", "weights", "kv", "fixed", "idle")
"""Computing; reading weights; reading KV; fixed time, links and swaps; no iteration running."""


@dataclass(frozen=True, eq=False)
class Causes:
    """Where the time of a run went.

    ``shares`` of the run's time by cause (they add up to 1). ``iterations`` is the number bound by
    each cause but idle: by its longest part. ``strip``: shares of ``edges_s``' bins, one row a
    cause. ``memory_share``: of the time in which iterations run, that of those bound by reading.
    """

    shares: Mapping[str, float]
    iterations: Mapping[str, int]
    edges_s: np.ndarray
    strip: np.ndarray
    length_s: float
    memory_share: float


def causes(
    run: SimulationResult, cost: IterationCost, n_engines: int = 1, bins: int = 120
) -> Causes | None:
    """The :class:`Causes` of a run under a clock with these costs; None if nothing ever ran.

    The longer of computing and reading is what an iteration waits for; the shorter one hides
    behind it and counts nothing. A read is split into weights and KV by their bytes.
    """
    columns = run.iterations
    if not len(columns["start_s"]):
        return None
    parts = _parts(columns, cost)
    length_s = float(columns["end_s"].max())
    edges_s = np.linspace(0.0, length_s, bins + 1)
    strip = np.zeros((len(CAUSES), bins))
    for engine in range(n_engines):
        rows = columns["engine_id"] == engine
        strip[:-1] += _binned(columns["start_s"][rows], columns["end_s"][rows], parts[:, rows],
                              edges_s)  # fmt: skip
    strip /= n_engines * (length_s / bins)
    strip[-1] = np.maximum(1.0 - strip[:-1].sum(axis=0), 0.0)
    longest = parts.argmax(axis=0)
    seconds = columns["end_s"] - columns["start_s"]
    reads = parts[1:3].sum(axis=0) > 0
    return Causes(
        shares=dict(zip(CAUSES, strip.mean(axis=1).tolist(), strict=True)),
        iterations={name: int((longest == row).sum()) for row, name in enumerate(CAUSES[:-1])},
        edges_s=edges_s,
        strip=strip,
        length_s=length_s,
        memory_share=float(seconds[reads].sum() / seconds.sum()),
    )


def _parts(columns: Mapping[str, np.ndarray], cost: IterationCost) -> np.ndarray:
    """Seconds of each iteration by cause, one row a cause but idle."""
    tokens = columns["tokens"]
    compute_s, memory_s, other_s = cost.parts(
        tokens, columns["attention_pairs"], columns["kv_tokens_read"], columns["swapped_blocks"]
    )
    bound = compute_s > memory_s
    weights_s = np.where(bound, 0.0, cost.weights_s(tokens))
    kv_s = np.where(bound, 0.0, cost.kv_token_read_s * columns["kv_tokens_read"])
    return np.array([np.where(bound, compute_s, 0.0), weights_s, kv_s, other_s])


def _binned(
    start_s: np.ndarray, end_s: np.ndarray, parts: np.ndarray, edges_s: np.ndarray
) -> np.ndarray:
    """Seconds of each cause (a row) in each bin, spread evenly over their iterations."""
    if not len(start_s):
        return np.zeros((len(parts), len(edges_s) - 1))
    ends = np.column_stack([start_s, end_s]).ravel()
    found = []
    for seconds in parts:
        grown = np.repeat(np.concatenate([[0.0], np.cumsum(seconds)]), 2)[1:-1]
        found.append(np.diff(np.interp(edges_s, ends, grown)))
    return np.array(found)
