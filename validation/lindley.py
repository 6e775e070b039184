"""Waiting times of one server, first come first served, as whole arrays (Lindley's recursion).

``W[n+1] = max(0, W[n] + S[n] − A[n])`` with service times S and gaps A between arrivals. With the
sums ``X[n] = Σ (S − A)`` this is ``X[n] − min(X[0], …, X[n])``, so that no loop is needed
(Lindley 1952).

Public: :func:`waits_s`, :func:`poisson_gaps`, :func:`bursty_gaps`.
"""

from __future__ import annotations

import numpy as np

__all__ = ["bursty_gaps", "poisson_gaps", "waits_s"]


def waits_s(gaps_s: np.ndarray, service_s: np.ndarray | float) -> np.ndarray:
    """Seconds that each of n arrivals waits; the first finds the server free.

    ``gaps_s`` (n − 1 of them) lie between arrivals; ``service_s`` is one number for all, or n.
    """
    service_s = np.asarray(service_s, dtype=float)
    sums = np.empty(len(gaps_s) + 1)
    sums[0] = 0.0
    np.subtract(service_s[:-1] if service_s.ndim else service_s, gaps_s, out=sums[1:])
    np.cumsum(sums, out=sums)
    return sums - np.minimum.accumulate(sums)


def poisson_gaps(n: int, seed: int) -> np.ndarray:
    """``n`` gaps of mean 1 between arrivals at random; divide by the rate."""
    return np.random.default_rng((seed, 0)).standard_exponential(n)


def bursty_gaps(n: int, seed: int, cv: float) -> np.ndarray:
    """``n`` gamma gaps of mean 1 with this coefficient of variation (1: at random)."""
    shape = cv**-2.0
    return np.random.default_rng((seed, 0)).standard_gamma(shape, n) / shape
