"""Attainment and violations on columns made by hand."""

import numpy as np
import pytest

from model import metrics
from model.metrics.latency import Window
from model.state import CANCELLED, REJECTED, UNFINISHED
from tests.hand_made import answered, requests, slo

NAN = float("nan")
BOUNDS = slo(ttft_s=1.0, tpot_s=0.5)

GOOD = answered(0.0, 1.0, 1.5, 2.0)  # TTFT 1.0 and TPOT 0.5: both exactly on the bound
LATE_START = answered(0.0, 1.25, 1.5, 1.75)  # TTFT 1.25
SLOW = answered(0.0, 0.5, 2.5, 3.0, 3.5)  # TPOT 3/3 = 1.0
LATE_ONE = answered(0.0, 3.0)  # one output: no TPOT, TTFT 3
QUICK_ONE = answered(0.0, 0.25)
REFUSED = {"arrival_s": 0.0, "status": REJECTED, "end_s": 0.0, "output_tokens": 4}
LEFT_EARLY = {"arrival_s": 0.0, "status": CANCELLED, "end_s": 0.75, "output_tokens": 4}
LEFT_LATE = {**LEFT_EARLY, "end_s": 1.5}
LEFT_SLOW = {  # first token at 1, left at 3; the bound for 4 tokens is lost at 1 + 3·0.5 = 2.5
    **LEFT_EARLY,
    "first_token_s": 1.0,
    "last_token_s": 1.2,
    "emitted_tokens": 2,
    "end_s": 3.0,
}
LEFT_HOPEFUL = {**LEFT_SLOW, "end_s": 2.25}
NEVER = {"arrival_s": NAN, "status": UNFINISHED, "output_tokens": 4}
STUCK = {**NEVER, "arrival_s": 0.0}
CASES = (
    *(GOOD, LATE_START, SLOW, LATE_ONE, QUICK_ONE, REFUSED, LEFT_EARLY, LEFT_LATE),
    *(LEFT_SLOW, LEFT_HOPEFUL, NEVER, STUCK),
)
ALL = requests(*CASES)


def test_which_requests_meet_which_bound():
    assert np.flatnonzero(metrics.meets_ttft(ALL, BOUNDS)).tolist() == [0, 2, 4]
    assert np.flatnonzero(metrics.meets_tpot(ALL, BOUNDS)).tolist() == [0, 1, 3, 4]
    assert np.flatnonzero(metrics.meets_slo(ALL, BOUNDS)).tolist() == [0, 4]


def test_attainment_counts_all_that_arrived():
    # 2 of 11; the request that never arrived is not among them
    assert metrics.slo_attainment(ALL, BOUNDS) == pytest.approx(2 / 11)
    assert metrics.slo_attainment(ALL, BOUNDS, finished_only=True) == pytest.approx(2 / 5)
    assert np.isnan(metrics.slo_attainment(requests(NEVER), BOUNDS))


def test_slo_throughput_counts_good_requests_that_end_in_the_window():
    # the good ones end at 2.0 and 0.25
    assert metrics.slo_throughput_per_s(ALL, BOUNDS, Window(1.0, 5.0, True)) == pytest.approx(0.25)
    assert metrics.slo_throughput_per_s(ALL, BOUNDS, Window(0.0, 5.0, True)) == pytest.approx(0.4)
    assert np.isnan(metrics.slo_throughput_per_s(ALL, BOUNDS, Window(1.0, 1.0, False)))


def test_a_ttft_violation_is_certain_at_the_deadline():
    certain = metrics.ttft_violation_s(ALL, BOUNDS)
    expected = [NAN, 1.0, NAN, 1.0, NAN, NAN, NAN, 1.0, NAN, NAN, NAN, 1.0]
    np.testing.assert_array_equal(certain, expected)


def test_a_tpot_violation_is_certain_when_no_haste_can_help():
    certain = metrics.tpot_violation_s(ALL, BOUNDS)
    # SLOW: 0.5 + 3·0.5 = 2.0, one and a half seconds before its last token
    expected = [NAN, NAN, 2.0, NAN, NAN, NAN, NAN, NAN, 2.5, NAN, NAN, NAN]
    np.testing.assert_array_equal(certain, expected)


def test_violations_over_time():
    steps = metrics.violations_over_time(requests(GOOD, LATE_START, SLOW, LEFT_LATE), BOUNDS)
    # LATE_START: TTFT lost at 1.0, ends 1.75. LEFT_LATE: lost at 1.0, leaves at 1.5.
    # SLOW: TPOT lost at 2.0, ends at 3.5.
    assert steps["time_s"].tolist() == [1.0, 1.5, 1.75, 2.0, 3.5]
    assert steps["ttft_now"].tolist() == [2, 1, 0, 0, 0]
    assert steps["ttft_total"].tolist() == [2, 2, 2, 2, 2]
    assert steps["tpot_now"].tolist() == [0, 0, 0, 1, 0]
    assert steps["tpot_total"].tolist() == [0, 0, 0, 1, 1]


def test_no_violations_are_empty_steps():
    steps = metrics.violations_over_time(requests(GOOD), BOUNDS)
    assert all(len(column) == 0 for column in steps.values())


def test_a_violation_that_never_ends_stays():
    steps = metrics.violations_over_time(requests(STUCK), BOUNDS)
    assert steps["ttft_now"].tolist() == [1]


def test_rounding_of_the_clock_breaks_no_promise():
    times = np.add.accumulate([0.1] + [0.05] * 999)  # 0.05 s apart up to rounding
    run = requests(answered(0.0, *times))
    exact = slo(ttft_s=0.1, tpot_s=0.05)
    assert metrics.slo_attainment(run, exact) == 1.0
    assert np.isnan(metrics.tpot_violation_s(run, exact)).all()


def test_finished_requests_meet_the_slo_or_violate_it():
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(300):
        arrival, first = rng.uniform(0, 9), rng.uniform(0, 2)
        gaps = rng.uniform(0, 1, rng.integers(0, 6))
        rows.append(answered(arrival, *(arrival + np.cumsum([first, *gaps]))))
    run = requests(*rows)
    lost = metrics.ttft_violation_s(run, BOUNDS), metrics.tpot_violation_s(run, BOUNDS)
    violated = ~np.isnan(lost[0]) | ~np.isnan(lost[1])
    assert (metrics.meets_slo(run, BOUNDS) == ~violated).all()
    assert 0.1 < violated.mean() < 0.9
    # nothing is certain before it has begun, nor after it is over
    assert not (lost[0] < run["arrival_s"]).any()
    assert not (lost[1] > run["end_s"] + 1e-6).any()
