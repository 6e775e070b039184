"""P18: lengths of the Azure traces of 2023, as the presets draw them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model import catalogue
from validation.published.record import CONSISTENCY, Finding, Row

__all__ = ["azure"]

_REQUESTS = 20_000
_PRINTED = {"code": (1469.0, 13.0, 2048.0), "conversation": (1020.0, 129.0, 1155.0)}
"""Median prompt, median output and mean prompt of the public files, in tokens."""


def azure() -> Finding:
    """P18: medians and a mean of lengths drawn by two presets, beside those of the files."""
    rows = []
    for preset, (prompt, output, mean) in _PRINTED.items():
        workload = catalogue.presets()[preset].scenario.workload
        stream = replace(workload.streams[0], n_requests=_REQUESTS)
        drawn = replace(workload, streams=(stream,)).generate(seed=0)
        rows += [
            Row.within(f"P18.{preset}_prompt", "token", prompt,
                       float(np.median(drawn.prompt_tokens)), 0.05),
            Row.within(f"P18.{preset}_output", "token", output,
                       float(np.median(drawn.output_tokens)), 0.05),
            Row.within(f"P18.{preset}_mean", "token", mean,
                       float(np.mean(drawn.prompt_tokens)), 0.05),
        ]  # fmt: skip
    return Finding("P18", CONSISTENCY, tuple(rows))
