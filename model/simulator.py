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
    cancel_s = requests.cancel_s.tolist()
    loop = None if requests.users is None else ClosedLoop(engines, requests)
    first = n if loop is None else loop.released
    outside = [(time_s, ARRIVAL, i) for i, time_s in enumerate(requests.arrival_s[:first].tolist())]
    outside += [(cancel_s[i], CANCELLATION, i) for i in range(n) if cancel_s[i] < float("inf")]
    heapq.heapify(outside)

    while True:
        until_s = outside[0][0] if outside else float("inf")
        released = None if loop is None else loop.advance(until_s)
        if released is not None:
            heapq.heappush(outside, released)
            continue
        if not outside:
            for engine in engines:
                engine.advance(until_s)
            return placed
        time_s, kind, request = heapq.heappop(outside)
        if kind == ARRIVAL:
            placed[request] = route(request)
        elif placed[request] < 0:
            continue  # gave up before having come: cancelled on arrival
        engine = engines[placed[request]]
        engine.advance(time_s)
        if kind == ARRIVAL:
            engine.deliver(request, time_s)
        gave_up = kind == CANCELLATION or cancel_s[request] <= time_s
        if gave_up and engine.state.status[request] == UNFINISHED:
            engine.cancel(request, time_s)


class ClosedLoop:
    """Users who send their next request some time after the answer to the last one."""

    def __init__(self, engines: list[Engine], requests: Requests) -> None:
        self.engines = engines
        self.released = requests.users  # rows that have an arrival time so far
        self._think_s = requests.think_s.tolist()
        self._ends: list[tuple[float, int]] = []  # heap of ends that have not been acted on

    def advance(self, until_s: float) -> tuple[float, int, int] | None:
        """Advance until a user may send a request (its arrival), or all engines reach `until_s`.

        An end anywhere may send a request to any engine, so ends are acted on in the order of time,
        and no engine passes another's clock or an end that is still to be acted on.
        """
        while True:
            self._collect()
            limit_s = min([until_s] + [time_s for time_s, _ in self._ends[:1]])
            ready = [e for e in self.engines if e.can_decide_before(limit_s)]
            if ready:
                ready.sort(key=lambda e: e.state.clock_s)
                others = [e.state.clock_s for e in ready[1:2]]
                ready[0].advance(min([limit_s, *others]), stop_at_end=True, at_least_one=True)
            elif self._ends and self._ends[0][0] <= until_s:
                released = self._release(*heapq.heappop(self._ends))
                if released is not None:
                    return released
            elif until_s < float("inf"):
                return None
            else:
                stuck = [e for e in self.engines if e.stuck]
                for engine in stuck:  # nothing can come to their help any more
                    engine.advance(until_s, stop_at_end=True)
                if not any(e.state.ended for e in stuck):
                    return None

    def _collect(self) -> None:
        for engine in self.engines:
            for end in engine.state.ended:
                heapq.heappush(self._ends, end)
            engine.state.ended.clear()

    def _release(self, end_s: float, request: int) -> tuple[float, int, int] | None:
        row = self.released
        if row == len(self._think_s):
            return None
        self.released += 1
        start_s = end_s + self._think_s[row]
        for engine in self.engines:
            engine.state.arrival_s[row] = start_s
        return (start_s, ARRIVAL, row)


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
        seed=scenario.seed,
    )
    state.cache = scenario.policy.new_cache(requests, capacity.blocks, capacity.block_size)
    return Engine(state, scenario.cost(), fast_forward=fast_forward, engines=scenario.n_engines)
