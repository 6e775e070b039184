"""Result columns against a rebuild, token by token, from who was scheduled and who came and went.

The rebuild uses loops and the words of the documentation only: a request's first chunk starts at
what the prefix cache gave, every iteration computes the tokens that `scheduled()` names, and once
all known tokens are computed it emits one more. A preemption by recomputation starts it again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from model import catalogue
from model.events import EVENTS, REASON
from model.iteration_time import IterationTime, Linear, Roofline
from model.result import SimulationResult
from model.scenario import Memory, Scenario
from model.schedulers import Orca, Sarathi, Scheduler, Static, VllmV0, VllmV1
from model.simulator import simulate
from model.state import CANCELLED, FINISHED, REJECTED
from model.workload import Arrivals, Lengths, Stream, Workload

BLOCK = 8
SMALL = {"max_num_seqs": 16}
POLICIES: dict[str, Scheduler] = {
    "static": Static(**SMALL),
    "static, padded": Static(**SMALL, finished_rows="padded"),
    "orca": Orca(**SMALL),
    "orca, pow2": Orca(**SMALL, reserve="pow2"),
    "orca, oracle": Orca(**SMALL, reserve="oracle"),
    "vllm-v0": VllmV0(**SMALL, max_num_batched_tokens=512),
    "vllm-v0, swap": VllmV0(**SMALL, max_num_batched_tokens=512, preemption_mode="swap"),
    "vllm-v0, priority": VllmV0(**SMALL, max_num_batched_tokens=512, queue_order="priority"),
    "vllm-v0, chunked": VllmV0(**SMALL, max_num_batched_tokens=64, enable_chunked_prefill=True),
    "vllm-v0, chunked, swap": VllmV0(
        **SMALL, max_num_batched_tokens=64, enable_chunked_prefill=True, preemption_mode="swap"
    ),
    "vllm-v1": VllmV1(**SMALL, max_num_batched_tokens=64),
    "vllm-v1, threshold": VllmV1(
        **SMALL, max_num_batched_tokens=64, long_prefill_token_threshold=20
    ),
    "vllm-v1, first chunk only": VllmV1(
        **SMALL, max_num_batched_tokens=64, scheduler_reserve_full_isl=False
    ),
    "vllm-v1, priority": VllmV1(**SMALL, max_num_batched_tokens=64, queue_order="priority"),
    "vllm-v1, prefix cache": VllmV1(**SMALL, max_num_batched_tokens=64, enable_prefix_caching=True),
    "sarathi": Sarathi(**SMALL, chunk_size=64),
}
CLOCKS: dict[str, IterationTime] = {
    "linear": Linear(0.008, 1e-4, per_swapped_block_s=1e-3),
    "roofline": Roofline(),
}


def scenario(case: tuple[str, str, int]) -> Scenario:
    """Enough load on little memory: evictions, cancellations and refusals all happen."""
    policy, clock, n_engines = case
    stream = Stream(
        name="many",
        n_requests=60,
        arrivals=Arrivals("gamma", rate_per_s=30.0 * n_engines, cv=2.0),
        prompt=Lengths("exponential", mean_tokens=50, max_tokens=220),
        output=Lengths("geometric", mean_tokens=40, max_tokens=220),
        prefix_groups=3,
        shared_prefix_tokens=24,
    )
    leaving = Stream(
        name="leaving",
        n_requests=30,
        arrivals=Arrivals("poisson", rate_per_s=15.0 * n_engines),
        prompt=Lengths("uniform", low_tokens=1, high_tokens=120),
        output=Lengths("uniform", low_tokens=1, high_tokens=120),
        priority=-1,
        patience_s=1.0,
    )
    with_model = CLOCKS[clock].needs_model
    return Scenario(
        workload=Workload((stream, leaving)),
        policy=POLICIES[policy],
        clock=CLOCKS[clock],
        model="llama-3-8b" if with_model else None,
        hardware="a100-80g-sxm" if with_model else None,
        memory=Memory(kv_blocks=60, block_size=BLOCK, max_model_len=240, num_cpu_blocks=500),
        seed=5,
        n_engines=n_engines,
    )


# ------------------------------------------------------------------ the rebuild


@dataclass
class Life:
    """One request, followed from event to event and from iteration to iteration."""

    prompt: int
    output: int
    place: str = "outside"  # waiting, running, swapped
    decodes: bool = False
    computed: int = 0
    """Tokens whose KV is stored, here or in host memory."""
    high_water: int = 0
    room: int = 0
    """Known tokens at the last admission: V0 and Sarathi take their blocks at once."""
    recomputed: int = 0
    host_blocks: int = 0
    blocks_moved: int = 0
    token_times: list[float] = field(default_factory=list)

    @property
    def known(self) -> int:
        return self.prompt + len(self.token_times)

    def move(self, event: str, cached: int, blocks: int) -> int:
        """Come or go; return the blocks that crossed the host link."""
        moved = 0
        if event in ("admit", "resume"):
            assert self.place == "waiting"
            self.place, self.computed, self.room = "running", cached, self.known
        elif event == "preempt":
            assert self.place == "running"
            self.place, self.computed, self.decodes = "waiting", 0, False
        elif event == "swap_out":
            assert self.place == "running"
            self.place, self.host_blocks = "swapped", blocks
            moved = blocks
        elif event == "swap_in":
            assert self.place == "swapped"
            self.place, self.room = "running", self.known
            self.decodes = self.computed >= self.prompt and self.known - self.computed == 1
            moved = self.host_blocks
        elif event == "arrive":
            assert self.place == "outside"
            self.place = "waiting"
        elif event in ("cancel", "reject"):
            self.place = "outside"
        self.blocks_moved += moved
        return moved


@dataclass
class Rebuilt:
    lives: list[Life]
    columns: dict[str, np.ndarray]
    """Those columns of `iterations` that follow from who ran, came and went."""


COUNTED = (
    *("decode_requests", "prefill_requests", "prefill_tokens", "recompute_tokens", "tokens"),
    *("attention_pairs", "kv_tokens_read", "blocks_used", "swapped_blocks"),
    *("waiting", "running", "swapped"),
)


def rebuild(result: SimulationResult) -> Rebuilt:
    lives = [
        Life(prompt, output)
        for prompt, output in zip(
            result.inputs.prompt_tokens.tolist(), result.inputs.output_tokens.tolist(), strict=True
        )
    ]
    here = defaultdict(list)  # engine -> its requests
    for life, engine in zip(lives, result.requests["engine_id"].tolist(), strict=True):
        here[engine].append(life)
    scheduled, moves = scheduled_by_row(result), moves_by_row(result)
    engines, ends_s = result.iterations["engine_id"].tolist(), result.iterations["end_s"].tolist()
    columns = {name: np.zeros(len(ends_s), dtype=np.int64) for name in COUNTED}
    for row, end_s in enumerate(ends_s):
        count = Counter()
        for event, request, cached, blocks in moves[row]:
            count["swapped_blocks"] += lives[request].move(event, cached, blocks)
        for request, tokens in scheduled[row].items():
            compute(lives[request], tokens, count)
        for life in here[engines[row]]:
            count[life.place] += 1
            if life.place == "running":
                count["blocks_used"] += blocks_of(result, life)
        for name, values in columns.items():
            values[row] = count[name]
        for request in scheduled[row]:
            emit(lives[request], end_s)
    return Rebuilt(lives, columns)


def compute(life: Life, tokens: int, count: Counter) -> None:
    assert life.place == "running"
    start = life.computed
    life.computed += tokens
    assert life.computed <= life.known
    again = min(max(life.high_water - start, 0), tokens)
    life.high_water = max(life.high_water, life.computed)
    life.recomputed += again
    if life.decodes:
        assert tokens == 1
        count["decode_requests"] += 1
    else:
        count["prefill_requests"] += 1
        count["prefill_tokens"] += tokens - again
        count["recompute_tokens"] += again
    count["tokens"] += tokens
    # Each new token attends to all before it and to itself; the stored ones are read once.
    count["attention_pairs"] += sum(range(start + 1, start + tokens + 1))
    count["kv_tokens_read"] += life.computed


def emit(life: Life, end_s: float) -> None:
    if life.computed == life.known:
        life.token_times.append(end_s)
        life.decodes = True
        if len(life.token_times) == life.output:
            life.place = "outside"


def blocks_of(result: SimulationResult, life: Life) -> int:
    """KV blocks that a running request holds, by its policy's rule (without sharing)."""
    policy = result.scenario.policy
    tokens = max(life.computed, life.room)
    if policy.name == "vllm-v1":
        tokens = life.computed
    elif policy.name == "static" or (policy.name == "orca" and policy.reserve == "max"):
        tokens = result.scenario.max_model_len()
    elif policy.name == "orca":
        outputs = life.output
        if policy.reserve == "pow2":
            outputs = next(2**k for k in range(40) if 2**k >= life.output)
        tokens = min(life.prompt + outputs, result.scenario.max_model_len())
    return -(-tokens // result.block_size)


def scheduled_by_row(result: SimulationResult) -> list[dict[int, int]]:
    rows: list[dict[int, int]] = [{} for _ in result.iterations["start_s"]]
    scheduled = result.scheduled()
    for row, request, tokens in zip(
        *(scheduled[name].tolist() for name in ("row", "request", "tokens")), strict=True
    ):
        assert request not in rows[row]
        rows[row][request] = tokens
    return rows


def row_of_events(result: SimulationResult) -> np.ndarray:
    """The row of `iterations` that an event belongs to: engines stand one after the other.

    -1 where an engine came to no further iteration.
    """
    engines = result.iterations["engine_id"]
    first = np.searchsorted(engines, result.events["engine_id"])
    after = np.searchsorted(engines, result.events["engine_id"], side="right")
    rows = first + result.events["iteration"]
    return np.where(rows < after, rows, -1)


def moves_by_row(result: SimulationResult) -> list[list[tuple[str, int, int, int]]]:
    """Events (name, request, cached tokens, blocks) that come before an iteration, in order."""
    moves: list[list] = [[] for _ in result.iterations["start_s"]]
    names = ("event", "request", "cached_tokens", "blocks_needed")
    columns = [result.events[name].tolist() for name in names]
    for row, code, *numbers in zip(row_of_events(result).tolist(), *columns, strict=True):
        if row >= 0 and EVENTS[code] not in ("first_token", "finish", "refuse"):
            moves[row].append((EVENTS[code], *numbers))
    return moves


# ------------------------------------------------------------------ the comparisons

CASES = [(policy, "linear", engines) for policy in POLICIES for engines in (1, 2)]
CASES += [(policy, "roofline", 1) for policy in POLICIES]
PRESETS = list(catalogue.presets())


@cache
def simulated(case: tuple[str, str, int] | str) -> SimulationResult:
    return simulate(catalogue.presets()[case].scenario if isinstance(case, str) else scenario(case))


@cache
def rebuilt(case: tuple[str, str, int] | str) -> Rebuilt:
    return rebuild(simulated(case))


def name_of(case: object) -> str:
    return case if isinstance(case, str) else "-".join(map(str, case))


EACH_CASE = pytest.mark.parametrize("case", [*CASES, *PRESETS], ids=name_of)


def padded(result: SimulationResult) -> bool:
    return getattr(result.scenario.policy, "finished_rows", "") == "padded"


def shares_blocks(result: SimulationResult) -> bool:
    return getattr(result.scenario.policy, "enable_prefix_caching", False)


def test_the_cases_have_everything_in_them():
    results = [simulated(case) for case in CASES]
    happened = Counter()
    for result in results:
        happened.update(np.array(EVENTS)[result.events["event"]].tolist())
        happened.update(result.requests["status"].tolist())
    of_pools = ("hand_over", "transfer_start", "transfer_end", "kv_sent")
    assert all((happened[name] > 20) == (name not in of_pools) for name in EVENTS)
    assert all(happened[status] > 20 for status in (FINISHED, REJECTED, CANCELLED))
    for policy, preempts in POLICIES.items():
        result = simulated((policy, "linear", 1))
        assert (result.requests["preemptions"].sum() > 0) == (not preempts.reserves), policy
        assert result.requests["cached_tokens"].any() == shares_blocks(result), policy


@EACH_CASE
def test_token_times(case):
    result, lives = simulated(case), rebuilt(case).lives
    gaps, whose = result.itl_s()
    expected_gaps = []
    for request, life in enumerate(lives):
        assert result.token_times(request).tolist() == life.token_times
        assert (whose == request).sum() == max(len(life.token_times) - 1, 0)
        expected_gaps += [b - a for a, b in pairwise(life.token_times)]
    assert gaps.tolist() == expected_gaps
    assert (np.diff(whose) >= 0).all()


@EACH_CASE
def test_request_columns(case):
    result, lives = simulated(case), rebuilt(case).lives
    requests = result.requests
    scheduled_s: dict[int, float] = {}
    for row, members in enumerate(scheduled_by_row(result)):
        for request in members:
            time_s = float(result.iterations["start_s"][row])
            scheduled_s[request] = min(time_s, scheduled_s.get(request, time_s))
    for i, life in enumerate(lives):
        times = life.token_times
        assert requests["emitted_tokens"][i] == len(times)
        assert requests["recomputed_tokens"][i] == life.recomputed
        assert requests["swapped_blocks"][i] == life.blocks_moved
        for name, value in (
            ("first_token_s", times[0] if times else np.nan),
            ("last_token_s", times[-1] if times else np.nan),
            ("first_scheduled_s", scheduled_s.get(i, np.nan)),
        ):
            np.testing.assert_equal(float(requests[name][i]), value, f"{name} of {i}")
        if requests["status"][i] == FINISHED:
            assert len(times) == life.output
            assert requests["end_s"][i] == times[-1]
        else:
            assert len(times) < life.output
            assert not times or requests["end_s"][i] >= times[-1]
        assert (requests["reason"][i] > 0) == (requests["status"][i] == REJECTED)
    for name in ("prompt_tokens", "output_tokens", "priority", "request_class"):
        np.testing.assert_array_equal(requests[name], getattr(result.inputs, name))
    known = np.isfinite(result.inputs.arrival_s)  # the others follow another's end
    np.testing.assert_array_equal(requests["arrival_s"][known], result.inputs.arrival_s[known])


@EACH_CASE
def test_iteration_columns(case):
    result, columns = simulated(case), rebuilt(case).columns
    table = result.iterations
    for name, expected in columns.items():
        actual = table[name]
        if padded(result):
            if name in ("attention_pairs", "kv_tokens_read", "blocks_used"):
                continue  # finished rows count too: by hand in test_engines
            if name == "tokens":
                actual = actual - table["padding_tokens"]
        if shares_blocks(result) and name == "blocks_used":
            assert (actual <= expected).all()
            assert (actual[expected > 0] > 0).all()
            continue
        np.testing.assert_array_equal(actual, expected, name)
    assert (table["blocks_used"] <= result.kv_blocks).all()
    assert (table["padding_tokens"] > 0).any() == padded(result)


@EACH_CASE
def test_sums_agree(case):
    """Tokens by iteration, by request, and by event tell the same story."""
    result = simulated(case)
    table, requests, events = result.iterations, result.requests, result.events
    parts = ("decode_requests", "prefill_tokens", "recompute_tokens", "padding_tokens")
    np.testing.assert_array_equal(table["tokens"], sum(table[name] for name in parts))
    assert result.scheduled()["tokens"].sum() == (table["tokens"] - table["padding_tokens"]).sum()
    assert table["recompute_tokens"].sum() == requests["recomputed_tokens"].sum()
    assert table["swapped_blocks"].sum() == requests["swapped_blocks"].sum()
    ends_of_prefill = len(result.prefill_ends["row"])
    assert table["decode_requests"].sum() + ends_of_prefill == requests["emitted_tokens"].sum()
    cached = np.bincount(
        events["request"], weights=events["cached_tokens"], minlength=len(result.inputs)
    )
    found = requests["cached_tokens"] + requests["cached_again_tokens"]
    np.testing.assert_array_equal(found, cached)
    for name in (*table, *requests, *events):
        for columns in (table, requests, events):
            if name in columns:
                assert len(columns[name]) == len(next(iter(columns.values())))


@EACH_CASE
def test_the_clock(case):
    """An iteration lasts what the clock says of its own columns, and engines do one at a time."""
    result = simulated(case)
    table, cost = result.iterations, result.scenario.cost()
    seconds = cost.seconds(
        *(table[k] for k in ("tokens", "attention_pairs", "kv_tokens_read", "swapped_blocks"))
    )
    np.testing.assert_array_equal(table["end_s"], table["start_s"] + seconds)
    for engine in range(result.scenario.n_engines):
        mine = table["engine_id"] == engine
        assert (table["start_s"][mine][1:] >= table["end_s"][mine][:-1]).all()
        assert table["iteration"][mine].tolist() == list(range(mine.sum()))


@EACH_CASE
def test_events_tell_each_life(case):
    result = simulated(case)
    events, requests = result.events, result.requests
    rows = row_of_events(result)
    by_request = defaultdict(list)
    for i, request in enumerate(events["request"].tolist()):
        if EVENTS[events["event"][i]] != "refuse":
            by_request[request].append(i)
    for request, mine in by_request.items():
        names = [EVENTS[events["event"][i]] for i in mine]
        count = Counter(names)
        assert (np.diff(events["time_s"][mine]) >= 0).all()
        assert (events["engine_id"][mine] == requests["engine_id"][request]).all()
        assert count["preempt"] + count["swap_out"] == requests["preemptions"][request]
        status = requests["status"][request]
        if status == FINISHED:
            once = [name for name in names if name in ("arrive", "admit", "first_token", "finish")]
            assert once == ["arrive", "admit", "first_token", "finish"]
            assert count["resume"] == count["preempt"]
            assert count["swap_in"] == count["swap_out"]
        last = {FINISHED: "finish", REJECTED: "reject", CANCELLED: "cancel"}[status]
        assert names[-1] == last
        assert count["finish"] + count["reject"] + count["cancel"] == 1
        assert events["time_s"][mine[-1]] == requests["end_s"][request]
        # Where it was evicted, it comes back the way it went, before anything else happens to it.
        way_back = {"preempt": "resume", "swap_out": "swap_in"}
        for name, following in pairwise(names):
            if name in way_back:
                assert following in (way_back[name], "cancel", "reject")
        for i, name in zip(mine, names, strict=True):
            if name == "arrive":
                assert events["time_s"][i] == requests["arrival_s"][request]
            elif name == "first_token":
                assert events["time_s"][i] == requests["first_token_s"][request]
                assert events["time_s"][i] == result.iterations["end_s"][rows[i]]
            elif name == "finish":
                assert events["time_s"][i] == result.iterations["end_s"][rows[i]]
            elif name in ("admit", "resume", "swap_in"):
                assert events["time_s"][i] == result.iterations["start_s"][rows[i]]
    assert len(by_request) == len(requests["status"])


@EACH_CASE
def test_numbers_of_events(case):
    """What an event says of tokens and blocks is what happened."""
    result = simulated(case)
    events, scheduled, rows = result.events, scheduled_by_row(result), row_of_events(result)
    computed = computed_before(result)
    joins = {
        (int(rows[i]), int(events["request"][i])): i
        for i, code in enumerate(events["event"].tolist())
        if EVENTS[code] in ("admit", "resume")
    }
    for i, code in enumerate(events["event"].tolist()):
        name, row = EVENTS[code], int(rows[i])
        n = {column: values[i].item() for column, values in events.items()}
        if name in ("admit", "resume"):
            assert n["tokens"] == scheduled[row][n["request"]]
            assert 0 <= n["blocks_needed"] <= n["blocks_free"] <= result.kv_blocks
            assert n["tokens_free"] == -1 or n["tokens"] <= n["tokens_free"]
        elif name in ("preempt", "swap_out"):
            if row >= 0:
                assert n["tokens"] == computed[row, n["request"]]
            assert REASON["latest_admitted"] <= n["reason"] <= REASON["itself"]
            assert (n["other"] == n["request"]) == (n["reason"] == REASON["itself"])
            assert n["blocks_needed"] <= result.kv_blocks - n["blocks_free"]
            assert n["blocks_needed"] > 0 or shares_blocks(result)
        elif name == "refuse":
            assert n["reason"] > 0
            if row >= 0 and n["request"] in scheduled[row]:
                # A decision that only evicts is taken again at the same moment, and then it fits.
                assert joins[row, n["request"]] > i


def computed_before(result: SimulationResult) -> dict[tuple[int, int], int]:
    """(row, request) of those evicted before a row -> tokens they had computed until then."""
    before: dict[tuple[int, int], int] = {}
    computed = Counter()
    moves = moves_by_row(result)
    for row, members in enumerate(scheduled_by_row(result)):
        for event, request, cached, _ in moves[row]:
            if event in ("preempt", "swap_out"):
                before[row, request] = computed[request]
            if event == "preempt":
                computed[request] = 0
            elif event in ("admit", "resume"):
                computed[request] = cached
        for request, tokens in members.items():
            computed[request] += tokens
    return before
