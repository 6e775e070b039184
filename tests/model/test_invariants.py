"""Invariants of iteration-level schedulers: which engine keeps which, and which not, and why.

==  ==========================================================================================
I1  blocks held and free blocks add up to the memory, also when all requests have left
I2  no request holds fewer than ceil(computed / block_size) blocks
I3  an iteration's tokens stay within the token budget
I4  running requests stay within ``max_num_seqs``
I5  a finished request has emitted exactly its outputs, once each, in order
I6  tokens processed >= prompt + outputs - 1; equal if and only if never preempted
I7  while a request can be served, an iteration is under way, and it is not empty
I8  of two requests never preempted, the one that arrived first has its first token first
==  ==========================================================================================

``POLICY_TABLE`` says what each engine promises. Each exception has a witness at the end of this
file, so that the table cannot rot into excuses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.result import STATUS, SimulationResult
from tests.adapter import request_row, rows_of, simulate_model
from tests.cases import POLICIES, Case, cases, profile
from tests.lab_cases import lab_cases
from tests.reference.common import blocks_for
from tests.reference.orca import power_of_two_at_least


@dataclass(frozen=True)
class No:
    """The engine does not promise it, for this reason."""

    why: str


@dataclass(frozen=True)
class Weaker:
    """The engine promises less; ``check`` knows how much."""

    why: str


NO_BUDGET = No("has no token budget: whole prompts join as memory and places allow")
BY_IMPORTANCE = No("serves by importance, not by arrival")
EMPTY_ITERATION = Weaker(
    "a decode wants a free block even if its last block has room; alone in full memory it preempts "
    "itself, and an iteration without tokens passes"
)
SHARED_BLOCKS = Weaker("requests share blocks: what they hold adds up to more than is used")
FOUND_AGAIN = Weaker(
    "tokens found in the prefix cache are not processed, and a preempted request may find all its "
    "blocks again"
)

# An engine with a set of options: its exceptions. What is not named is promised in full. A
# configuration gets the exceptions of every row whose options it has.
POLICY_TABLE: dict[tuple[str, ...], dict[str, No | Weaker]] = {
    ("static",): {"I3": NO_BUDGET},
    ("orca",): {"I3": NO_BUDGET},
    ("sarathi",): {},
    ("sarathi", "watermark"): {
        "I7": No(
            "a prompt that would leave less than the watermark free is never admitted, not even "
            "to an empty engine, and nobody overtakes it"
        ),
    },
    ("vllm-v0",): {"I7": EMPTY_ITERATION},
    ("vllm-v0", "priority"): {"I8": BY_IMPORTANCE},
    ("vllm-v0", "swap"): {
        "I6": Weaker("a swapped request keeps its KV: nothing is computed twice"),
    },
    ("vllm-v0", "chunked", "swap"): {
        "I7": No(
            "a half computed prompt that was swapped out comes back only if all its remaining "
            "tokens fit one iteration's budget, else never"
        ),
    },
    ("vllm-v1",): {},
    ("vllm-v1", "threshold"): {
        "I8": No("a capped prompt shares the budget: a shorter one behind it may end first"),
    },
    ("vllm-v1", "prefix cache"): {"I2": SHARED_BLOCKS, "I6": FOUND_AGAIN},
    ("vllm-v1", "priority"): {"I8": BY_IMPORTANCE},
    ("sglang",): {
        "I3": Weaker("the budget is one of prompts: a step of decodes computes one token for each"),
    },
    ("sglang", "unchunked"): {"I3": No("the first prompt of a step may have any length")},
    ("sglang", "radix cache"): {"I2": SHARED_BLOCKS, "I6": FOUND_AGAIN},
    ("sglang", "not fcfs"): {"I8": No("serves by cached prefix, answer or importance")},
    ("lab",): {},
    ("lab", "apart"): {
        "I3": Weaker("the budget is one of prompts; decodes have iterations of their own"),
    },
    ("lab", "ticks"): {"I7": No("iterations start only at multiples of the quantum")},
    ("lab", "shortest"): {"I8": No("serves by predicted length, not by arrival")},
    ("lab", "priority"): {"I8": BY_IMPORTANCE},
}


def options_of(case: Case) -> set[str]:
    scheduler = case.config["scheduler"]
    present = {
        "watermark": scheduler.get("watermark", 0.01) * scheduler["kv_blocks"] >= 1,
        "swap": scheduler.get("preemption_mode") == "swap",
        "chunked": scheduler.get("enable_chunked_prefill", False),
        "priority": scheduler.get("queue_order") == "priority",
        "threshold": scheduler.get("long_prefill_token_threshold", 0) > 0,
        "prefix cache": scheduler.get("enable_prefix_caching", False),
        "unchunked": scheduler.get("chunked_prefill_size", 1) < 0,
        "radix cache": not scheduler.get("disable_radix_cache", False),
        "apart": scheduler.get("prefill") == "apart",
        "ticks": scheduler.get("quantum_s", 0.0) > 0,
        "shortest": scheduler.get("queue_order") == "sjf",
        "not fcfs": scheduler.get("schedule_policy", "fcfs") != "fcfs"
        or scheduler.get("enable_priority_scheduling", False),
    }
    return {option for option, is_present in present.items() if is_present}


def exceptions_of(case: Case) -> dict[str, No | Weaker]:
    options = options_of(case)
    exceptions: dict[str, No | Weaker] = {}
    for (policy, *needed), row in POLICY_TABLE.items():
        if policy == case.policy and options.issuperset(needed):
            for invariant, exception in row.items():
                if not isinstance(exceptions.get(invariant), No):  # No outweighs Weaker
                    exceptions[invariant] = exception
    return exceptions


# ------------------------------------------------------------------ replaying the rows


@dataclass
class Track:
    """One request, followed through the rows."""

    prompt: int
    output: int
    computed: int = 0
    emitted: int = 0
    admitted_known: int = 0
    """Known tokens at the last admission: Sarathi and V0 take their blocks at once."""
    returned: int = 0
    """The same at the last return from host memory: the lab takes them at once only then."""
    processed: int = 0
    cached: int = 0
    preempted: int = 0
    swapped: int = 0
    state: str = "waiting"
    token_times: list[float] = field(default_factory=list)

    @property
    def known(self) -> int:
        return self.prompt + self.emitted


def reserved_tokens(case: Case, track: Track) -> int:
    """Tokens whose blocks a running request holds, by the engine's rule (no sharing)."""
    scheduler = case.config["scheduler"]
    if case.policy in ("static", "orca"):
        return {
            "max": scheduler.get("max_model_len"),
            "pow2": track.prompt + power_of_two_at_least(track.output),
            "oracle": track.prompt + track.output,
        }[scheduler.get("reserve", "max")]
    if case.policy == "lab":
        reserves = scheduler.get("preemption_mode") == "never"
        return track.prompt + track.output if reserves else max(track.computed, track.returned)
    if case.policy in ("vllm-v1", "sglang"):
        return track.computed
    return max(track.computed, track.admitted_known)


@dataclass
class State:
    """After an iteration's decision, before requests that end release their blocks."""

    row: Mapping
    computed: dict[str, int]
    """Tokens of the running requests that are computed when the iteration has ended."""
    held: dict[str, int]
    """Blocks by the engine's rule."""


def replay(case: Case, rows: list[dict]) -> tuple[dict[str, Track], list[State]]:
    """Follow every request through the rows; assert that the rows are consistent."""
    block_size = case.config["scheduler"]["block_size"]
    tracks = {
        row["request_id"]: Track(row["prompt_tokens"], row["output_tokens"])
        for row in case.requests
    }
    states = []
    for row in rows:
        for name in row["cancelled"]:
            tracks[name].state = "left"
        for name in row["preempted"]:
            track = tracks[name]
            assert track.state == "running", (row, name)
            track.state, track.computed = "waiting", 0
            track.preempted += 1
        for name in row["swapped_out"]:
            track = tracks[name]
            assert track.state == "running", (row, name)
            track.state = "swapped"
            track.swapped += 1
        for name in row["swapped_in"]:
            assert tracks[name].state == "swapped", (row, name)
            tracks[name].state = "running"
            tracks[name].returned = tracks[name].known
        for name, tokens in row["scheduled"].items():
            track = tracks[name]
            assert tokens >= 1
            assert track.state in ("waiting", "running"), (row, name)
            if track.state == "waiting":
                track.state = "running"
                track.computed = row["cached"].get(name, 0)
                track.cached += track.computed
                track.admitted_known, track.returned = track.known, 0
            track.computed += tokens
            track.processed += tokens
            assert track.computed <= track.known, (row, name)
        running = {name: track for name, track in tracks.items() if track.state == "running"}
        held = {
            name: blocks_for(reserved_tokens(case, track), block_size)
            for name, track in running.items()
        }
        computed = {name: track.computed for name, track in running.items()}
        states.append(State(row, computed, held))
        for name in row["scheduled"]:
            track = tracks[name]
            if track.computed == track.known:
                track.emitted += 1
                track.token_times.append(row["end_s"])
                if track.emitted == track.output:
                    track.state = "left"
    return tracks, states


# ------------------------------------------------------------------ the checks


def check(case: Case) -> Run:
    run = run_case(case)
    exceptions = exceptions_of(case)
    for invariant, holds in CHECKS.items():
        exception = exceptions.get(invariant)
        if not isinstance(exception, No):
            holds(run, exception is not None)
    return run


def run_case(case: Case) -> Run:
    result = simulate_model(case.config, case.requests)
    rows = rows_of(result)
    for i, row in enumerate(rows):  # the exact clock instead of its six decimals
        row["start_s"] = float(result.iterations["start_s"][i])
        row["end_s"] = float(result.iterations["end_s"][i])
    tracks, states = replay(case, rows)
    return Run(case, result, rows, tracks, states)


@dataclass(frozen=True)
class Run:
    case: Case
    result: SimulationResult
    rows: list[dict]
    tracks: dict[str, Track]
    states: list[State]

    @property
    def scheduler(self) -> dict:
        return self.case.config["scheduler"]

    def status(self, i: int) -> str:
        return STATUS[int(self.result.requests["status"][i])]


def blocks_add_up(run: Run, weaker: bool) -> None:
    total = run.scheduler["kv_blocks"]
    for state in run.states:
        assert 0 <= state.row["blocks_used"] <= total, state.row
        if "I2" not in exceptions_of(run.case):  # else blocks are shared
            assert state.row["blocks_used"] == sum(state.held.values()), state.row


def blocks_hold_what_is_computed(run: Run, weaker: bool) -> None:
    block_size = run.scheduler["block_size"]
    for state in run.states:
        needed = [blocks_for(tokens, block_size) for tokens in state.computed.values()]
        if weaker:
            # Each needs its blocks; a block is shared by at most all.
            assert max(needed, default=0) <= state.row["blocks_used"] <= sum(needed), state.row
        else:
            for name, tokens in state.computed.items():
                assert state.held[name] >= blocks_for(tokens, block_size), state.row
            assert sum(needed) <= state.row["blocks_used"], state.row


def tokens_within_budget(run: Run, weaker: bool) -> None:
    names = ("max_num_batched_tokens", "chunk_size", "chunked_prefill_size")
    budget = next(run.scheduler[name] for name in names if name in run.scheduler)
    for state in run.states:
        tokens = list(state.row["scheduled"].values())
        assert sum(tokens) <= budget or (weaker and max(tokens) == 1), state.row


def places_within_limit(run: Run, weaker: bool) -> None:
    for state in run.states:
        assert len(state.computed) == state.row["running"] <= run.scheduler["max_num_seqs"]


def outputs_once_and_in_order(run: Run, weaker: bool) -> None:
    for i, row in enumerate(run.case.requests):
        track = run.tracks[row["request_id"]]
        times = [float(t) for t in run.result.token_times(i)]
        assert times == track.token_times
        assert all(a < b for a, b in pairwise(times))
        assert run.result.requests["emitted_tokens"][i] == track.emitted == len(times)
        if run.status(i) == "finished":
            assert track.emitted == row["output_tokens"]
        else:
            assert track.emitted < row["output_tokens"]


def tokens_processed(run: Run, weaker: bool) -> None:
    for i, row in enumerate(run.case.requests):
        if run.status(i) != "finished":
            continue
        track = run.tracks[row["request_id"]]
        needed = row["prompt_tokens"] + row["output_tokens"] - 1
        total = track.processed + track.cached
        assert total >= needed
        if not track.preempted:
            assert total == needed
        elif not weaker:
            assert total > needed


def never_idle(run: Run, weaker: bool) -> None:
    """No gap between iterations while a request is in the engine."""
    for state in run.states:
        took_away = state.row["preempted"] or state.row["swapped_out"]
        assert state.row["scheduled"] or (weaker and took_away), state.row
    ends_s = []
    for i, row in enumerate(run.case.requests):
        end_s = float(run.result.requests["end_s"][i])
        ends_s.append((row["arrival_s"], end_s if run.status(i) != "unfinished" else math.inf))
    boundaries = [row["end_s"] for row in run.rows]
    starts = [row["start_s"] for row in run.rows]
    for idle_from, idle_to in zip([0.0, *boundaries], [*starts, math.inf], strict=True):
        assert idle_from <= idle_to
        if idle_from < idle_to:
            for arrival_s, end_s in ends_s:
                if end_s == arrival_s:
                    continue  # refused on arrival: it was never in the engine
                assert not (arrival_s < idle_to and end_s > idle_from), (idle_from, idle_to)


def first_come_first_token(run: Run, weaker: bool) -> None:
    undisturbed = [
        run.tracks[row["request_id"]]
        for i, row in enumerate(run.case.requests)  # in order of arrival
        if run.tracks[row["request_id"]].token_times
    ]
    undisturbed = [track for track in undisturbed if not (track.preempted or track.swapped)]
    for earlier, later in pairwise(undisturbed):
        assert earlier.token_times[0] <= later.token_times[0]


CHECKS = {
    "I1": blocks_add_up,
    "I2": blocks_hold_what_is_computed,
    "I3": tokens_within_budget,
    "I4": places_within_limit,
    "I5": outputs_once_and_in_order,
    "I6": tokens_processed,
    "I7": never_idle,
    "I8": first_come_first_token,
}


# ------------------------------------------------------------------ the tests

PREEMPTING = ("sarathi", "vllm-v0", "vllm-v1", "sglang", "lab")
EVERY_POLICY = (*POLICIES, "lab")


def some_cases(policy: str, **settings) -> st.SearchStrategy[Case]:
    return lab_cases(**settings) if policy == "lab" else cases(policy, **settings)


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize("tight", [True, False], ids=["tight", "roomy"])
def test_invariants(policy, tight):
    disturbed = 0

    @profile(100)
    @given(some_cases(policy, tight=tight, rejects=False))
    def hold(case: Case) -> None:
        nonlocal disturbed
        run = check(case)
        if any(row["preempted"] or row["swapped_out"] for row in run.rows):
            # V0 and the lab also evict for a place in the batch, however large the memory.
            assert tight or (policy in ("vllm-v0", "lab") and "priority" in options_of(case))
            disturbed += 1

    hold()
    if tight:
        assert (disturbed > 0) == (policy in PREEMPTING)


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_all_blocks_come_back(policy):
    """I1 at the end: when everybody has left, a newcomer can take the whole memory."""

    @profile(40)
    @given(some_cases(policy, rejects=False))
    def hold(case: Case) -> None:
        scheduler = dict(case.config["scheduler"])
        total = scheduler["kv_blocks"]
        available = total - int(scheduler.get("watermark", 0.01) * total)
        prompt, output = available * scheduler["block_size"], 1
        if policy in ("static", "orca"):
            available = total
            prompt = total * scheduler["block_size"] - output  # outputs are reserved, too
            scheduler["max_model_len"] = prompt + output
            if policy == "orca":
                scheduler["reserve"] = "oracle"
        if policy == "sglang":  # a page and a token stay free, and the answer's block besides
            prompt = (total - 1) * scheduler["block_size"] - output - 1
            available = blocks_for(prompt, scheduler["block_size"])
        if policy == "lab":
            scheduler["admission"] = "open"
            prompt -= scheduler["preemption_mode"] == "never"  # outputs are reserved, too
        whole = scheduler.get("prefill") in ("apart", "whole")
        if whole or not scheduler.get("enable_chunked_prefill", True):
            scheduler["max_num_batched_tokens"] = prompt + 8
        late = request_row("late", 1e4, prompt, output)
        run = run_case(Case(case.config | {"scheduler": scheduler}, [*case.requests, late]))
        assume(all(run.status(i) in ("finished", "cancelled") for i in range(len(case.requests))))
        assert run.status(len(case.requests)) == "finished"
        assert "late" in run.rows[-1]["scheduled"]
        assert run.rows[-1]["blocks_used"] == available

    hold()


# ------------------------------------------------------------------ the exceptions are real


def small(policy: str, rows: list[dict], **scheduler) -> Run:
    """A run with iterations of one second."""
    config = {
        "policy": policy,
        "scheduler": {"block_size": 2, "max_num_seqs": 8, "kv_blocks": 100} | scheduler,
        "iteration_time": {"base_s": 1.0, "per_scheduled_token_s": 0.0},
    }
    return run_case(Case(config, rows))


def assert_broken(invariant: str, run: Run) -> None:
    """``run`` breaks the invariant in full, and the table says that it may."""
    exception = exceptions_of(run.case)[invariant]
    with pytest.raises(AssertionError):
        CHECKS[invariant](run, False)
    if isinstance(exception, Weaker):
        CHECKS[invariant](run, True)


def test_static_and_orca_have_no_token_budget():
    rows = [request_row("a", 0, 50, 2), request_row("b", 0, 50, 2)]
    for policy in ("static", "orca"):
        run = small(policy, rows, max_model_len=60)
        assert isinstance(exceptions_of(run.case)["I3"], No)
        assert sum(run.rows[0]["scheduled"].values()) == 100


def test_v0_spends_an_empty_iteration_on_a_preemption():
    rows = [request_row("a", 0, 3, 2)]
    for mode in ("recompute", "swap"):
        run = small(
            "vllm-v0",
            rows,
            kv_blocks=2,
            max_num_batched_tokens=100,
            preemption_mode=mode,
            num_cpu_blocks=10,
        )
        assert [sum(row["scheduled"].values()) for row in run.rows][1] == 0
        assert_broken("I7", run)
        assert run.tracks["a"].processed == (3 + 4 if mode == "recompute" else 3 + 1)


def test_v0_half_prefill_that_was_swapped_out_never_returns():
    """b is swapped out with 9 of its 12 prompt tokens to go, and an iteration takes 4."""
    rows = [
        request_row("a", 0, 2, 8),
        request_row("b", 1, 12, 2),
        request_row("c", 60, 2, 2),
    ]
    run = small(
        "vllm-v0",
        rows,
        kv_blocks=8,
        max_num_batched_tokens=4,
        enable_chunked_prefill=True,
        preemption_mode="swap",
        num_cpu_blocks=20,
    )
    assert run.tracks["b"].swapped == 1
    assert run.tracks["b"].processed == 3
    assert run.tracks["c"].emitted == 2
    assert_broken("I7", run)


def test_v1_cap_lets_a_short_prompt_pass_a_long_one():
    rows = [request_row("a", 0, 10, 2), request_row("b", 0, 2, 2)]
    run = small("vllm-v1", rows, max_num_batched_tokens=8, long_prefill_token_threshold=2)
    assert_broken_order(run)


@pytest.mark.parametrize("policy", ["vllm-v0", "vllm-v1"])
def test_priority_is_not_first_come_first_served(policy):
    rows = [
        request_row("a", 0, 3, 4),
        request_row("b", 1, 3, 2, priority=1),
        request_row("c", 1, 3, 2),
    ]
    run = small(
        policy, rows, max_num_batched_tokens=8, max_num_seqs=1, queue_order="priority"
    )
    assert_broken_order(run)


def assert_broken_order(run: Run) -> None:
    assert isinstance(exceptions_of(run.case)["I8"], No)
    with pytest.raises(AssertionError):
        first_come_first_token(run, False)


def test_shared_blocks_are_used_once_and_computed_once():
    shared = {"prefix_group": 0, "shared_prefix_tokens": 8}
    rows = [request_row("a", 0, 9, 5, **shared), request_row("b", 1, 9, 5, **shared)]
    run = small("vllm-v1", rows, max_num_batched_tokens=100, enable_prefix_caching=True)
    assert run.tracks["b"].cached == 8
    assert_broken("I2", run)
    assert run.tracks["b"].processed == 1 + 4


def test_sglangs_budget_is_one_of_prompts():
    rows = [request_row(name, 0, 2, 3) for name in "abcd"]
    run = small("sglang", rows, chunked_prefill_size=2)
    assert sum(run.rows[-1]["scheduled"].values()) == 4
    assert_broken("I3", run)
    whole = small("sglang", rows, chunked_prefill_size=-1, max_prefill_tokens=1)
    assert isinstance(exceptions_of(whole.case)["I3"], No)
    assert whole.rows[0]["scheduled"] == {"a": 2}


def test_sglangs_tree_shares_blocks_and_survives_a_retraction():
    shared = {"prefix_group": 0, "shared_prefix_tokens": 8}
    rows = [request_row("a", 0, 9, 5, **shared), request_row("b", 1, 9, 5, **shared)]
    run = small("sglang", rows)
    assert run.tracks["b"].cached == 8
    assert_broken("I2", run)
    assert run.tracks["b"].processed == 1 + 4


@pytest.mark.parametrize(
    "order", [{"schedule_policy": "lof"}, {"enable_priority_scheduling": True}]
)
def test_sglangs_orders_are_not_first_come_first_served(order):
    rows = [
        request_row("a", 0, 3, 4),
        request_row("b", 1, 3, 2, priority=1),
        request_row("c", 1, 3, 3),
    ]
    assert_broken_order(small("sglang", rows, max_num_seqs=1, **order))


def test_sarathi_waits_for_ever_for_its_watermark():
    """a preempts itself when it wants a 26th block, and needs 25 + 5 of 25 to be admitted again."""
    rows = [request_row("a", 0, 30, 21), request_row("b", 60, 4, 2)]
    run = small("sarathi", rows, kv_blocks=25, watermark=0.2, chunk_size=40)
    assert run.tracks["a"].emitted == 20
    assert_broken("I7", run)


def test_the_labs_prompts_apart_leave_decodes_without_a_budget():
    rows = [request_row(name, 0, 1, 3) for name in "abc"]
    assert_broken("I3", small("lab", rows, prefill="apart", max_num_batched_tokens=2))


def test_a_quantum_leaves_the_engine_idle_between_iterations():
    run = small("lab", [request_row("a", 0, 3, 4)], quantum_s=1.5)
    assert [row["start_s"] for row in run.rows] == [0.0, 1.5, 3.0, 4.5]
    assert isinstance(exceptions_of(run.case)["I7"], No)
    with pytest.raises(AssertionError):
        never_idle(run, False)


@pytest.mark.parametrize("order", ["sjf", "priority"])
def test_the_labs_orders_are_not_first_come_first_served(order):
    rows = [
        request_row("a", 0, 3, 4),
        request_row("b", 1, 9, 2, priority=1),
        request_row("c", 1, 3, 2),
    ]
    assert_broken_order(small("lab", rows, max_num_seqs=1, queue_order=order))


def test_every_exception_is_one_of_a_check():
    for row in POLICY_TABLE.values():
        assert set(row) <= set(CHECKS)
