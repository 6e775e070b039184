"""The waits of one server: by hand, by a plain loop, by the engine, and by F26 and F27."""

import numpy as np
import pytest

import formulas
from validation.lindley import bursty_gaps, poisson_gaps, waits_s
from validation.prefill_server import PROMPT, SERVICE_S, TOKEN_S, arrivals_s, run, ttft_s

TEN_MILLION = 10**7


def by_a_loop(gaps, service):
    waits = [0.0]
    for gap, time in zip(gaps, service, strict=False):
        waits.append(max(0.0, waits[-1] + time - gap))
    return np.array(waits)


def test_four_arrivals_by_hand():
    assert waits_s(np.array([1.0, 1.0, 5.0]), np.array([2.0, 3.0, 2.0, 9.0])).tolist() == [
        0.0,
        1.0,
        3.0,
        0.0,
    ]
    assert waits_s(np.array([1.0, 1.0, 5.0]), 2.0).tolist() == [0.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize("load", [0.2, 0.8, 1.3])
def test_sums_give_what_a_loop_gives(load):
    gaps = poisson_gaps(3_000, 1) / load
    service = np.random.default_rng(2).gamma(0.5, 2.0, 3_001)
    assert waits_s(gaps, service) == pytest.approx(by_a_loop(gaps, service), abs=1e-9)


@pytest.mark.parametrize("broken", ["", "bursty"])
@pytest.mark.parametrize("load", [0.5, 0.95])
def test_the_engine_waits_as_the_recursion_says(load, broken):
    arrivals = arrivals_s(5_000, load / SERVICE_S, 7, broken)
    expected = waits_s(np.diff(arrivals), SERVICE_S) + SERVICE_S
    assert ttft_s(run(arrivals, PROMPT)) == pytest.approx(expected, abs=1e-9)


def test_the_engine_waits_as_the_recursion_says_with_unequal_prompts():
    arrivals = arrivals_s(5_000, 0.8 / SERVICE_S, 8)
    prompts = np.random.default_rng(9).geometric(1 / PROMPT, 5_000)
    service = prompts * TOKEN_S
    expected = waits_s(np.diff(arrivals), service) + service
    assert ttft_s(run(arrivals, prompts)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("load", "ttft"), [(0.5, 1.5), (0.7, 13 / 6), (0.8, 3.0)])
def test_ten_million_equal_jobs_wait_as_f26_says(load, ttft):
    waits = waits_s(poisson_gaps(TEN_MILLION - 1, 1) / load, 1.0)
    assert 1 + waits.mean() == pytest.approx(ttft, rel=1e-2)
    assert formulas.get("F26").evaluate({"lambda": load, "D": 1.0}) == pytest.approx(ttft)


@pytest.mark.parametrize(("load", "wait"), [(0.5, 1.0), (0.7, 7 / 3)])
def test_ten_million_exponential_jobs_wait_as_f27_says(load, wait):
    service = np.random.default_rng(5).standard_exponential(TEN_MILLION)
    waits = waits_s(poisson_gaps(TEN_MILLION - 1, 1) / load, service)
    assert waits.mean() == pytest.approx(wait, rel=1e-2)
    given = {"lambda": load, "rho": load, "S_sq": 2.0}
    assert formulas.get("F27").evaluate(given) == pytest.approx(wait)


def test_ten_million_waits_are_spread_as_f26d_says():
    waits = waits_s(poisson_gaps(TEN_MILLION - 1, 3) / 0.5, 1.0)
    for services in (0.0, 0.5, 1.0, 2.5, 4.0):
        found = (waits <= services + 1e-9).mean()
        said = formulas.get("F26d").evaluate({"rho": 0.5, "t_w": services, "D": 1.0})
        assert found == pytest.approx(said, abs=2e-3)


@pytest.mark.parametrize("cv", [1.0, 3.0])
def test_gaps_have_the_mean_and_the_variation_that_are_asked_for(cv):
    gaps = bursty_gaps(10**6, 1, cv)
    assert gaps.mean() == pytest.approx(1.0, rel=1e-2)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=1e-2)
