"""Orders of service: by hand, by a slow reference, and by F34 to F34c."""

import numpy as np
import pytest

import formulas
from validation.lindley import poisson_gaps
from validation.prefill_server import PROMPT, SERVICE_S, TOKEN_S, arrivals_s, run, ttft_s
from validation.queues import mean_time
from validation.single_server import ORDERS, times_in_system_s

# Means in the system for exponential sizes of mean 1: load, by arrival, by size, by remaining time.
KNOWN = [(0.5, 2.0, 1.71, 1.43), (0.8, 5.0, 2.88, 2.35), (0.9, 10.0, 4.20, 3.55)]


def slow(order, arrival, service):
    """One moment after the other, looking at every job each time."""
    rank = {
        "fcfs": lambda job: arrival[job],
        "sjf": lambda job: service[job],
        "srpt": lambda job: left[job],
    }[order]
    left, end, clock, running = list(service), {}, 0.0, None
    while len(end) < len(arrival):
        here = [j for j in range(len(arrival)) if arrival[j] <= clock and j not in end]
        coming = [a for a in arrival if a > clock]
        if not here:
            clock = min(coming)
            continue
        if running is None or running in end or order == "srpt":
            running = min(here, key=lambda job: (rank(job), job))
        until = min([clock + left[running], *coming]) if order == "srpt" else clock + left[running]
        done = until >= clock + left[running]
        left[running] -= until - clock
        clock = until
        if done:
            end[running] = clock
    return np.array([end[j] - arrival[j] for j in range(len(arrival))])


def drawn(n, load, seed):
    arrival = np.concatenate(([0.0], np.cumsum(poisson_gaps(n - 1, seed)))) / load
    return arrival, np.random.default_rng(seed + 100).standard_exponential(n)


@pytest.mark.parametrize(
    ("order", "times"),
    # A long job runs when a short one and a middle one come; the short one came later.
    [("fcfs", [10, 12, 12]), ("sjf", [10, 13, 9]), ("srpt", [14, 4, 1])],
)
def test_three_jobs_by_hand(order, times):
    arrival, service = np.array([0.0, 1.0, 2.0]), np.array([10.0, 3.0, 1.0])
    assert times_in_system_s(order, arrival, service).tolist() == times


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("load", [0.5, 0.95])
def test_every_order_does_what_a_slow_reference_does(order, load):
    arrival, service = drawn(250, load, 11)
    expected = slow(order, arrival.tolist(), service.tolist())
    assert times_in_system_s(order, arrival, service) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
@pytest.mark.parametrize("load", [0.5, 0.9])
def test_the_engine_serves_in_this_order_too(order, load):
    n = 4_000
    arrivals = arrivals_s(n, load / SERVICE_S, 15)
    prompts = np.random.default_rng(16).geometric(1 / PROMPT, n)
    # Equal prompts are served in the order of their arrival, here as there.
    expected = times_in_system_s(order, arrivals, prompts * TOKEN_S)
    assert ttft_s(run(arrivals, prompts, order=order)) == pytest.approx(expected, abs=1e-9)


def test_no_order_does_more_work_than_another():
    arrival, service = drawn(20_000, 0.9, 12)
    last = [(arrival + times_in_system_s(order, arrival, service)).max() for order in ORDERS]
    assert last == pytest.approx([last[0]] * 3, rel=1e-12)


def test_a_worthless_guess_serves_as_if_by_lot():
    arrival, service = drawn(200_000, 0.5, 13)
    lots = np.random.default_rng(1).random(len(service))
    by_lot = times_in_system_s("sjf", arrival, service, lots).mean()
    assert by_lot == pytest.approx(times_in_system_s("fcfs", arrival, service).mean(), rel=1e-2)


@pytest.mark.parametrize(("load", "fcfs", "sjf", "srpt"), KNOWN)
def test_the_mean_time_in_the_system_is_that_of_the_formulas(load, fcfs, sjf, srpt):
    for order, formula, known in (("sjf", "F34b", sjf), ("srpt", "F34c", srpt)):
        said = formulas.get(formula).evaluate({"rho": load})
        assert said == pytest.approx(known, rel=5e-3)
        assert mean_time(order, load) == pytest.approx(said, rel=1e-2)
    assert formulas.get("F34a").evaluate({"rho": load}) == pytest.approx(fcfs)


@pytest.mark.slow
@pytest.mark.parametrize(("order", "formula"), [("sjf", "F34b"), ("srpt", "F34c")])
def test_four_million_jobs_need_no_help_by_what_is_known(order, formula):
    arrival, service = drawn(4_000_000, 0.8, 14)
    said = formulas.get(formula).evaluate({"rho": 0.8})
    found = times_in_system_s(order, arrival, service).mean()
    assert found == pytest.approx(said, rel=1e-2)
