"""Goodput against known answers: queues solved by hand or exactly, brackets, seeds, executors."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from formulas import get
from model import catalogue
from model.errors import LabError
from model.goodput import FULL, Bracket, Curve, Effort, Point, frontier, search
from model.iteration_time import Linear
from model.parameters import RATE, replace_at, value_at, with_policy
from model.scenario import Memory, Scenario, Slo, TraceReference
from model.schedulers.vllm_v1 import VllmV1
from model.simulator import simulate
from model.steady_load import (
    MOST_OUTPUT_TOKENS,
    WARM_UP_SHARE,
    affordable,
    grows,
    load_run,
    measured,
    rate_of,
    saturation,
    steady,
)
from model.workload import Arrivals, Lengths, Stream, Workload

PROMPT, SERVICE_S = 500, 0.06
"""One prompt an iteration: 10 ms and 0.1 ms a token."""
LOOSE = Slo(1e6, 1e6)


def prefill_only(arrivals="poisson", slo=LOOSE, n_engines=1, **policy):
    """A server that takes one prompt of 500 tokens at a time, 60 ms each: ./D/1 queues."""
    stream = Stream(
        "prompts",
        100,
        Arrivals(arrivals, 10.0),
        Lengths("fixed", float(PROMPT)),
        Lengths("fixed", 1.0),
    )
    return Scenario(
        Workload((stream,)),
        VllmV1(max_num_seqs=1, max_num_batched_tokens=PROMPT, **policy),
        Linear(0.01, 1e-4),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=10_000),
        slo=slo,
        n_engines=n_engines,
    )


def chat(n=60):
    stream = Stream(
        "chat",
        n,
        Arrivals("poisson", 10.0),
        Lengths("lognormal", 200.0, max_tokens=900),
        Lengths("geometric", 40.0, max_tokens=300),
    )
    return Scenario(
        Workload((stream,)), VllmV1(max_num_seqs=16, max_num_batched_tokens=512), slo=Slo(0.5, 0.04)
    )


def found(steps):
    """The last of what a search or frontier yields."""
    *_, last = steps
    assert last.finished
    return last


# -- known answers ---------------------------------------------------------------------------------


def test_equal_gaps_and_equal_service_are_good_up_to_one_over_d():
    """D/D/1: below 1/D nobody waits, so a bound just above D is kept by all; above, by nobody."""
    scenario = prefill_only("constant", Slo(1.0001 * SERVICE_S, 1.0))
    (curve,) = found(search(scenario, effort=Effort(300, 1), tolerance=0.002)).curves
    assert curve.limit_per_s == pytest.approx(1 / SERVICE_S, rel=1e-9)
    low, high, monotone = curve.goodput
    assert 0.998 / SERVICE_S <= low < 1 / SERVICE_S <= high * (1 + 1e-9)
    assert monotone
    assert [point.spread("slo_attainment_share").mean for point in curve.points[:2]] == [1.0, 1.0]


def test_a_bound_on_tpot_is_reached_where_the_batch_makes_iterations_that_long():
    """t = 10 ms + 0.1 ms·N and N = λ·100·t, so t ≤ 20 ms up to λ = (1 − 10/20)/(0.1 ms·100)."""
    stream = Stream(
        "decode",
        100,
        Arrivals("constant", 10.0),
        Lengths("fixed", 1.0),
        Lengths("fixed", 100.0),
    )
    scenario = replace(
        prefill_only(slo=Slo(1.0, 0.02)),
        workload=Workload((stream,)),
        policy=VllmV1(max_num_seqs=1000, max_num_batched_tokens=2000),
    )
    (curve,) = found(search(scenario, effort=Effort(2000, 1), tolerance=0.01)).curves
    assert curve.goodput.low == pytest.approx(50.0, rel=0.02)
    # Saturated: 1,000 requests, each iteration 110 ms.
    assert curve.limit_per_s == pytest.approx(1000 / (100 * 0.11), rel=0.02)


@pytest.mark.parametrize("services", [3.0, 5.0])
def test_poisson_arrivals_at_a_prefill_server_agree_with_the_exact_distribution(services):
    """M/D/1: the load at which 90 % keep TTFT ≤ x·D is that of the exact waiting time (F28b)."""
    exact = get("F28b").evaluate({"x_ttft": services, "q_share": 0.9}) / SERVICE_S
    scenario = prefill_only(slo=Slo(services * SERVICE_S, 1.0))
    (curve,) = found(search(scenario, effort=Effort(4000, 4), tolerance=0.02)).curves
    low, high, _ = curve.goodput
    assert low == pytest.approx(exact, rel=0.04)
    assert high < 1 / SERVICE_S


# -- stability -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_just_below_a_load_of_one_is_stable_and_just_above_is_not(arrivals):
    rates = [load / SERVICE_S for load in (0.9, 0.97, 1.001, 1.03, 1.2)]
    (curve,) = found(frontier({"": prefill_only(arrivals)}, rates, refine=0)).curves
    assert [point.stable for point in curve.points] == [True, True, False, False, False]
    # A bound that nobody misses: attainment alone would call all of them good.
    assert all(point.spread("slo_attainment_share").mean == 1.0 for point in curve.points)
    assert curve.goodput == (rates[1], rates[2], True)


def test_a_goodput_is_never_above_the_limit():
    (curve,) = found(search(prefill_only(), effort=Effort(500, 2), tolerance=0.01)).curves
    assert curve.goodput.low < curve.goodput.high <= 1.0001 / SERVICE_S
    assert curve.goodput.low > 0.98 / SERVICE_S


def test_growth_of_the_backlog_says_the_same_without_a_limit():
    for load, unstable in ((0.8, False), (0.9, False), (1.1, True), (1.3, True)):
        runs = [load_run(prefill_only(), load / SERVICE_S, seed, 2000) for seed in range(3)]
        assert Point(load / SERVICE_S, tuple(runs)).growing is unstable, load
    assert not grows(89, 2000)
    assert grows(90, 2000)


def test_growth_is_counted_from_the_end_of_warm_up_to_the_last_arrival():
    """1.5 arrivals a service: 40 come in 26.67 services, so 13.33 wait more than before."""
    scenario = replace_at(steady(prefill_only("constant"), 50), RATE, 1.5 / SERVICE_S)
    run = measured(simulate(scenario).requests, scenario)
    assert (run.requests, run.growth) == (40, 13)
    assert run.slo_attainment_share == 1.0


def test_there_is_no_limit_where_clients_leave():
    scenario = prefill_only()
    assert saturation(scenario, 0, 500) == pytest.approx(1 / SERVICE_S)
    (stream,) = scenario.workload.streams
    leaving = replace(scenario, workload=Workload((replace(stream, patience_s=1.0),)))
    assert saturation(leaving, 0, 500) == float("inf")
    *_, last = search(leaving, effort=Effort(300, 1), tolerance=0.1)
    assert 0 < last.curves[0].goodput.low < 1.1 / SERVICE_S  # who leaves has missed


def test_rates_are_per_gpu():
    two = prefill_only("constant", Slo(1.0001 * SERVICE_S, 1.0), n_engines=2)
    (curve,) = found(search(two, effort=Effort(300, 1), tolerance=0.01)).curves
    assert curve.limit_per_s == pytest.approx(1 / SERVICE_S, rel=1e-6)
    assert curve.goodput.low == pytest.approx(1 / SERVICE_S, rel=0.02)


# -- what a run is ---------------------------------------------------------------------------------


def test_streams_run_side_by_side_and_last_equally_long():
    peak = catalogue.presets()["morning-peak"].scenario
    base, extra = steady(peak, 1000).workload.streams
    assert (base.n_requests, extra.n_requests) == (200, 800)  # 2 and 8 requests/s
    assert (base.start_s, extra.start_s) == (0.0, 0.0)


def test_turns_of_conversations_are_requests_too():
    talks = catalogue.presets()["conversation-turns"].scenario
    per_arrival = len(talks.requests().follows) / (talks.requests().follows < 0).sum()
    assert per_arrival > 2
    begins = value_at(talks, RATE)
    assert rate_of(talks) == pytest.approx(begins * per_arrival, rel=0.1)
    assert saturation(talks, 0, 400) == float("inf")
    # As many turns come as the rate says, once as many conversations end as begin.
    run = load_run(talks, 4.0, 0, 2000)
    assert run.slo_throughput_requests_per_s == pytest.approx(
        4.0 * run.slo_attainment_share, rel=0.15
    )


def test_long_answers_get_fewer_requests():
    assert affordable(catalogue.presets()["customer-service"].scenario, 2000) == 2000
    law = catalogue.presets()["law"].scenario
    assert affordable(law, 2000) == MOST_OUTPUT_TOKENS // 8192


def test_warm_up_is_left_out():
    run = load_run(chat(), 2.0, 0, 400)
    assert run.requests == 400
    scenario = replace_at(steady(chat(), 500), RATE, 2.0)
    requests = simulate(scenario).requests
    counted = requests["arrival_s"] >= np.sort(requests["arrival_s"])[int(500 * WARM_UP_SHARE)]
    ttft = (requests["first_token_s"] - requests["arrival_s"])[counted]
    assert run.ttft_p90_s == pytest.approx(np.percentile(ttft, 90))
    assert run.ttft_attainment_share == pytest.approx((ttft <= 0.5).mean())


@pytest.mark.parametrize("kind", ["at_once", "closed_loop"])
def test_arrivals_without_a_rate_have_no_goodput(kind):
    (stream,) = chat().workload.streams
    scenario = replace(chat(), workload=Workload((replace(stream, arrivals=Arrivals(kind)),)))
    for steps in (search(scenario), frontier({"": scenario})):
        with pytest.raises(LabError) as caught:
            next(steps)
        assert caught.value.code == "no_rate"


def test_neither_has_a_trace():
    trace = replace(chat(), workload=TraceReference("trace.csv", "0" * 64, 3))
    with pytest.raises(LabError) as caught:
        next(search(trace))
    assert caught.value.code == "no_rate"


# -- curves ----------------------------------------------------------------------------------------


RATES = (2.0, 6.0, 12.0, 24.0)
SMALL = Effort(120, 3)


def two_policies():
    return {name: with_policy(chat(), name) for name in ("vllm-v1", "orca")}


def test_a_rough_curve_comes_first_and_is_refined_run_by_run():
    steps = list(frontier(two_policies(), RATES, effort=SMALL, rough=Effort(40, 1), refine=1))
    counts = [sum(point.requests for c in step.curves for point in c.points) for step in steps]
    rough = next(step for step in steps if all(len(c.points) == 4 for c in step.curves))
    for step in steps[:-1]:  # a curve is rough all along, or not at all
        for curve in step.curves:
            assert len({point.runs[0].requests for point in curve.points}) <= 1
    assert all(point.requests == 40 for curve in rough.curves for point in curve.points)
    assert all(curve.rough for curve in rough.curves)
    assert rough.done < rough.planned / 2
    last = steps[-1]
    assert not any(curve.rough for curve in last.curves)
    assert last.done == last.planned
    assert counts[-1] == max(counts)
    for curve in last.curves:
        assert [point.rate_per_s for point in curve.points] == sorted(
            {*RATES, *(point.rate_per_s for point in curve.points)}
        )
        assert len(curve.points) == len(RATES) + 1  # the bracket was halved once
        low, high, _ = curve.goodput
        assert low < high


def test_a_point_spared_some_seeds_would_not_have_been_good():
    last = found(frontier({"": chat()}, RATES, effort=SMALL, rough=None, refine=0))
    (curve,) = last.curves
    spared = [point for point in curve.points if len(point.runs) < SMALL.seeds]
    assert spared
    for point in spared:
        assert not point.good(curve.share)
        runs = [load_run(chat(), point.rate_per_s, seed, SMALL.requests) for seed in range(3)]
        whole = Point(point.rate_per_s, tuple(runs), below_limit=point.below_limit)
        assert not whole.good(curve.share)


def test_intervals_are_those_of_sweeps():
    from model.experiment import sweep

    runs = tuple(load_run(chat(), 6.0, seed, 120) for seed in range(3))
    point = Point(6.0, runs)
    shares = [run.slo_attainment_share for run in runs]
    other = sweep(chat(), RATE, (6.0,), ("slo_attainment_share",), (0, 1, 2))
    same = replace(other, columns={**other.columns, "slo_attainment_share": np.array(shares)})
    curve = same.curve("slo_attainment_share")
    assert point.spread("slo_attainment_share") == pytest.approx(
        [curve[name][0] for name in ("mean", "low", "high")]
    )
    two = Point(6.0, runs[:2]).spread("ttft_p90_s")
    assert (two.low, two.high) == tuple(sorted(run.ttft_p90_s for run in runs[:2]))


def test_executors_give_the_same():
    def last(executor):
        return found(
            frontier(two_policies(), RATES, effort=SMALL, refine=1, executor=executor)
        ).curves

    here = last(None)
    with ThreadPoolExecutor(2) as threads:
        assert last(threads) == here
    with ProcessPoolExecutor(2) as processes:
        assert last(processes) == here


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_cancelling_keeps_what_is_done(executor):
    progress = []
    *_, last = frontier(
        two_policies(),
        RATES,
        effort=SMALL,
        executor=executor,
        on_progress=lambda done, planned: progress.append((done, planned)),
        cancelled=lambda: len(progress) >= 7,
    )
    assert last.cancelled
    assert last.finished
    assert 7 <= last.done < last.planned
    assert sum(len(curve.points) for curve in last.curves) >= 5
    assert progress[-1][0] == last.done


def test_requests_that_never_fit_are_missed_at_every_rate():
    tight = replace(chat(), memory=Memory(kv_blocks=10, max_model_len=160))
    (curve,) = found(search(tight, effort=Effort(400, 1))).curves
    assert curve.goodput.low == 0.0
    assert np.isfinite(curve.limit_per_s)  # of those that fit
    assert all(point.runs[0].refused_share > 0.1 for point in curve.points)


@pytest.mark.parametrize(
    ("kept", "bracket"),
    [
        ((0.5, 0.4, 0.3), (0.0, 1.0, True)),
        ((0.95, 0.91, 0.3), (2.0, 3.0, True)),
        ((0.95, 0.85, 0.9), (3.0, np.inf, False)),
        ((0.99, 0.98, 0.97), (3.0, np.inf, True)),
    ],
)
def test_the_goodput_is_the_last_good_rate_and_says_where_one_below_is_not(kept, bracket):
    run = replace(load_run(chat(), 1.0, 0, 20), growth=0)
    points = tuple(
        Point(float(rate), (replace(run, slo_attainment_share=share),), settled=True)
        for rate, share in enumerate(kept, 1)
    )
    assert Curve("", chat(), 0.9, np.inf, points).goodput == Bracket(*bracket)


def test_what_cannot_run_is_kept_as_a_fault_and_has_no_goodput(monkeypatch):
    def refusing(scenario, *args):
        fault = scenario.policy.name == "orca"
        return LabError("no_rate") if fault else load_run(scenario, *args)

    monkeypatch.setattr("model.goodput.bench.load_run", refusing)
    last = found(frontier(two_policies(), RATES, effort=Effort(40, 1), refine=0))
    other, broken = last.curves
    assert [point.error.code for point in broken.points] == ["no_rate"] * len(RATES)
    assert not any(point.runs for point in broken.points)
    assert broken.goodput.low == 0.0
    assert not broken.rough
    assert other.goodput.low > 0


def test_more_than_two_thousand_requests_a_point_unless_told_otherwise():
    assert FULL.requests >= 2000
    assert FULL.seeds >= 3
