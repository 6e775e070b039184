"""The kernel: one clock for any number of engines.

Arrivals and cancellations happen in time order. Before each, every engine runs the decisions that
start earlier; then the request is delivered, to the only engine or to the one a router picks. An
engine alone is the simplest case of the same loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from model.engine import Engine
from model.prefix_cache import PrefixCache, content_keys
from model.requests import Requests
from model.result import SimulationResult, collect
from model.scenario import Scenario
from model.state import UNFINISHED, EngineState

ARRIVAL, CANCELLATION = 0, 1  # at the same moment a request arrives before it can be cancelled

Router = Callable[[int], int]  # request row -> engine


def simulate(
    scenario: Scenario, requests: Requests | None = None, *, fast_forward: bool = True
) -> SimulationResult:
    """Run a scenario to its end.

    `requests` are needed where the scenario's workload is a trace. `fast_forward=False` takes every
    iteration by itself; the result is the same to the last bit.

    Raises LabError (trace_needed, host_memory_full, ...) with a sentence that says what to change.
    """
    if requests is None:
        requests = scenario.requests()
    engines = [_engine(scenario, requests, i, fast_forward) for i in range(scenario.n_engines)]
    turns = count()
    placed = run(engines, requests, lambda request: next(turns) % len(engines))
    return collect(scenario, requests, engines, placed)


def run(engines: list[Engine], requests: Requests, route: Router) -> list[int]:
    """Play all arrivals and cancellations; return each request's engine (-1: never arrived)."""
    n = len(requests)
    placed = [-1] * n
    arrival_s = requests.arrival_s.tolist()
    cancel_s = requests.cancel_s.tolist()
    closed_loop = requests.users is not None
    released = requests.users if closed_loop else n
    think_s = requests.think_s.tolist() if closed_loop else []
    outside = [(arrival_s[i], ARRIVAL, i) for i in range(released)]
    outside += [(cancel_s[i], CANCELLATION, i) for i in range(n) if cancel_s[i] < float("inf")]
    heapq.heapify(outside)

    while True:
        until_s = outside[0][0] if outside else float("inf")
        if closed_loop:
            ended = _advance_to_first_end(engines, until_s)
            for _, end_s in ended:
                if released < n:
                    start_s = end_s + think_s[released]
                    for engine in engines:
                        engine.state.arrival_s[released] = start_s
                    heapq.heappush(outside, (start_s, ARRIVAL, released))
                    released += 1
            if ended:
                continue
        else:
            for engine in engines:
                engine.advance(until_s)
        if not outside:
            return placed
        time_s, kind, request = heapq.heappop(outside)
        if kind == ARRIVAL:
            placed[request] = route(request)
            engines[placed[request]].deliver(request, time_s)
        else:
            engine = engines[placed[request]]
            if engine.state.status[request] == UNFINISHED:
                engine.cancel(request, time_s)


def _advance_to_first_end(engines: list[Engine], until_s: float) -> list[tuple[int, float]]:
    """Advance until a request ends somewhere, or every engine has come to `until_s`.

    No engine may pass another's clock, because an end there may send it a request.
    """
    while True:
        ended = [(r, e.state.clock_s) for e in engines for r in e.state.ended]
        if ended:
            for engine in engines:
                engine.state.ended.clear()
            return ended
        ready = [e for e in engines if e.can_decide_before(until_s)]
        if not ready:
            return []
        ready.sort(key=lambda e: e.state.clock_s)
        horizon_s = min([until_s] + [e.state.clock_s for e in ready[1:]])
        ready[0].advance(horizon_s, stop_at_end=True, at_least_one=True)


def _engine(scenario: Scenario, requests: Requests, engine_id: int, fast_forward: bool) -> Engine:
    capacity = scenario.kv_capacity()
    state = EngineState(
        scenario.policy,
        requests,
        engine_id=engine_id,
        kv_blocks=capacity.blocks,
        block_size=capacity.block_size,
        cpu_blocks=capacity.cpu_blocks,
        max_model_len=scenario.max_model_len(),
        prefill_token_cap=scenario.clock.prefill_token_cap,
    )
    if getattr(scenario.policy, "enable_prefix_caching", False):
        state.cache = PrefixCache(
            capacity.blocks, capacity.block_size, content_keys(requests, capacity.block_size)
        )
    return Engine(state, scenario.cost(), fast_forward=fast_forward)
