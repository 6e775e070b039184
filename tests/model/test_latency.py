"""Latencies, windows and fairness on columns made by hand."""

import numpy as np
import pytest

from model import metrics
from model.metrics.latency import Window
from model.state import CANCELLED, REJECTED, UNFINISHED
from tests.hand_made import answered, requests

NAN = float("nan")

# Arrives at 1, waits until 1.5, tokens at 2, 3, 6: TTFT 1, TPOT (6 − 2)/2 = 2, E2E 5.
THREE = answered(1.0, 2.0, 3.0, 6.0, first_scheduled_s=1.5)
ONE = answered(4.0, 4.5)
CUT = {  # cancelled after two of five tokens
    "arrival_s": 2.0,
    "status": CANCELLED,
    "output_tokens": 5,
    "emitted_tokens": 2,
    "first_scheduled_s": 2.0,
    "first_token_s": 3.0,
    "last_token_s": 3.5,
    "end_s": 4.0,
}
REFUSED = {"arrival_s": 3.0, "status": REJECTED, "end_s": 3.0, "output_tokens": 9}
NEVER = {"arrival_s": NAN, "status": UNFINISHED, "output_tokens": 9}
ALL = requests(THREE, ONE, CUT, REFUSED, NEVER)


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        (metrics.ttft_s, [1.0, 0.5, 1.0, NAN, NAN]),
        (metrics.tpot_s, [2.0, NAN, 0.5, NAN, NAN]),
        (metrics.e2e_s, [5.0, 0.5, NAN, NAN, NAN]),
        (metrics.queue_s, [0.5, 0.0, 0.0, NAN, NAN]),
        (metrics.normalized_e2e_s, [5 / 3, 0.5, NAN, NAN, NAN]),
    ],
)
def test_latency_of_each_request(metric, values):
    np.testing.assert_allclose(metric(ALL), values)


def test_e2e_is_ttft_and_the_gaps():
    # F30: E2E = TTFT + (L − 1)·TPOT
    three = requests(THREE)
    gaps = three["output_tokens"] - 1
    expected = metrics.ttft_s(three) + gaps * metrics.tpot_s(three)
    np.testing.assert_allclose(metrics.e2e_s(three), expected)


def test_percentiles_are_linear_and_skip_the_undefined():
    values = np.array([4.0, NAN, 1.0, 3.0, 2.0, 5.0])
    assert metrics.percentiles(values, (0, 50, 90, 100)).tolist() == pytest.approx([1, 3, 4.6, 5])
    assert np.isnan(metrics.percentiles(np.array([NAN]))).all()
    assert metrics.mean(values) == 3.0
    assert np.isnan(metrics.mean(np.array([])))


def test_counted_percentiles_are_those_of_the_list():
    values, counts = np.array([5.0, 1.0, 2.0]), np.array([1, 3, 6])
    # the list is 1 1 1 2 2 2 2 2 2 5: rank 9·0.95 = 8.55 lies between 2 and 5
    shares = (0, 25, 50, 95, 100)
    expected = [1, 1.25, 2, 2 + 3 * 0.55, 5]
    assert metrics.counted_percentiles(values, counts, shares) == pytest.approx(expected)
    listed = np.repeat(values, counts)
    assert metrics.percentiles(listed, shares) == pytest.approx(expected)
    assert np.isnan(metrics.counted_percentiles(np.array([]), np.array([]))).all()


# ---- windows ------------------------------------------------------------------------------

RUN = requests(answered(0.0, 2.0), answered(1.0, 3.0), answered(4.0, 9.0), answered(8.0, 12.0))


def test_steady_window_runs_from_the_first_completion_to_the_last_arrival():
    assert metrics.steady_window(RUN) == Window(2.0, 8.0, True)
    assert metrics.steady_window(RUN).length_s == 6.0
    assert metrics.whole_run(RUN) == Window(0.0, 12.0, False)


def test_warm_up_moves_the_start_to_a_later_completion():
    assert metrics.steady_window(RUN, warm_up_s=2.5) == Window(3.0, 8.0, True)


def test_too_long_a_warm_up_leaves_the_whole_run():
    assert metrics.steady_window(RUN, warm_up_s=5.0) == Window(0.0, 12.0, False)


def test_all_at_once_has_no_steady_window():
    run = requests(answered(0.0, 5.0), answered(0.0, 7.0))
    assert metrics.steady_window(run) == Window(0.0, 7.0, False)


def test_warm_up_counts_from_the_first_arrival():
    later = requests(answered(100.0, 102.0), answered(101.0, 103.0), answered(108.0, 112.0))
    assert metrics.steady_window(later, warm_up_s=2.5) == Window(103.0, 108.0, True)


def test_requests_that_never_arrived_move_no_window():
    run = requests(answered(0.0, 2.0), answered(4.0, 9.0), NEVER)
    assert metrics.steady_window(run) == Window(2.0, 4.0, True)


def test_a_rejected_request_is_an_arrival_but_no_completion():
    run = requests({**REFUSED, "arrival_s": 0.5, "end_s": 0.5}, answered(0.0, 2.0), REFUSED)
    assert metrics.steady_window(run) == Window(2.0, 3.0, True)


@pytest.mark.parametrize("rows", [(), (NEVER,)])
def test_an_empty_run_has_an_empty_window(rows):
    assert metrics.steady_window(requests(*rows)).length_s == 0


def test_a_window_excludes_its_start_and_includes_its_end():
    window = Window(2.0, 3.0, True)
    assert window.holds(np.array([2.0, 2.5, 3.0, 3.1])).tolist() == [False, True, True, False]


# ---- fairness -----------------------------------------------------------------------------


def test_jain():
    assert metrics.jain(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)
    assert metrics.jain(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    # (1 + 2 + 3)² / (3·(1 + 4 + 9)) = 36/42
    assert metrics.jain(np.array([1.0, NAN, 2.0, 3.0])) == pytest.approx(36 / 42)
    assert np.isnan(metrics.jain(np.array([])))


def test_fairness_is_of_seconds_per_token_and_by_class():
    run = requests(
        answered(0.0, 1.0, 2.0, request_class=0),  # 1 s a token
        answered(0.0, 3.0, request_class=0),  # 3 s a token
        answered(0.0, 2.0, 12.0, request_class=1),  # 6 s a token
        {**REFUSED, "request_class": 1},
    )
    assert metrics.fairness(run) == pytest.approx((1 + 3 + 6) ** 2 / (3 * (1 + 9 + 36)))
    # class means 2 and 6: (2 + 6)² / (2·(4 + 36)) = 64/80
    assert metrics.fairness_between_classes(run) == pytest.approx(0.8)
    classes = run["request_class"]
    means = metrics.class_means(metrics.normalized_e2e_s(run), classes, 3)
    np.testing.assert_allclose(means, [2.0, 6.0, NAN])


def test_a_few_finished_requests_are_measured_over_the_whole_run():
    """Two answers of 50 tokens from 0 s to 10 s: nothing is steady, and nothing may read zero."""
    columns = {
        "arrival_s": np.array([0.0, 8.0]),
        "last_token_s": np.array([2.0, 10.0]),
        "end_s": np.array([2.0, 10.0]),
        "status": np.array([1, 1]),
    }
    window = metrics.measuring_window(columns)
    assert (window.start_s, window.end_s, window.is_steady) == (0.0, 10.0, False)
