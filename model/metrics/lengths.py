"""How the shortest and the longest requests fare: an order by length is paid for by the long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from model.metrics.latency import Columns, mean, ttft_s
from model.metrics.slo import Bounds, slo_attainment

END = 0.1


class LengthEnd(NamedTuple):
    """The shortest (or longest) tenth: of at most (at least) ``tokens``, prompt and output."""

    tokens: int
    ttft_mean_s: float
    slo_attainment_share: float


def length_ends(requests: Columns, slo: Bounds) -> tuple[LengthEnd, LengthEnd] | None:
    """The shortest and the longest tenth; None where all are equally long, or there are none.

    Who has the length of the last of a tenth belongs to it, too.
    """
    tokens = requests["prompt_tokens"] + requests["output_tokens"]
    if not len(tokens) or tokens.min() == tokens.max():
        return None
    short = int(np.quantile(tokens, END, method="lower"))
    long = int(np.quantile(tokens, 1 - END, method="higher"))
    return (
        _end({name: column[tokens <= short] for name, column in requests.items()}, short, slo),
        _end({name: column[tokens >= long] for name, column in requests.items()}, long, slo),
    )


def _end(requests: Columns, tokens: int, slo: Bounds) -> LengthEnd:
    return LengthEnd(tokens, mean(ttft_s(requests)), slo_attainment(requests, slo))
