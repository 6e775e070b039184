"""Samples with counts say what the long list says; short curves stay close to the long ones."""

import time

import numpy as np
import pytest

from charts.ecdf import MAX_POINTS, Sample


def counted(seed=0, n=3_000):
    rng = np.random.default_rng(seed)
    values = np.round(rng.lognormal(-3, 1.5, n), 4)
    return values, rng.integers(1, 9, n)


def test_counts_stand_for_repetitions():
    values, counts = counted()
    sample, long = Sample(values, counts), np.repeat(values, counts)
    assert sample.size == len(long)
    np.testing.assert_allclose(
        sample.percentiles((50, 90, 99)), np.percentile(long, (50, 90, 99)), rtol=1e-12
    )
    for bound in (0.0, 0.01, values[7], 1.0, 1e9):
        assert sample.share_within(bound) == np.mean(long <= bound)


def test_a_short_sample_is_drawn_exactly():
    x, share = Sample(np.array([3.0, 1.0, np.nan, 3.0, 2.0])).curve()
    assert x.tolist() == [1, 1, 2, 3]
    assert share.tolist() == [0, 0.25, 0.5, 1]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("spread", [0.05, 0.5, 2.0])
def test_a_long_curve_keeps_points_of_itself_and_is_never_far_off(log, spread):
    values = np.random.default_rng(2).lognormal(0, spread, 50_000)
    x, share = Sample(values).curve(log=log)
    assert len(x) <= MAX_POINTS
    assert x[0] == values.min()
    assert x[-1] == values.max()
    assert share[-1] == 1
    ordered = np.sort(values)
    true = np.searchsorted(ordered, x[1:], side="right") / len(values)
    np.testing.assert_allclose(share[1:], true)
    # Where the drawn steps are more than a hundredth off in height, the next is close in width.
    probe = np.linspace(values.min(), values.max(), 4_001)
    drawn = share[np.searchsorted(x, probe, side="right") - 1]
    off = np.abs(drawn - np.searchsorted(ordered, probe, side="right") / len(values))
    assert off.max() < 0.01


def test_p99_lies_on_fine_steps():
    values = np.random.default_rng(3).exponential(1, 200_000)
    x, share = Sample(values).curve()
    near = x[(share > 0.985) & (share < 0.9975)]
    assert len(near) > 10


def test_nothing_at_all():
    sample = Sample(np.array([np.nan]))
    assert sample.size == 0
    assert np.isnan(sample.share_within(1.0))
    assert np.isnan(sample.percentiles((50,))).all()
    assert len(sample.curve()[0]) == 0


def test_millions_of_tokens_cost_what_differs():
    values = np.linspace(0.01, 0.1, 5_000)
    start = time.process_time()
    sample = Sample(values, np.full(5_000, 1_000_000))
    assert len(sample.curve()[0]) <= MAX_POINTS
    assert sample.size == 5_000_000_000
    assert time.process_time() - start < 0.1
