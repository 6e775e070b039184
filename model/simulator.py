"""The kernel: one clock for any number of engines.

What comes from outside the engines (arrivals, cancellations, the ends of transfers) happens in
time order. Before each, every engine that it may concern runs the decisions that start earlier;
then it is delivered. Where an end may send something (the next turn of a conversation, the next
request of a user, a refused request again, a prefilled one to its decode engine), no engine passes
an end that is still to be acted on. An engine alone is the simplest case of the same loop.
"""

from __future__ import annotations

import heapq

from model.cluster import Cluster, Link
from model.engine import Engine
from model.events import REASON
from model.pools import Pools
from model.prefix_cache import content_keys
from model.requests import Requests
from model.result import SimulationResult, Travel, collect
from model.routers import ROUTERS, Balance, Fleet, Ledger
from model.scenario import Scenario
from model.state import FINISHED, REJECTED, UNFINISHED, EngineState

ARRIVAL, TRANSFERRED, CANCELLATION = range(3)  # in this order where they are at the same moment
ENDED, PREFILLED, FETCHED = range(3)  # what engines tell the kernel

FOR_GOOD = frozenset(
    REASON[name]
    for name in ("never_fits", "never_returns", "livelock", "exceeds_context", "exceeds_budget")
)
"""Refusals that another try cannot change."""


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
    kernel = Kernel(engines, requests, scenario.cluster, scenario.link())
    kernel.run()
    return collect(scenario, requests, engines, kernel.travel())


class Kernel:
    """One run: the engines, and what is still to happen outside them."""

    def __init__(
        self, engines: list[Engine], requests: Requests, cluster: Cluster, link: Link
    ) -> None:
        n = len(requests)
        self._engines = engines
        self._place = [-1] * n  # the engine that has or last had a request
        self._first_place = [-1] * n
        self._attempts = [0] * n
        self._arrival_s = requests.arrival_s.tolist()
        self._cancel_s = requests.cancel_s.tolist()
        self._retrying: set[int] = set()
        self._retries = None if requests.retries is None else requests.retries.tolist()
        if self._retries is not None:
            self._retry_after_s = _column(requests.retry_after_s, 1.0, n)
            self._retry_factor = _column(requests.retry_factor, 1.0, n)
        self._think_s = _column(requests.think_s, 0.0, n)
        self._patience_s = _column(requests.patience_s, float("inf"), n)
        self._next = _followers(requests)
        self._released = n if requests.users is None else requests.users  # of a closed loop

        self._pools = None
        if cluster.prefill_engines:
            self._pools = Pools(engines, requests, cluster, link)
        else:
            self._router = ROUTERS[cluster.router]
            self._limits = Balance(
                cluster.match_threshold, cluster.balance_abs, cluster.balance_rel
            )
            self._fleet = _fleet(engines, requests, cluster.snapshot_s)
        self._watches = self._pools is not None or self._router.watches
        self._ends_send = bool(
            self._pools or self._next or self._retries is not None or self._released < n
        )

        known = [i for i, time_s in enumerate(self._arrival_s) if time_s == time_s]
        self._outside = [(self._arrival_s[i], ARRIVAL, i) for i in known]
        self._outside += [
            (time_s, CANCELLATION, i)
            for i, time_s in enumerate(self._cancel_s)
            if time_s < float("inf")
        ]
        heapq.heapify(self._outside)
        self._notices: list[tuple[float, int, int]] = []  # heap: time, request, what engines told

    def run(self) -> None:
        """Play everything."""
        deliver = (self._arrive, self._transferred, self._give_up)
        outside = self._outside
        while True:
            until_s = outside[0][0] if outside else float("inf")
            if self._ends_send and self._settle(until_s):
                continue
            if not outside:
                for engine in self._engines:
                    engine.advance(until_s)
                return
            time_s, kind, request = heapq.heappop(outside)
            deliver[kind](request, time_s)

    def travel(self) -> Travel:
        """Where each request has been."""
        pools = self._pools
        decode_place = self._place
        if pools is not None:
            decode_place = [
                engine if engine != first else -1
                for engine, first in zip(self._place, self._first_place, strict=True)
            ]
        return Travel(
            engine=self._first_place,
            decode_engine=decode_place,
            last_engine=self._place,
            arrival_s=self._arrival_s,
            attempts=self._attempts,
            bytes_per_token=0.0 if pools is None else pools.bytes_per_token,
            transfer_start_s=None if pools is None else pools.transfer_start_s,
            transfer_end_s=None if pools is None else pools.transfer_end_s,
        )

    # -- what comes from outside -----------------------------------------------------------------

    def _arrive(self, request: int, time_s: float) -> None:
        before = self._place[request]
        if request in self._retrying:
            self._retrying.remove(request)
            state = self._engines[before].state
            state.status[request], state.reason[request] = UNFINISHED, 0
        elif self._attempts[request]:
            return  # gave up before it came again
        self._attempts[request] += 1
        if self._watches and not self._ends_send:
            self._catch_up(time_s)
        place = self._route(request, time_s)
        self._place[request] = place
        if before < 0:
            self._first_place[request] = place
        engine = self._engines[place]
        engine.advance(time_s)
        decodes = None if self._pools is None else self._pools.any_decode_state
        if decodes is not None and (reason := decodes.policy.reject_reason(decodes, request)):
            engine.wait_until(time_s)
            engine.state.reject(request, reason, time_s, cannot=decodes)
        else:
            engine.state.arrival_s[request] = time_s
            engine.deliver(request, time_s)
        if self._cancel_s[request] <= time_s:
            self._give_up(request, time_s)

    def _give_up(self, request: int, time_s: float) -> None:
        place = self._place[request]
        if place < 0:
            return  # gave up before having come: cancelled on arrival
        engine = self._engines[place]
        if request in self._retrying:
            self._retrying.remove(request)
            engine.state.cancel_outside(request, time_s)
        elif self._pools is None or not self._pools.cancel(request, time_s):
            engine.advance(time_s)
            if engine.state.status[request] == UNFINISHED:
                engine.cancel(request, time_s)

    def _transferred(self, request: int, time_s: float) -> None:
        if request in self._pools.prefill_end_s:  # else its client has given up on the way
            place = self._pools.decode_engine[request]
            self._place[request] = place
            self._engines[place].state.arrival_s[request] = self._arrival_s[request]
            self._pools.arrived(request, time_s)

    def _route(self, request: int, time_s: float) -> int:
        if self._pools is not None:
            return self._pools.route(request)
        self._fleet.ledger.look(time_s)
        place = self._router.choose(self._fleet, request, self._limits)
        self._fleet.ledger.add(request, place)
        return place

    # -- what engines tell -----------------------------------------------------------------------

    def _catch_up(self, time_s: float) -> None:
        """Let a router that watches hear of every end up to an arrival."""
        for engine in self._engines:
            engine.advance(time_s)
        self._collect()
        while self._notices and self._notices[0][0] <= time_s:
            request = heapq.heappop(self._notices)[1]
            self._fleet.ledger.remove(request, self._place[request])

    def _settle(self, until_s: float) -> bool:
        """Advance until something is sent outside (True), or all engines reach `until_s`.

        An end anywhere may send a request to any engine, so ends are acted on in the order of time,
        and no engine passes an end that is still to be acted on, or the moment at which another
        may have one.
        """
        act = (self._ended, self._prefilled, self._fetched)
        while True:
            self._collect()
            limit_s = min([until_s] + [notice[0] for notice in self._notices[:1]])
            ready = [e for e in self._engines if e.can_decide_before(limit_s)]
            if ready:
                ready.sort(key=lambda e: (e.state.clock_s, not e.state.inbox))
                others = [e.silent_until_s for e in ready[1:]]
                ready[0].advance(min([limit_s, *others]), stop_at_end=True, at_least_one=True)
            elif self._notices and self._notices[0][0] <= until_s:
                time_s, request, what = heapq.heappop(self._notices)
                if act[what](request, time_s):
                    return True
            elif until_s < float("inf"):
                return False
            else:
                stuck = [e for e in self._engines if e.stuck]
                for engine in stuck:  # nothing can come to their help any more
                    engine.advance(until_s, stop_at_end=True)
                if not any(e.state.ended for e in stuck):
                    return False

    def _collect(self) -> None:
        for engine in self._engines:
            state = engine.state
            self._hear(state.ended, ENDED)
            if state.outbox is not None:
                self._hear(state.outbox.ended, PREFILLED)
            if state.inbox is not None:
                self._hear(state.inbox.fetched, FETCHED)

    def _hear(self, told: list[tuple[float, int]], what: int) -> None:
        for time_s, request in told:
            heapq.heappush(self._notices, (time_s, request, what))
        told.clear()

    def _ended(self, request: int, time_s: float) -> bool:
        """Act on a request that has ended; True if that sends one."""
        place = self._place[request]
        if self._pools is not None:
            self._pools.ended(request)
        else:
            self._fleet.ledger.remove(request, place)
        state = self._engines[place].state
        if self._comes_again(request, state):
            waits_s = self._retry_after_s[request]
            waits_s *= self._retry_factor[request] ** (self._attempts[request] - 1)
            self._retrying.add(request)
            heapq.heappush(self._outside, (time_s + waits_s, ARRIVAL, request))
            return True
        follower = self._next.get(request, -1)
        if follower >= 0 and state.status[request] == FINISHED:
            return self._release(follower, time_s)
        if self._released < len(self._place):
            self._released += 1
            return self._release(self._released - 1, time_s)
        return False

    def _comes_again(self, request: int, state: EngineState) -> bool:
        if self._retries is None or state.status[request] != REJECTED:
            return False
        tries_left = self._attempts[request] <= self._retries[request]
        return tries_left and state.reason[request] not in FOR_GOOD

    def _release(self, request: int, end_s: float) -> bool:
        """A request whose arrival waited for another's end."""
        time_s = end_s + self._think_s[request]
        self._arrival_s[request] = time_s
        heapq.heappush(self._outside, (time_s, ARRIVAL, request))
        gives_up_s = time_s + self._patience_s[request]
        if gives_up_s < float("inf"):
            self._cancel_s[request] = gives_up_s
            heapq.heappush(self._outside, (gives_up_s, CANCELLATION, request))
        return True

    def _prefilled(self, request: int, time_s: float) -> bool:
        self._pools.prefilled(request, time_s)
        if self._cancel_s[request] <= time_s:
            self._pools.cancel(request, time_s)
        return False

    def _fetched(self, request: int, time_s: float) -> bool:
        if request not in self._pools.prefill_end_s:
            return False
        end_s = self._pools.start(request, time_s)
        heapq.heappush(self._outside, (end_s, TRANSFERRED, request))
        return True


def _column(values, default: float, n: int) -> list[float]:
    return [default] * n if values is None else values.tolist()


def _followers(requests: Requests) -> dict[int, int]:
    if requests.follows is None:
        return {}
    return {row: i for i, row in enumerate(requests.follows.tolist()) if row >= 0}


def _fleet(engines: list[Engine], requests: Requests, snapshot_s: float) -> Fleet:
    block_size = engines[0].state.block_size
    tokens = (requests.prompt_tokens + requests.output_tokens).tolist()
    return Fleet(
        Ledger(range(len(engines)), tokens, snapshot_s),
        (requests.prompt_tokens // block_size).tolist(),
        content_keys(requests, block_size),
        engines[0].state.kv_blocks,
    )


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
