"""Lives tile the time of a request, and agree with who was scheduled, iteration by iteration."""

import dataclasses

import numpy as np
import pytest

from charts.lives import STATES, interesting, lives, waited_s, window
from model.experiment import replace_at
from model.iteration_time import Linear
from model.requests import Requests
from model.schedulers import POLICIES
from model.simulator import simulate
from tests.charts.runs import run

BUSY = ("prefill", "decode", "recompute")
CASES = [("preemption-storm", policy, {}) for policy in POLICIES]
CASES += [
    ("preemption-storm", "vllm-v0", {"policy__preemption_mode": "swap"}),
    ("interactive-offline", "vllm-v0", {}),
    ("code", "vllm-v1", {"n_engines": 3}),
    ("law", "sarathi", {}),
]


def everybody(result):
    return np.arange(len(result.inputs))


def total_s(result, segments):
    return np.bincount(
        segments.place, segments.end_s - segments.start_s, minlength=len(result.inputs)
    )


@pytest.mark.parametrize(("preset", "policy", "changes"), CASES)
def test_the_segments_of_a_request_tile_its_life(preset, policy, changes):
    result = run(preset, policy, **changes)
    parts = lives(result, everybody(result))
    rows = np.concatenate([np.column_stack(part) for part in parts.values()])
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    same = rows[1:, 0] == rows[:-1, 0]
    np.testing.assert_allclose(rows[1:, 1][same], rows[:-1, 2][same], rtol=0, atol=1e-9)
    first, last = np.append(True, ~same), np.append(~same, True)
    there = rows[first, 0].astype(int)
    np.testing.assert_allclose(rows[first, 1], result.requests["arrival_s"][there], atol=1e-9)
    np.testing.assert_allclose(rows[last, 2], result.requests["end_s"][there], atol=1e-9)


@pytest.mark.parametrize(("preset", "policy", "changes"), CASES)
def test_busy_time_is_that_of_the_iterations_in_which_it_was_scheduled(preset, policy, changes):
    result = run(preset, policy, **changes)
    parts = lives(result, everybody(result))
    took_s = result.iterations["end_s"] - result.iterations["start_s"]
    scheduled = result.scheduled()
    expected = np.bincount(
        scheduled["request"], took_s[scheduled["row"]], minlength=len(result.inputs)
    )
    np.testing.assert_allclose(
        sum(total_s(result, parts[state]) for state in BUSY), expected, rtol=1e-9
    )


def test_preempted_and_swapped_stretches_are_as_many_as_the_events():
    storm = run()
    parts = lives(storm, everybody(storm))
    assert len(parts["preempted"].place) == storm.requests["preemptions"].sum()
    assert len(parts["recompute"].place) > 0
    assert not len(parts["swapped"].place)
    swaps = run(policy="vllm-v0", policy__preemption_mode="swap")
    parts = lives(swaps, everybody(swaps))
    assert len(parts["swapped"].place) == swaps.requests["preemptions"].sum()
    assert not len(parts["recompute"].place)


def test_a_life_by_hand():
    """One slot and iterations of one second: the second request waits for the first."""
    requests = Requests.from_columns(
        arrival_s=np.array([0.0, 0.5]),
        prompt_tokens=np.array([10, 10]),
        output_tokens=np.array([3, 2]),
    )
    scenario = replace_at(run("customer-service").scenario, "policy.max_num_seqs", 1)
    scenario = dataclasses.replace(scenario, clock=Linear(base_s=1.0, per_scheduled_token_s=0.0))
    parts = lives(simulate(scenario, requests), np.array([0, 1]))
    found = {
        state: list(zip(*(column.tolist() for column in part), strict=True))
        for state, part in parts.items()
        if len(part.place)
    }
    assert found == {
        "waiting": [(1, 0.5, 3.0)],
        "prefill": [(0, 0.0, 1.0), (1, 3.0, 4.0)],
        "decode": [(0, 1.0, 3.0), (1, 4.0, 5.0)],
    }


def test_cancelled_and_rejected_lives_end_where_they_ended():
    n = 30
    requests = Requests.from_columns(
        arrival_s=np.linspace(0, 0.1, n),
        prompt_tokens=np.full(n, 400),
        output_tokens=np.where(np.arange(n) == 7, 100_000, 200),
        cancel_s=np.where(np.arange(n) % 3 == 0, np.linspace(0, 0.1, n) + 1.0, np.inf),
    )
    scenario = replace_at(run("customer-service").scenario, "policy.max_num_seqs", 8)
    result = simulate(scenario, requests)
    parts = lives(result, everybody(result))
    total = sum(total_s(result, parts[state]) for state in STATES)
    life = result.requests["end_s"] - result.requests["arrival_s"]
    np.testing.assert_allclose(total, life, atol=1e-9)
    assert total[7] == 0


def test_a_resolution_joins_neighbors_and_drops_short_pauses():
    result = run("interactive-offline", "vllm-v0")
    fine, coarse = (lives(result, everybody(result), r) for r in (0.0, 0.5))
    assert len(coarse["decode"].place) < len(fine["decode"].place) / 5
    assert ((coarse["paused"].end_s - coarse["paused"].start_s) > 0.5).all()
    for state in STATES:
        assert (coarse[state].end_s > coarse[state].start_s).all()
        if state != "paused" and len(fine[state].place):
            assert coarse[state].end_s.max() == fine[state].end_s.max()


def test_rows_are_places():
    result = run()
    rows = np.array([150, 77, 3])
    some, every = lives(result, rows), lives(result, everybody(result))
    for place, row in enumerate(rows):
        mine = some["decode"].where(some["decode"].place == place)
        all_of_it = every["decode"].where(every["decode"].place == row)
        assert mine.start_s.tolist() == all_of_it.start_s.tolist()


def test_waited_time_is_life_without_time_in_the_batch():
    result = run()
    parts = lives(result, everybody(result))
    inside = sum(total_s(result, parts[state]) for state in (*BUSY, "paused"))
    life = result.requests["end_s"] - result.requests["arrival_s"]
    np.testing.assert_allclose(waited_s(result), life - inside, atol=1e-9)


def test_interesting_rows_are_preempted_or_waited_long_and_come_by_arrival():
    result = run()
    rows = interesting(result, 20)
    assert len(set(rows.tolist())) == 20
    assert (np.diff(result.requests["arrival_s"][rows]) >= 0).all()
    preemptions, waited = result.requests["preemptions"], waited_s(result)
    assert np.sort(preemptions[rows])[-10:].tolist() == np.sort(preemptions)[-10:].tolist()
    assert waited[rows].max() == waited.max()


def test_interesting_rows_of_a_calm_run_are_still_rows():
    result = run("customer-service")
    assert len(interesting(result, 15)) == 15
    assert len(interesting(result, 4_000)) == 400


def test_a_window_goes_by_arrival():
    result = run()
    assert window(result, 5).tolist() == [0, 1, 2, 3, 4]
    assert window(result, 5, first=198).tolist() == [198, 199]
    later = window(result, 5, from_s=60.0)
    assert (result.requests["end_s"][later] >= 60).all()
    assert (result.requests["arrival_s"][later] <= 60).all()


def test_requests_that_never_came_are_not_shown():
    result = run("customer-service")
    gone = dataclasses.replace(
        result,
        requests=result.requests
        | {"arrival_s": np.where(np.arange(400) < 390, result.requests["arrival_s"], np.nan)},
    )
    assert window(gone, 1_000).max() == 389
    assert interesting(gone, 1_000).max() == 389
