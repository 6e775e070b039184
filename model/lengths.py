"""Token counts of requests: distributions whose samples are whole and at least 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model import checks
from model.errors import LabError
from model.requests import LARGEST_TOKENS

LENGTH_KINDS = ("fixed", "uniform", "exponential", "geometric", "lognormal", "quantiles")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Distribution of a token count; samples are whole and at least 1.

    kind            parameters
    "fixed"         ``mean_tokens``
    "uniform"       whole numbers from ``low_tokens`` to ``high_tokens``, both included
    "exponential"   ``mean_tokens``, rounded to the nearest whole number
    "geometric"     ``mean_tokens`` on 1, 2, ...: each token is the last with probability 1/mean
    "lognormal"     ``mean_tokens`` and ``cv`` (standard deviation / mean), rounded
    "quantiles"     ``quantiles`` = ((share, tokens), ...), linear between the points, rounded

    ``max_tokens`` cuts what is longer (which lowers the mean).
    """

    kind: str = "fixed"
    mean_tokens: float = 512.0
    cv: float = 1.0
    low_tokens: int = 1
    high_tokens: int = 1024
    quantiles: tuple[tuple[float, float], ...] = ()
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, LENGTH_KINDS)
        checks.number("mean_tokens", self.mean_tokens, 1, LARGEST_TOKENS)
        checks.number("cv", self.cv, 0, 100)
        checks.whole_number("low_tokens", self.low_tokens, 1, LARGEST_TOKENS)
        checks.whole_number("high_tokens", self.high_tokens, 1, LARGEST_TOKENS)
        if self.max_tokens is not None:
            checks.whole_number("max_tokens", self.max_tokens, 1, LARGEST_TOKENS)
        if self.kind == "fixed" and self.mean_tokens != int(self.mean_tokens):
            raise LabError("not_a_whole_number", field="mean_tokens", value=self.mean_tokens)
        if self.kind == "uniform" and self.low_tokens > self.high_tokens:
            raise LabError(
                "low_above_high",
                field="low_tokens",
                low=self.low_tokens,
                high=self.high_tokens,
            )
        object.__setattr__(self, "quantiles", tuple(tuple(pair) for pair in self.quantiles))
        if self.kind == "quantiles":
            self._check_quantiles()

    def _check_quantiles(self) -> None:
        if len(self.quantiles) < 2 or any(len(pair) != 2 for pair in self.quantiles):
            raise LabError("quantiles_shape", field="quantiles")
        for share, tokens in self.quantiles:
            checks.number("quantiles", share, 0, 1)
            checks.number("quantiles", tokens, 1, LARGEST_TOKENS)
        shares, tokens = np.array(self.quantiles, dtype=float).T
        rising = (np.diff(shares) > 0).all() and (np.diff(tokens) >= 0).all()
        if not rising or shares[0] != 0 or shares[-1] != 1:
            raise LabError("quantiles_shape", field="quantiles")

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """``n`` token counts, int64, each between 1 and ``max_tokens``."""
        longest = LARGEST_TOKENS if self.max_tokens is None else self.max_tokens
        tokens = np.clip(np.rint(self._draw(rng, n)), 1, longest)
        return tokens.astype(np.int64)

    def _draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        if self.kind == "fixed":
            return np.full(n, float(self.mean_tokens))
        if self.kind == "uniform":
            # By inversion, so that new bounds stretch the same draws.
            span = self.high_tokens - self.low_tokens + 1
            return self.low_tokens + np.floor(rng.random(n) * span)
        if self.kind == "exponential":
            return self.mean_tokens * rng.standard_exponential(n)
        if self.kind == "geometric":
            if self.mean_tokens == 1:
                return np.ones(n)
            rate = -np.log1p(-1 / self.mean_tokens)
            return np.ceil(rng.standard_exponential(n) / rate)
        if self.kind == "lognormal":
            variance = np.log1p(self.cv**2)  # of the logarithm
            log_tokens = (
                np.log(self.mean_tokens) - variance / 2 + np.sqrt(variance) * rng.standard_normal(n)
            )
            return np.exp(np.minimum(log_tokens, np.log(LARGEST_TOKENS)))
        shares, tokens = np.array(self.quantiles, dtype=float).T
        return np.interp(rng.random(n), shares, tokens)
