"""Scenarios: round trip through JSON, sentences for what cannot run, and the presets."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalogue
from model.errors import MESSAGES, LabError, sentence
from model.iteration_time import Linear, Roofline, Textbook
from model.scenario import Memory, Scenario, Slo, TraceReference
from model.schedulers import POLICIES
from model.schedulers.vllm_v1 import VllmV1
from model.workload import Arrivals, Lengths, Stream, Workload

WORKLOAD = Workload((Stream(n_requests=3),))
PLAIN = Scenario(WORKLOAD, VllmV1())
TRACE = TraceReference("azure.csv", "0123456789abcdef" * 4, 19_366)


def plain_dict() -> dict:
    return json.loads(PLAIN.to_json())


positive = st.floats(1e-3, 1e3)
lengths = st.one_of(
    st.builds(Lengths, kind=st.just("fixed"), mean_tokens=st.integers(1, 9000).map(float)),
    st.builds(
        Lengths,
        kind=st.sampled_from(["exponential", "geometric", "lognormal"]),
        mean_tokens=st.floats(1, 9000),
        cv=st.floats(0, 9),
        max_tokens=st.none() | st.integers(1, 10_000),
    ),
    st.just(Lengths("quantiles", quantiles=((0.0, 1.0), (0.5, 7.0), (1.0, 90.0)))),
)
arrivals = st.builds(
    Arrivals,
    kind=st.sampled_from(["poisson", "constant", "gamma", "at_once"]),
    rate_per_s=positive,
    cv=st.floats(0, 20),
)
streams = st.builds(
    Stream,
    n_requests=st.integers(1, 500),
    arrivals=arrivals,
    prompt=lengths,
    output=lengths,
    priority=st.integers(-5, 5),
    start_s=st.floats(0, 1e4),
    patience_s=st.none() | positive,
)
workloads = st.lists(streams, min_size=1, max_size=3).map(
    lambda items: Workload(tuple(replace(s, name=f"s{i}é") for i, s in enumerate(items)))
)
clocks = st.one_of(
    st.builds(Linear, positive, positive, positive),
    st.builds(Textbook, positive, st.sampled_from(Textbook.ACCOUNTINGS)),
    st.builds(Roofline, st.floats(0.01, 1), st.floats(0.01, 1), positive, st.booleans()),
)
memories = st.builds(
    Memory,
    block_size=st.sampled_from([1, 16, 32]),
    gpu_memory_utilization=st.floats(0.8, 1.0),
    max_model_len=st.integers(1, 2048),
    weight_dtype=st.sampled_from(["bf16", "fp8", "int4"]),
    kv_dtype=st.sampled_from(["bf16", "fp8"]),
    kv_blocks=st.none() | st.integers(2048, 4096),
    num_cpu_blocks=st.none() | st.integers(0, 1000),
)
scenarios = st.builds(
    Scenario,
    workload=workloads | st.just(TRACE),
    policy=st.sampled_from(sorted(POLICIES)).map(lambda name: POLICIES[name]()),
    clock=clocks,
    model=st.sampled_from(["llama-3-8b", "llama-2-7b", "qwen3-8b"]),
    hardware=st.sampled_from(["a100-80g-sxm", "h100-sxm", "910b2", "mi300x"]),
    tensor_parallel=st.sampled_from([1, 2, 4]),
    memory=memories,
    slo=st.builds(Slo, positive, positive),
    seed=st.integers(0, 2**53 - 1),
    n_engines=st.integers(1, 64),
)


@given(scenarios)
def test_json_round_trip(scenario: Scenario):
    text = scenario.to_json()
    again = Scenario.from_json(text)
    assert again == scenario
    assert hash(again) == hash(scenario)
    assert again.to_json() == text
    assert Scenario.from_dict(scenario.to_dict()) == scenario


def test_equal_scenarios_give_equal_text():
    whole = replace(PLAIN, slo=Slo(ttft_s=2, tpot_s=1), memory=Memory(kv_gib=1))
    decimal = replace(PLAIN, slo=Slo(ttft_s=2.0, tpot_s=1.0), memory=Memory(kv_gib=1.0))
    assert whole == decimal
    assert whole.to_json() == decimal.to_json()


def test_fields_left_out_have_their_defaults():
    short = {
        "workload": {"kind": "streams", "streams": [{"n_requests": 3}]},
        "policy": {"kind": "vllm-v1"},
    }
    assert Scenario.from_dict(short) == PLAIN


def test_a_scenario_says_everything():
    scenario = replace(PLAIN, model="llama-3-70b", tensor_parallel=4)
    assert scenario.kv_capacity().pool_tokens == 423_866
    assert scenario.max_model_len() == 8_192
    assert replace(scenario, memory=Memory(max_model_len=512)).max_model_len() == 512
    assert scenario.cost() == Roofline().cost(
        scenario.model_entry, scenario.device, scenario.memory, 4
    )
    first, second = (scenario.requests() for _ in range(2))
    np.testing.assert_array_equal(first.arrival_s, second.arrival_s)


def test_recordings_need_no_model():
    recording = Scenario(
        WORKLOAD, VllmV1(), Linear(), model=None, hardware=None, memory=Memory(kv_blocks=120)
    )
    assert recording.kv_capacity().blocks == 120
    assert recording.max_model_len() is None
    assert Scenario.from_json(recording.to_json()) == recording
    with pytest.raises(LabError, match="roofline clock needs a model"):
        replace(recording, clock=Roofline())
    with pytest.raises(LabError, match=r"set memory\.kv_blocks"):
        replace(recording, memory=Memory())
    with pytest.raises(LabError, match="go together"):
        replace(recording, model="llama-3-8b")


def test_a_trace_travels_by_its_hash():
    scenario = replace(PLAIN, workload=TRACE)
    assert scenario.to_dict()["workload"]["kind"] == "trace"
    with pytest.raises(LabError, match=r"trace 'azure\.csv' do not travel"):
        scenario.requests()
    for wrong in ({"name": ""}, {"sha256": "0" * 63}, {"sha256": "G" * 64}, {"n_requests": 0}):
        with pytest.raises(LabError):
            replace(TRACE, **wrong)


@pytest.mark.parametrize(
    ("changes", "sentence_part"),
    [
        (
            {"model": "llama-3-70b", "tensor_parallel": 2},
            "Llama-3-70B needs 141 GB for weights; 2 × 80 GB leave no room for KV: use 4 GPUs, or",
        ),
        ({"model": "llama-3.1-8b", "hardware": "rtx-3090"}, "hold only 26,992 tokens: reduce"),
        ({"memory": Memory(max_model_len=8193)}, "was made for 8,192; set it to 8,192 or less"),
        ({"model": "qwen2.5-7b", "tensor_parallel": 8}, "set tensor_parallel to one of 1, 2, 4,"),
        ({"tensor_parallel": 0}, "tensor_parallel is 0; it must be between 1 and 64"),
        ({"tensor_parallel": 65}, "tensor_parallel is 65; it must be between 1 and 64"),
        ({"seed": -1}, "seed is -1; it must be between 0 and"),
        ({"seed": 0.5}, "seed is 0.5; give a whole number"),
        ({"n_engines": True}, "n_engines is True; give a number"),
        ({"model": "gpt-5"}, "no model 'gpt-5'; choose one of llama-2-7b"),
        ({"hardware": "tpu"}, "no hardware 'tpu'; choose one of a100-80g-sxm"),
        ({"memory": Memory(swap_space_gib=500)}, "swap_space_gib asks for 537 GB of host memory"),
        ({"memory": Memory(num_cpu_blocks=10**6)}, "num_cpu_blocks asks for 2,097 GB"),
    ],
)
def test_what_cannot_run_says_what_to_change(changes, sentence_part):
    with pytest.raises(LabError) as error:
        replace(PLAIN, **changes)
    assert sentence_part in str(error.value)


def test_advice_on_host_memory_works_when_followed():
    with pytest.raises(LabError) as error:
        replace(PLAIN, memory=Memory(swap_space_gib=500))
    assert replace(PLAIN, memory=Memory(swap_space_gib=error.value.values["limit"]))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "1", None, True])
def test_slos_are_positive_numbers(value):
    with pytest.raises(LabError, match=r"slo\.tpot_s is "):
        Slo(tpot_s=value)


def edited(path: str, value: object) -> dict:
    """The plain scenario's dictionary with the entry at ``path`` set."""
    data = plain_dict()
    target = data
    *parents, last = path.split("/")
    for key in parents:
        target = target[int(key) if key.isdigit() else key]
    target[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "sentence_part"),
    [
        ("speed", 1, "speed is not known; allowed here: workload, policy, clock"),
        ("memory/blocks", 1, "memory.blocks is not known; allowed here: block_size,"),
        ("memory/block_size", 16.5, "memory.block_size should be a whole number, not 16.5"),
        ("memory/block_size", True, "memory.block_size should be a whole number, not true"),
        ("memory/block_size", None, "memory.block_size should be a whole number, not null"),
        ("memory/block_size", 10**400, "memory.block_size should be a whole number, not 1000"),
        ("memory/kv_gib", 10**400, "memory.kv_gib is inf; give a finite number"),
        ("memory/kv_gib", float("nan"), "memory.kv_gib is nan; give a finite number"),
        ("memory/weight_dtype", "fp4", "memory.weight_dtype is 'fp4'; choose one of bf16, fp8"),
        ("memory", [], "memory should be an object, not []"),
        ("model", 8, "model should be a text, not 8"),
        ("policy/kind", "vllm", "policy.kind is 'vllm'; choose one of"),
        ("policy/kind", ["vllm-v1"], "policy.kind is ['vllm-v1']; choose one of"),
        ("policy", {}, "policy.kind is missing"),
        ("policy", "vllm-v1", "policy should be an object, not \"vllm-v1\""),
        ("policy/chunk_size", 512, "policy.chunk_size is not known; allowed here: max_num_seqs"),
        ("policy/max_num_seqs", 0, "policy.max_num_seqs is 0"),
        ("clock/kind", "sundial", "clock.kind is 'sundial'; choose one of linear, textbook"),
        ("clock/communication", 1, "clock.communication should be true or false, not 1"),
        ("workload/streams", {}, "workload.streams should be a list, not {}"),
        ("workload/streams", [], "The workload is empty"),
        ("workload/streams/0/n_requests", "3", "workload.streams[0].n_requests should be a whole"),
        ("workload/streams/0/prompt/mean_tokens", 0, "streams[0].prompt.mean_tokens is 0.0; it mu"),
        ("workload/streams/0/prompt/quantiles", [[0, 1, 2]], "quantiles[0] should be a list of 2"),
        ("workload/kind", "trace", "workload.streams is not known; allowed here: name, sha256"),
        ("version", 2, "has version 2 and this program reads 1"),
    ],
)
def test_faults_in_json_name_the_key(path, value, sentence_part):
    with pytest.raises(LabError) as error:
        Scenario.from_dict(edited(path, value))
    assert sentence_part in str(error.value)


@pytest.mark.parametrize("key", ["workload", "policy"])
def test_required_keys(key):
    data = plain_dict()
    del data[key]
    with pytest.raises(LabError, match=f"{key} is missing; add it"):
        Scenario.from_dict(data)


@pytest.mark.parametrize(
    "text", ["", "{", '{"seed": 1,}', "[" * 100_000, "1" * 5000, '"a"', "null", "[]", "NaN"]
)
def test_text_that_is_no_scenario(text):
    with pytest.raises(LabError, match=r"not JSON|should be an object"):
        Scenario.from_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def paths(data: object, prefix: str = "") -> list[str]:
    children = enumerate(data) if isinstance(data, list) else data.items()
    found = []
    for key, value in children:
        found.append(f"{prefix}{key}")
        if isinstance(value, (dict, list)):
            found += paths(value, f"{prefix}{key}/")
    return found


@given(st.sampled_from([p for p in paths(plain_dict()) if not p.endswith("/0")]), json_values)
def test_any_damage_is_a_sentence_or_another_scenario(path, value):
    try:
        scenario, fault = Scenario.from_dict(edited(path, value)), None
    except LabError as error:
        scenario, fault = None, str(error)
    if scenario is None:
        assert fault.endswith(".")
    else:
        assert Scenario.from_json(scenario.to_json()) == scenario


def test_hints_are_translated_with_their_sentence():
    with pytest.raises(LabError) as error:
        replace(PLAIN, model="llama-3-70b", tensor_parallel=2)
    chinese = MESSAGES | {
        "model_does_not_fit": "{model} 的权重需要 {weights_gb:.0f} GB：{hints}。",
        "hint_gpus": "使用 {gpus} 张 GPU",
        "hint_weight_dtype": "权重用 {dtype}",
        "hint_utilization": "显存利用率设为 {value}",
        "hint_or": "，或",
    }
    assert sentence(error.value.code, error.value.values, chinese) == (
        "Llama-3-70B 的权重需要 141 GB：使用 4 张 GPU，或权重用 fp8，或显存利用率设为 0.93。"
    )


def test_presets_of_the_course():
    assert set(catalogue.presets()) >= {
        "customer-service",
        "conversation",
        "code",
        "law",
        "preemption-storm",
        "interactive-offline",
        "morning-peak",
        "conversation-turns",
    }


@pytest.mark.parametrize("preset", catalogue.presets().values(), ids=lambda preset: preset.id)
def test_preset_is_small_complete_and_never_refused(preset):
    scenario = preset.scenario
    requests = scenario.requests()
    assert len(requests) <= 500
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert preset.note.endswith(".")
    # Nobody asks for more than the context limit: a preset teaches something else than refusals.
    assert (requests.prompt_tokens + requests.output_tokens <= scenario.max_model_len()).all()


@pytest.mark.parametrize(
    ("preset", "prompt", "output"),
    [("conversation", (1020, 1155), (129, 211)), ("code", (1469, 2048), (13, 27.9))],
)
def test_azure_presets_keep_medians_and_means(preset, prompt, output):
    """P18 of the dossier; medians within 2 %, means (tails are interpolated) within 5 %."""
    stream = catalogue.presets()[preset].scenario.workload.streams[0]
    for lengths_of, (median, mean) in ((stream.prompt, prompt), (stream.output, output)):
        sample = lengths_of.sample(np.random.default_rng(0), 400_000)
        assert np.median(sample) == pytest.approx(median, rel=0.02)
        assert sample.mean() == pytest.approx(mean, rel=0.05)


def test_source_text_presets_have_its_lengths():
    presets = catalogue.presets()
    service = presets["customer-service"].scenario.workload.streams[0]
    assert (service.prompt.mean_tokens, service.output.mean_tokens) == (512, 200)
    law = presets["law"].scenario.workload.streams[0]
    assert (law.prompt.mean_tokens, law.output.mean_tokens) == (32_768, 8_192)
