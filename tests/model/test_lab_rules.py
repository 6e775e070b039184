"""Each rule of the free composition on a schedule by hand, or against an independent count."""

from __future__ import annotations

import heapq
from types import SimpleNamespace

import numpy as np
import pytest

from model import catalogue
from model.events import EVENT, REASONS
from model.iteration_time import Linear, Roofline, Textbook
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Lab, VllmV1
from model.schedulers.base import Decision
from model.schedulers.lab_budget import TimeBudget
from model.schedulers.lab_order import predicted_outputs
from model.schedulers.lab_victims import VICTIMS, Served
from model.simulator import simulate
from model.state import EngineState
from tests.adapter import request_row, rows_of, simulate_model
from tests.cases import Case
from tests.model.test_against_reference import assert_bit_equal, check

SECOND = {"base_s": 1.0, "per_scheduled_token_s": 0.0}


def run(rows, *, clock=None, policy="lab", **scheduler):
    """A result with iterations of one second, unless a clock is given."""
    config = {
        "policy": policy,
        "scheduler": {"block_size": 1, "max_num_seqs": 8, "kv_blocks": 1000} | scheduler,
        "iteration_time": SECOND if clock is None else clock,
    }
    return simulate_model(config, rows)


def scheduled(rows, **settings) -> list[dict[str, int]]:
    return [row["scheduled"] for row in rows_of(run(rows, **settings))]


def first_tokens(rows, **settings) -> str:
    """Names in the order of their first token."""
    result = run(rows, **settings)
    return "".join(rows[i]["request_id"] for i in np.argsort(result.requests["first_token_s"]))


# ------------------------------------------------------------------ order

QUEUE = [
    request_row("X", 0, 5, 1),
    request_row("A", 0.1, 90, 9, priority=1),
    request_row("B", 0.2, 20, 1, priority=2),
    request_row("C", 0.3, 10, 30, priority=0),
]
"""X runs for a second; the others wait with prompt and output of 99, 21 and 40 tokens."""


@pytest.mark.parametrize(
    ("order", "expected"), [("fcfs", "XABC"), ("sjf", "XBCA"), ("priority", "XCAB")]
)
def test_orders(order, expected):
    assert first_tokens(QUEUE, max_num_seqs=1, queue_order=order) == expected


LONG_AND_SHORT = [
    request_row("X", 0, 60, 60),
    request_row("A", 0.5, 99, 1),
    request_row("B", 50, 9, 1),
]
"""X runs for a minute. A has 100 tokens and has waited 49.5 s longer than B with its 10."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "XBA"),
        ({"aging_tokens_per_s": 1.8}, "XBA"),  # 49.5 s are 89 of the 90 tokens between them
        ({"aging_tokens_per_s": 1.9}, "XAB"),  # and here 94
        ({"fcfs_after_s": 59.5}, "XAB"),  # at 60 s A has waited just so long
        ({"fcfs_after_s": 59.6}, "XBA"),
        ({"fcfs_after_s": 5.0}, "XAB"),  # both are out of patience: first come
    ],
)
def test_aging(settings, expected):
    order = first_tokens(LONG_AND_SHORT, max_num_seqs=1, queue_order="sjf", **settings)
    assert order == expected


def test_patience_that_ends_while_others_decode_changes_the_head_at_once():
    """Two slots, X and Y busy until 60 and 100; B is next until A's 30 s are over.

    At 60 A joins, and B is the next to wait.
    """
    x, a, _ = LONG_AND_SHORT
    rows = [x, request_row("Y", 0, 1, 100), a, request_row("B", 1, 9, 1)]
    result = run(rows, max_num_seqs=2, queue_order="sjf", fcfs_after_s=30.0)
    heads = [
        (float(result.events["time_s"][i]), rows[result.events["request"][i]]["request_id"])
        for i in np.flatnonzero(result.events["event"] == EVENT["refuse"])
    ]
    assert heads == [(1.0, "B"), (31.0, "A"), (60.0, "B")]


def test_shortest_first_is_an_independent_heap():
    """One server, prompts only: whenever it is free it takes the shortest that has come."""
    rng = np.random.default_rng(7)
    n = 400
    arrival_s = np.cumsum(rng.exponential(0.1, n))
    prompt = rng.integers(1, 190, n)
    requests = Requests.from_columns(
        arrival_s=arrival_s, prompt_tokens=prompt, output_tokens=np.ones(n, int)
    )
    policy = Lab(max_num_seqs=1, queue_order="sjf")
    result = simulate(scenario(policy, Linear(0.0, 0.001)), requests)

    ends, waiting, clock, arrived = {}, [], 0.0, 0
    while len(ends) < n:
        if not waiting:
            clock = max(clock, arrival_s[arrived])
        while arrived < n and arrival_s[arrived] <= clock:
            heapq.heappush(waiting, (prompt[arrived], arrived))
            arrived += 1
        tokens, row = heapq.heappop(waiting)
        clock += 0.001 * tokens
        ends[row] = clock
    expected = [ends[row] for row in range(n)]
    np.testing.assert_allclose(result.requests["last_token_s"], expected, rtol=1e-12)


def scenario(policy, clock, model=None, **memory) -> Scenario:
    return Scenario(
        workload=TraceReference("lab", "0" * 64, 1),
        policy=policy,
        clock=clock,
        model=model,
        hardware=model and "a100-80g-sxm",
        memory=Memory(**({"kv_blocks": 30_000} | memory)),
    )


def test_the_sizes_that_a_film_sorts_by_are_those_of_the_queue():
    policy = Lab(queue_order="sjf", prediction_sigma=0.7, aging_tokens_per_s=30.0)
    rng = np.random.default_rng(4)
    requests = Requests.from_columns(
        arrival_s=np.arange(30.0),
        prompt_tokens=rng.integers(1, 99, 30),
        output_tokens=rng.integers(1, 99, 30),
    )
    state = fresh_state(policy, requests, seed=5)
    columns = {
        "arrival_s": requests.arrival_s,
        "prompt_tokens": requests.prompt_tokens,
        "output_tokens": requests.output_tokens,
    }
    ranks = [policy.rank_of(state)(row)[0] for row in range(30)]
    np.testing.assert_allclose(policy.sizes(columns, 5), ranks)


def fresh_state(policy, requests, **settings) -> EngineState:
    return EngineState(
        policy,
        requests,
        engine_id=0,
        kv_blocks=1,
        block_size=16,
        cpu_blocks=0,
        max_model_len=None,
        prefill_token_cap=None,
        **settings,
    )


def test_predictions_are_the_same_luck_for_every_policy_and_length_of_the_run():
    truth = np.full(2000, 100)
    few, many = predicted_outputs(truth[:50], 0.5, 3), predicted_outputs(truth, 0.5, 3)
    assert few == many[:50]
    assert predicted_outputs(truth, 0.0, 3) == truth.tolist()
    errors = np.log(np.array(many) / 100)
    assert np.median(errors) == pytest.approx(0, abs=0.05)
    assert errors.std() == pytest.approx(0.5, rel=0.05)
    twice = np.log(np.array(predicted_outputs(truth, 1.0, 3)) / 100)
    np.testing.assert_allclose(twice, 2 * errors)
    assert predicted_outputs(truth, 0.5, 4) != many


def test_a_useless_predictor_is_worse_than_a_perfect_one_and_fcfs_worst():
    """Mean latency of equal work, one server: shortest first is best, with any use of sizes."""
    rng = np.random.default_rng(2)
    n = 300
    requests = Requests.from_columns(
        arrival_s=np.zeros(n), prompt_tokens=np.ones(n, int), output_tokens=rng.geometric(0.02, n)
    )
    means = [
        simulate(scenario(Lab(max_num_seqs=1, **order), Textbook(0.01, "free")), requests)
        .requests["last_token_s"]
        .mean()
        for order in (
            {"queue_order": "sjf"},
            {"queue_order": "sjf", "prediction_sigma": 1.0},
            {"queue_order": "fcfs"},
        )
    ]
    assert means[0] < means[1] < means[2]


# ------------------------------------------------------------------ batching

BESIDE = [request_row("A", 0, 2, 3), request_row("B", 1.5, 6, 1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"prefill": "chunks", "max_num_batched_tokens": 4},
            [{"A": 2}, {"A": 1}, {"A": 1, "B": 3}, {"B": 3}],
        ),
        ({"prefill": "whole"}, [{"A": 2}, {"A": 1}, {"A": 1, "B": 6}]),
        (
            {"prefill": "whole", "max_num_batched_tokens": 6},  # one token short beside A
            [{"A": 2}, {"A": 1}, {"A": 1}, {"B": 6}],
        ),
        ({"prefill": "apart"}, [{"A": 2}, {"A": 1}, {"B": 6}, {"A": 1}]),
    ],
)
def test_prompts_beside_decodes(settings, expected):
    assert scheduled(BESIDE, **settings) == expected


def test_the_time_bound_cuts_prompts_only_beside_decodes():
    """5 ms and 1 ms a token within 10.5 ms: A's decode and 4 tokens of B; alone, all of B."""
    clock = {"base_s": 0.005, "per_scheduled_token_s": 0.001}
    settings = {"prefill": "slo", "target_itl_s": 0.0105, "clock": clock}
    rows = [request_row("A", 0, 1, 5), request_row("B", 0.001, 10, 1)]
    beside = [{"A": 1}, {"A": 1, "B": 4}, {"A": 1, "B": 4}, {"A": 1, "B": 2}, {"A": 1}]
    assert scheduled(rows, **settings) == beside
    assert scheduled([request_row("B", 0, 10, 1)], **settings) == [{"B": 10}]


def test_a_bound_below_the_decodes_lets_no_prompt_in_and_ends():
    clock = {"base_s": 0.005, "per_scheduled_token_s": 0.001}
    rows = [request_row("A", 0, 1, 3), request_row("B", 0.001, 4, 1)]
    found = scheduled(rows, prefill="slo", target_itl_s=0.004, clock=clock)
    assert found == [{"A": 1}, {"A": 1}, {"A": 1}, {"B": 4}]


@pytest.mark.parametrize(
    ("bound_s", "tokens"), [(0.03, 224), (0.05, 416), (0.1, 896), (0.2, 1824)]
)
def test_the_budget_of_the_dossier(bound_s, tokens):
    """F19's check: Llama-3-8B on an A100, 32 decodes of context 1,500, to a grid of 16 tokens."""
    given = scenario(Lab(), Roofline(), "llama-3-8b")
    requests = Requests.from_columns(arrival_s=[0.0], prompt_tokens=[1], output_tokens=[1])
    state = fresh_state(given.policy, requests)
    state.cost = given.cost()
    state.decoding, state.context_sum = 32, 32 * 1499  # 1,500 with the token being decoded
    room = TimeBudget(10_000, bound_s, state, Decision()).room(0, 10_000)
    assert room // 16 * 16 == tokens


@pytest.mark.parametrize("model", [None, "llama-3-8b", "qwen3-30b-a3b"])
def test_the_largest_chunk_by_trying_all(model):
    """Also where reading binds, and where more tokens touch more experts."""
    clock = Linear(0.004, 3e-5) if model is None else Roofline()
    given = scenario(Lab(), clock, model, kv_blocks=3000)
    requests = Requests.from_columns(arrival_s=[0.0], prompt_tokens=[1], output_tokens=[1])
    state = fresh_state(given.policy, requests)
    cost = state.cost = given.cost()
    rng = np.random.default_rng(3)
    found = set()
    for _ in range(300):
        decodes = int(rng.integers(1, 200))
        context = int(rng.integers(1, 4000)) * decodes
        state.decoding, state.context_sum = decodes, context - decodes
        bound_s = float(rng.choice([0.002, 0.01, 0.02, 0.03, 0.05, 0.1]))
        start, wanted = int(rng.integers(0, 5000)), int(rng.integers(1, 3000))
        tokens = np.arange(1, wanted + 1)
        pairs = context + tokens * start + tokens * (tokens + 1) // 2
        durations_s = cost.seconds(decodes + tokens, pairs, context + start + tokens)
        largest = int((durations_s <= bound_s).sum())
        room = TimeBudget(10_000, bound_s, state, Decision()).room(start, wanted)
        assert room == largest
        found.add(0 if largest == 0 else 1 if largest < wanted else 2)
    assert found == {0, 1, 2}


def test_no_iteration_with_decodes_is_longer_than_the_bound_and_none_could_hold_more():
    """On a real clock: the chunk is the largest, wherever the prompt goes on after it."""
    bound_s = 0.04
    policy = Lab(prefill="slo", target_itl_s=bound_s, max_num_batched_tokens=4096)
    given = scenario(policy, Roofline(), "llama-3-8b")
    rng = np.random.default_rng(1)
    requests = Requests.from_columns(
        arrival_s=np.cumsum(rng.exponential(0.2, 60)),
        prompt_tokens=rng.integers(100, 3000, 60),
        output_tokens=rng.integers(1, 200, 60),
    )
    result = simulate(given, requests)
    rows, cost = result.iterations, given.cost()
    beside = (rows["decode_requests"] > 0) & (rows["prefill_requests"] > 0)
    assert (rows["end_s"] - rows["start_s"])[beside].max() <= bound_s + 1e-9
    chunks = zip(*(result.chunks[name].tolist() for name in CHUNK), strict=True)
    cut = 0
    for row, request, tokens, start in chunks:
        goes_on = start + tokens < result.inputs.prompt_tokens[request]
        if goes_on and beside[row] and rows["prefill_requests"][row] == 1:
            total, pairs, reads = (int(rows[name][row]) for name in WORK)
            assert cost.seconds(total + 1, pairs + start + tokens + 1, reads + 1) > bound_s
            cut += 1
    assert cut > 50


CHUNK = ("row", "request", "tokens", "first_token")
WORK = ("tokens", "attention_pairs", "kv_tokens_read")


# ------------------------------------------------------------------ the quantum


@pytest.mark.parametrize(
    ("iteration_ms", "efficiency"),
    [(9.8, 0.98), (10.1, 0.505), (12, 0.60), (15, 0.75), (22, 0.733), (40, 1.0), (52.5, 0.875)],
)
def test_efficiency_of_a_quantum_of_ten_milliseconds(iteration_ms, efficiency):
    """F37: t/(q⌈t/q⌉), by running fifty iterations."""
    clock = {"base_s": iteration_ms / 1000, "per_scheduled_token_s": 0.0}
    result = run([request_row("A", 0.003, 1, 50)], quantum_s=0.01, clock=clock)
    starts, ends = result.iterations["start_s"], result.iterations["end_s"]
    np.testing.assert_allclose(starts / 0.01, np.round(starts / 0.01), atol=1e-6)
    assert starts[0] == pytest.approx(0.01)
    busy_s = (ends - starts)[:-1].sum()
    assert busy_s / (starts[-1] - starts[0]) == pytest.approx(efficiency, abs=0.0005)


def test_a_prompt_stalls_the_answers_for_more_than_five_quanta():
    """512 tokens of Llama-3-8B on an A100 take 55 ms, and all prefills come first."""
    policy = Lab(prefill="apart", quantum_s=0.01)
    requests = Requests.from_columns(
        arrival_s=[0.0, 0.5], prompt_tokens=[16, 512], output_tokens=[100, 1]
    )
    result = simulate(scenario(policy, Roofline(), "llama-3-8b"), requests)
    gaps_s = np.diff(result.token_times(0))
    assert np.median(gaps_s) == pytest.approx(0.02, abs=1e-3)  # 12 ms in two quanta
    assert max(gaps_s) == pytest.approx(0.08, abs=1e-3)  # and six for the prompt
    assert (gaps_s > 0.03).sum() == 1


def test_an_arrival_within_a_quantum_waits_for_its_tick():
    result = run(
        [request_row("A", 0, 1, 3), request_row("B", 0.25, 1, 1)],
        quantum_s=0.1,
        clock={"base_s": 0.03, "per_scheduled_token_s": 0.0},
    )
    np.testing.assert_allclose(result.iterations["start_s"], [0.0, 0.1, 0.2, 0.3])


# ------------------------------------------------------------------ victims

FULL = [
    request_row("A", 0, 4, 9),
    request_row("B", 0, 2, 9),
    request_row("C", 0, 5, 9),
    request_row("D", 0, 3, 12),
    request_row("E", 0, 3, 9, priority=1),
    request_row("F", 0, 3, 9),
]
"""20 prompt tokens, then a decode each: 26 blocks are full when A wants another."""


@pytest.mark.parametrize(
    ("victim", "who"),
    [
        ("latest_admitted", "F"),
        ("lowest_priority", "E"),
        ("fewest_outputs", "C"),  # all have two; C's prompt is the longest
        ("just_large_enough", "B"),  # each frees the one that is missing; B is the smallest
        ("most_remaining", "D"),
    ],
)
def test_victims(victim, who):
    result = run(FULL, kv_blocks=26, victim=victim)
    rows = rows_of(result)
    assert [row["preempted"] for row in rows[:2]] == [[], []]
    assert rows[2]["preempted"][0] == who
    first = int(np.flatnonzero(result.events["event"] == EVENT["preempt"])[0])
    assert REASONS[result.events["reason"][first]] == victim
    assert FULL[result.events["other"][first]]["request_id"] == "A"


@pytest.mark.parametrize(("missing", "who"), [(1, 1), (2, 1), (3, 3), (4, 0), (9, 0)])
def test_large_enough_means_what_is_missing(missing, who):
    """They hold 4, 2, 3 and 3 blocks; of equals the latest admitted, and none covers 9."""
    running = dict.fromkeys(range(4))
    state = SimpleNamespace(running=running, blocks_held={0: 4, 1: 2, 2: 3, 3: 3}.get)
    assert VICTIMS["just_large_enough"](state, missing, {}) == who


def test_a_block_of_this_very_iteration_counts():
    """1 decodes and has got a third block just now."""
    state = SimpleNamespace(running={0: None, 1: None}, blocks_held={0: 4, 1: 2}.get)
    assert VICTIMS["just_large_enough"](state, 3, {1: Served(8, 1, 1, True)}) == 1


@pytest.mark.parametrize(("swap_s", "swaps"), [(4e-4, True), (6e-4, False)])
def test_the_cheaper_way(swap_s, swaps):
    """F has 4 tokens: to recompute them is 4 ms, to move 4 blocks twice 3.2 or 4.8 ms.

    A, B, C and D take what F frees, and E preempts itself.
    """
    clock = {"base_s": 1.0, "per_scheduled_token_s": 1e-3, "per_swapped_block_s": swap_s}
    settings = {"kv_blocks": 26, "preemption_mode": "cheaper", "clock": clock}
    row = rows_of(run(FULL, num_cpu_blocks=100, **settings))[2]
    assert (row["swapped_out"], row["preempted"]) == (
        (["F", "E"], []) if swaps else ([], ["F", "E"])
    )
    no_room = rows_of(run(FULL, num_cpu_blocks=4, **settings))[2]  # known: 5 tokens
    assert no_room["preempted"] == ["F", "E"]


def test_who_reserves_is_never_preempted():
    result = run(FULL, kv_blocks=26, preemption_mode="never")
    assert result.requests["preemptions"].sum() == 0
    first = rows_of(result)[0]
    assert first["scheduled"] == {"A": 4, "B": 2}  # 13 + 11 of 26; C's 14 are too many
    assert first["blocks_used"] == 24


# ------------------------------------------------------------------ evicting for who waits

OFFLINE_FIRST = [
    request_row("A", 0, 2, 10, priority=1),
    request_row("C", 1, 2, 2, priority=1),
    request_row("B", 2.5, 2, 2),
]
"""One slot. A is offline work, B interactive; C is offline, too, and came after A."""


def test_a_more_important_request_evicts_and_the_evicted_keeps_its_place():
    """C23 to C25: V0.8's rule; B starts at 3, and A is before C when B has ended (C24)."""
    settings = {"max_num_seqs": 1, "queue_order": "priority", "evict_for_waiting": True}
    result = run(OFFLINE_FIRST, **settings)
    assert result.requests["first_token_s"].tolist() == [1.0, 13.0, 4.0]
    row = rows_of(result)[3]
    assert (row["preempted"], row["scheduled"]) == (["A"], {"B": 2})
    first = int(np.flatnonzero(result.events["event"] == EVENT["preempt"])[0])
    assert REASONS[result.events["reason"][first]] == "outranked"


def test_without_that_rule_it_waits_as_in_v1():
    """C25: priority alone is no eviction for somebody who waits."""
    settings = {"max_num_seqs": 1, "queue_order": "priority"}
    for policy in ("lab", "vllm-v1"):
        result = run(OFFLINE_FIRST, policy=policy, **settings)
        assert result.requests["first_token_s"].tolist() == [1.0, 13.0, 11.0]
        assert result.requests["preemptions"].sum() == 0


def test_equal_importance_evicts_nobody():
    rows = [request_row("A", 0, 2, 4), request_row("B", 1, 2, 2)]
    settings = {"max_num_seqs": 1, "queue_order": "priority", "evict_for_waiting": True}
    assert run(rows, **settings).requests["preemptions"].sum() == 0


# ------------------------------------------------------------------ what it is not


def test_swapped_requests_come_back_in_their_order():
    """By priority the waiting B goes before the swapped A, by arrival A before B."""
    by_priority = {"queue_order": "priority", "evict_for_waiting": True}
    swap = {"preemption_mode": "swap", "num_cpu_blocks": 50, "max_num_seqs": 1}
    result = run(OFFLINE_FIRST, **swap, **by_priority)
    row = rows_of(result)[3]
    assert (row["swapped_out"], row["scheduled"]) == (["A"], {"B": 2})
    # A goes on after B with what it had: 3 of 10 tokens at 3, so the others end at 12.
    assert result.requests["last_token_s"].tolist() == [12.0, 14.0, 5.0]
    assert result.requests["recomputed_tokens"].sum() == 0


def test_the_defaults_are_vllm_v1():
    preset = catalogue.presets()["preemption-storm"].scenario
    requests = preset.requests()
    settings = {"max_num_seqs": 64, "max_num_batched_tokens": 1024}
    lab, v1 = (
        simulate(
            Scenario(preset.workload, kind(**settings), memory=preset.memory), requests
        ).requests["last_token_s"]
        for kind in (Lab, VllmV1)
    )
    np.testing.assert_array_equal(lab, v1)


# ------------------------------------------------------------------ where a stretch has to end


def case(rows, clock=None, **scheduler) -> Case:
    config = {
        "policy": "lab",
        "scheduler": {"block_size": 1, "max_num_seqs": 8, "max_num_batched_tokens": 100}
        | scheduler,
        "iteration_time": SECOND if clock is None else clock,
    }
    return Case(config, rows)


def test_the_patience_of_a_swapped_request_ends_a_stretch():
    """S is out from 7 on, W does not fit and is shorter; at 10 S has waited long enough."""
    rows = [
        request_row("0", 0, 2, 22),
        request_row("1", 0, 2, 8),
        request_row("2", 0, 2, 20, priority=1),
        request_row("3", 6.5, 18, 1),
    ]
    given = case(
        rows,
        kv_blocks=24,
        queue_order="sjf",
        fcfs_after_s=10.0,
        preemption_mode="swap",
        victim="lowest_priority",
        num_cpu_blocks=50,
    )
    check(given)
    found = rows_of(simulate_model(given.config, rows))
    assert next(row["start_s"] for row in found if row["swapped_out"] == ["2"]) == 7.0
    assert next(row["start_s"] for row in found if row["swapped_in"] == ["2"]) == 10.0


def test_a_request_that_waits_for_tokens_evicts_as_soon_as_blocks_are_short():
    """A's decodes take the budget of 1, so B waits, until its 4 blocks and A's next are short."""
    rows = [request_row("0", 0, 1, 30, priority=1), request_row("1", 1.5, 4, 1)]
    given = case(
        rows,
        kv_blocks=40,
        max_num_batched_tokens=1,
        queue_order="priority",
        evict_for_waiting=True,
        watermark=0.6,
    )
    check(given)
    found = rows_of(simulate_model(given.config, rows))
    # 24 of 40 are kept free: at 12 A holds 12, and 4 + 1 are more than the 28 - 24 left.
    assert next(row["start_s"] for row in found if row["preempted"]) == 12.0


def test_a_swapped_request_that_waits_for_tokens_evicts_too():
    """From 20 on 1 is out and would fit, but 0's decodes and 3's prompt take the budget of 4.

    It is as important as 3 and came first. At 23 they hold 26 and 22 blocks: 20 are left, one less
    than 1's 20 and 0's next.
    """
    rows = [
        request_row("0", 0, 4, 40, priority=0),
        request_row("1", 1, 4, 40, priority=1),
        request_row("2", 1, 4, 20, priority=2),
        request_row("3", 10, 30, 20, priority=1),
    ]
    given = case(
        rows,
        kv_blocks=68,
        max_num_batched_tokens=4,
        queue_order="priority",
        evict_for_waiting=True,
        preemption_mode="swap",
        victim="most_remaining",
        num_cpu_blocks=300,
    )
    check(given)
    found = rows_of(simulate_model(given.config, rows))
    (evicts,) = (row for row in found if row["swapped_out"] and row["swapped_in"])
    assert (evicts["start_s"], evicts["swapped_out"], evicts["swapped_in"]) == (23.0, ["3"], ["1"])


def test_the_reason_for_waiting_changes_when_the_time_is_up():
    """B has no blocks; once A's context makes decodes alone too long, it has no time either."""
    policy = Lab(prefill="slo", target_itl_s=0.0122)
    given = scenario(policy, Roofline(), "llama-3-8b", kv_blocks=520, max_model_len=8192)
    requests = Requests.from_columns(
        arrival_s=[0.0, 0.5], prompt_tokens=[2000, 7000], output_tokens=[3000, 1]
    )
    fast = simulate(given, requests)
    assert_bit_equal(fast, simulate(given, requests, fast_forward=False))
    events = fast.events
    mine = (events["event"] == EVENT["refuse"]) & (events["request"] == 1)
    assert [REASONS[code] for code in events["reason"][mine]] == ["no_blocks", "no_budget"]
