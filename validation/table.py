"""All comparisons of formulas with simulations by topic, and the records that they give."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from validation import chunking, delta, eviction, padding, queues, slo
from validation.comparison import Comparison, Record, record

__all__ = ["COMPARISONS", "TOPICS", "records"]

TOPICS: Mapping[str, tuple[Comparison, ...]] = MappingProxyType(
    {
        "throughput": delta.COMPARISONS,
        "padding": padding.COMPARISONS,
        "chunking": chunking.COMPARISONS,
        "eviction": eviction.COMPARISONS,
        "queues": queues.COMPARISONS,
        "slo": slo.COMPARISONS,
    }
)

COMPARISONS: Mapping[str, Comparison] = MappingProxyType(
    {comparison.name: comparison for group in TOPICS.values() for comparison in group}
)
"""All of them by name."""


def records() -> tuple[Record, ...]:
    """Every comparison with its assumptions met, and with each one broken that can be."""
    return tuple(
        record(comparison, broken)
        for comparison in COMPARISONS.values()
        for broken in ("", *comparison.broken)
    )
