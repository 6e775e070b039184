"""Rules of eviction: examples by hand, and the simulated engines follow the same rules."""

from dataclasses import replace

import numpy as np
import pytest

from model import catalogue
from model.events import EVENT
from model.experiment import with_policy
from model.simulator import simulate
from validation.preemption import Costs
from validation.preemption_victims import (
    EXAMPLES,
    RULES,
    Running,
    bill,
    blocks_of,
    cheapest,
    victims,
)

COSTS = Costs()
FIRST = EXAMPLES[0]


def names(rule, running=FIRST, blocks=40):
    return "".join(request.name for request in victims(rule, running, blocks, COSTS))


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("vllm_v0", "FE", "F"),
        ("vllm_v1", "C", "DF"),
        ("vllm_v1_priority", "E", "C"),
        ("sarathi", "C", "DF"),
        ("sglang", "DC", "E"),
        ("just_enough", "B", "F"),
        ("most_left", "FB", "C"),
    ],
)
def test_rules_by_hand(rule, first, second):
    assert names(rule) == first
    assert names(rule, EXAMPLES[1]) == second


def test_ties_of_sglang_go_to_the_longest_prompt():
    tied = (Running("A", 100, 5, 9, 1, 1), Running("B", 300, 5, 9, 2, 2),
            Running("C", 200, 5, 9, 3, 3))  # fmt: skip
    assert names("sglang", tied, 1) == "B"


def test_priorities_come_before_arrival():
    running = (Running("A", 64, 1, 9, 1, 1, 5), Running("B", 64, 1, 9, 2, 2, 0),
               Running("C", 64, 1, 9, 3, 3, 5))  # fmt: skip
    assert names("vllm_v1_priority", running, 1) == "C"


@pytest.mark.parametrize("rule", RULES)
def test_one_request_always_stays(rule):
    assert len(victims(rule, FIRST, 10_000, COSTS)) == len(FIRST) - 1


def test_just_enough_takes_the_largest_where_nobody_covers_the_need():
    assert names("just_enough", FIRST, 195) == "CF"


def test_the_cheapest_choice_may_be_several_small_ones():
    """40 blocks: D and F (26 + 14, 622 tokens) cost less than B (47 blocks, 740 tokens)."""
    assert [one.name for one in cheapest(FIRST, 40, COSTS)] == ["D", "F"]
    assert [one.name for one in cheapest(FIRST, 41, COSTS)] == ["B"]
    assert cheapest(FIRST, 10_000, COSTS) == ()


@pytest.mark.parametrize("need", [1, 30, 90, 240])
@pytest.mark.parametrize("running", EXAMPLES)
def test_no_rule_is_cheaper_than_the_cheapest(running, need):
    least = bill(cheapest(running, need, COSTS), need, COSTS, 0.01)
    assert least.spare_blocks >= 0
    for rule in RULES:
        other = bill(victims(rule, running, need, COSTS), need, COSTS, 0.01)
        assert other.work_flop >= least.work_flop


def test_a_bill_by_hand():
    """B: 740 tokens are 47 blocks; 700 tokens of 10 ms are still to come."""
    b = FIRST[1]
    found = bill((b,), 40, COSTS, 0.01)
    assert blocks_of(b, 16) == found.freed_blocks == 47
    assert found.spare_blocks == 7
    flop = 2 * 8_030_261_248 * 740 + 2 * 32 * 4096 * 740**2
    assert found.work_flop == pytest.approx(flop)
    assert found.recompute_s == pytest.approx(flop / (312e12 * 0.5))
    assert found.block_seconds == pytest.approx(47 * 7.0)
    assert found.block_seconds_per_flop == pytest.approx(47 * 7.0 / flop)


def test_an_empty_bill_has_no_ratio():
    assert np.isnan(bill((), 1, COSTS, 0.01).block_seconds_per_flop)


@pytest.mark.parametrize("engine", ["vllm-v0", "vllm-v1", "sarathi"])
def test_simulated_engines_evict_by_their_rule(engine):
    """Every victim of a run is the one that arrived last among those that run."""
    scenario = with_policy(catalogue.presets()["preemption-storm"].scenario, engine)
    run = simulate(replace(scenario, seed=3))
    events = run.events
    starts = (EVENT["admit"], EVENT["resume"])
    running, checked = set(), 0
    for event, request in zip(events["event"], events["request"], strict=True):
        if event in starts:
            running.add(request)
        elif event == EVENT["finish"]:
            running.discard(request)
        elif event == EVENT["preempt"]:
            assert request == max(running, key=lambda r: run.requests["arrival_s"][r])
            running.discard(request)
            checked += 1
    assert checked > 10
