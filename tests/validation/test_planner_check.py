"""Simulated plans: the search is right on made-up answers, and small plans are judged."""

import threading

import pytest

from model import catalogue
from model.scenario import Slo
from validation.planner import deployment, plan
from validation.planner_check import SEEDS, check, measure, requests_for, tried
from validation.planner_load import asked
from validation.planner_split import split, split_deployment


def search(planned, needed):
    """Numbers that are tried where ``needed`` engines and more are enough."""
    steps, numbers = tried(planned), []
    try:
        engines = next(steps)
        while True:
            numbers.append(engines)
            engines = steps.send(engines >= needed)
    except StopIteration:
        return numbers


@pytest.mark.parametrize("planned", [1, 2, 6, 13, 40, 64])
@pytest.mark.parametrize("needed", [1, 2, 5, 6, 7, 33, 63, 64, 65])
def test_the_search_ends_between_two_neighbors(planned, needed):
    numbers = search(planned, needed)
    assert numbers[0] == planned
    assert len(set(numbers)) == len(numbers) <= 13
    enough = [n for n in numbers if n >= needed]
    too_few = [n for n in numbers if n < needed]
    if needed <= 64:
        assert min(enough) == needed
    if needed > 1:
        assert max(too_few) == min(needed - 1, 64)


@pytest.fixture(scope="module")
def case():
    return asked(catalogue.presets()["code"].scenario, 6.0, Slo(1.0, 0.1))


def test_a_plan_is_simulated_and_searched(case):
    made = plan(case)
    pools = split_deployment(case, split(case))
    steps = list(check(lambda n: deployment(case, made, n), made.engines, pools, made.stay_s))
    last = steps[-1]
    assert last.finished
    assert not last.cancelled
    assert last.outcome.engines == made.engines
    assert last.runs == len(SEEDS) * (len(last.tried) + 1)
    assert last.split.prefill_engines == pools.cluster.prefill_engines
    enough = [one.engines for one in last.tried if one.good]
    assert last.needed == min(enough)
    assert all(one.attainment < 0.9 for one in last.tried if one.engines == last.needed - 1)
    assert all(run.requests >= 500 for one in last.tried for run in one.runs)


def test_what_the_iterations_of_a_run_say(case):
    made = plan(case)
    run, facts = measure(deployment(case, made), 0, 500)
    assert run.requests == 500
    assert 0 < facts.decodes_mean < made.max_num_seqs
    assert facts.mixed_p50_s <= facts.mixed_max_s
    assert 0 < facts.kept_share <= 1


def test_a_check_stops_where_it_is(case):
    made, stop = plan(case), threading.Event()
    steps = check(
        lambda n: deployment(case, made, n), made.engines, None, made.stay_s, cancelled=stop.is_set
    )
    first = next(steps)
    stop.set()
    rest = list(steps)
    assert first.runs == rest[-1].runs
    assert rest[-1].cancelled
    assert rest[-1].needed is None


def test_too_many_engines_are_an_error_of_the_outcome(case):
    made = plan(case)
    last = list(check(lambda n: deployment(case, made, n), 65, None, made.stay_s))[-1]
    assert last.outcome.error is not None
    assert last.needed is None
    assert not last.bounded


def test_runs_are_long_enough_for_what_stays_long(case):
    assert requests_for(case, 1.0) == 500
    assert requests_for(case, 40.0) == 12 * 40 * 6
    assert requests_for(case, 10_000.0) == 12_000
