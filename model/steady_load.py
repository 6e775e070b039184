"""One run under a steady load: what was promised and kept, and whether the load can be borne.

A goodput is a property of a load that goes on, so :func:`steady` lets the streams of a workload
run side by side from the start, as long as each other; the first :data:`WARM_UP_SHARE` of the
requests fill the engine and are not counted. The last ones are answered while the engine empties,
which flatters them a little: by about the requests in the system out of those counted. Where
conversations go on after the request with which they begin, it takes longer until as many end as
begin: runs are then TALK_TIMES as long, TALK_WARM_UP_SHARE of the beginnings are warm-up, and what
comes after the last of them is not counted.

A load is *unstable* where the backlog grows for as long as requests come. Two signs say so:

- it is not below the **limit**, the rate at which requests finish while a queue is always there
  (:func:`saturation`; the saturation rule of Baccelli and Foss 1995). For M/D/1 this is 1/D, and a
  load of 1.001 is found as well as one of 2;
- the backlog **grew** between the end of warm-up and the last arrival by more than twice the noise
  of a Poisson count of the arrivals between them. This also catches what the limit cannot say
  (policies that refuse, clients who leave), but needs a long run near a load of 1.

Preemption can lower what a saturated engine finishes below what it bears without a queue; the
limit then errs on the side of less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from model import checks
from model.errors import LabError
from model.events import REASON
from model.metrics import (
    meets_slo,
    meets_tpot,
    meets_ttft,
    percentiles,
    share_of,
    slo_throughput_per_s,
    tpot_s,
    ttft_s,
)
from model.metrics.latency import Columns, Window
from model.parameters import OPEN_LOOP, RATE, replace_at, value_at
from model.scenario import Scenario
from model.simulator import simulate
from model.state import CANCELLED, FINISHED, REJECTED

__all__ = [
    "MOST_OUTPUT_TOKENS",
    "WARM_UP_SHARE",
    "Run",
    "affordable",
    "counted_window",
    "gpus",
    "grows",
    "load_run",
    "measured",
    "rate_of",
    "saturation",
    "steady",
    "with_warm_up",
]

WARM_UP_SHARE = 0.2
TALK_WARM_UP_SHARE, TALK_TIMES = 0.5, 3
MOST_OUTPUT_TOKENS = 2_000_000
"""Of one run: answers of 8,000 tokens make 2,000 requests a matter of minutes and gigabytes."""

_ALWAYS_REFUSED = [REASON[name] for name in ("never_fits", "exceeds_context", "exceeds_budget")]
_FASTEST_PER_S = 1e6
_FEWEST_COMPLETIONS = 50
_TURNS_SAMPLE = 2000


@dataclass(frozen=True, slots=True)
class Run:
    """The requests of one run that arrived after warm-up, in numbers.

    ``growth`` is how many more requests were in the system at the last arrival than at the end of
    warm-up; ``attempts_mean`` is how often a client came, retries included. SLO throughput is in
    requests/s per GPU. Percentiles are those of the requests that have a first token (TTFT) or two
    (TPOT), nan where none has.
    """

    seed: int
    requests: int
    growth: int
    slo_attainment_share: float
    ttft_attainment_share: float
    tpot_attainment_share: float
    refused_share: float
    attempts_mean: float
    slo_throughput_requests_per_s: float
    ttft_p50_s: float
    ttft_p90_s: float
    ttft_p99_s: float
    tpot_p50_s: float
    tpot_p90_s: float
    tpot_p99_s: float


def gpus(scenario: Scenario) -> int:
    """GPUs of the whole deployment."""
    return scenario.tensor_parallel * scenario.n_engines


def rate_of(scenario: Scenario) -> float:
    """Requests/s per GPU that come, further turns of conversations included.

    LabError no_rate where arrivals have no rate.
    """
    return value_at(scenario, RATE) * _requests_per_arrival(scenario) / gpus(scenario)


def affordable(scenario: Scenario, requests: int) -> int:
    """So many requests, or as many as a run of MOST_OUTPUT_TOKENS allows (of a sample of 200)."""
    sample = steady(scenario, 200).requests().output_tokens
    return max(min(requests, int(MOST_OUTPUT_TOKENS / sample.mean())), 1)


def steady(scenario: Scenario, requests: int) -> Scenario:
    """The scenario with about so many requests, and streams that last equally long from time 0.

    Each stream with a rate gets requests in proportion to it, and to the turns that follow each
    arrival. Streams without one (all at once) stay as they are. Raises LabError no_rate where no
    stream has a rate.
    """
    checks.whole_number("requests", requests, 1, 10**7)
    value_at(scenario, RATE)  # says where there is none
    shares = [
        stream.arrivals.rate_per_s * stream.turns.mean_turns
        if stream.arrivals.kind in OPEN_LOOP
        else 0.0
        for stream in scenario.workload.streams
    ]
    streams = tuple(
        replace(stream, n_requests=max(round(requests * share / sum(shares)), 1), start_s=0.0)
        if share
        else stream
        for stream, share in zip(scenario.workload.streams, shares, strict=True)
    )
    return replace(scenario, workload=replace(scenario.workload, streams=streams))


def load_run(scenario: Scenario, rate_per_s: float, seed: int, requests: int) -> Run | LabError:
    """Run ``requests`` requests after warm-up at a rate per GPU; a fault is returned, not raised.

    The same seed gives the same arrivals, only closer together, and the same lengths at every rate
    and under every policy.
    """
    try:
        result = simulate(_at(scenario, rate_per_s, seed, requests))
        follows = result.inputs.follows
        begins = None if follows is None else follows < 0
        return measured(result.requests, scenario, seed, begins)
    except LabError as error:
        return error


def measured(
    requests: Columns, scenario: Scenario, seed: int = 0, begins: np.ndarray | None = None
) -> Run:
    """The numbers of a finished run from its ``requests`` columns, warm-up left out.

    ``begins`` (bool, one a row) are the requests with which conversations begin, where there are.
    """
    window = counted_window(requests, begins)
    start_s, last_s = window.start_s, window.end_s
    arrival_s = requests["arrival_s"]
    inside = (arrival_s >= start_s) & (arrival_s <= last_s)
    counted = {name: column[inside] for name, column in requests.items()}
    growth = _in_system(requests, last_s) - _in_system(requests, start_s)
    slo = scenario.slo
    times = percentiles(ttft_s(counted), (50, 90, 99)), percentiles(tpot_s(counted), (50, 90, 99))
    good_per_s = slo_throughput_per_s(requests, slo, window)
    return Run(
        seed=seed,
        requests=len(counted["arrival_s"]),
        growth=growth,
        slo_attainment_share=share_of(counted, meets_slo(counted, slo)),
        ttft_attainment_share=share_of(counted, meets_ttft(counted, slo)),
        tpot_attainment_share=share_of(counted, meets_tpot(counted, slo)),
        refused_share=float((counted["status"] == REJECTED).mean()),
        attempts_mean=float(counted["attempts"].mean()),
        slo_throughput_requests_per_s=good_per_s / gpus(scenario),
        **dict(zip(("ttft_p50_s", "ttft_p90_s", "ttft_p99_s"), times[0].tolist(), strict=True)),
        **dict(zip(("tpot_p50_s", "tpot_p90_s", "tpot_p99_s"), times[1].tolist(), strict=True)),
    )


def counted_window(requests: Columns, begins: np.ndarray | None = None) -> Window:
    """From the end of warm-up to the last arrival, or beginning of a conversation."""
    arrival_s = requests["arrival_s"]
    outside_s = np.sort(arrival_s if begins is None else arrival_s[begins])
    outside_s = outside_s[np.isfinite(outside_s)]
    warm_up = WARM_UP_SHARE if begins is None else TALK_WARM_UP_SHARE
    first = min(int(warm_up * len(outside_s)), len(outside_s) - 1)
    return Window(float(outside_s[first]), float(outside_s[-1]), True)


def with_warm_up(scenario: Scenario, requests: int) -> Scenario:
    """The scenario with so many requests, and those of the warm-up before them."""
    total = math.ceil(requests / (1 - WARM_UP_SHARE))
    if any(stream.has_conversations for stream in scenario.workload.streams):
        total *= TALK_TIMES
    return steady(scenario, total)


def grows(growth: int, arrivals: int) -> bool:
    """Whether a backlog that grew by ``growth`` over so many arrivals says that it will go on."""
    return growth > 2 * math.sqrt(arrivals)


def saturation(scenario: Scenario, seed: int, requests: int) -> float | LabError:
    """Requests/s per GPU that finish while more wait than the engine takes; inf: no such limit.

    All requests come at once. Counted are completions from the time when a WARM_UP_SHARE of the
    requests has finished until the last one is admitted. There is no limit where requests are
    refused or given up because others wait, or follow one another, and none is found where the
    queue empties too soon.
    """
    try:
        scenario = _at(scenario, _FASTEST_PER_S, seed, requests)
        if any(stream.has_conversations for stream in scenario.workload.streams):
            return math.inf
        columns = simulate(scenario).requests
    except LabError as error:
        return error
    status = columns["status"]
    turned_away = (status == REJECTED) & ~np.isin(columns["reason"], _ALWAYS_REFUSED)
    if turned_away.any() or (status == CANCELLED).any():
        return math.inf
    done_s = np.sort(columns["end_s"][status == FINISHED])
    if not len(done_s):
        return math.inf
    start_s = done_s[int(WARM_UP_SHARE * (len(done_s) - 1))]
    end_s = np.nanmax(columns["first_scheduled_s"])
    inside = done_s[(done_s > start_s) & (done_s <= end_s)]
    if len(inside) < _FEWEST_COMPLETIONS:
        return math.inf
    return float(len(inside) / (inside[-1] - start_s) / gpus(scenario))


def _at(scenario: Scenario, rate_per_s: float, seed: int, requests: int) -> Scenario:
    """The run of a rate per GPU."""
    scenario = replace(with_warm_up(scenario, requests), seed=seed)
    per_s = rate_per_s * gpus(scenario) / _requests_per_arrival(scenario)
    return replace_at(scenario, RATE, min(per_s, _FASTEST_PER_S))


@lru_cache(maxsize=128)
def _requests_per_arrival(scenario: Scenario) -> float:
    """1, or more where conversations go on after the request with which they begin."""
    if not any(stream.has_conversations for stream in scenario.workload.streams):
        return 1.0
    follows = steady(scenario, _TURNS_SAMPLE).requests().follows
    return len(follows) / np.count_nonzero(follows < 0)


def _in_system(requests: Columns, at_s: float) -> int:
    came = np.count_nonzero(requests["arrival_s"] <= at_s)
    return int(came - np.count_nonzero(requests["end_s"] <= at_s))
