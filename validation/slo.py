"""Promises on latency: F28, F28b, F28d, F28e, F30, F30b and F31a.

What load keeps a promise is found by halving over one set of arrivals that is moved closer together
(Lindley's recursion, 300,000 of them). What an engine records of single requests is held
against F30 and F30b.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from formulas.topics.slo import goodput
from model.iteration_time import Linear
from model.metrics import e2e_s
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.comparison import STOCHASTIC, Comparison
from validation.lindley import waits_s
from validation.prefill_server import PROMPT, SERVICE_S, TOKEN_S, arrivals_s, gaps, run, ttft_s

__all__ = ["COMPARISONS"]

_MANY = 300_000
_OVERHEAD = 0.1  # of a service, added to each
_SEED = 5
_SHARE_P99, _SHARE_GOODPUT = 0.99, 0.9


# -- the load that keeps a promise -----------------------------------------------------------------


def _ttft_at(broken: str) -> Callable[[float], np.ndarray]:
    """TTFT over the service time, as a function of the load, on one set of arrivals."""
    between = gaps(_MANY - 1, _SEED, broken)
    service = 1.0 + (_OVERHEAD if broken == "overhead" else 0.0)
    return lambda load: waits_s(between / load, service) + service


def _largest_load(kept: Callable[[np.ndarray], bool], broken: str) -> float:
    """Largest load at which ``kept(TTFT/D)`` holds; 0 where there is none."""
    ttft = _ttft_at(broken)
    return goodput(lambda load: float(kept(ttft(load))), 0.01, 0.995, goal=1.0, tolerance=2e-3)


def _bound(x: float, broken: str) -> Mapping[str, float]:
    return {"x_ttft": x, "q_share": _SHARE_P99}


def _load_for_mean(x: float, broken: str) -> float:
    return _largest_load(lambda ttft: ttft.mean() <= x, broken)


def _load_for_p99(x: float, broken: str) -> float:
    return _largest_load(lambda ttft: (ttft <= x).mean() >= _SHARE_P99, broken)


def _promise(bound_s: float, broken: str) -> Mapping[str, float]:
    return {"D": SERVICE_S, "D_ttft": bound_s, "q_share": _SHARE_GOODPUT}


def _goodput(bound_s: float, broken: str) -> float:
    x = bound_s / SERVICE_S
    return _largest_load(lambda ttft: (ttft <= x).mean() >= _SHARE_GOODPUT, broken) / SERVICE_S


# -- queues that are too long ----------------------------------------------------------------------

_SHORT_PROMPT = 250


def _cap(bound_s: float, broken: str) -> Mapping[str, float]:
    return {"D_ttft": bound_s, "C_p": 1 / TOKEN_S}


def _tokens_ahead(bound_s: float, broken: str) -> float:
    """The longest queue, in tokens, behind which a prompt of a burst still starts in time."""
    n = int(1.5 * bound_s / (TOKEN_S * _SHORT_PROMPT))
    result = run(np.zeros(n), _SHORT_PROMPT, broken)
    in_time = result.requests["first_scheduled_s"] <= bound_s + 1e-9
    return float(_SHORT_PROMPT * (np.flatnonzero(in_time)[-1]))


_BOUND_S = 10.0


def _overload(load: float, broken: str) -> Mapping[str, float]:
    return {
        "lambda": load / SERVICE_S,
        "s_mean": PROMPT,
        "C_p": 1 / TOKEN_S,
        "D": SERVICE_S,
        "D_ttft": _BOUND_S,
    }


def _first_miss_s(load: float, broken: str) -> float:
    """When the first request arrives that will miss the bound; requests come evenly if intact."""
    n = int(3 * _BOUND_S / SERVICE_S / (load - 1)) + 10
    arrivals = np.arange(n) * SERVICE_S / load
    if broken == "bursty":
        arrivals = arrivals_s(n, load / SERVICE_S, _SEED, broken)
    missed = ttft_s(run(arrivals, PROMPT, broken)) > _BOUND_S
    return float(arrivals[np.argmax(missed)])


# -- one request's own times -----------------------------------------------------------------------


@lru_cache(maxsize=32)
def _stalled(output_tokens: int) -> SimulationResult:
    """A request that decodes while every 400 ms two prompts go before it (vLLM V0).

    The first and the last request have so many outputs; the last one waits behind another prompt.
    """
    others = np.repeat(np.arange(1, 13) * 0.4, 2)
    n = len(others) + 1
    requests = Requests.from_columns(
        arrival_s=np.concatenate(([0.0], others)),
        prompt_tokens=np.full(n, PROMPT),
        output_tokens=np.concatenate(([output_tokens], np.full(n - 2, 20), [output_tokens])),
    )
    scenario = Scenario(
        TraceReference("stalls", "0" * 64, n),
        POLICIES["vllm-v0"](max_num_seqs=64, max_num_batched_tokens=PROMPT),
        clock=Linear(base_s=0.01, per_scheduled_token_s=TOKEN_S),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=4_000, block_size=16, max_model_len=4 * PROMPT),
    )
    return simulate(scenario, requests)


def _own_times(outputs: float, broken: str) -> Mapping[str, float]:
    times = _stalled(int(outputs)).token_times(0)
    return {"L_i": outputs, "t_first": float(times[0]), "t_last": float(times[-1])}


def _gap(outputs: float, broken: str) -> float:
    """The mean gap between the tokens of that request, or the longest one."""
    between, request = _stalled(int(outputs)).itl_s()
    own = between[request == 0]
    return own.max() if broken == "longest_gap" else own.mean()


def _own_latency(outputs: float, broken: str) -> Mapping[str, float]:
    """TTFT and TPOT of the last request, or its TTFT without the time in the queue."""
    found = _stalled(int(outputs)).requests
    first, last = found["first_token_s"][-1], found["last_token_s"][-1]
    begins = found["first_scheduled_s" if broken == "queue_left_out" else "arrival_s"][-1]
    tokens = float(found["emitted_tokens"][-1])
    return {"TTFT": first - begins, "TPOT": (last - first) / (tokens - 1), "L_i": tokens}


def _whole_latency(outputs: float, broken: str) -> float:
    return e2e_s(_stalled(int(outputs)).requests)[-1]


COMPARISONS = (
    Comparison(
        name="load_mean",
        formulas=("F28", "F26"),
        values=_bound,
        simulate=_load_for_mean,
        axis="x_ttft",
        at=3.0,
        points=(1.5, 2.0, 3.0, 5.0, 7.0, 10.0),
        unit="load",
        tolerance=0.01,
        kind=STOCHASTIC,
        broken=("bursty",),
    ),
    Comparison(
        name="load_p99",
        formulas=("F28b", "F26d"),
        values=_bound,
        simulate=_load_for_p99,
        axis="x_ttft",
        at=5.0,
        points=(2.0, 3.0, 5.0, 7.0, 10.0),
        unit="load",
        tolerance=0.02,
        kind=STOCHASTIC,
        broken=("overhead",),
    ),
    Comparison(
        name="queue_cap",
        formulas=("F28d",),
        values=_cap,
        simulate=_tokens_ahead,
        axis="D_ttft",
        at=1.0,
        points=(0.5, 1.0, 1.5, 2.0),
        unit="tokens",
        broken=("overhead",),
    ),
    Comparison(
        name="overload",
        formulas=("F28e", "F28a"),
        values=_overload,
        simulate=_first_miss_s,
        axis="rho",
        at=1.25,
        points=(1.1, 1.25, 1.5, 2.0),
        unit="s",
        tolerance=5e-3,
        broken=("bursty", "overhead"),
    ),
    Comparison(
        name="tpot",
        formulas=("F30",),
        values=_own_times,
        simulate=_gap,
        axis="L_i",
        at=100.0,
        points=(20.0, 50.0, 100.0, 150.0, 200.0),
        unit="ms",
        factor=1e3,
        broken=("longest_gap",),
        smooth=False,
    ),
    Comparison(
        name="e2e",
        formulas=("F30b", "F30a"),
        values=_own_latency,
        simulate=_whole_latency,
        axis="L_i",
        at=100.0,
        points=(20.0, 50.0, 100.0, 150.0, 200.0),
        unit="ms",
        factor=1e3,
        broken=("queue_left_out",),
        smooth=False,
    ),
    Comparison(
        name="goodput",
        formulas=("F31a", "F31", "F28b"),
        values=_promise,
        simulate=_goodput,
        axis="D_ttft",
        at=0.5,
        points=(0.2, 0.3, 0.5, 0.7, 1.0),
        unit="requests_per_s",
        tolerance=0.02,
        kind=STOCHASTIC,
        broken=("bursty",),
    ),
)
