"""Mean of a sample and its interval: Student's t, or the range where there are too few for that."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["CONFIDENCE", "SEEDS_FOR_T", "Spread", "spread_of", "t_quantile"]

CONFIDENCE = 0.95
SEEDS_FOR_T = 3
"""From so many seeds on an interval is one of t; below it is the range of the runs."""


class Spread(NamedTuple):
    """Mean over the seeds and its interval: 95 % of t from three seeds on, else their range."""

    mean: float
    low: float
    high: float


def spread_of(sample: np.ndarray, *, by_t: bool | None = None, share: bool = False) -> Spread:
    """Mean and interval of a sample (float, one a seed); nan where it is empty.

    ``by_t`` says which interval it is, where several samples shall have the same. That of a
    ``share`` ends where shares end.
    """
    if not len(sample):
        return Spread(math.nan, math.nan, math.nan)
    mean = float(sample.mean())
    if by_t is None:
        by_t = len(sample) >= SEEDS_FOR_T
    if not by_t:
        return Spread(mean, float(sample.min()), float(sample.max()))
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    half = t_quantile((1 + CONFIDENCE) / 2, len(sample) - 1) * error
    low, high = mean - half, mean + half
    return Spread(mean, max(low, 0.0), min(high, 1.0)) if share else Spread(mean, low, high)


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """Student's t below which ``share`` (0.5 to 1, exclusive) of the distribution lies.

    Bisection of the exact series for whole degrees of freedom (Abramowitz and Stegun 26.7.3, 4);
    saves the app from loading scipy for one number.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if (1 + _central_share(angle, freedom)) / 2 < share:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(low)


def _central_share(angle: float, freedom: int) -> float:
    """P(|T| < t) with t = √freedom · tan(angle)."""
    cos, sin = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term = cos if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cos * cos * (k - 1) / k
        total += term
    return (2 / math.pi) * (angle + sin * total) if odd else sin * total
