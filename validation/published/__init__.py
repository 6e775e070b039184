"""Published results beside what the lab gives: a new one is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from validation.published import arithmetic, eviction, lengths, pools, stalls, traces
from validation.published.record import CONSISTENCY, PARTLY, REPRODUCTION, Finding, Row

__all__ = ["CONSISTENCY", "PARTLY", "PUBLISHED", "REPRODUCTION", "Finding", "Row", "finding"]

PUBLISHED: Mapping[str, Callable[[], Finding]] = MappingProxyType(
    {
        "P1": lengths.orca_rate,
        "P5": eviction.recompute_or_swap,
        "P6": arithmetic.kv_slots,
        "P7": lengths.variance,
        "P8": stalls.capacity,
        "P9": stalls.stall,
        "P10": stalls.chunk_cost,
        "P11": pools.pools_and_bounds,
        "P12": pools.two_prefill_one_decode,
        "P13": arithmetic.parallelism,
        "P14": arithmetic.transfer,
        "P18": traces.azure,
        "P20": stalls.budget,
    }
)
"""By the number that a result has in the project's list of published results."""


@cache
def finding(name: str) -> Finding:
    """What comes out for a published result; a few seconds at most, and only once."""
    return PUBLISHED[name]()
