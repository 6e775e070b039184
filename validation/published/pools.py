"""P11 and P12: prefill and decode on engines of their own, under both promises."""

from __future__ import annotations

from functools import cache

import formulas
from model.cluster import Cluster
from model.kv_cache import Memory
from model.scenario import Scenario, Slo
from model.schedulers import POLICIES
from model.steady_load import grows, load_run
from model.workload import Arrivals, Lengths, Stream, Workload
from validation.published.record import CONSISTENCY, PARTLY, Finding, Row

__all__ = ["pools_and_bounds", "two_prefill_one_decode"]

_REQUESTS = 1000
_HALVINGS = 9
_SHARE = 0.9
_TTFT_S, _TPOT_S = 0.4, 0.04  # of the published example: 13B, 512 tokens in, 64 out
_STRICT_TPOT_S = 0.025

_TOGETHER, _POOLS = (1, 0), (3, 2)
"""Engines, and how many of them only prefill."""


def two_prefill_one_decode() -> Finding:
    """P12: requests/s per GPU, colocated and with two prefill engines before one decode engine."""
    together, pools = (_goodput(kind, Slo(_TTFT_S, _TPOT_S)) for kind in (_TOGETHER, _POOLS))
    placement = {"mu_p": 5.6, "mu_d": 10.0, "n_p": 2.0, "n_d": 1.0}
    return Finding(
        "P12",
        CONSISTENCY,
        (
            Row.within("P12.arithmetic", "request/s", 3.3,
                       formulas.get("F32b").evaluate(placement), 0.02),
            Row("P12.together", "request/s", 1.6, together),
            Row("P12.pools", "request/s", 3.3, pools),
            Row.by_factor("P12.ratio", "1", 2.1, pools / together, 1.5),
        ),
    )  # fmt: skip


def pools_and_bounds() -> Finding:
    """P11: how much more rate, or how much tighter bounds, pools of their own allow."""
    strict = Slo(_TTFT_S, _STRICT_TPOT_S)
    usual = _goodput(_TOGETHER, Slo(_TTFT_S, _TPOT_S))
    more = _goodput(_POOLS, strict) / _goodput(_TOGETHER, strict)
    loosest, tightest = 1.0, 0.05  # shares of both bounds
    for _ in range(_HALVINGS):
        middle = (loosest * tightest) ** 0.5
        if _is_good(_POOLS, Slo(_TTFT_S * middle, _TPOT_S * middle), usual):
            loosest = middle
        else:
            tightest = middle
    return Finding(
        "P11",
        PARTLY,
        (
            Row("P11.rate", "1", 7.4, more, low=1.5),
            Row("P11.bounds", "1", 12.6, 1 / loosest, low=1.2),
            Row.by_factor("P11.rate_size", "1", 7.4, more, 1.5),
        ),
    )


@cache
def _goodput(kind: tuple[int, int], slo: Slo) -> float:
    """Highest rate per GPU at which nine of ten requests keep both bounds."""
    low, high = 0.05, 60.0
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _is_good(kind, slo, middle) else (low, middle)
    return low


def _is_good(kind: tuple[int, int], slo: Slo, rate_per_s: float) -> bool:
    n_engines, prefill_engines = kind
    stream = Stream(
        n_requests=_REQUESTS,
        arrivals=Arrivals("poisson", 1.0),
        prompt=Lengths("fixed", 512.0),
        output=Lengths("fixed", 64.0),
    )
    scenario = Scenario(
        Workload((stream,)),
        POLICIES["vllm-v0"](max_num_seqs=256, max_num_batched_tokens=2048),
        model="opt-13b",
        hardware="a100-80g-sxm",
        n_engines=n_engines,
        memory=Memory(max_model_len=2048),
        slo=slo,
        cluster=Cluster(prefill_engines=prefill_engines),
    )
    run = load_run(scenario, rate_per_s, seed=0, requests=_REQUESTS)
    return run.slo_attainment_share >= _SHARE and not grows(run.growth, run.requests)
