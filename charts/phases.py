"""Who is in the batch and what fills the KV blocks, iteration by iteration, told apart by phase."""

from __future__ import annotations

import numpy as np

from model.events import EVENT
from model.result import SimulationResult

__all__ = ["batch_by_phase", "blocks_by_use", "recomputing_runs"]


def batch_by_phase(result: SimulationResult) -> dict[str, np.ndarray]:
    """Requests of each iteration that decode, prefill for the first time, or recompute.

    A request recomputes when it prefills after a preemption.
    """
    columns, chunks = result.iterations, _chunks(result)
    recompute = np.bincount(chunks["row"][chunks["again"]], minlength=len(columns["start_s"]))
    return {
        "decode": columns["decode_requests"],
        "prefill": columns["prefill_requests"] - recompute,
        "recompute": recompute,
    }


def blocks_by_use(result: SimulationResult) -> dict[str, np.ndarray]:
    """KV blocks of each iteration: held by prefills, by recomputes, by decodes, reserved but empty.

    ``empty`` are the whole blocks that a scheduler reserved in advance (static, Orca); elsewhere
    only the last block of a request is partly empty, which counts as in use. ``decode`` are all
    blocks not named otherwise, those of paused requests and of cached prefixes included.
    """
    columns, chunks, size = result.iterations, _chunks(result), result.block_size
    used, n = columns["blocks_used"], len(columns["start_s"])
    blocks = -(-chunks["tokens_after"] // size)
    again = chunks["again"]
    prefill = np.bincount(chunks["row"][~again], blocks[~again], n)
    recompute = np.bincount(chunks["row"][again], blocks[again], n)
    prefill = np.minimum(prefill, used)
    recompute = np.minimum(recompute, used - prefill)
    empty = np.zeros(n)
    if result.scenario is not None and result.scenario.policy.reserves:
        held = -(-columns["kv_tokens_read"] // size)
        empty = np.clip(used - held, 0, used - prefill - recompute)
    return {
        "decode": used - prefill - recompute - empty,
        "prefill": prefill,
        "recompute": recompute,
        "empty": empty,
    }


def _chunks(result: SimulationResult) -> dict[str, np.ndarray]:
    """One entry a prefill chunk and iteration: its row, whether it computes again what was dropped,
    and the tokens the request holds after it."""
    runs = result.chunks
    length = runs["iterations"]
    run = np.repeat(np.arange(len(length)), length)
    inside = np.arange(len(run)) - np.repeat(np.cumsum(length) - length, length)
    return {
        "row": runs["row"][run] + inside,
        "again": recomputing_runs(result)[run],
        "tokens_after": runs["first_token"][run] + runs["tokens"][run] * (inside + 1),
    }


def recomputing_runs(result: SimulationResult) -> np.ndarray:
    """For each run of chunks: was its request preempted before it began?"""
    events, runs = result.events, result.chunks
    dropped = events["event"] == EVENT["preempt"]
    first_s = np.full(len(result.inputs), np.inf)
    np.minimum.at(first_s, events["request"][dropped], events["time_s"][dropped])
    return result.iterations["start_s"][runs["row"]] >= first_s[runs["request"]]
