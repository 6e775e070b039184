"""Sweeps: parameters by path, common random numbers, bands, impossible points, cancelling."""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from model import catalogue
from model.errors import LabError
from model.experiment import RATE, replace_at, sweep, sweepable, value_at
from model.intervals import t_quantile
from model.iteration_time import Linear, Roofline
from model.metrics import METRICS, summary
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.schedulers.base import register
from model.schedulers.vllm_v1 import VllmV1
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload

CHAT = Stream(
    "chat",
    30,
    Arrivals("poisson", 4.0),
    Lengths("lognormal", 200.0, max_tokens=900),
    Lengths("geometric", 40.0, max_tokens=300),
)
PLAIN = Scenario(Workload((CHAT,)), VllmV1(max_num_seqs=16, max_num_batched_tokens=512))
LINEAR = replace(PLAIN, clock=Linear(), model=None, hardware=None, memory=Memory(kv_blocks=200))
TRACE = replace(LINEAR, workload=TraceReference("trace.csv", "0" * 64, 3))


# -- one parameter by its path ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("policy.max_num_seqs", 8),
        ("policy.max_num_batched_tokens", 1024),
        ("policy.enable_chunked_prefill", False),
        ("workload.streams.0.arrivals.rate_per_s", 2.5),
        ("workload.streams.0.prompt.mean_tokens", 300.0),
        ("memory.kv_blocks", 900),
        ("memory.kv_gib", 3.5),
        ("memory.max_model_len", 4096),
        ("memory.max_model_len", None),
        ("tensor_parallel", 2),
        ("n_engines", 3),
        ("clock.compute_efficiency", 0.4),
        ("clock", "textbook"),
        ("slo.ttft_s", 0.3),
        ("hardware", "h100-sxm"),
        ("model", "qwen3-8b"),
        (RATE, 9.0),
    ],
)
def test_one_value_is_changed_and_nothing_else(path, value):
    changed = replace_at(PLAIN, path, value)
    assert value_at(changed, path) == value
    assert replace_at(changed, path, value_at(PLAIN, path)) == PLAIN or path == "clock"


def test_every_listed_parameter_takes_its_suggestions():
    for preset in catalogue.presets().values():
        for parameter in sweepable(preset.scenario):
            assert len(parameter.suggested) > 1
            for value in parameter.suggested:
                replace_at(preset.scenario, parameter.path, value)


def test_limits_and_choices_are_those_of_the_checks():
    by_path = {parameter.path: parameter for parameter in sweepable(PLAIN)}
    seqs = by_path["policy.max_num_seqs"]
    assert (seqs.kind, seqs.low, seqs.high, seqs.current) == ("whole", 1, 100_000, 16)
    assert by_path["policy.queue_order"].choices == ("fcfs", "priority")
    assert by_path["policy.enable_prefix_caching"].suggested == (False, True)
    assert set(by_path["policy"].choices) == set(POLICIES)
    assert by_path["model"].choices == tuple(catalogue.models())
    assert "deepseek-v3" not in by_path["model"].suggested
    assert by_path["memory.kv_blocks"].suggested[-1] == PLAIN.kv_capacity().blocks
    assert {"seed", "workload.streams.0.name", "workload.streams.0.prompt.low_tokens"}.isdisjoint(
        by_path
    )


def test_a_new_parameter_of_a_policy_appears_by_itself(monkeypatch):
    monkeypatch.setattr("model.schedulers.base.POLICIES", POLICIES)

    @dataclass(frozen=True)
    class Patient(VllmV1):
        name = "patient"
        patience_tokens: int = 0

    register(Patient)
    try:
        paths = [parameter.path for parameter in sweepable(replace(PLAIN, policy=Patient()))]
    finally:
        del POLICIES["patient"]
    assert "policy.patience_tokens" in paths


def test_the_total_rate_keeps_the_shares_of_the_streams():
    batch = replace(CHAT, name="batch", arrivals=Arrivals("at_once"))
    slow = replace(CHAT, name="slow", arrivals=Arrivals("gamma", 1.0, cv=2.0))
    scenario = replace(PLAIN, workload=Workload((CHAT, batch, slow)))
    changed = replace_at(scenario, RATE, 20.0).workload.streams
    assert [stream.arrivals.rate_per_s for stream in changed] == [16.0, 1.0, 4.0]


def test_numbers_are_taken_in_the_type_of_their_field():
    assert type(replace_at(PLAIN, "tensor_parallel", np.float64(2)).tensor_parallel) is int
    rate = replace_at(PLAIN, "workload.streams.0.arrivals.rate_per_s", np.int64(2))
    assert type(rate.workload.streams[0].arrivals.rate_per_s) is float


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("policy.chunk_size", 4, "parameter_unknown"),
        ("workload.streams.1.n_requests", 4, "parameter_unknown"),
        ("workload.streams.-1.n_requests", 4, "parameter_unknown"),
        ("workload.streams.0", CHAT, "parameter_unknown"),
        ("policy.__class__", 4, "parameter_unknown"),
        ("", 4, "parameter_unknown"),
        ("policy.max_num_seqs", 2.5, "not_a_whole_number"),
        ("policy.max_num_seqs", "many", "not_a_number"),
        ("policy.max_num_seqs", None, "not_a_number"),
        ("slo.ttft_s", float("nan"), "not_finite"),
        ("memory", 3, "json_type"),
        ("workload.streams", (1,), "json_type"),
        ("clock", 3, "json_type"),
        ("policy", "tgi", "unknown_choice"),
        ("hardware", "abacus", "not_a_choice_of_ids"),
        ("tensor_parallel", 3, "tensor_parallel_heads"),
        ("workload.streams.0.prompt.mean_tokens", -1, "out_of_range"),
    ],
)
def test_what_cannot_be_set_says_why(path, value, code):
    with pytest.raises(LabError) as refusal:
        replace_at(PLAIN, path, value)
    assert refusal.value.code == code
    if "field" in refusal.value.values:
        assert refusal.value.values["field"] == path


def test_a_workload_without_a_rate_has_none_to_vary():
    for scenario in (TRACE, replace_at(PLAIN, "workload.streams.0.arrivals.kind", "at_once")):
        assert RATE not in [parameter.path for parameter in sweepable(scenario)]
        with pytest.raises(LabError) as refusal:
            replace_at(scenario, RATE, 1.0)
        assert refusal.value.code == "no_rate"


def test_another_policy_keeps_the_limits():
    sarathi = replace_at(PLAIN, "policy", "sarathi").policy
    assert (sarathi.max_num_seqs, sarathi.chunk_size) == (16, 512)
    assert replace_at(PLAIN, "policy", "vllm-v1") is PLAIN
    whole_prompts = replace_at(PLAIN, "policy", "vllm-v0").policy
    assert whole_prompts.max_num_batched_tokens == PLAIN.max_model_len()


# -- sweeps ----------------------------------------------------------------------------------------


def test_a_sweep_is_the_table_of_its_single_runs():
    found = sweep(PLAIN, "policy.max_num_seqs", [16, 2], ["ttft_p99_s", "iterations"], [3, 1])
    assert found.columns["value"].tolist() == [16, 16, 2, 2]
    assert found.columns["seed"].tolist() == [3, 1, 3, 1]
    for row, (value, seed) in enumerate(((16, 3), (16, 1), (2, 3), (2, 1))):
        point = replace(replace_at(PLAIN, "policy.max_num_seqs", value), seed=seed)
        numbers = summary(simulate(point))
        for metric in found.metrics:
            assert found.columns[metric][row] == numbers[metric]
    assert not found.cancelled
    assert found.runs == 4


def test_values_meet_the_same_luck():
    """With a rate twice as high the same requests come, and the same slots are waited for."""
    found = sweep(PLAIN, RATE, [1.0, 2.0], ["throughput_prompt_tokens_per_s", "requests"], [5])
    tokens = [
        simulate(replace(replace_at(PLAIN, RATE, rate), seed=5)).inputs.prompt_tokens.tolist()
        for rate in (1.0, 2.0)
    ]
    assert tokens[0] == tokens[1]
    assert found.columns["requests"].tolist() == [30.0, 30.0]


def test_any_metric_of_the_summary():
    found = sweep(PLAIN, "n_engines", [1], list(METRICS))
    assert list(found.columns) == ["value", "seed", *METRICS]
    assert all(found.columns[name].dtype == np.float64 for name in METRICS)


def test_impossible_points_are_kept_with_their_sentence():
    values = [1, 3, 8]
    found = sweep(PLAIN, "tensor_parallel", values, ["tpot_mean_s"], [0, 1])
    assert found.columns["value"].tolist() == [1, 1, 8, 8]
    (point,) = found.impossible
    assert (point.value, point.seed) == (3, None)
    assert "set tensor_parallel to one of" in point.sentence
    assert not found.cancelled


def test_a_fault_in_one_run_is_kept_with_its_seed():
    swapping = replace(
        LINEAR,
        policy=POLICIES["vllm-v0"](max_num_seqs=16, preemption_mode="swap"),
        memory=Memory(kv_blocks=70, num_cpu_blocks=0),
    )
    swapping = replace_at(swapping, RATE, 100.0)
    found = sweep(swapping, "memory.num_cpu_blocks", [0, 500], ["swapped_blocks"], [0, 1])
    assert [(point.value, point.seed) for point in found.impossible] == [(0, 0), (0, 1)]
    assert {point.error.code for point in found.impossible} == {"host_memory_full"}
    assert found.columns["value"].tolist() == [500, 500]


def test_names_are_values_too():
    found = sweep(PLAIN, "policy", ["static", "vllm-v1"], ["ttft_mean_s"])
    assert found.columns["value"].tolist() == ["static", "vllm-v1"]
    curve = found.curve("ttft_mean_s")
    assert curve["mean"][0] > curve["mean"][1]


def test_a_trace_is_swept_once_for_all_seeds():
    requests = Requests.from_columns(
        arrival_s=[0, 0, 0.01], prompt_tokens=[100, 200, 300], output_tokens=[5, 6, 7]
    )
    found = sweep(TRACE, "policy.max_num_seqs", [1, 4], ["e2e_mean_s"], [0, 1], requests=requests)
    assert found.seeds == (0,)
    assert found.columns["e2e_mean_s"][0] > found.columns["e2e_mean_s"][1]
    with pytest.raises(LabError) as refusal:
        sweep(TRACE, "policy.max_num_seqs", [1], ["e2e_mean_s"])
    assert refusal.value.code == "trace_needed"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"metrics": ["speed"]}, "unknown_choice"),
        ({"parameter": "policy.speed"}, "parameter_unknown"),
        ({"parameter": "seed"}, "sweep_of_seeds"),
        ({"seeds": [-1]}, "out_of_range"),
        ({"values": []}, "out_of_range"),
        ({"values": range(1, 20_000)}, "out_of_range"),
    ],
)
def test_a_sweep_that_cannot_begin_says_why(changes, code):
    plain = {"parameter": "n_engines", "values": [1], "metrics": ["iterations"], "seeds": [0]}
    arguments = plain | changes
    with pytest.raises(LabError) as refusal:
        sweep(PLAIN, **arguments)
    assert refusal.value.code == code


# -- progress, cancelling, workers -----------------------------------------------------------------


def test_progress_counts_every_point_once():
    seen = []
    sweep(
        LINEAR,
        "tensor_parallel",
        [1, 2, 99],
        ["iterations"],
        [0, 1],
        on_progress=lambda done, planned: seen.append((done, planned)),
    )
    assert seen == [(2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]


def test_a_cancelled_sweep_has_whole_curves_of_fewer_seeds():
    done = []
    found = sweep(
        LINEAR,
        "policy.max_num_seqs",
        [4, 1, 2],
        ["iterations"],
        [0, 1, 2],
        on_progress=lambda count, planned: done.append(count),
        cancelled=lambda: done[-1] >= 4,
    )
    assert found.cancelled
    assert found.columns["value"].tolist() == [4, 4, 1, 2]
    assert found.columns["seed"].tolist() == [0, 1, 0, 0]
    assert found.band("iterations") == "range"
    assert found.curve("iterations")["seeds"].tolist() == [2, 1, 1]


def test_cancelled_before_the_first_run():
    found = sweep(LINEAR, "n_engines", [1, 2], ["iterations"], cancelled=lambda: True)
    assert found.cancelled
    assert found.runs == 0
    assert len(found.curve("iterations")["value"]) == 0


def test_workers_give_the_same_table():
    arguments = (LINEAR, "policy.max_num_seqs", [1, 2, 4], ["ttft_mean_s", "kv_use_mean_share"])
    alone = sweep(*arguments, range(3))
    with ThreadPoolExecutor(2) as threads:
        shared = sweep(*arguments, range(3), executor=threads)
    for name, values in alone.columns.items():
        np.testing.assert_array_equal(values, shared.columns[name])


def test_faults_cross_a_process_boundary():
    swapping = replace(
        replace_at(LINEAR, RATE, 100.0),
        policy=POLICIES["vllm-v0"](preemption_mode="swap"),
        memory=Memory(kv_blocks=70, num_cpu_blocks=0),
    )
    with ProcessPoolExecutor(1) as processes:
        found = sweep(
            swapping, "memory.num_cpu_blocks", [0, 500], ["iterations"], executor=processes
        )
    assert found.impossible[0].error.code == "host_memory_full"
    assert found.columns["value"].tolist() == [500]


def test_cancelling_does_not_wait_for_the_queue():
    started = time.monotonic()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(time.sleep, 0.3)
        found = sweep(
            LINEAR,
            "policy.max_num_seqs",
            range(1, 200),
            ["iterations"],
            executor=threads,
            cancelled=lambda: time.monotonic() > started + 0.1,
        )
        assert found.cancelled
        assert found.runs == 0


# -- bands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 29, 200])
def test_t_quantiles_are_scipys(freedom):
    for share in (0.9, 0.975, 0.999):
        assert t_quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-9)


def test_three_seeds_give_a_t_interval_of_the_mean():
    found = sweep(LINEAR, "policy.max_num_seqs", [2, 4], ["ttft_mean_s"], range(4))
    assert found.band("ttft_mean_s") == "t95"
    curve = found.curve("ttft_mean_s")
    for row, value in enumerate((2, 4)):
        sample = found.columns["ttft_mean_s"][found.columns["value"] == value]
        low, high = stats.t.interval(0.95, 3, sample.mean(), stats.sem(sample))
        assert (curve["low"][row], curve["high"][row]) == pytest.approx((low, high))


def test_fewer_seeds_give_the_range_of_the_runs():
    found = sweep(LINEAR, "policy.max_num_seqs", [2], ["ttft_mean_s"], range(2))
    assert found.band("ttft_mean_s") == "range"
    curve, runs = found.curve("ttft_mean_s"), found.columns["ttft_mean_s"]
    assert (curve["low"][0], curve["high"][0]) == (runs.min(), runs.max())


def test_where_a_metric_is_not_defined_the_curve_has_no_number():
    found = sweep(LINEAR, "policy.max_num_seqs", [2], ["mfu_share"], range(3))
    curve = found.curve("mfu_share")
    assert np.isnan(curve["mean"][0])
    assert curve["seeds"][0] == 0


def test_roofline_constants_can_be_swept():
    found = sweep(PLAIN, "clock.memory_efficiency", [0.4, 0.8], ["tpot_mean_s"])
    assert found.columns["tpot_mean_s"][0] > found.columns["tpot_mean_s"][1]
    assert isinstance(found.scenario.clock, Roofline)
