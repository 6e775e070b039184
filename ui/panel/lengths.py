"""Distributions of token counts stretched to another mean, for the settings Lin and L.

The mean is that of the distribution as it is written, before ``max_tokens`` cuts it. Stretching
keeps the shape: a cut, bounds and every point of a table move with the mean, so that an answer
twice as long on average is also twice as long at its longest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from model.requests import LARGEST_TOKENS
from model.workload import Lengths

__all__ = ["mean_of", "mean_tokens", "stretched", "with_kind"]


def mean_tokens(lengths: Lengths) -> float:
    """The mean of a distribution in tokens, without its cut."""
    if lengths.kind == "uniform":
        return (lengths.low_tokens + lengths.high_tokens) / 2
    if lengths.kind == "quantiles":
        points = lengths.quantiles
        return sum(
            (share - before) * (tokens + fewer) / 2
            for (before, fewer), (share, tokens) in pairwise(points)
        )
    return lengths.mean_tokens


def mean_of(parts: Sequence[Lengths], weights: Sequence[int]) -> float:
    """The mean over streams of so many requests each."""
    tokens = sum(mean_tokens(part) * n for part, n in zip(parts, weights, strict=True))
    return tokens / sum(weights)


def stretched(lengths: Lengths, factor: float) -> Lengths:
    """The same shape with ``factor`` times the mean."""
    if factor == 1:
        return lengths
    mean = _tokens(lengths.mean_tokens * factor)
    cut = lengths.max_tokens
    return replace(
        lengths,
        mean_tokens=float(_whole(mean)) if lengths.kind == "fixed" else mean,
        low_tokens=_whole(lengths.low_tokens * factor),
        high_tokens=_whole(lengths.high_tokens * factor),
        quantiles=tuple((share, _tokens(n * factor)) for share, n in lengths.quantiles),
        max_tokens=None if cut is None else min(math.ceil(_tokens(cut * factor)), LARGEST_TOKENS),
    )


def with_kind(lengths: Lengths, kind: str) -> Lengths:
    """Another kind of distribution with the same mean and cut."""
    if kind == lengths.kind or kind == "quantiles":  # a table comes with its numbers only
        return lengths
    mean = mean_tokens(lengths)
    return Lengths(
        kind=kind,
        mean_tokens=float(_whole(mean)) if kind == "fixed" else _tokens(mean),
        cv=lengths.cv,
        low_tokens=1,
        high_tokens=max(_whole(2 * mean) - 1, 1),
        max_tokens=lengths.max_tokens,
    )


def _tokens(value: float) -> float:
    """A token count within the limits, without the dust of multiplication."""
    return min(max(round(value, 6), 1.0), float(LARGEST_TOKENS))


def _whole(value: float) -> int:
    return int(min(max(round(value), 1), LARGEST_TOKENS))
