"""The summary of simulated runs against pencil and paper and against naive loops over tokens."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from model import metrics
from model.iteration_time import Linear
from model.kv_cache import Memory
from model.scenario import Scenario, Slo
from model.schedulers import POLICIES
from model.simulator import simulate
from model.state import CANCELLED, FINISHED, STATUS
from model.workload import Arrivals, Lengths, Stream, Workload

ONE_SECOND = Linear(base_s=1.0, per_scheduled_token_s=0.0)


def recording(workload, policy, clock=ONE_SECOND, **more) -> Scenario:
    memory = more.pop("memory", Memory(kv_blocks=100))
    return Scenario(workload, policy, clock, model=None, hardware=None, memory=memory, **more)


def at_once(*outputs: int) -> Workload:
    return Workload(
        tuple(
            Stream(f"s{i}", 1, Arrivals("at_once"), Lengths("fixed", 10), Lengths("fixed", n))
            for i, n in enumerate(outputs)
        )
    )


# ---- by pencil ----------------------------------------------------------------------------


def test_two_requests_by_pencil():
    # Each iteration lasts 1 s. Both prefill in the first, both decode in the second (the one with
    # two outputs ends at 2), the other decodes alone and ends at 3.
    scenario = recording(at_once(3, 2), POLICIES["vllm-v1"](max_num_seqs=4))
    result = simulate(replace(scenario, slo=Slo(ttft_s=1.0, tpot_s=0.9)))
    numbers = metrics.summary(result)
    expected = {
        "requests": 2,
        "finished_requests": 2,
        "rejected_requests": 0,
        "cancelled_requests": 0,
        "unfinished_requests": 0,
        "iterations": 3,
        "duration_s": 3.0,
        "window_start_s": 0.0,
        "window_end_s": 3.0,
        "window_is_steady": 0,
        "ttft_mean_s": 1.0,
        "ttft_p99_s": 1.0,
        "tpot_mean_s": 1.0,
        "itl_mean_s": 1.0,
        "itl_p50_s": 1.0,
        "itl_max_s": 1.0,
        "e2e_mean_s": 2.5,
        "e2e_p50_s": 2.5,
        "e2e_p90_s": 2.9,
        "queue_mean_s": 0.0,
        "slo_attainment_share": 0.0,
        "ttft_attainment_share": 1.0,
        "tpot_attainment_share": 0.0,
        "ttft_violations": 0,
        "tpot_violations": 2,
        "slo_throughput_requests_per_s": 0.0,
        "throughput_requests_per_s": 2 / 3,
        "throughput_output_tokens_per_s": 5 / 3,
        "throughput_prompt_tokens_per_s": 20 / 3,
        "iteration_mean_s": 1.0,
        "mean_batch_decode_requests": 1.0,
        "mean_batch_prefill_requests": 2 / 3,
        "batch_occupancy_share": 5 / 3 / 4,
        "kv_use_mean_share": (2 + 2 + 1) / 3 / 100,
        "kv_use_peak_share": 0.02,
        # tokens stored: 20, 22, 12 in 2, 2, 1 blocks of 16
        "kv_fragmentation_share": 1 - 54 / 80,
        "residency_share": 1.0,
        "preemptions": 0,
        "wasted_tokens_share": 0.0,
        "head_of_line_blocking_s": 0.0,
        # 1 s a token for both
        "fairness_jain": 1.0,
        "fairness_between_classes_jain": 1.0,
    }
    assert {key: numbers[key] for key in expected} == pytest.approx(expected)
    assert math.isnan(numbers["mfu_share"])  # no hardware


def test_steady_window_by_pencil():
    # A request every 4 s, 3 s each (three outputs): completions at 3, 7, 11, last arrival at 8.
    stream = Stream("s", 3, Arrivals("constant", 0.25), Lengths("fixed", 10), Lengths("fixed", 3))
    result = simulate(recording(Workload((stream,)), POLICIES["vllm-v1"](max_num_seqs=4)))
    numbers = metrics.summary(result)
    assert (numbers["window_start_s"], numbers["window_end_s"]) == (3.0, 8.0)
    assert numbers["window_is_steady"] == 1
    # from 3 to 8 the engine runs from 4 to 7: 3 tokens, one request, two decodes of 1 s
    assert numbers["throughput_output_tokens_per_s"] == pytest.approx(3 / 5)
    assert numbers["throughput_requests_per_s"] == pytest.approx(1 / 5)
    assert numbers["residency_share"] == pytest.approx(3 / 5)
    assert numbers["mean_batch_decode_requests"] == pytest.approx(2 / 5)
    later = metrics.summary(result, warm_up_s=4.0)
    assert (later["window_start_s"], later["window_end_s"]) == (7.0, 8.0)
    assert later["throughput_output_tokens_per_s"] == 0.0


def test_a_rejected_request_counts_as_missed():
    # 30 blocks of 16 hold 480 tokens; the second prompt can never fit
    fits, never = (
        Stream(name, 1, Arrivals("at_once"), Lengths("fixed", n), Lengths("fixed", 2))
        for name, n in (("fits", 10), ("never", 1000))
    )
    scenario = recording(
        Workload((fits, never)), POLICIES["vllm-v1"](), memory=Memory(kv_blocks=30), slo=Slo(9, 9)
    )
    result = simulate(scenario)
    numbers = metrics.summary(result)
    assert (numbers["finished_requests"], numbers["rejected_requests"]) == (1, 1)
    assert numbers["slo_attainment_share"] == 0.5
    classes = metrics.class_summary(result)
    assert list(classes) == ["fits", "never"]
    assert classes["fits"]["slo_attainment_share"] == 1.0
    assert classes["never"]["rejected_requests"] == 1
    assert math.isnan(classes["never"]["ttft_p50_s"])


def test_an_empty_result_has_no_numbers_but_all_keys():
    scenario = recording(
        Workload((Stream("s", 1, Arrivals("at_once"), Lengths("fixed", 10**6)),)),
        POLICIES["vllm-v1"](),
    )
    numbers = metrics.summary(simulate(scenario))
    assert list(numbers) == list(metrics.METRICS)
    assert numbers["rejected_requests"] == 1
    assert numbers["iterations"] == 0


# ---- against loops over tokens ------------------------------------------------------------

MIX = Workload(
    (
        Stream(
            "chat",
            120,
            Arrivals("gamma", 20.0, cv=3.0),
            Lengths("lognormal", 300, cv=1.5, max_tokens=1500),
            Lengths("geometric", 60, max_tokens=300),
            patience_s=20.0,
            prefix_groups=3,
            shared_prefix_tokens=100,
        ),
        Stream(
            "batch",
            60,
            Arrivals("at_once"),
            Lengths("uniform", low_tokens=100, high_tokens=1000),
            Lengths("geometric", 50, max_tokens=200),
            priority=3,
            start_s=1.0,
        ),
    )
)
SMALL = Memory(kv_blocks=250, max_model_len=2048, num_cpu_blocks=4000)
POLICY_CASES = {
    "v1": POLICIES["vllm-v1"](max_num_seqs=32, max_num_batched_tokens=512),
    "v1 whole prompts": POLICIES["vllm-v1"](
        max_num_seqs=64, max_num_batched_tokens=2048, enable_chunked_prefill=False
    ),
    "v1 prefix cache": POLICIES["vllm-v1"](max_num_seqs=32, enable_prefix_caching=True),
    "v0 recompute": POLICIES["vllm-v0"](max_num_seqs=32),
    "v0 swap": POLICIES["vllm-v0"](max_num_seqs=32, preemption_mode="swap"),
    "static padded": POLICIES["static"](max_num_seqs=16, finished_rows="padded"),
    "orca oracle": POLICIES["orca"](max_num_seqs=16, reserve="oracle"),
    "sarathi": POLICIES["sarathi"](max_num_seqs=32),
}


@pytest.fixture(
    scope="module", params=[(name, n) for name in POLICY_CASES for n in (1, 2)], ids=str
)
def result(request):
    name, n_engines = request.param
    clock = Linear(0.005, 5e-5, 1e-4)
    return simulate(
        recording(
            MIX,
            POLICY_CASES[name],
            clock,
            memory=SMALL,
            seed=3,
            n_engines=n_engines,
            slo=Slo(1, 0.02),
        )
    )


def test_token_metrics_agree_with_a_loop_over_tokens(result):
    numbers = metrics.summary(result)
    window = metrics.steady_window(result.requests)
    times = [result.token_times(row) for row in range(len(result.inputs))]
    gaps = np.concatenate([np.diff(t) for t in times])
    values, counts = metrics.itl_counts(result)
    np.testing.assert_allclose(np.sort(np.repeat(values, counts)), np.sort(gaps), atol=1e-9)
    assert numbers["itl_mean_s"] == pytest.approx(gaps.mean())
    assert numbers["itl_p99_s"] == pytest.approx(np.percentile(gaps, 99))
    inside = sum(int(window.holds(t).sum()) for t in times)
    assert numbers["throughput_output_tokens_per_s"] == pytest.approx(inside / window.length_s)
    tpot = [(t[-1] - t[0]) / (len(t) - 1) for t in times if len(t) > 1]
    assert numbers["tpot_p90_s"] == pytest.approx(np.percentile(tpot, 90))


def test_counts_agree_with_the_requests(result):
    numbers = metrics.summary(result)
    status = result.requests["status"]
    assert numbers["requests"] == len(status) == 180
    assert numbers["cancelled_requests"] == (status == CANCELLED).sum() > 0
    total = sum(numbers[f"{name}_requests"] for name in STATUS)
    assert total == numbers["requests"]
    by_class = metrics.class_summary(result)
    assert sum(row["finished_requests"] for row in by_class.values()) == (status == FINISHED).sum()
    assert list(by_class) == ["chat", "batch"]


def test_shares_are_shares(result):
    numbers = metrics.summary(result)
    for key, metric in metrics.METRICS.items():
        if metric.unit == "1" and not math.isnan(numbers[key]):
            assert 0 <= numbers[key] <= 1, key


def test_violations_agree_with_attainment(result):
    slo = result.scenario.slo
    finished = result.requests["status"] == FINISHED
    lost = [
        ~np.isnan(metrics.ttft_violation_s(result.requests, slo)),
        ~np.isnan(metrics.tpot_violation_s(result.requests, slo)),
    ]
    met = metrics.meets_slo(result.requests, slo)
    assert (met[finished] == ~(lost[0] | lost[1])[finished]).all()
    steps = metrics.violations_over_time(result.requests, slo)
    for name, violated in zip(("ttft", "tpot"), lost, strict=True):
        assert steps[f"{name}_total"][-1] == violated.sum()
        assert steps[f"{name}_now"][-1] == 0
        assert (steps[f"{name}_now"] >= 0).all()


# ---- the table ----------------------------------------------------------------------------


def test_every_key_says_its_unit():
    suffix = {
        "s": r"_s$",
        "1": r"_(share|jain)$",
        "times": r"^(preemptions|retries|refused_attempts)$",
        "B": r"_bytes$",
        "tokens/s": r"_tokens_per_s$",
        "requests/s": r"_requests_per_s$",
        "requests": r"requests$|_violations$",
        "tokens": r"_tokens$",
        "blocks": r"_blocks$",
        "iterations": r"^iterations$",
        "0/1": r"_is_",
    }
    for key, metric in metrics.METRICS.items():
        assert re.search(suffix[metric.unit], key), key
        assert metric.definition.endswith("."), key
        assert metric.better in ("higher", "lower", ""), key


def test_a_summary_is_plain_numbers(result):
    numbers = metrics.summary(result)
    assert list(numbers) == list(metrics.METRICS)
    assert {type(value) for value in numbers.values()} <= {int, float}


def test_hardware_numbers_are_there_where_the_scenario_has_hardware():
    stream = Stream("s", 40, Arrivals("poisson", 20.0), Lengths("fixed", 500), Lengths("fixed", 50))
    numbers = metrics.summary(simulate(Scenario(Workload((stream,)), POLICIES["vllm-v1"]())))
    assert 0.05 < numbers["mfu_share"] < 0.5  # Roofline's compute efficiency
    assert 0.1 < numbers["mbu_share"] < 0.8  # and its memory efficiency


def test_a_summary_of_many_requests_is_quick():
    stream = Stream(
        "s", 10_000, Arrivals("poisson", 12.0), Lengths("geometric", 300), Lengths("geometric", 100)
    )
    run = simulate(Scenario(Workload((stream,)), POLICIES["vllm-v1"]()))
    metrics.summary(run)


# -- by length -------------------------------------------------------------------------------------


def test_the_ends_by_length():
    """Ten requests of 2 to 11 tokens, one after the other: who is shortest comes first."""
    scenario = recording(at_once(*range(1, 11)), POLICIES["vllm-v1"](max_num_seqs=1))
    result = simulate(replace(scenario, slo=Slo(ttft_s=1.0, tpot_s=2.0)))
    tokens = result.requests["prompt_tokens"] + result.requests["output_tokens"]
    short, long = metrics.length_ends(result.requests, result.scenario.slo)
    assert (short.tokens, long.tokens) == (tokens.min(), tokens.max())
    # 1 + 2 + ... + 9 iterations of a second go before the longest, and one of its own.
    assert (short.ttft_mean_s, long.ttft_mean_s) == (1.0, 46.0)
    assert (short.slo_attainment_share, long.slo_attainment_share) == (1.0, 0.0)


def test_equal_lengths_have_no_ends():
    result = simulate(recording(at_once(2, 2), POLICIES["vllm-v1"](max_num_seqs=1)))
    assert metrics.length_ends(result.requests, Slo()) is None
