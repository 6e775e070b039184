"""The kernel and what happens to requests: routing, closed loops, cancelling, refusing, evicting.

Iterations of most cases last one second, so that times can be counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.events import EVENT, REASON
from model.iteration_time import IterationTime, Linear, Textbook
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Orca, Sarathi, Scheduler, Static, VllmV0, VllmV1
from model.simulator import simulate
from model.state import CANCELLED, FINISHED, REJECTED
from model.workload import Arrivals, Lengths, Stream, Workload

SECONDS = Linear(base_s=1.0, per_scheduled_token_s=0.0)
TOLERANCE_S = 1e-9
"""Two times closer than this are the same moment to the kernel."""

POLICIES: dict[str, Scheduler] = {
    "static": Static(max_num_seqs=8),
    "static, padded": Static(max_num_seqs=8, finished_rows="padded"),
    "orca": Orca(max_num_seqs=8),
    "vllm-v0": VllmV0(max_num_seqs=8, max_num_batched_tokens=512),
    "vllm-v0, swap": VllmV0(max_num_seqs=8, max_num_batched_tokens=512, preemption_mode="swap"),
    "vllm-v0, chunked": VllmV0(
        max_num_seqs=8, max_num_batched_tokens=64, enable_chunked_prefill=True
    ),
    "vllm-v0, priority": VllmV0(max_num_seqs=8, max_num_batched_tokens=512, queue_order="priority"),
    "vllm-v1": VllmV1(max_num_seqs=8, max_num_batched_tokens=64),
    "vllm-v1, priority": VllmV1(max_num_seqs=8, max_num_batched_tokens=64, queue_order="priority"),
    "vllm-v1, prefix cache": VllmV1(
        max_num_seqs=8, max_num_batched_tokens=64, enable_prefix_caching=True
    ),
    "sarathi": Sarathi(max_num_seqs=8, chunk_size=64),
}
EACH_POLICY = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))


def run(
    policy: Scheduler,
    requests: Requests,
    *,
    clock: IterationTime = SECONDS,
    n_engines: int = 1,
    fast_forward: bool = True,
    **memory: object,
) -> SimulationResult:
    given = {"kv_blocks": 100, "block_size": 4, "num_cpu_blocks": 1000} | memory
    scenario = Scenario(
        workload=TraceReference("case", "0" * 64, len(requests)),
        policy=policy,
        clock=clock,
        model=None,
        hardware=None,
        memory=Memory(**given),
        n_engines=n_engines,
    )
    return simulate(scenario, requests, fast_forward=fast_forward)


def columns(**given: object) -> Requests:
    """Requests at time 0 unless said otherwise."""
    given.setdefault("arrival_s", np.zeros(len(given["prompt_tokens"])))
    return Requests.from_columns(**given)


def events_of(result: SimulationResult, *names: str) -> list[tuple[str, float, int]]:
    """(event, time, request) of the events of these names, in order."""
    events, names_by_code = result.events, {EVENT[name]: name for name in names}
    return [
        (names_by_code[code], float(events["time_s"][i]), int(events["request"][i]))
        for i, code in enumerate(events["event"].tolist())
        if code in names_by_code
    ]


def numbers_of(result: SimulationResult, name: str, request: int) -> dict[str, int]:
    """The columns of the only event of this name and request."""
    events = result.events
    (row,) = np.flatnonzero((events["event"] == EVENT[name]) & (events["request"] == request))
    return {column: values[row].item() for column, values in events.items()}


# ------------------------------------------------------------------ many engines


def mixed_requests(n: int = 60) -> Requests:
    """Enough for preemptions, priorities, shared prefixes, clients who give up and refusals."""
    stream = Stream(
        n_requests=n,
        arrivals=Arrivals("gamma", rate_per_s=40.0, cv=2.0),
        prompt=Lengths("exponential", mean_tokens=40, max_tokens=250),
        output=Lengths("geometric", mean_tokens=30, max_tokens=250),
        prefix_groups=4,
        shared_prefix_tokens=16,
        patience_s=5.0,
    )
    urgent = replace(stream, name="urgent", n_requests=n // 2, priority=-1)
    return Workload((stream, urgent)).generate(7)


@EACH_POLICY
@pytest.mark.parametrize("n_engines", [2, 3])
def test_engines_behind_a_router_are_separate_simulations(policy, n_engines):
    """Round-robin: engine i gets the requests i, i + n, i + 2n, ...; nothing else connects them."""
    requests = mixed_requests()
    memory = {"kv_blocks": 60, "max_model_len": 160}
    clock = Linear(base_s=0.01, per_scheduled_token_s=3e-4, per_swapped_block_s=1e-3)
    together = run(policy, requests, clock=clock, n_engines=n_engines, **memory)
    assert (together.requests["status"] == REJECTED).any()
    assert (together.requests["status"] == CANCELLED).any()
    for engine in range(n_engines):
        rows = np.arange(engine, len(requests), n_engines)
        alone = run(policy, requests.take(rows), clock=clock, **memory)

        mine = together.iterations["engine_id"] == engine
        for name, column in alone.iterations.items():
            if not name.endswith("engine_id"):
                np.testing.assert_array_equal(together.iterations[name][mine], column, name)

        assert (together.requests["engine_id"][rows] == engine).all()
        for name, column in alone.requests.items():
            if not name.endswith("engine_id"):
                np.testing.assert_array_equal(together.requests[name][rows], column, name)

        # Events are merged by time, but each engine's stay in the order of its decisions.
        mine = together.events["engine_id"] == engine
        for name, column in alone.events.items():
            expected = column
            if name == "request":
                expected = rows[expected]
            elif name == "other":
                expected = np.where(expected < 0, expected, rows[expected])
            if name != "engine_id":
                np.testing.assert_array_equal(together.events[name][mine], expected, name)

        for row, request in enumerate(rows.tolist()):
            np.testing.assert_array_equal(together.token_times(request), alone.token_times(row))
    assert together.stats["events"] == len(together.events["event"])


def test_more_engines_than_requests():
    result = run(
        POLICIES["vllm-v1"], columns(prompt_tokens=[4, 4], output_tokens=[2, 2]), n_engines=5
    )
    assert result.requests["engine_id"].tolist() == [0, 1]
    assert result.requests["last_token_s"].tolist() == [2.0, 2.0]


# ------------------------------------------------------------------ closed loops


def closed_loop(n: int, users: int, think_s: float, kind: str = "exponential") -> Requests:
    stream = Stream(
        n_requests=n,
        arrivals=Arrivals("closed_loop", users=users, think_s=think_s, think_kind=kind),
        prompt=Lengths("exponential", mean_tokens=40, max_tokens=250),
        output=Lengths("geometric", mean_tokens=30, max_tokens=250),
    )
    return Workload((stream,)).generate(11)


FAST = Linear(base_s=0.008, per_scheduled_token_s=5e-5)
USERS = 12


def in_system(result: SimulationResult) -> np.ndarray:
    """Requests between arrival and end, after each arrival or end; at one moment ends go first."""
    arrival_s, end_s = result.requests["arrival_s"], result.requests["end_s"]
    times = np.concatenate((end_s, arrival_s))
    steps = np.concatenate((-np.ones(len(end_s), dtype=int), np.ones(len(arrival_s), dtype=int)))
    return np.cumsum(steps[np.lexsort((steps, times))])


@EACH_POLICY
@pytest.mark.parametrize("n_engines", [1, 2])
@pytest.mark.parametrize("think_s", [0.0, 0.5])
def test_a_closed_loop_keeps_its_users(policy, n_engines, think_s):
    requests = closed_loop(300, USERS, think_s)
    result = run(
        policy, requests, clock=FAST, n_engines=n_engines, kv_blocks=130, max_model_len=500
    )
    assert (result.requests["status"] == FINISHED).all()
    assert in_system(result).max() <= USERS
    # Every arrival but the first ones is some end plus the think time of its row.
    end_s = result.requests["end_s"]
    for i in range(USERS, len(requests)):
        assert result.requests["arrival_s"][i] in end_s + requests.think_s[i]


@EACH_POLICY
def test_users_are_released_in_the_order_of_ends(policy):
    """Row N + k belongs to the k-th end."""
    requests = closed_loop(300, USERS, 0.5)
    result = run(policy, requests, clock=FAST, kv_blocks=130, max_model_len=500)
    end_s = np.sort(result.requests["end_s"])[: 300 - USERS]
    np.testing.assert_array_equal(
        result.requests["arrival_s"][USERS:], end_s + requests.think_s[USERS:]
    )


def test_the_order_of_ends_goes_over_all_engines():
    """Iterations last 1 s + 0.5 s a token. Engine 0 computes a prompt of 8 until 5.0; engine 1 a
    prompt of 2 until 2.0 and one more token until 3.5. So row 2 comes at 3.5 and row 3 at 5.0."""
    requests = columns(
        arrival_s=[0.0, 0.0, np.nan, np.nan],
        prompt_tokens=[8, 2, 1, 1],
        output_tokens=[1, 2, 1, 1],
        users=2,
        think_s=[0.0] * 4,
    )
    clock = Linear(base_s=1.0, per_scheduled_token_s=0.5)
    result = run(POLICIES["vllm-v1"], requests, clock=clock, n_engines=2)
    assert result.requests["end_s"][:2].tolist() == [5.0, 3.5]
    assert result.requests["arrival_s"][2:].tolist() == [3.5, 5.0]


def test_a_refusal_during_an_iteration_releases_the_next_user_at_once():
    """Request 1 is refused at 0.25 while an iteration runs until 1; request 2 follows at 0.25."""
    requests = columns(
        arrival_s=[0.0, 0.25, np.nan],
        prompt_tokens=[8, 4000, 4],
        output_tokens=[3, 1, 1],
        users=2,
        think_s=[0.0, 0.0, 0.0],
    )
    result = run(POLICIES["vllm-v1"], requests)
    assert result.requests["status"].tolist() == [FINISHED, REJECTED, FINISHED]
    assert result.requests["end_s"][1] == result.requests["arrival_s"][2] == 0.25


def test_giving_up_before_having_come():
    """A recorded `cancel_s` may pass before a user of a closed loop is released."""
    requests = columns(
        arrival_s=[0.0, np.nan],
        prompt_tokens=[4, 4],
        output_tokens=[5, 5],
        cancel_s=[np.inf, 2.5],
        users=1,
        think_s=[0.0, 0.0],
    )
    result = run(POLICIES["vllm-v1"], requests)
    assert result.requests["status"].tolist() == [FINISHED, CANCELLED]
    assert result.requests["emitted_tokens"].tolist() == [5, 0]


@pytest.mark.parametrize("n_engines", [1, 2])
def test_a_stuck_head_is_given_up_in_a_closed_loop(n_engines):
    """Unchunked V1, budget 8: a request evicted with 13 known tokens fits no iteration any more.

    On each engine two requests outgrow six blocks of four, one is evicted and can never return.
    When nobody else runs it is given up, and those behind it are served.
    """
    first, later = 2 * n_engines, 2
    requests = columns(
        arrival_s=[0.0] * first + [np.nan] * later,
        prompt_tokens=[4] * (first + later),
        output_tokens=[12] * first + [2] * later,
        users=first,
        think_s=[0.0] * (first + later),
    )
    policy = VllmV1(max_num_seqs=4, max_num_batched_tokens=8, enable_chunked_prefill=False)
    result = run(policy, requests, kv_blocks=6, n_engines=n_engines)
    status = result.requests["status"]
    assert (status == REJECTED).sum() == n_engines
    assert (status == FINISHED).sum() == n_engines + later


@pytest.mark.parametrize("n_engines", [1, 2])
@pytest.mark.parametrize("think_s", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("policy", ["vllm-v1", "sarathi", "orca", "static"])
def test_interactive_response_time_law(policy, n_engines, think_s):
    """X = N / (R + Z): each user is always either served (R) or thinking (Z).

    Up to the last arrival all N users are there; what is cut off at both ends of that time is
    less than one round of N in 4,000 requests.
    """
    n = 4000
    requests = closed_loop(n, USERS, think_s)
    result = run(
        POLICIES[policy],
        requests,
        clock=FAST,
        n_engines=n_engines,
        kv_blocks=400,
        max_model_len=500,
    )
    until_s = result.requests["arrival_s"].max()
    throughput = (result.requests["end_s"] <= until_s).sum() / until_s
    response_s = (result.requests["end_s"] - result.requests["arrival_s"]).mean()
    assert throughput == pytest.approx(USERS / (response_s + requests.think_s.mean()), rel=0.01)


def test_without_thinking_the_users_are_always_there():
    result = run(POLICIES["vllm-v1"], closed_loop(300, USERS, 0.0), clock=FAST, kv_blocks=400)
    counts = in_system(result)
    arrivals = result.requests["arrival_s"]
    assert counts[USERS:].max() == USERS
    # Every end is at once followed by an arrival, until the last request has come.
    ends = np.sort(result.requests["end_s"])
    np.testing.assert_array_equal(np.sort(arrivals)[USERS:], ends[: 300 - USERS])


@EACH_POLICY
@pytest.mark.parametrize("n_engines", [1, 2, 3])
@pytest.mark.parametrize("think_s", [0.0, 0.05])
def test_nobody_arrives_in_an_engines_past(policy, n_engines, think_s):
    """An arrival is seen by the first decision at or after it, on whichever engine."""
    requests = closed_loop(300, USERS, think_s)
    result = run(
        policy, requests, clock=FAST, n_engines=n_engines, kv_blocks=130, max_model_len=500
    )
    assert in_system(result).max() <= USERS
    events = result.events
    arrivals = events["event"] == EVENT["arrive"]
    for engine in range(n_engines):
        start_s = result.iterations["start_s"][result.iterations["engine_id"] == engine]
        assert (np.diff(start_s) > 0).all()
        mine = arrivals & (events["engine_id"] == engine)
        seen_at = events["iteration"][mine]
        first_after = np.searchsorted(start_s, events["time_s"][mine] - TOLERANCE_S)
        np.testing.assert_array_equal(seen_at, first_after)


@EACH_POLICY
def test_a_closed_loop_steps_like_one_iteration_at_a_time(policy):
    requests = closed_loop(120, 5, 0.02)
    for n_engines in (1, 2):
        fast, slow = (
            run(
                policy,
                requests,
                clock=FAST,
                n_engines=n_engines,
                fast_forward=way,
                kv_blocks=130,
                max_model_len=500,
            )
            for way in (True, False)
        )
        for table in ("iterations", "requests", "events"):
            for name, column in getattr(fast, table).items():
                np.testing.assert_array_equal(column, getattr(slow, table)[name], name)


def test_a_refusal_at_the_head_releases_the_next_user():
    """V0, budget 8: request 1 is evicted at 6 with 9 known tokens, and refused at 7.

    Its user comes again at 8.5 and joins at 9, while request 0 decodes on until 17.
    """
    requests = columns(
        arrival_s=[0.0, 0.0, np.nan],
        prompt_tokens=[4, 4, 2],
        output_tokens=[16, 16, 2],
        users=2,
        think_s=[0.0, 0.0, 1.5],
    )
    policy = VllmV0(max_num_seqs=4, max_num_batched_tokens=8, watermark=0.0)
    for fast_forward in (False, True):
        result = run(policy, requests, kv_blocks=6, fast_forward=fast_forward)
        assert events_of(result, "reject") == [("reject", 7.0, 1)]
        assert result.requests["arrival_s"][2] == 8.5
        assert result.requests["first_scheduled_s"][2] == 9.0


def test_several_engines_events_keep_each_engines_order():
    """Ten times 0.01 s are not 0.11 s: request 4 comes a rounding error after the clock of its
    engine, which is the same moment, but it must not join before it has come."""
    requests = columns(
        arrival_s=[0.0, 0.0, 0.0, np.nan, np.nan],
        prompt_tokens=[1] * 5,
        output_tokens=[1, 12, 1, 1, 1],
        users=3,
        think_s=[0.1] * 5,
    )
    result = run(
        Orca(reserve="oracle"),
        requests,
        clock=Textbook(0.01, "free"),
        n_engines=3,
        max_model_len=100,
    )
    for request in range(5):
        names = [name for name, _, r in events_of(result, "arrive", "admit") if r == request]
        assert names == ["arrive", "admit"]


def test_round_robin_goes_by_arrival_in_a_closed_loop():
    result = run(POLICIES["vllm-v1"], closed_loop(100, 6, 0.3), clock=FAST, n_engines=2)
    order = np.lexsort((np.arange(100), result.requests["arrival_s"]))
    assert result.requests["engine_id"][order].tolist() == [0, 1] * 50


# ------------------------------------------------------------------ clients who give up


def test_cancelled_while_waiting():
    """One slot: request 1 gives up before it ever ran, so request 2 is next."""
    result = run(
        VllmV1(max_num_seqs=1),
        columns(prompt_tokens=[4, 4, 4], output_tokens=[6, 6, 2], cancel_s=[np.inf, 3.5, np.inf]),
    )
    requests = result.requests
    assert requests["status"].tolist() == [FINISHED, CANCELLED, FINISHED]
    assert requests["emitted_tokens"].tolist() == [6, 0, 2]
    assert np.isnan(requests["first_scheduled_s"][1])
    # It is gone at the first decision at or after 3.5.
    assert events_of(result, "cancel") == [("cancel", 4.0, 1)]
    assert result.iterations["waiting"].tolist() == [2, 2, 2, 2, 1, 1, 0, 0]


@EACH_POLICY
@pytest.mark.parametrize("fast_forward", [True, False])
def test_cancelled_while_running(policy, fast_forward):
    """The iteration that runs at that moment ends, and its token counts."""
    result = run(
        policy,
        columns(prompt_tokens=[6, 6], output_tokens=[20, 20], cancel_s=[4.5, np.inf]),
        max_model_len=40,
        fast_forward=fast_forward,
    )
    requests = result.requests
    assert requests["status"].tolist() == [CANCELLED, FINISHED]
    assert requests["emitted_tokens"].tolist() == [5, 20]
    assert requests["end_s"].tolist() == [5.0, 20.0]
    assert result.token_times(0).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert result.iterations["decode_requests"].tolist() == [0] + [2] * 4 + [1] * 15
    # Both have equal blocks until one of them leaves: what they reserve, or 6 tokens and more.
    tokens = [40 if policy.reserves else 6 + t for t in range(20)]
    holders = [2] * 5 + [1] * 15
    assert result.iterations["blocks_used"].tolist() == [
        n * -(-t // 4) for n, t in zip(holders, tokens, strict=True)
    ]


def test_cancelled_while_it_prefills():
    """Three chunks of four are computed; the fourth never is, and no token is emitted."""
    result = run(
        VllmV1(max_num_batched_tokens=4),
        columns(prompt_tokens=[20, 4], output_tokens=[5, 1], cancel_s=[2.5, np.inf]),
    )
    assert result.iterations["prefill_tokens"].tolist() == [4, 4, 4, 4]
    assert result.requests["status"].tolist() == [CANCELLED, FINISHED]
    assert result.requests["emitted_tokens"].tolist() == [0, 1]
    assert np.isnan(result.requests["first_token_s"][0])
    assert result.iterations["blocks_used"].tolist() == [1, 2, 3, 1]
    assert len(result.token_times(0)) == 0


SWAPPING = VllmV0(max_num_seqs=4, max_num_batched_tokens=64, preemption_mode="swap", watermark=0.0)


def test_cancelled_while_swapped_out():
    """Request 1 is in host memory when its client gives up; its host blocks are free again.

    Four blocks of four; V0 wants a free one for every decode, even if it has room. At t = 2 both
    requests have two blocks, so the second one goes to host memory. It comes back a second later,
    since two blocks are enough for it, takes the last one, and at 4 has to go again. At 8, where
    the first needs only three of the blocks, it would still not come back; its client has given up
    at 7.5. Requests 3 and 4 repeat this, and need the two blocks that the host memory has.
    """
    requests = columns(
        arrival_s=[0.0, 0.0, 8.0, 12.0, 12.0],
        prompt_tokens=[4, 4, 1, 4, 4],
        output_tokens=[9, 9, 1, 9, 9],
        cancel_s=[np.inf, 7.5, np.inf, np.inf, np.inf],
    )
    result = run(SWAPPING, requests, kv_blocks=4, num_cpu_blocks=2)
    status = result.requests["status"].tolist()
    assert status == [FINISHED, CANCELLED, FINISHED, FINISHED, FINISHED]
    assert events_of(result, "swap_out", "swap_in", "cancel") == [
        ("swap_out", 2.0, 1),
        ("swap_in", 3.0, 1),
        ("swap_out", 4.0, 1),
        ("cancel", 8.0, 1),
        ("swap_out", 14.0, 4),
        ("swap_in", 15.0, 4),
        ("swap_out", 16.0, 4),
        ("swap_in", 21.0, 4),  # request 3 has finished
    ]
    # Two blocks each time, out and in.
    assert result.requests["swapped_blocks"].tolist() == [0, 6, 0, 0, 8]
    assert result.requests["emitted_tokens"].tolist() == [9, 3, 1, 9, 9]
    # While anybody is swapped out V0 admits nobody; request 2 comes at the cancellation.
    assert result.requests["first_scheduled_s"][2] == 8.0
    swapped = result.iterations["swapped"].tolist()
    assert swapped == [0, 0, 1, 0] + [1] * 4 + [0] * 4 + [1, 0] + [1] * 5 + [0] * 6


def test_cancelled_as_the_last_row_of_a_padded_batch():
    """Row 0 ends at 2 and is computed on; row 1 gives up at 4.5. With it the batch has ended:
    nobody computes row 0 any more, and its memory is free for the next batch."""
    result = run(
        Static(max_num_seqs=2, finished_rows="padded"),
        columns(
            prompt_tokens=[4] * 4,
            output_tokens=[2, 20, 3, 3],
            cancel_s=[np.inf, 4.5, np.inf, np.inf],
        ),
        max_model_len=24,
    )
    assert result.requests["status"].tolist() == [FINISHED, CANCELLED, FINISHED, FINISHED]
    assert result.iterations["padding_tokens"].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert result.iterations["blocks_used"].tolist() == [12] * 8


@pytest.mark.parametrize("policy", [POLICIES["vllm-v1"], POLICIES["sarathi"], POLICIES["orca"]])
def test_whoever_gives_up_too_late_has_finished(policy):
    """The client gives up during the iteration that gives it the last token, or after it."""
    result = run(
        policy,
        columns(prompt_tokens=[4, 4, 4], output_tokens=[3, 3, 3], cancel_s=[2.5, 3.0, 100.0]),
        max_model_len=20,
    )
    assert result.requests["status"].tolist() == [FINISHED] * 3
    assert len(events_of(result, "cancel")) == 0


def test_who_gives_up_on_arrival_is_never_admitted():
    result = run(
        POLICIES["vllm-v1"],
        columns(
            arrival_s=[0.0, 2.0],
            prompt_tokens=[4, 4],
            output_tokens=[3, 3],
            cancel_s=[np.inf, 2.0],
        ),
    )
    assert events_of(result, "arrive", "cancel", "admit")[2:] == [
        ("arrive", 2.0, 1),
        ("cancel", 2.0, 1),
    ]


# ------------------------------------------------------------------ refused at arrival


def test_who_can_never_fit_is_refused_at_arrival():
    """C32. 8 blocks of 4 hold 32 tokens; the last output is never stored, so 33 tokens fit."""
    result = run(
        VllmV1(),
        columns(
            arrival_s=[0.0, 0.5, 0.5, 20.0],
            prompt_tokens=[5, 10, 10, 30],
            output_tokens=[3, 23, 24, 4],
        ),
        kv_blocks=8,
    )
    assert result.requests["status"].tolist() == [FINISHED, FINISHED, REJECTED, REJECTED]
    reasons = result.requests["reason"].tolist()
    assert reasons == [0, 0, REASON["never_fits"], REASON["never_fits"]]
    assert result.requests["end_s"][2:].tolist() == [0.5, 20.0]
    event = numbers_of(result, "reject", 2)
    assert event["time_s"] == 0.5
    assert (event["blocks_needed"], event["blocks_free"]) == (9, 8)
    assert event["tokens"] == 34
    # Whoever is refused was never there: no arrival in the queue, no iteration.
    assert (result.iterations["waiting"] == 0).all()
    assert result.requests["emitted_tokens"][2:].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("policy", "fits"),
    [
        (Static(), 32),  # reserves for the longest sequence
        (Orca(reserve="max"), 32),
        (Orca(reserve="oracle"), 32),  # reserves prompt + output
        (VllmV1(), 33),  # the last output is never stored
        (Sarathi(watermark=0.0), 33),
        (VllmV0(watermark=0.0), 33),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_longest_request_that_is_accepted(policy, fits):
    """In 8 blocks of 4, by the policies' own rule of what a request holds at most."""
    result = run(
        policy,
        columns(arrival_s=[0.0, 100.0], prompt_tokens=[8, 8], output_tokens=[fits - 8, fits - 7]),
        kv_blocks=8,
        max_model_len=None if fits > 32 else 32,
    )
    assert result.requests["status"].tolist() == [FINISHED, REJECTED]


@EACH_POLICY
def test_longer_than_the_context(policy):
    result = run(
        policy,
        columns(prompt_tokens=[20, 20, 41], output_tokens=[20, 21, 1]),
        kv_blocks=1000,
        max_model_len=40,
    )
    assert result.requests["status"].tolist() == [FINISHED, REJECTED, REJECTED]
    assert result.requests["reason"].tolist() == [0] + [REASON["exceeds_context"]] * 2
    assert numbers_of(result, "reject", 1)["tokens"] == 41
    assert result.requests["end_s"][1:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "policy",
    [
        VllmV0(max_num_batched_tokens=16, max_num_seqs=4),
        VllmV1(max_num_batched_tokens=16, max_num_seqs=4, enable_chunked_prefill=False),
    ],
    ids=["vllm-v0", "vllm-v1"],
)
def test_an_unchunked_prompt_above_the_budget(policy):
    """It could be put into no iteration; with chunks the same request is served."""
    requests = columns(prompt_tokens=[17, 16], output_tokens=[2, 2])
    result = run(policy, requests)
    assert result.requests["status"].tolist() == [REJECTED, FINISHED]
    assert result.requests["reason"].tolist() == [REASON["exceeds_budget"], 0]
    chunked = run(replace(policy, enable_chunked_prefill=True), requests)
    assert (chunked.requests["status"] == FINISHED).all()


def test_a_refusal_releases_the_next_user():
    """In a closed loop a refused user thinks and comes again with the next request."""
    requests = columns(
        arrival_s=[0.0, np.nan, np.nan],
        prompt_tokens=[500, 500, 4],
        output_tokens=[1, 1, 2],
        users=1,
        think_s=[0.0, 3.0, 4.0],
    )
    result = run(POLICIES["vllm-v1"], requests, kv_blocks=10)
    assert result.requests["status"].tolist() == [REJECTED, REJECTED, FINISHED]
    assert result.requests["arrival_s"].tolist() == [0.0, 3.0, 7.0]
    assert result.requests["end_s"].tolist() == [0.0, 3.0, 9.0]


# ------------------------------------------------------------------ mutual preemption (C6)

EVICTING: dict[str, Scheduler] = {
    "vllm-v1": VllmV1(max_num_batched_tokens=2048),
    "vllm-v1, first chunk only": VllmV1(
        max_num_batched_tokens=2048, scheduler_reserve_full_isl=False
    ),
    "vllm-v1, priority": VllmV1(max_num_batched_tokens=2048, queue_order="priority"),
    "vllm-v1, priority, first chunk only": VllmV1(
        max_num_batched_tokens=2048, queue_order="priority", scheduler_reserve_full_isl=False
    ),
    "vllm-v1, prefix cache": VllmV1(max_num_batched_tokens=2048, enable_prefix_caching=True),
    "vllm-v0": VllmV0(max_num_batched_tokens=131_072),
    "vllm-v0, swap": VllmV0(max_num_batched_tokens=131_072, preemption_mode="swap"),
    "vllm-v0, priority": VllmV0(max_num_batched_tokens=131_072, queue_order="priority"),
    "vllm-v0, chunked": VllmV0(max_num_batched_tokens=2048, enable_chunked_prefill=True),
    "sarathi": Sarathi(chunk_size=2048),
}


@pytest.mark.parametrize("policy", EVICTING.values(), ids=list(EVICTING))
@pytest.mark.parametrize("second_is_urgent", [False, True], ids=["equals", "second is urgent"])
@pytest.mark.parametrize(
    ("prompt", "kv_blocks"),
    [(120_000, 7900), (60_000, 7700)],
    ids=["one fits", "both prompts fit"],
)
def test_two_that_do_not_fit_together_end(policy, second_is_urgent, prompt, kv_blocks):
    """C6: on a real engine two prompts of 120,000 tokens evicted each other without end.

    Here they cannot, because the victim is always the same one: the later, or with priorities the
    less important. The loser comes back only into blocks that hold all its known tokens, and is
    evicted when the other has grown by a block, so at most once for each block of the other's
    output. If only its first chunk must fit it comes back much earlier, and is evicted before it
    gets far, in every other iteration at most.
    """
    output = 3000
    requests = columns(
        arrival_s=[0.0, 0.01],
        prompt_tokens=[prompt] * 2,
        output_tokens=[output] * 2,
        priority=[0, -1 if second_is_urgent else 0],
    )
    result = run(
        policy, requests, clock=FAST, kv_blocks=kv_blocks, block_size=16, num_cpu_blocks=20_000
    )
    assert (result.requests["status"] == FINISHED).all()
    assert (result.requests["emitted_tokens"] == output).all()
    by_priority = getattr(policy, "queue_order", "fcfs") == "priority"
    loser = 0 if second_is_urgent and by_priority else 1
    evictions = result.requests["preemptions"].tolist()
    assert evictions[1 - loser] == 0
    first_chunk_only = not getattr(policy, "scheduler_reserve_full_isl", True)
    assert evictions[loser] <= (output / 2 if first_chunk_only else output / 16 + 1)
    if first_chunk_only or prompt == 60_000:
        assert evictions[loser] > 0
    if evictions[loser]:
        last_s = result.requests["last_token_s"]
        assert last_s[1 - loser] <= last_s[loser]


@pytest.mark.parametrize("policy", EVICTING.values(), ids=list(EVICTING))
def test_a_crowd_in_little_memory_ends(policy):
    """Ten requests, of which each alone nearly fills the memory, all at once."""
    requests = columns(prompt_tokens=np.arange(20, 40, 2), output_tokens=np.arange(80, 60, -2))
    result = run(policy, requests, kv_blocks=27, num_cpu_blocks=1000)
    assert (result.requests["status"] == FINISHED).all()
    assert result.requests["preemptions"].sum() > 0
    assert result.iterations["blocks_used"].max() <= 27


# ------------------------------------------------------------------ prefix cache, joined


def same_step_by_step(policy: Scheduler, requests: Requests, **memory: object) -> None:
    fast, slow = (
        run(policy, requests, clock=Textbook(0.01, "free"), fast_forward=way, **memory)
        for way in (True, False)
    )
    for table in ("iterations", "requests", "events"):
        for name, column in getattr(fast, table).items():
            np.testing.assert_array_equal(column, getattr(slow, table)[name], f"{table}.{name}")


def test_prompts_side_by_side_fill_the_prefix_cache_in_turn():
    """With a threshold two prompts of a group are computed three tokens each in every iteration.

    Whoever computes a shared block first has its copy adopted by others; joined iterations must not
    give all of one prompt's blocks to the cache before the other's.
    """
    requests = columns(
        arrival_s=[0.0, 0.0, 0.2533, 0.2969, 0.5621],
        prompt_tokens=[118, 115, 55, 61, 17],
        output_tokens=[1, 2, 1, 1, 1],
        prefix_group=[-1, -1, 1, 1, 1],
        shared_prefix_tokens=[0, 0, 24, 24, 17],
    )
    policy = VllmV1(
        max_num_seqs=16,
        max_num_batched_tokens=300,
        long_prefill_token_threshold=3,
        watermark=0.05,
        enable_prefix_caching=True,
    )
    same_step_by_step(policy, requests, kv_blocks=240, block_size=1)


def test_decodes_may_take_cached_blocks_of_the_head():
    """The evicted head waits for blocks while its own cached ones are taken by a decode.

    Thus it has more to compute than the budget of an unchunked V1, and waits for another reason.
    """
    requests = columns(arrival_s=[0.0, 0.11], prompt_tokens=[1, 1], output_tokens=[49, 35])
    policy = VllmV1(
        max_num_seqs=16,
        max_num_batched_tokens=4,
        enable_chunked_prefill=False,
        scheduler_reserve_full_isl=False,
        watermark=0.05,
        enable_prefix_caching=True,
    )
    same_step_by_step(policy, requests, kv_blocks=80, block_size=1)


# ------------------------------------------------------------------ reservations, by hand


def test_a_padded_static_batch_by_hand():
    """Prompts 5 and 3, outputs 4 and 2; request 2 waits for the batch to end.

    ====  ======================================  ======  =======  =====  ====
    iter  computed                                tokens  padding  pairs  read
    ====  ======================================  ======  =======  =====  ====
    0     both prompts, the short one padded       5 + 5        2    30    10
    1     two decodes, contexts 6 and 4            1 + 1        0    10    10
    2     one decode (7), the finished row (5)     1 + 1        1    12    12
    3     one decode (8), the finished row (6)     1 + 1        1    14    14
    4     the third request's prompt of 2              2        0     3     2
    ====  ======================================  ======  =======  =====  ====

    A prompt of n tokens has n(n + 1)/2 attention pairs, so two of five have 30.
    """
    policy = Static(max_num_seqs=2, finished_rows="padded")
    result = run(
        policy, columns(prompt_tokens=[5, 3, 2], output_tokens=[4, 2, 1]), max_model_len=12
    )
    table = result.iterations
    assert table["prefill_tokens"].tolist() == [8, 0, 0, 0, 2]
    assert table["decode_requests"].tolist() == [0, 2, 1, 1, 0]
    assert table["padding_tokens"].tolist() == [2, 0, 1, 1, 0]
    assert table["tokens"].tolist() == [10, 2, 2, 2, 2]
    assert table["attention_pairs"].tolist() == [30, 10, 12, 14, 3]
    assert table["kv_tokens_read"].tolist() == [10, 10, 12, 14, 2]
    # Three blocks of four each, held until the whole batch has ended.
    assert table["blocks_used"].tolist() == [6, 6, 6, 6, 3]
    assert table["waiting"].tolist() == [1, 1, 1, 1, 0]
    assert result.requests["last_token_s"].tolist() == [4.0, 2.0, 5.0]


def test_the_same_batch_with_finished_rows_removed():
    policy = Static(max_num_seqs=2, finished_rows="removed")
    result = run(
        policy, columns(prompt_tokens=[5, 3, 2], output_tokens=[4, 2, 1]), max_model_len=12
    )
    table = result.iterations
    assert table["padding_tokens"].tolist() == [0] * 5
    assert table["tokens"].tolist() == [8, 2, 1, 1, 2]
    assert table["attention_pairs"].tolist() == [21, 10, 7, 8, 3]
    assert table["blocks_used"].tolist() == [6, 6, 3, 3, 3]
    assert result.requests["last_token_s"].tolist() == [4.0, 2.0, 5.0]


def test_padding_accumulates_over_a_long_tail():
    """Rows of 2, 3 and 50 outputs: 48 + 47 padded decodes, joined or one at a time."""
    policy = Static(max_num_seqs=3, finished_rows="padded")
    requests = columns(prompt_tokens=[4, 4, 4], output_tokens=[2, 3, 50])
    for fast_forward in (True, False):
        result = run(policy, requests, max_model_len=60, fast_forward=fast_forward)
        table = result.iterations
        assert table["padding_tokens"].sum() == 48 + 47
        # All three rows' contexts grow to the end, finished or not.
        expected = [3 * 10] + [3 * (4 + t) for t in range(1, 50)]
        assert table["attention_pairs"].tolist() == expected


@pytest.mark.parametrize(
    ("reserve", "output", "tokens"),
    [
        ("oracle", 5, 15),
        ("oracle", 1, 11),
        ("pow2", 1, 11),
        ("pow2", 2, 12),
        ("pow2", 4, 14),
        ("pow2", 5, 18),
        ("pow2", 8, 18),
        ("pow2", 9, 26),
        ("pow2", 33, 64),  # 10 + 64, but never more than the context
        ("max", 1, 64),
        ("max", 33, 64),
    ],
)
def test_what_orca_reserves_by_hand(reserve, output, tokens):
    """A prompt of ten tokens, in blocks of four; the context holds 64 tokens, 16 blocks."""
    blocks = -(-tokens // 4)
    result = run(
        Orca(reserve=reserve),
        columns(prompt_tokens=[10], output_tokens=[output]),
        max_model_len=64,
    )
    assert numbers_of(result, "admit", 0)["blocks_needed"] == blocks
    assert result.iterations["blocks_used"].tolist() == [blocks] * output


def test_how_many_orca_runs_at_once_by_hand():
    """20 blocks of four; prompt 10 and output 5 take 16, 5 or 4 blocks: 1, 4 or 5 at once."""
    requests = columns(prompt_tokens=[10] * 6, output_tokens=[5] * 6)
    for reserve, at_once in (("max", 1), ("pow2", 4), ("oracle", 5)):
        result = run(Orca(reserve=reserve), requests, kv_blocks=20, max_model_len=64)
        assert result.iterations["running"].max() == at_once
        # As places come free all at once, batches follow one another, five iterations each.
        batches = -(-6 // at_once)
        assert len(result.iterations["running"]) == 5 * batches
