"""Tokens and requests per second, counted at the moments they are done, in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.metrics.latency import Window
from model.state import FINISHED

if TYPE_CHECKING:
    from model.result import SimulationResult


def emitted_tokens(result: SimulationResult) -> np.ndarray:
    """Output tokens emitted at the end of each iteration: one a decode, one a prefill that ends."""
    decodes = result.iterations["decode_requests"]
    return decodes + np.bincount(result.prefill_ends["row"], minlength=len(decodes))


def _per_s(amounts: np.ndarray, times_s: np.ndarray, window: Window) -> float:
    if window.length_s <= 0:
        return float("nan")
    return float(amounts[window.holds(times_s)].sum() / window.length_s)


def output_throughput_per_s(result: SimulationResult, window: Window) -> float:
    """Output tokens emitted in the window per second, of all engines together."""
    return _per_s(emitted_tokens(result), result.iterations["end_s"], window)


def prompt_throughput_per_s(result: SimulationResult, window: Window) -> float:
    """New prompt tokens computed in the window (counted when their iteration ends) per second."""
    iterations = result.iterations
    return _per_s(iterations["prefill_tokens"], iterations["end_s"], window)


def request_throughput_per_s(result: SimulationResult, window: Window) -> float:
    """Requests that finish in the window per second."""
    finished = result.requests["status"] == FINISHED
    return _per_s(finished, result.requests["last_token_s"], window)
