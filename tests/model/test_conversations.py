"""Conversations: turns that follow one another, with a history that grows and is found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import LabError
from model.metrics import summary
from model.prefix_cache import content_keys
from model.requests import Requests
from model.scenario import Memory, Scenario
from model.schedulers import VllmV1
from model.simulator import simulate
from model.state import CANCELLED, FINISHED, REJECTED, UNFINISHED
from model.workload import Arrivals, Lengths, Stream, Turns, Workload
from tests.cases import profile
from tests.model.test_engines import EACH_POLICY, SECONDS
from tests.model.test_engines import run as run_on
from tests.model.test_routers import assert_same

V1 = VllmV1(max_num_seqs=8, max_num_batched_tokens=64, enable_prefix_caching=True)


def talk(
    prompts=(8, 16, 24), outputs=(4, 4, 4), think_s=2.0, more=None, **given_columns
) -> Requests:
    """One conversation from time 0 on."""
    n = len(prompts)
    return Requests.from_columns(
        arrival_s=[0.0] + [np.nan] * (n - 1),
        prompt_tokens=prompts,
        output_tokens=outputs,
        follows=[-1, *range(n - 1)],
        think_s=[think_s] * n,
        **given_columns,
    )


# ------------------------------------------------------------------ by hand


def test_turns_follow_the_answer_after_the_think_time():
    """Iterations of 1 s: turn 1 ends at 4, the next arrives at 6 and ends at 10, then 12 to 16."""
    result = run_on(V1, talk())
    assert result.requests["arrival_s"].tolist() == [0.0, 6.0, 12.0]
    assert result.requests["end_s"].tolist() == [4.0, 10.0, 16.0]
    # blocks of 4 tokens. Turn 1 leaves 8 + 4 - 1 computed tokens: 2 full blocks, 8 tokens.
    # Turn 2 leaves 16 + 4 - 1 = 19: 4 full blocks, of which the prompt of 24 finds 16 tokens.
    assert result.requests["cached_tokens"].tolist() == [0, 8, 16]


def test_the_history_holds_the_answer_too():
    """9 + 4 tokens of history are 3 full blocks: the third lies mostly in the answer."""
    result = run_on(V1, talk(prompts=(9, 20), outputs=(4, 2)))
    assert result.requests["cached_tokens"].tolist() == [0, 12]


def test_a_prompt_shorter_than_the_history_begins_anew():
    result = run_on(V1, talk(prompts=(9, 12), outputs=(4, 2)))
    assert result.requests["cached_tokens"].tolist() == [0, 0]


def test_other_conversations_share_only_the_system_prompt():
    requests = Requests.from_columns(
        arrival_s=[0.0, 100.0, np.nan],
        prompt_tokens=[16, 16, 28],
        output_tokens=[4, 4, 2],
        prefix_group=[0, 0, 0],
        shared_prefix_tokens=[8, 8, 8],
        follows=[-1, -1, 1],
        think_s=[0.0] * 3,
    )
    result = run_on(V1, requests)
    # the second finds the 8 shared tokens, its own next turn 16 + 4 - 1 -> 16 tokens
    assert result.requests["cached_tokens"].tolist() == [0, 8, 16]
    key = content_keys(requests, 4)
    assert [key(0, i) == key(1, i) for i in range(4)] == [True, True, False, False]
    assert [key(1, i) == key(2, i) for i in range(4)] == [True] * 4


def test_a_refused_turn_ends_the_conversation():
    result = run_on(V1, talk(prompts=(8, 30, 40)), max_model_len=24)
    assert result.requests["status"].tolist() == [FINISHED, REJECTED, UNFINISHED]
    assert np.isnan(result.requests["arrival_s"][2])
    assert summary(result)["requests"] == 2


def test_a_client_that_gives_up_ends_the_conversation():
    result = run_on(V1, talk(patience_s=[np.inf, 2.5, np.inf]))
    assert result.requests["status"].tolist() == [FINISHED, CANCELLED, UNFINISHED]
    # it arrives at 6 and gives up at 8.5, which the engine sees at the end of that iteration
    assert result.requests["end_s"][1] == 9.0
    assert summary(result)["unfinished_requests"] == 0


# ------------------------------------------------------------------ the workload


STREAM = Stream(
    n_requests=200,
    arrivals=Arrivals("poisson", rate_per_s=2.0),
    prompt=Lengths("geometric", 40.0),
    output=Lengths("geometric", 20.0),
    turns=Turns("geometric", 4.0, think_s=1.0, message_tokens=10.0),
)


def chains(requests: Requests) -> list[list[int]]:
    rows: dict[int, list[int]] = {}
    for row, followed in enumerate(requests.follows.tolist()):
        rows[row] = [row] if followed < 0 else [*rows.pop(followed), row]
    return sorted(rows.values())


def test_prompts_grow_by_the_answer_and_a_message():
    requests = Workload((STREAM,)).generate(3)
    assert len(requests) == 200
    lengths = [len(chain) for chain in chains(requests)]
    assert np.mean(lengths) == pytest.approx(4.0, rel=0.3)
    rows = np.flatnonzero(requests.follows >= 0)
    followed = requests.follows[rows]
    history = requests.prompt_tokens[followed] + requests.output_tokens[followed]
    message = requests.prompt_tokens[rows] - history
    assert (message >= 1).all()
    assert message.mean() == pytest.approx(10.0, rel=0.2)


def test_fixed_turns_and_messages_are_exact():
    turns = Turns("fixed", 3.0, message_kind="fixed", message_tokens=7.0, think_kind="fixed")
    stream = replace(
        STREAM,
        n_requests=7,
        turns=turns,
        prompt=Lengths("fixed", 20.0),
        output=Lengths("fixed", 5.0),
    )
    requests = Workload((stream,)).generate(0)
    prompts = [requests.prompt_tokens[chain].tolist() for chain in chains(requests)]
    assert prompts == [[20, 32, 44], [20, 32, 44], [20]]  # the last conversation is cut
    assert (requests.think_s == 10.0).all()


def test_without_turns_nothing_changes():
    """Children of the seed are appended, so the old columns draw what they always drew."""
    plain = replace(STREAM, turns=Turns())
    requests = Workload((plain,)).generate(3)
    assert requests.follows is None
    assert requests.think_s is None
    talking = Workload((STREAM,)).generate(3)
    n = int((talking.follows < 0).sum())
    np.testing.assert_array_equal(talking.arrival_s[:n], requests.arrival_s[:n])
    np.testing.assert_array_equal(talking.prompt_tokens[:n], requests.prompt_tokens[:n])


def test_more_requests_extend_the_same_conversations():
    few, many = (Workload((replace(STREAM, n_requests=n),)).generate(3) for n in (120, 200))
    chains_of_few = chains(few)[:-1]  # its last one may be cut
    by_start = {chain[0]: chain for chain in chains(many)}
    for chain in chains_of_few:
        other = by_start[chain[0]]
        for name in ("prompt_tokens", "output_tokens", "think_s"):
            np.testing.assert_array_equal(
                getattr(few, name)[chain], getattr(many, name)[other], name
            )


def test_another_stream_disturbs_no_conversation():
    other = Stream(name="other", n_requests=30, arrivals=Arrivals("constant", rate_per_s=5.0))
    alone, both = Workload((STREAM,)).generate(3), Workload((STREAM, other)).generate(3)
    kept = both.take(both.request_class == 0)
    for name in ("arrival_s", "prompt_tokens", "output_tokens", "follows", "think_s"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(alone, name), name)


def test_patience_runs_from_the_arrival_of_each_turn():
    requests = Workload((replace(STREAM, patience_s=3.0, patience_kind="fixed"),)).generate(3)
    first = requests.follows < 0
    np.testing.assert_allclose((requests.cancel_s - requests.arrival_s)[first], 3.0)
    assert np.isinf(requests.cancel_s[~first]).all()
    assert (requests.patience_s == 3.0).all()


def test_a_closed_loop_has_no_turns():
    with pytest.raises(LabError, match="closed loop"):
        replace(STREAM, arrivals=Arrivals("closed_loop"))


@pytest.mark.parametrize(
    "follows",
    [[-1, 2, 1], [-1, 0, 0], [-1, 1, 0], [-1, 0, 3]],
    ids=["circle", "fork", "self", "none"],
)
def test_impossible_conversations_are_refused(follows):
    with pytest.raises(LabError, match="follows is"):
        Requests.from_columns(
            arrival_s=[0.0, np.nan, np.nan],
            prompt_tokens=[1] * 3,
            output_tokens=[1] * 3,
            follows=follows,
        )


def test_a_follower_says_no_arrival():
    with pytest.raises(LabError, match="follows is 0"):
        Requests.from_columns(
            arrival_s=[0.0, 1.0], prompt_tokens=[1, 1], output_tokens=[1, 1], follows=[-1, 0]
        )


# ------------------------------------------------------------------ laws


@EACH_POLICY
@pytest.mark.parametrize("n_engines", [1, 3])
def test_every_turn_waits_for_the_one_before(policy, n_engines):
    requests = Workload((replace(STREAM, n_requests=120, patience_s=60.0),)).generate(5)
    given_memory = {"kv_blocks": 100, "max_model_len": 300, "n_engines": n_engines}
    result = run_on(policy, requests, **given_memory)
    table = result.requests
    rows = np.flatnonzero(requests.follows >= 0)
    before = requests.follows[rows]
    came = np.isfinite(table["arrival_s"][rows])
    np.testing.assert_array_equal(came, table["status"][before] == FINISHED)
    np.testing.assert_allclose(
        table["arrival_s"][rows[came]], table["end_s"][before[came]] + requests.think_s[rows[came]]
    )
    assert_same(result, run_on(policy, requests, **given_memory, fast_forward=False))


@profile(40)
@given(
    data=st.data(),
    n_engines=st.integers(1, 3),
    think_s=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_all_turns_are_served_and_find_at_most_the_history(data, n_engines, think_s):
    turns = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    small = st.integers(1, 12)
    columns = {name: [] for name in ("arrival_s", "prompt_tokens", "output_tokens", "follows")}
    for length in turns:
        prompt = 0
        for k in range(length):
            prompt += data.draw(small)
            output = data.draw(small)
            row = len(columns["follows"])
            columns["arrival_s"].append(np.nan if k else data.draw(small) * 0.5)
            columns["prompt_tokens"].append(prompt)
            columns["output_tokens"].append(output)
            columns["follows"].append(row - 1 if k else -1)
            prompt += output
    requests = Requests.from_columns(**columns, think_s=[think_s] * len(columns["follows"]))
    result = run_on(V1, requests, n_engines=n_engines)
    table = result.requests
    assert (table["status"] == FINISHED).all()
    followed = requests.follows
    computed = (requests.prompt_tokens + requests.output_tokens - 1)[followed]
    most = np.where(followed < 0, 0, computed // 4 * 4)
    assert (table["cached_tokens"] <= most).all()
    if n_engines == 1:  # memory is ample here
        least = np.minimum(most, (requests.prompt_tokens - 1) // 4 * 4)
        assert (table["cached_tokens"] == least).all()


def test_work_is_in_proportion_to_ends():
    """A run of conversations decides about as often as there are arrivals, ends and prefills."""
    scenario = Scenario(
        workload=Workload((replace(STREAM, n_requests=1000),)),
        policy=VllmV1(max_num_seqs=64),
        clock=SECONDS,
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=100_000, block_size=16),
    )
    result = simulate(scenario)
    assert (result.requests["status"] == FINISHED).all()
    assert result.stats["decisions"] < 5 * 1000
