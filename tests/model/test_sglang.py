"""SGLang's scheduler by hand: its rules on constructed states, its numbers (F42), its radix tree.

Decision by decision it is checked against a second simulator in `test_against_reference.py`.
Iterations last one second here, unless said otherwise; requests are (arrival, prompt, output).
"""

from __future__ import annotations

import numpy as np
import pytest

import formulas
from model.engine import Engine
from model.events import EVENT, REASON
from model.film_stays import stays
from model.iteration_time import Linear
from model.kv_cache import Memory
from model.radix_cache import RadixCache, RadixTree
from model.requests import Requests
from model.scenario import Scenario, TraceReference
from model.schedulers import Sglang
from model.schedulers.sglang_reservation import NewTokenRatio
from model.simulator import simulate
from model.state import EngineState
from model.workload import Arrivals, Lengths, Stream, Workload
from tests.adapter import request_row, rows_of, simulate_model
from tests.model.test_against_reference import assert_bit_equal

PLAIN = {"block_size": 1, "max_num_seqs": 8, "disable_radix_cache": True}


def played(requests: dict, columns: dict | None = None, **scheduler):
    """The result for requests by name; `columns` are further columns by name."""
    rows = [
        request_row(name, *row, **(columns or {}).get(name, {})) for name, row in requests.items()
    ]
    config = {
        "policy": "sglang",
        "scheduler": PLAIN | scheduler,
        "iteration_time": {"base_s": 1.0, "per_scheduled_token_s": 0.0},
    }
    return simulate_model(config, rows)


def schedule(requests: dict, columns: dict | None = None, **scheduler) -> list[dict]:
    return [row["scheduled"] for row in rows_of(played(requests, columns, **scheduler))]


def admissions(rows: list[dict]) -> str:
    """Names in the order in which they were first computed."""
    return "".join(dict.fromkeys(name for row in rows for name in row))


def events(result, event: str, reason: str = "none") -> list[int]:
    """Where the log has such events."""
    log = result.events
    chosen = (log["event"] == EVENT[event]) & (log["reason"] == REASON[reason])
    return np.flatnonzero(chosen).tolist()


# ------------------------------------------------------------------ admission


THREE = {"A": (0, 7, 4), "B": (0, 6, 4), "C": (0, 5, 3)}
"""Workload W of the other engines' hand traces, in 6 blocks of 4 tokens."""


def test_a_reservation_of_most_outputs_keeps_the_second_out():
    """When A has its first token, 4 blocks are free: 16 − 0.7 · 3 = 13.9 tokens.

    B wants 6 + 4 and a block of 4 tokens more: 14, which must be less than what is free. When B has
    its first token, C's 5 + 3 + 4 are.
    """
    rows = schedule(THREE, block_size=4, kv_blocks=6)
    both = {"B": 1, "C": 1}
    assert rows == [{"A": 7}, *[{"A": 1}] * 3, {"B": 6}, {"C": 5}, both, both, {"B": 1}]


def test_half_the_conservativeness_lets_the_second_in():
    """16 − 0.35 · 3 = 14.95 tokens are free for the 14 that B wants; C waits until both end."""
    rows = schedule(THREE, block_size=4, kv_blocks=6, schedule_conservativeness=0.5)
    both = {"A": 1, "B": 1}
    assert rows == [{"A": 7}, {"B": 6}, both, both, both, {"C": 5}, {"C": 1}, {"C": 1}]


def test_prompts_go_before_decodes():
    """A decodes only while no prompt can be admitted; mixed chunks take it along."""
    requests = {"A": (0, 2, 4), "B": (1, 7, 2)}
    assert schedule(requests, kv_blocks=100, chunked_prefill_size=3) == [
        {"A": 2},
        *[{"B": 3}, {"B": 3}, {"B": 1}],
        *[{"A": 1, "B": 1}, {"A": 1}, {"A": 1}],
    ]
    mixed = schedule(requests, kv_blocks=100, chunked_prefill_size=3, enable_mixed_chunk=True)
    assert mixed == [
        {"A": 2},
        *[{"A": 1, "B": 2}, {"A": 1, "B": 2}, {"A": 1, "B": 2}],
        *[{"B": 1}, {"B": 1}],
    ]


def test_a_mixed_batch_has_its_prompts_first():
    """Of requests with equal outputs and prompts the last of the batch is retracted first.

    A new prompt beside decodes joins in front of them; without mixing it joins behind.
    """

    def batch(mixed: bool) -> list[int]:
        requests = Requests.from_columns(
            arrival_s=[0.0, 0.0, 1.0], prompt_tokens=[2, 2, 2], output_tokens=[9, 9, 9]
        )
        policy = Sglang(enable_mixed_chunk=mixed, disable_radix_cache=True)
        state = EngineState(
            policy,
            requests,
            engine_id=0,
            kv_blocks=100,
            block_size=1,
            cpu_blocks=0,
            max_model_len=None,
            prefill_token_cap=None,
        )
        engine = Engine(state, Linear(1.0).cost(None, None, Memory(), 1))
        for request, arrival_s in enumerate(requests.arrival_s.tolist()):
            engine.advance(arrival_s)
            engine.deliver(request, arrival_s)
        engine.advance(2.0)
        return list(state.running)

    assert batch(mixed=True) == [2, 0, 1]
    assert batch(mixed=False) == [0, 1, 2]


def test_only_one_prompt_is_in_pieces():
    """B finds 1 token of the budget after A's last chunk, which is no whole block of 2."""
    requests = {"A": (0, 7, 1), "B": (0, 5, 1)}
    rows = schedule(requests, kv_blocks=100, block_size=2, chunked_prefill_size=4)
    assert rows == [{"A": 4}, {"A": 3}, {"B": 4}, {"B": 1}]
    rows = schedule(requests, kv_blocks=100, block_size=1, chunked_prefill_size=4)
    assert rows == [{"A": 4}, {"A": 3, "B": 1}, {"B": 4}]


def test_without_chunks_the_first_prompt_may_exceed_the_budget():
    requests = {"A": (0, 9, 1), "B": (0, 3, 1), "C": (0, 3, 1)}
    rows = schedule(requests, kv_blocks=100, chunked_prefill_size=-1, max_prefill_tokens=5)
    assert rows == [{"A": 9}, {"B": 3}, {"C": 3}]


def test_a_full_batch_tries_nobody_until_one_leaves():
    """D is refused beside A: 60 + 30 + 1 wanted, 100 − 0.7 · 29 free. C waits behind it.

    When D's client has given up, C would fit, but is not tried before A leaves.
    """
    requests = {"A": (0, 10, 30), "D": (1, 60, 30), "C": (2, 1, 1)}
    result = played(requests, kv_blocks=110)
    assert admissions([row["scheduled"] for row in rows_of(result)]) == "ADC"
    assert len(events(result, "refuse", "no_reservation")) == 1
    result = played(requests, {"D": {"cancel_s": 5.0}}, kv_blocks=110)
    (where,) = events(result, "refuse", "batch_full")
    assert result.inputs.request_id[result.events["request"][where]] == "C"
    assert [row["scheduled"] for row in rows_of(result)] == [{"A": 10}, *[{"A": 1}] * 29, {"C": 1}]


def test_a_request_as_large_as_the_memory_is_never_admitted():
    """Prompt, answer and a block more must be less than the memory."""
    assert len(schedule({"A": (0, 5, 3)}, block_size=4, kv_blocks=4)) == 3  # 8 + 4 < 16
    assert schedule({"A": (0, 9, 3)}, block_size=4, kv_blocks=4) == []
    assert schedule({"A": (0, 5, 3)}, block_size=4, kv_blocks=4, chunked_prefill_size=3) == []


# ------------------------------------------------------------------ F42


def test_the_share_decays_from_0_7_to_0_098_in_600_steps():
    ratio = NewTokenRatio(1.0)
    assert [ratio.at(tick) for tick in (0, 300, 600, 5000)] == pytest.approx(
        [0.7, 0.399, 0.098, 0.098]
    )
    share = formulas.get("F42a")
    for conservativeness in (0.1, 0.3, 1.0):
        ratio = NewTokenRatio(conservativeness)
        for tick in (0, 1, 17, 599, 600, 601):
            expected = share.evaluate(
                {"rho_0": 0.7, "s_cons": conservativeness, "k_dec": tick, "k_end": 600,
                 "phi_low": 0.14}
            )  # fmt: skip
            assert ratio.at(tick) == pytest.approx(float(expected), rel=1e-12)


def test_no_more_than_everything_is_reserved():
    assert NewTokenRatio(2.0).at(0) == 1.0  # not 1.4


def test_after_a_retraction_the_share_is_what_was_used():
    """Two that stay have 10 outputs each: (20 + 2 · 20)/(asked + 1), at most 1."""
    ratio = NewTokenRatio(1.0)
    ratio.retracted(99, running=2, written=20, asked=200)
    assert ratio.at(100) == pytest.approx(60 / 201)
    expected = formulas.get("F42b").evaluate({"N_dec": 20, "B": 2, "N_new": 200, "k_ret": 20})
    assert ratio.at(100) == pytest.approx(float(expected))
    assert ratio.at(101) == pytest.approx(60 / 201 - 0.602 / 600)
    ratio.retracted(99, running=2, written=20, asked=40)
    assert ratio.at(100) == 1.0


@pytest.mark.parametrize("steps", [0, 1, 100, 300, 600, 700])
def test_the_reservation_along_a_run(steps):
    """B comes when A has decoded so often; what it is refused for is F42's number.

    Tokens are blocks here. A: prompt 10, output 1,000; B: 10 and 500, and a block more.
    """
    result = played({"A": (0, 10, 1000), "B": (steps + 1, 10, 500)}, kv_blocks=1050)
    share = 0.7 * (1 - 0.86 * min(steps, 600) / 600)
    rest = 1000 - 1 - steps
    needed = formulas.get("F42").evaluate(
        {"rho_n": share, "N_rest": rest, "n_ext": 10, "n_new": 500, "n_clip": 4096}
    )
    (where,) = events(result, "refuse", "no_reservation")
    free = 1050 - 10 - steps
    assert needed + 1 > free
    assert result.events["blocks_free"][where] == free
    assert result.events["blocks_needed"][where] == int(float(needed) + 1 + 1e-9) + 1


def test_steps_beside_prompts_leave_the_share_as_it_is():
    """b's 100 tokens take 50 steps beside a, which may then still write 50 tokens.

    c wants 210 + 10 + 1 beside 0.7 · 50 and a's next token. After 50 decode steps alone the share
    would be 0.65 and three tokens fewer would do.
    """
    requests = {"a": (0, 2, 101), "b": (1, 100, 1), "c": (50.5, 210, 10)}
    result = played(requests, kv_blocks=300, chunked_prefill_size=3, enable_mixed_chunk=True)
    (refused,) = events(result, "refuse", "no_reservation")
    assert result.events["iteration"][refused] == 51
    assert result.events["blocks_needed"][refused] == 221 + 35 + 1 + 1


def test_the_share_starts_anew_after_an_idle_spell():
    """B has decoded 700 steps by itself, then everybody is gone; A and C are as above."""
    rows = {"B": (0, 10, 701), "A": (2000, 10, 1000), "C": (2001, 10, 500)}
    result = played(rows, kv_blocks=1050)
    (where,) = events(result, "refuse", "no_reservation")
    assert result.events["blocks_needed"][where] == int(0.7 * 999 + 511) + 1


def test_long_answers_are_reserved_up_to_4096_tokens():
    """All of the rest is reserved. 8,999 + 1,011 would not fit in 9,100 − 10 tokens; 4,096 do."""
    requests = {"A": (0, 10, 9000), "B": (1, 10, 1000)}
    rows = schedule(requests, kv_blocks=9100, schedule_conservativeness=2.0)
    assert rows[1] == {"B": 10}


def test_the_reservation_goes_by_what_clients_ask_for():
    """Both will write 5 tokens. Asking for 60 they do not fit together, asking for that they do."""
    requests = {"A": (0, 10, 5), "B": (0, 10, 5)}
    assert schedule(requests, kv_blocks=100)[0] == {"A": 10, "B": 10}
    assert schedule(requests, kv_blocks=100, max_new_tokens=60)[0] == {"A": 10}


# ------------------------------------------------------------------ retraction


GREEDY = {"schedule_conservativeness": 0.0}
YOUNGEST = {"a": (0, 4, 20), "b": (1, 6, 20), "c": (2, 3, 20)}


def test_fewest_outputs_go_first_then_the_longest_prompt():
    """In 40 tokens a, b and c decode 9 times from 4 + 6 + 3, then not one token is free.

    All have 10 outputs, so b goes, whose prompt is longest. Its 15 tokens last for 7 steps of a
    and c. With 1 free and 17 outputs each, a goes, whose prompt is longer than c's. c ends alone.
    Of those retracted b stands in front: it went first, to the back of the queue. It comes back
    with 6 + 10 known tokens, and beside its reservation a's 4 + 17 wait until it has ended.
    """
    rows = schedule(YOUNGEST, kv_blocks=40, **GREEDY)
    three, two = {"a": 1, "b": 1, "c": 1}, {"a": 1, "c": 1}
    assert rows[:22] == [{"a": 4}, {"b": 6}, {"c": 3}, *[three] * 9, *[two] * 7, *[{"c": 1}] * 3]
    assert rows[22:24] == [{"b": 16}, {"b": 1}]
    result = played(YOUNGEST, kv_blocks=40, **GREEDY)
    preempted = [(i, row["preempted"]) for i, row in enumerate(rows_of(result)) if row["preempted"]]
    assert preempted == [(12, ["b"]), (19, ["a"])]
    assert len(events(result, "preempt", "fewest_outputs")) == 2


def test_those_who_have_written_more_stay_whatever_their_prompt():
    """d came later and has fewer outputs, so it goes, although its prompt is the shortest.

    When it comes 46 − 13 tokens are free, and it wants 1 + 30 and one more.
    """
    requests = {"a": (0, 9, 30), "d": (5, 1, 30)}
    result = played(requests, kv_blocks=46, **GREEDY)
    first = next(row for row in rows_of(result) if row["preempted"])
    assert first["preempted"] == ["d"]


def test_by_priority_the_least_important_goes():
    requests = {"a": (0, 9, 30), "d": (5, 1, 30)}
    result = played(
        requests, {"a": {"priority": 1}}, kv_blocks=46, retraction_policy="priority", **GREEDY
    )
    first = next(row for row in rows_of(result) if row["preempted"])
    assert first["preempted"] == ["a"]


def test_a_retraction_raises_the_reservation():
    """b is tried again at once: (11 + 11 + 2 · 20)/(20 + 20 + 1) is above 1, all is reserved.

    When it goes a and c have 10 outputs, so at the next decision 9 each are outstanding: b wants
    6 + 10 known tokens, the other 10, a block more, and 18.
    """
    result = played(YOUNGEST, kv_blocks=40, **GREEDY)
    first = events(result, "refuse", "no_reservation")[0]
    log = result.events
    assert result.inputs.request_id[log["request"][first]] == "b"
    assert log["iteration"][first] == 13
    assert log["blocks_needed"][first] == 16 + 10 + 1 + 18 + 1


def test_a_retracted_prompt_may_survive_in_the_tree():
    """b goes with 32 outputs: they are given back at once, its 6 prompt tokens stay in the tree.

    One request is left, for which 20 tokens must be empty, and more are: nothing is evicted. When
    b returns, its prompt is found.
    """
    requests = {"a": (0, 4, 60), "b": (1, 6, 60)}
    tree = {"disable_radix_cache": False}
    rows = rows_of(played(requests, kv_blocks=72, **GREEDY, **tree))
    (gone,) = (row for row in rows if row["preempted"])
    assert gone["preempted"] == ["b"]
    assert [row["cached"] for row in rows if row["cached"]] == [{"b": 6}]
    # Of three, two are left, and 40 tokens must be empty: b's prompt is evicted.
    rows = rows_of(played(YOUNGEST, kv_blocks=40, **GREEDY, **tree))
    assert not any("b" in row["cached"] for row in rows)


def test_outputs_of_a_retracted_request_are_computed_again():
    """Five answers reach the end of their second page of 64 together; four of 14 pages are free.

    The last one goes, its page of outputs with it, and the four take the free ones: nothing has to
    be evicted. When they have ended, its prompt is found, and its outputs are not.
    """
    requests = dict.fromkeys("abcde", (0, 64, 70))
    rows = rows_of(
        played(requests, kv_blocks=14, block_size=64, disable_radix_cache=False, **GREEDY)
    )
    assert [row["preempted"] for row in rows if row["preempted"]] == [["e"]]
    assert [row["cached"] for row in rows if row["cached"]] == [{"e": 64}]


def test_conservativeness_trades_waiting_for_retractions():
    """C18: less is reserved, requests wait less, and more of them are retracted.

    Answers have 400 tokens on average, and clients ask for 2,000.
    """

    def outcome(conservativeness: float) -> tuple[list[float], int]:
        results = [overload(seed, conservativeness) for seed in (1, 2, 3)]
        columns = [result.requests for result in results]
        waits = [float((c["first_scheduled_s"] - c["arrival_s"]).mean()) for c in columns]
        return waits, sum(int(c["preemptions"].sum()) for c in columns)

    careful, none = outcome(1.0)
    bold, some = outcome(0.1)
    assert all(less < more for less, more in zip(bold, careful, strict=True))
    assert none == 0 < some


def overload(seed: int, conservativeness: float = 1.0, *, fast_forward: bool = True, **policy):
    stream = Stream(
        n_requests=400,
        arrivals=Arrivals("poisson", rate_per_s=20.0),
        prompt=Lengths("exponential", mean_tokens=100, max_tokens=2048),
        output=Lengths("geometric", mean_tokens=400, max_tokens=2000),
    )
    given = {"max_new_tokens": 2000, "schedule_conservativeness": conservativeness}
    return run(
        Workload((stream,)).generate(seed),
        Sglang(**(given | policy)),
        kv_blocks=1000,
        fast_forward=fast_forward,
    )


def run(requests: Requests, policy: Sglang, *, kv_blocks: int, fast_forward: bool = True):
    scenario = Scenario(
        workload=TraceReference("sglang", "0" * 64, len(requests)),
        policy=policy,
        clock=Linear(),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=kv_blocks),
    )
    return simulate(scenario, requests, fast_forward=fast_forward)


# ------------------------------------------------------------------ order of the queue


def shared(group: int, tokens: int = 40) -> dict:
    return {"prefix_group": group, "shared_prefix_tokens": tokens}


ONE_PLACE = {"max_num_seqs": 1, "kv_blocks": 1000, "disable_radix_cache": False}


def test_the_longest_cached_prefix_goes_first():
    requests = {"a": (0, 50, 3), "b": (1, 50, 3), "c": (1, 50, 3)}
    columns = {"a": shared(0), "c": shared(0)}
    assert admissions(schedule(requests, columns, schedule_policy="lpm", **ONE_PLACE)) == "acb"
    assert admissions(schedule(requests, columns, schedule_policy="fcfs", **ONE_PLACE)) == "abc"
    without_tree = ONE_PLACE | {"disable_radix_cache": True, "schedule_policy": "lpm"}
    assert admissions(schedule(requests, columns, **without_tree)) == "abc"


def test_of_a_new_beginning_only_one_is_let_in_front():
    """b and c share 40 tokens that nobody has computed: d takes the second place, not c.

    A step later c finds them. Up to 31 tokens do not count.
    """
    requests = {"a": (0, 5, 3), "b": (1, 50, 3), "c": (1, 50, 3), "d": (1, 50, 3)}
    for tokens, order in ((40, "abdc"), (32, "abdc"), (31, "abcd")):
        columns = {"b": shared(1, tokens), "c": shared(1, tokens)}
        three = ONE_PLACE | {"max_num_seqs": 3}
        result = played(requests, columns, schedule_policy="lpm", **three)
        assert admissions([row["scheduled"] for row in rows_of(result)]) == order, tokens
        assert result.requests["cached_tokens"].tolist() == [0, 0, tokens * (order == "abdc"), 0]


@pytest.mark.parametrize(("others", "place"), [(127, 1), (128, 2), (130, 4)])
def test_above_128_waiting_nobody_is_matched(others, place):
    """z, whose prefix is cached, comes last; once 128 are left in the queue it is found."""
    requests = {"a": (0, 50, 3)} | {f"x{i}": (1, 50, 3) for i in range(others)}
    requests["z"] = (1, 50, 3)
    columns = {"a": shared(0), "z": shared(0)}
    result = played(requests, columns, schedule_policy="lpm", **ONE_PLACE)
    first = np.argsort(result.requests["first_scheduled_s"], kind="stable")
    names = [result.inputs.request_id[i] for i in first]
    assert names.index("z") == place


def test_the_longest_answer_goes_first_with_lof():
    requests = {"a": (0, 5, 3), "b": (1, 5, 3), "c": (1, 5, 9), "d": (1, 5, 6)}
    assert admissions(schedule(requests, schedule_policy="lof", **ONE_PLACE)) == "acdb"
    columns = {"a": {"priority": 1}, "b": {"priority": 0}, "c": {"priority": 2}}
    rows = schedule(requests, columns, enable_priority_scheduling=True, **ONE_PLACE)
    assert admissions(rows) == "abdc"


# ------------------------------------------------------------------ the radix tree


def letters(*texts: str):
    """Content of single letters as pages; equal beginnings are equal."""
    return lambda request, i: texts[request][: i + 1]


def test_a_prompt_of_any_length_is_one_node_until_another_parts_from_it():
    tree = RadixTree(letters("abcdefgh", "abcdxy", "abcdefgh", "q"))
    node, found = tree.insert(0, 8)
    assert (node.start, node.end, found) == (0, 8, 0)
    node, found = tree.insert(1, 6)
    assert (node.start, node.end, found) == (4, 6, 4)
    assert [(n.start, n.end) for n in tree.root.children.values()] == [(0, 4)]
    (trunk,) = tree.root.children.values()
    assert sorted((n.start, n.end) for n in trunk.children.values()) == [(4, 6), (4, 8)]
    assert tree.walk(2, 8).end == 8
    assert tree.walk(2, 6).end == 6
    assert tree.walk(3, 1) is tree.root


def tree_of(*texts: str, blocks: int = 20) -> RadixCache:
    key = letters(*texts)
    return RadixCache(blocks, 1, key, [len(text) for text in texts], key)


def computed(cache: RadixCache, request: int, tokens: int) -> int:
    """Let a request join, compute so many tokens and end; how many it found."""
    node, _ = cache.lookup(request, tokens + 1)
    cache.adopt(request, node)
    cache.take(tokens - node.end)
    cache.fill(request, tokens)
    cache.settle()
    cache.release(request, tokens, tokens)
    return node.end


def test_the_least_recently_used_leaf_is_evicted_whole():
    cache = tree_of("abcdef", "abcxyz", "ghijkl", "mnop")
    assert [computed(cache, request, 6) for request in (0, 1, 2)] == [0, 3, 0]
    # 15 of 20 pages hold something: abc, def, xyz, ghijkl. def is the oldest leaf.
    cache.make_room(6)
    assert [cache.lookup(request, 7)[0].end for request in (0, 1, 2)] == [3, 6, 6]
    # xyz was looked at before ghijkl, and abc is no leaf before xyz has gone.
    cache.make_room(9)
    assert cache.lookup(1, 7)[0].end == 3
    cache.make_room(20)
    assert [cache.lookup(request, 7)[0].end for request in (0, 1, 2)] == [0, 0, 0]


def test_what_is_in_use_is_not_evicted():
    cache = tree_of("abcdef", "abcxyz")
    computed(cache, 0, 6)
    node, unused = cache.lookup(1, 6)
    assert (node.end, unused) == (3, 3)
    cache.adopt(1, node)
    assert cache.lookup(1, 6)[1] == 0
    cache.make_room(20)
    assert cache.lookup(0, 7)[0].end == 3


def test_equal_content_computed_twice_is_kept_once():
    """Two requests that compute the same at the same time: the second's pages come free."""
    cache = tree_of("abcd", "abcd")
    for request in (0, 1):
        node, _ = cache.lookup(request, 5)
        cache.adopt(request, node)
        cache.take(4)
        cache.fill(request, 4)
    assert cache.settle() == 4
    assert cache.release(0, 4, 4) == 0  # the other one uses them
    assert cache.release(1, 4, 4) == 4


def test_outputs_are_kept_when_a_request_ends_and_not_when_it_is_retracted():
    for retracted, found in ((False, 6), (True, 4)):
        cache = RadixCache(20, 1, letters("abcdef"), [4], letters("abcdef"))
        node, _ = cache.lookup(0, 4)
        cache.adopt(0, node)
        cache.take(4)
        cache.fill(0, 4)
        cache.settle()
        cache.take(2)
        if retracted:
            cache.forget(0)
        assert cache.release(0, 6, 6) == 6
        assert cache.lookup(0, 7)[0].end == found


def test_requests_of_one_step_do_not_find_each_other():
    """Both compute the shared 40 tokens; the one that comes a step later finds them."""
    requests = {"a": (0, 50, 3), "b": (0, 50, 3), "c": (1, 50, 3)}
    columns = {name: shared(0) for name in requests}
    result = played(requests, columns, kv_blocks=1000, disable_radix_cache=False)
    assert result.requests["cached_tokens"].tolist() == [0, 0, 40]
    assert result.iterations["blocks_used"][0] == 100
    assert result.iterations["blocks_used"][1] == 100 - 40 + 10


# ------------------------------------------------------------------ counts


@pytest.mark.parametrize("policy", [{}, {"disable_radix_cache": True}], ids=["tree", "no tree"])
def test_decisions_are_in_proportion_to_what_changes(policy):
    """A request: arrival, admission, end of the prompt, departure, and one more try of the next.

    Retractions add a decision before, one that retracts, and the return.
    """
    result = overload(2, 0.1, **policy)
    retracted = int(result.requests["preemptions"].sum())
    assert result.stats["decisions"] <= 5 * 400 + 7 * retracted
    assert len(result.iterations["start_s"]) > 3 * result.stats["decisions"]
    assert_bit_equal(result, overload(2, 0.1, fast_forward=False, **policy))


def test_a_long_prompt_is_one_run_of_chunks():
    """Alone: admission with the first chunk, the equal ones, the last one, the decodes.

    The tree takes each chunk in by itself.
    """
    requests = Requests.from_columns(arrival_s=[0.0], prompt_tokens=[2040], output_tokens=[100])
    for no_tree, decisions in ((True, 4), (False, 17)):
        policy = Sglang(chunked_prefill_size=128, disable_radix_cache=no_tree)
        result = run(requests, policy, kv_blocks=1000)
        assert result.stats["decisions"] == decisions
        assert (result.iterations["prefill_tokens"] > 0).sum() == 16
        slow = run(requests, policy, kv_blocks=1000, fast_forward=False)
        assert_bit_equal(result, slow)


def test_chunks_beside_a_promise_are_as_with_single_steps():
    """Another decodes and a third waits while a long prompt is computed in pieces."""
    requests = Requests.from_columns(
        arrival_s=[0.0, 0.01, 0.02],
        prompt_tokens=[100, 6000, 300],
        output_tokens=[900, 50, 700],
    )
    for kv_blocks in (440, 460, 480, 520, 1000):
        policy = Sglang(chunked_prefill_size=64, disable_radix_cache=True)
        fast = run(requests, policy, kv_blocks=kv_blocks)
        assert_bit_equal(fast, run(requests, policy, kv_blocks=kv_blocks, fast_forward=False))
        assert fast.stats["decisions"] < 20


def test_a_film_shows_retracted_requests_at_the_back_of_the_queue():
    """b and a are retracted while d, which came before, waits for the whole memory."""
    requests = YOUNGEST | {"d": (8, 5, 30)}
    result = played(requests, kv_blocks=40, **GREEDY)
    waits, _ = stays(result, 0, len(result.iterations["start_s"]), keeps_finished_rows=False)
    names = [result.inputs.request_id[i] for i in waits["request"]]
    place = dict(zip(names, waits["key"].tolist(), strict=True))  # the last wait of each
    assert place["d"] < place["b"] < place["a"]


def test_a_step_beside_prompts_does_not_let_the_share_decay():
    ratio = NewTokenRatio(1.0)
    ratio.skip_tick()
    assert ratio.at(1) == 0.7
    assert ratio.at(301) == pytest.approx(0.399)
