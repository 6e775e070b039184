"""The reduction keeps areas exactly and never loses an extreme."""

import numpy as np
import pytest

from charts.steps import MAX_POINTS, steps


def brute_level(t, start_s, end_s, values):
    return sum(v for a, b, v in zip(start_s, end_s, values, strict=True) if a <= t < b)


def many_iterations(n=5_000, seed=1):
    rng = np.random.default_rng(seed)
    duration = rng.exponential(0.01, n)
    gap = np.where(rng.random(n) < 0.02, rng.exponential(0.1, n), 0.0)
    borders = np.cumsum(np.column_stack((gap, duration)).ravel())
    return borders[::2], borders[1::2], rng.integers(0, 50, n).astype(float)


def test_few_intervals_are_exact_and_idle_time_is_zero():
    s = steps([0, 1, 3], [1, 2, 4], {"batch": np.array([5.0, 7.0, 2.0])})
    assert s.exact
    assert s.edges.tolist() == [0, 1, 2, 3, 4]
    assert s.mean["batch"].tolist() == [5, 7, 0, 2]
    x, y = s.drawn("batch")
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert y.tolist() == [5, 7, 0, 2, 2]


def test_overlapping_intervals_of_two_engines_add_up():
    start_s, end_s, values = [0, 0.5, 1, 1.5], [1, 1.5, 2, 2.5], np.array([1.0, 10.0, 2.0, 20.0])
    s = steps(start_s, end_s, {"batch": values})
    for left, right, level in zip(s.edges, s.edges[1:], s.mean["batch"], strict=False):
        assert level == brute_level((left + right) / 2, start_s, end_s, values)


def test_area_is_kept():
    start_s, end_s, values = many_iterations()
    s = steps(start_s, end_s, {"batch": values})
    assert not s.exact
    assert len(s.edges) == MAX_POINTS + 1
    area = np.sum(s.mean["batch"] * np.diff(s.edges))
    assert area == pytest.approx(np.sum((end_s - start_s) * values), rel=1e-12)


def test_peak_of_every_interval_is_the_largest_value_in_it():
    start_s, end_s, values = many_iterations(2_000)
    s = steps(start_s, end_s, {"batch": values}, max_points=57)
    for left, right, peak in zip(s.edges, s.edges[1:], s.peak["batch"], strict=False):
        inside = values[(start_s < right - 1e-12) & (end_s > left + 1e-12)]
        assert peak == pytest.approx(inside.max())


def test_a_single_spike_survives():
    n = 100_000
    end_s = np.arange(1, n + 1) * 0.01
    values = np.ones(n)
    values[54_321] = 250
    s = steps(end_s - 0.01, end_s, {"batch": values})
    assert s.peak["batch"].max() == 250
    assert s.mean["batch"].max() < 3


def test_nothing_at_all_is_a_flat_line():
    s = steps([], [], {"batch": np.array([])})
    assert s.mean["batch"].tolist() == [0]
