"""Where requests stand after each iteration: agrees with the columns of the simulation."""

import pytest

from charts.moments import moment
from ui.few_requests import ENGINES, Few, iterations
from ui.first_lesson import LENGTHS, ONE, TWO, eight

FEW = {"one": ONE, "two": TWO} | {name: eight(name) for name in LENGTHS}
CASES = [(name, engine) for name in FEW for engine in ENGINES]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def result(request):
    name, engine = request.param
    from model.simulator import simulate

    few: Few = FEW[name]
    return simulate(few.scenario(engine), few.requests())


def test_tokens_add_up_to_those_of_the_iteration(result):
    for k in range(1, iterations(result) + 1):
        now = moment(result, k)
        assert now.tokens == result.iterations["tokens"][k - 1]
        assert now.lasted_s == pytest.approx(now.time_s - moment(result, k - 1).time_s)


def test_blocks_are_those_that_the_engine_holds(result):
    for k in range(1, iterations(result) + 1):
        held = sum(stand.blocks for stand in moment(result, k).requests)
        assert held == result.iterations["blocks_used"][k - 1]


def test_everybody_gets_every_token_and_leaves_once(result):
    last = moment(result, iterations(result))
    assert [s.emitted_tokens for s in last.requests] == list(result.requests["output_tokens"])
    leaving = [
        stand.name
        for k in range(iterations(result) + 1)
        for stand in moment(result, k).requests
        if stand.leaves
    ]
    assert sorted(leaving) == sorted(result.requests["request_id"])


def test_phases_come_in_order(result):
    order = ("away", "waiting", "prefill", "decode", "finished")
    seen = {}
    for k in range(iterations(result) + 1):
        for stand in moment(result, k).requests:
            place = order.index(stand.phase)
            assert place >= seen.get(stand.name, 0)
            seen[stand.name] = place


def test_before_the_first_iteration_nothing_is_computed(result):
    start = moment(result, 0)
    assert (start.time_s, start.tokens, start.blocks_used) == (0, 0, 0)
    assert {stand.phase for stand in start.requests} <= {"away", "waiting"}
