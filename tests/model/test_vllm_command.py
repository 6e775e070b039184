"""vLLM command lines: what they mean, what they cannot say, and text that is none."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from model import catalogue
from model.errors import LabError
from model.experiment import replace_at, value_at
from model.scenario import Memory, Scenario, Slo
from model.schedulers.vllm_v0 import VllmV0
from model.schedulers.vllm_v1 import VllmV1
from model.vllm_command import Setting, Unknown, parse_command
from model.vllm_export import cannot_say, to_command
from model.vllm_flags import flags
from model.workload import Stream, Workload

BASE = Scenario(
    Workload((Stream(n_requests=3),)), VllmV1(), hardware="h100-sxm", slo=Slo(0.7), seed=4
)


def parsed(text: str, base: Scenario = BASE):
    return parse_command(text, base)


def codes(command) -> list[str]:
    return [fault.code for fault in command.faults]


# -- what a command means --------------------------------------------------------------------------


def test_a_command_as_people_paste_it():
    command = parsed(
        """# the chat server
        export HF_TOKEN=secret
        $ CUDA_VISIBLE_DEVICES=0,1 vllm serve meta-llama/Llama-3.1-8B-Instruct \\
            --tensor-parallel-size=2 --max_model_len 16k \\   # half of it
            --max-num-seqs 64 --max-num-batched-tokens 4K \\
            --gpu-memory-utilization .95 --kv-cache-dtype fp8_e5m2 --scheduling-policy priority \\
            --no-enable-prefix-caching --long-prefill-token-threshold 1024 \\
            --served-model-name chat llama --api-key "sk 1" --port 8000 > log.txt 2>&1 &
        curl http://localhost:8000/v1/models --max-num-seqs 1"""
    )
    assert command.faults == command.unknown == command.not_modelled == ()
    assert command.ignored == ("--served-model-name", "--api-key", "--port")
    assert command.engine == "vLLM 0.33.0"
    scenario = command.scenario
    assert (scenario.model, scenario.tensor_parallel, scenario.n_engines) == ("llama-3.1-8b", 2, 1)
    assert scenario.policy == VllmV1(
        max_num_seqs=64,
        max_num_batched_tokens=4096,
        long_prefill_token_threshold=1024,
        queue_order="priority",
    )
    assert scenario.memory == Memory(
        gpu_memory_utilization=0.95, max_model_len=16_000, kv_dtype="fp8"
    )
    for field in ("workload", "hardware", "clock", "slo", "seed"):
        assert getattr(scenario, field) == getattr(BASE, field)
    assert Setting("--max-model-len", "memory.max_model_len", 16_000) in command.understood
    assert [setting.flag for setting in command.defaults] == ["--enable-chunked-prefill"]


@pytest.mark.parametrize(
    "start",
    [
        "vllm serve Qwen/Qwen3-8B",
        "vllm serve --model Qwen/Qwen3-8B",
        "uv run vllm serve Qwen/Qwen3-8B",
        "nohup /opt/venv/bin/vllm serve 'Qwen/Qwen3-8B'",
        "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B",
        "python -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B",
        "python -m vllm.entrypoints.cli.main serve Qwen/Qwen3-8B",
        "docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:v0.33.0 "
        "--model Qwen/Qwen3-8B",
        "--model Qwen/Qwen3-8B",
        "vllm serve /data/models/Qwen3-8B/",
        "vllm serve qwen3-8b",
    ],
)
def test_ways_to_start_a_server(start):
    command = parsed(start + " --max-num-seqs 7")
    assert command.faults == command.unknown == ()
    assert (command.scenario.model, command.scenario.policy.max_num_seqs) == ("qwen3-8b", 7)


@pytest.mark.parametrize(
    ("prefix", "engine"),
    [
        ("", "vLLM 0.33.0"),
        ("VLLM_USE_V1=1 ", "vLLM 0.33.0"),
        ("VLLM_USE_V1=0 ", "vLLM 0.6.3.post1"),
        ("env A=b VLLM_USE_V1=0 ", "vLLM 0.6.3.post1"),
        ("export VLLM_USE_V1=0; ", "vLLM 0.6.3.post1"),
        ("docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.8.5 --model x # ", "vLLM 0.6.3.post1"),
    ],
)
def test_the_environment_chooses_the_engine(prefix, engine):
    command = parsed(prefix + "vllm serve Qwen/Qwen3-8B")
    assert command.engine == engine
    assert command.scenario.policy.source.startswith(engine)


def test_v0_has_its_own_flags_and_defaults():
    command = parsed(
        "VLLM_USE_V1=0 vllm serve meta-llama/Llama-2-13b-hf --preemption-mode swap --swap-space 8 "
        "--enable-prefix-caching --watermark 0.1"
    )
    assert command.scenario.policy == VllmV0(max_num_batched_tokens=4096, preemption_mode="swap")
    assert command.scenario.memory == Memory(swap_space_gib=8.0)
    assert command.not_modelled == ("--enable-prefix-caching",)
    assert codes(command) == ["vllm_other_engine"]
    assert "VLLM_USE_V1=1" in str(command.faults[0])


def test_v1_refuses_what_only_v0_has():
    command = parsed("vllm serve Qwen/Qwen3-8B --preemption-mode swap --swap-space 16")
    assert codes(command) == ["vllm_other_engine"]
    assert command.ignored == ("--swap-space",)
    assert isinstance(command.scenario.policy, VllmV1)


@pytest.mark.parametrize(
    ("hardware", "tokens", "seqs"),
    [
        ("a100-80g-sxm", 2048, 256),
        ("a800-80g-sxm", 8192, 1024),  # the exception is by name
        ("h100-sxm", 8192, 1024),
        ("h20", 8192, 1024),
        ("h200-sxm", 8192, 1024),
        ("b200-sxm", 16384, 1024),
        ("mi300x", 16384, 1024),
        ("l40s", 2048, 256),
        ("910b2", 2048, 256),
    ],
)
def test_batch_limits_left_out_depend_on_the_hardware(hardware, tokens, seqs):
    command = parsed("vllm serve Qwen/Qwen3-8B", replace(BASE, hardware=hardware))
    policy = command.scenario.policy
    assert (policy.max_num_batched_tokens, policy.max_num_seqs) == (tokens, seqs)
    assert Setting("--max-num-seqs", "policy.max_num_seqs", seqs) in command.defaults


@pytest.mark.parametrize(
    ("flags", "tokens", "seqs"),
    [
        ("--max-num-seqs 2 --max-model-len 1000", 2000, 2),
        ("--max-num-batched-tokens 64", 64, 64),
        ("--no-enable-chunked-prefill", 40_960, 1024),
        ("--no-enable-chunked-prefill --max-model-len 4096", 8192, 1024),
    ],
)
def test_one_batch_limit_bounds_the_other(flags, tokens, seqs):
    policy = parsed("vllm serve Qwen/Qwen3-8B " + flags).scenario.policy
    assert (policy.max_num_batched_tokens, policy.max_num_seqs) == (tokens, seqs)


@pytest.mark.parametrize(
    ("model", "flags", "chunked", "tokens"),
    [
        ("meta-llama/Meta-Llama-3-8B", "", False, 8192),
        ("meta-llama/Meta-Llama-3-8B", "--max-model-len 1024", False, 2048),
        ("meta-llama/Meta-Llama-3-8B", "--enable-chunked-prefill", True, 512),
        ("meta-llama/Llama-3.1-8B", "", True, 512),
        ("meta-llama/Llama-3.1-8B", "--enable-chunked-prefill=False", False, 131_072),
        ("meta-llama/Llama-3.1-8B", "--enable-chunked-prefill False", False, 131_072),
    ],
)
def test_v0_chunks_long_contexts_by_itself(model, flags, chunked, tokens):
    policy = parsed(f"VLLM_USE_V1=0 vllm serve {model} {flags}").scenario.policy
    assert (policy.enable_chunked_prefill, policy.max_num_batched_tokens) == (chunked, tokens)


def test_prefix_caching_and_memory_share_default_to_vllms():
    scenario = parsed("vllm serve Qwen/Qwen3-8B").scenario
    assert scenario.policy.enable_prefix_caching
    assert scenario.memory.gpu_memory_utilization == 0.92
    old = parsed("VLLM_USE_V1=0 vllm serve Qwen/Qwen3-8B").scenario
    assert old.memory.gpu_memory_utilization == 0.9


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8192", 8192),
        ("8k", 8000),
        ("8K", 8192),
        ("25.6k", 25_600),
        ("0.03m", 30_000),
        ("0.03M", None),
    ],
)
def test_human_readable_numbers_are_vllms(text, value):
    command = parsed("vllm serve qwen3-8b --max-model-len " + text)
    assert codes(command) == ([] if value else ["vllm_bad_value"])
    assert command.scenario.memory.max_model_len == value


def test_auto_context_is_what_fits():
    large = replace(BASE, hardware="rtx-4090")
    refused = parsed("vllm serve meta-llama/Llama-3.1-8B", large)
    assert refused.scenario is None
    assert codes(refused) == ["context_does_not_fit"]
    for text in ("auto", "-1"):
        command = parsed("vllm serve meta-llama/Llama-3.1-8B --max-model-len " + text, large)
        scenario = command.scenario
        assert scenario.max_model_len() == scenario.kv_capacity().tokens
    roomy = parsed("vllm serve Qwen/Qwen3-8B --max-model-len auto").scenario
    assert roomy.memory.max_model_len is None


def test_sizes_of_the_cache():
    blocks = parsed("vllm serve qwen3-8b --num-gpu-blocks-override 3001").scenario
    assert blocks.memory.kv_blocks == 3000  # V1 keeps one null block
    blocks = parsed("VLLM_USE_V1=0 vllm serve qwen3-8b --num-gpu-blocks-override 3000").scenario
    assert blocks.memory.kv_blocks == 3000
    size = parsed("vllm serve qwen3-8b -tp 2 --kv-cache-memory-bytes 8G").scenario
    assert size.memory.kv_gib == 16.0
    both = parsed(
        "vllm serve qwen3-8b --kv-cache-memory-bytes 8G --num-gpu-blocks-override 3001"
    ).scenario
    assert (both.memory.kv_blocks, both.memory.kv_gib) == (3000, None)


@pytest.mark.parametrize(
    ("text", "model", "dtype"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", "int4"),
        ("someone/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b", "int4"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8 -tp 4", "llama-3.1-70b", "fp8"),
        ("Qwen/Qwen3-32B --quantization fp8 --dtype bfloat16", "qwen3-32b", "fp8"),
        ("Qwen/Qwen3-32B -q awq_marlin --dtype half", "qwen3-32b", "int4"),
        ("Qwen/Qwen3-32B-AWQ --dtype float16", "qwen3-32b", "int4"),
        ("deepseek-ai/DeepSeek-V3 -tp 16", "deepseek-v3", "fp8"),
        ("Qwen/Qwen3-8B --dtype auto", "qwen3-8b", "bf16"),
    ],
)
def test_models_and_their_weights(text, model, dtype):
    command = parsed(f"vllm serve {text} --max-model-len 4096")
    assert command.faults == ()
    assert (command.scenario.model, command.scenario.memory.weight_dtype) == (model, dtype)


def test_what_is_listed_is_what_holds():
    command = parsed(
        "vllm serve Qwen/Qwen3-32B-AWQ --dtype half --kv-cache-memory-bytes 8G -tp 2 "
        "--max-model-len auto"
    )
    for setting in command.understood:
        assert setting.value == value_at(command.scenario, setting.field)
    assert {"int4", 16.0} < {setting.value for setting in command.understood}


def test_the_last_of_two_equal_flags_counts():
    command = parsed("vllm serve qwen3-8b --max-num-seqs 5 --max_num_seqs=9 --block-size 32")
    assert command.scenario.policy.max_num_seqs == 9
    assert [s.value for s in command.understood if s.flag == "--max-num-seqs"] == [9]


def test_harmless_values_of_unmodelled_flags_are_no_news():
    command = parsed(
        "vllm serve qwen3-8b -pp 1 --cpu-offload-gb 0.0 --no-async-scheduling -O3 "
        "--compilation-config.level 3 --pipeline-parallel-size 2 --enable-lora"
    )
    assert command.ignored == ("--pipeline-parallel-size", "--cpu-offload-gb", "--async-scheduling")
    assert command.not_modelled == (
        "--optimization-level",
        "--compilation-config",
        "--pipeline-parallel-size",
        "--enable-lora",
    )


def test_unknown_flags_are_listed_with_a_guess():
    command = parsed("vllm serve qwen3-8b --max-num-seq 4 --frobnicate yes extra -zz")
    assert command.unknown == (
        Unknown("--max-num-seq", "--max-num-seqs"),
        Unknown("--frobnicate"),
        Unknown("-zz"),
        Unknown("extra"),
    )
    assert command.scenario is not None


def test_what_word_processors_do_to_a_command():
    command = parsed("vllm serve “Qwen/Qwen3-8B” —max-num-seqs 4\u3000–block-size\u00a032 \\")
    assert command.unknown == command.faults == ()
    assert command.scenario.policy.max_num_seqs == 4
    assert command.scenario.memory.block_size == 32


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--max-num-seqs many", "vllm_bad_value"),
        ("--max-num-seqs ١٢", "vllm_bad_value"),
        ("--max-num-seqs", "vllm_value_missing"),
        ("--max-num-seqs --port 8000", "vllm_value_missing"),
        ("--gpu-memory-utilization 90%", "vllm_bad_value"),
        ("--dtype float32", "vllm_bad_value"),
        ("--quantization zip", "vllm_bad_value"),
        ("--kv-cache-dtype int8", "vllm_bad_value"),
        ("--enable-chunked-prefill=perhaps", "vllm_bad_value"),
        ("--max-num-seqs 8 --max-num-batched-tokens 4", "vllm_tokens_below_seqs"),
        ("--no-enable-chunked-prefill --max-num-batched-tokens 4k", "vllm_tokens_below_context"),
    ],
)
def test_faults_that_leave_a_scenario(flags, code):
    command = parsed("vllm serve Qwen/Qwen3-8B " + flags)
    assert codes(command) == [code]
    assert command.scenario is not None
    assert str(command.faults[0])


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--max-num-seqs 0", "out_of_range"),
        ("--max-num-seqs 999999999999999999T", "out_of_range"),
        ("--gpu-memory-utilization 1e999", "not_finite"),
        ("--tensor-parallel-size 3", "tensor_parallel_heads"),
        ("--tensor-parallel-size 0 --kv-cache-memory-bytes 1G", "out_of_range"),
        ("--scheduling-policy lottery", "unknown_choice"),
        ("--max-model-len 1M", "context_above_model"),
        ("--num-gpu-blocks-override 1", "out_of_range"),
        ("--gpu-memory-utilization 0.1", "model_does_not_fit"),
        ("--gpu-memory-utilization 0.1 --max-model-len auto", "model_does_not_fit"),
    ],
)
def test_settings_that_cannot_run_leave_none(flags, code):
    command = parsed("vllm serve Qwen/Qwen3-8B " + flags)
    assert command.scenario is None
    assert codes(command) == [code]


def test_a_model_that_is_not_in_the_catalogue():
    command = parsed("vllm serve acme/Foo-7B\u202e --max-num-seqs 3")
    assert codes(command) == ["vllm_model_unknown"]
    assert command.scenario.model == BASE.model
    assert codes(parsed("vllm serve --max-num-seqs 3")) == ["vllm_no_model"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "vllm_not_a_command"),
        ("rm -rf / ; echo hi", "vllm_not_a_command"),
        ("vllm bench throughput --model x", "vllm_not_a_command"),
        ("vllm serve 'Qwen/Qwen3-8B", "vllm_quotes"),
        ("vllm serve " + "x" * 30_000, "vllm_too_long"),
        ("vllm serve " + "a " * 5_000, "vllm_too_long"),
    ],
)
def test_text_that_is_no_command(text, code):
    with pytest.raises(LabError) as refusal:
        parsed(text)
    assert refusal.value.code == code
    assert str(refusal.value)


def test_nothing_is_expanded_or_run():
    command = parsed("vllm serve $(touch /tmp/x) --max-num-seqs `id` --host ${HOME} -tp $((1+1))")
    assert "vllm_bad_value" in codes(command)
    assert command.scenario.model == BASE.model


words = st.one_of(
    st.sampled_from(sorted(flags())),
    st.sampled_from(["-tp", "-q", "=", "--", "-", "\\", "'", '"', "#", ";", "&", "\n", "True"]),
    st.sampled_from(["--no-enable-lora", "Qwen/Qwen3-8B", "8k", "0", "-1", "auto", "1e999"]),
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(str),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["vllm serve ", "VLLM_USE_V1=0 vllm serve ", "--", ""]), st.lists(words))
@example("vllm serve ", ["--max-num-seqs", "9" * 400])
def test_no_text_breaks_it(start, rest):
    try:
        command = parsed(start + " ".join(rest))
        faults = command.faults
        assert command.scenario is not None or faults
    except LabError as fault:
        faults = (fault,)
    for fault in faults:
        assert str(fault)


# -- there and back --------------------------------------------------------------------------------

v1 = st.builds(
    VllmV1,
    max_num_seqs=st.integers(1, 2000),
    max_num_batched_tokens=st.integers(1, 200_000),
    enable_chunked_prefill=st.booleans(),
    long_prefill_token_threshold=st.integers(0, 5000),
    scheduler_reserve_full_isl=st.booleans(),
    watermark=st.floats(0, 0.99),
    enable_prefix_caching=st.booleans(),
    queue_order=st.sampled_from(["fcfs", "priority"]),
    max_num_queued_reqs=st.none() | st.integers(0, 5000),
    max_num_queued_tokens=st.none() | st.integers(0, 200_000),
)
v0 = st.builds(
    VllmV0,
    max_num_seqs=st.integers(1, 2000),
    max_num_batched_tokens=st.integers(1, 200_000),
    enable_chunked_prefill=st.booleans(),
    preemption_mode=st.sampled_from(["recompute", "swap"]),
    queue_order=st.sampled_from(["fcfs", "priority"]),
    watermark=st.sampled_from([0.01, 0.01, 0.05]),
)
memories = st.builds(
    lambda size, **fields: Memory(**fields, **size),
    size=st.one_of(
        st.just({}),
        st.integers(8000, 20_000).map(lambda blocks: {"kv_blocks": blocks}),
        st.floats(20, 30).map(lambda gib: {"kv_gib": gib}),
        st.integers(20, 30).map(lambda gib: {"kv_gib": float(gib)}),
    ),
    block_size=st.sampled_from([8, 16, 32, 128]),
    gpu_memory_utilization=st.floats(0.8, 1.0),
    max_model_len=st.none() | st.integers(100, 8000),
    weight_dtype=st.sampled_from(["bf16", "fp8", "int4"]),
    kv_dtype=st.sampled_from(["bf16", "fp8"]),
    activation_bytes_per_gpu=st.sampled_from([2e9, 1e9]),
    num_cpu_blocks=st.sampled_from([None, None, 50]),
    swap_space_gib=st.sampled_from([4.0, 0.5, 8.0]),
)


@settings(max_examples=150, deadline=None)
@given(
    policy=v0 | v1,
    memory=memories,
    model=st.sampled_from(sorted(catalogue.models())),
    gpus=st.sampled_from([1, 2, 4, 8]),
    engines=st.sampled_from([1, 1, 3]),
)
def test_a_scenario_comes_back_from_its_command(policy, memory, model, gpus, engines):
    try:
        scenario = replace(
            BASE,
            policy=policy,
            memory=memory,
            model=model,
            tensor_parallel=gpus,
            n_engines=engines,
            hardware="h200-sxm",
        )
    except LabError:
        assume(False)
    command = parse_command(to_command(scenario), scenario)
    assert command.unknown == command.ignored == command.not_modelled == ()
    assert set(codes(command)) <= {
        "vllm_tokens_below_seqs",
        "vllm_tokens_below_context",
        "context_does_not_fit",
    }
    expected = scenario
    defaults = {
        "policy.watermark": 0.01,
        "n_engines": 1,
        "memory.kv_gib": None,
        "memory.num_cpu_blocks": None,
        "memory.swap_space_gib": 4.0,
    }
    try:
        for path in cannot_say(scenario):
            if path in defaults:
                expected = replace_at(expected, path, defaults[path])
    except LabError:
        assert command.scenario is None
        return
    assert command.scenario == expected


def test_a_plain_scenario_has_a_short_command():
    scenario = replace(BASE, policy=VllmV1(enable_prefix_caching=True))
    assert to_command(scenario) == (
        "vllm serve meta-llama/Meta-Llama-3-8B-Instruct \\\n"
        "  --dtype bfloat16 \\\n"
        "  --max-num-seqs 256 \\\n"
        "  --max-num-batched-tokens 2048 \\\n"
        "  --enable-chunked-prefill \\\n"
        "  --enable-prefix-caching \\\n"
        "  --gpu-memory-utilization 0.9"
    )
    assert cannot_say(scenario) == ("workload", "hardware", "clock", "slo", "seed")


def test_a_quantized_scenario_names_a_quantized_checkpoint():
    memory = Memory(weight_dtype="int4")
    text = to_command(replace(BASE, model="qwen3-32b", memory=memory))
    assert text.startswith("vllm serve Qwen/Qwen3-32B-AWQ")
    assert "--quantization awq" in text


def test_what_no_command_gives():
    for scenario, code in (
        (replace_at(BASE, "policy", "sarathi"), "vllm_no_command"),
        (
            Scenario(
                BASE.workload,
                VllmV1(),
                clock=replace_at(BASE, "clock", "linear").clock,
                model=None,
                hardware=None,
                memory=Memory(kv_blocks=9),
            ),
            "vllm_model_needed",
        ),
    ):
        with pytest.raises(LabError) as refusal:
            to_command(scenario)
        assert refusal.value.code == code
    gpt3 = replace(BASE, model="gpt-3-175b", tensor_parallel=8, memory=Memory(num_cpu_blocks=5))
    assert {"model", "memory.num_cpu_blocks"} < set(cannot_say(gpt3))


def test_the_table_of_flags_is_sound():
    for flag in flags().values():
        assert flag.values in ("0", "1", "?", "*")
        assert flag.role in ("setting", "none", "unmodelled")
        assert flag.engine in ("", "vllm-v0", "vllm-v1")
        assert bool(flag.engine) == bool(flag.elsewhere)
        if flag.role == "setting":
            old = flag.engine == "vllm-v0" or flag.field == "policy.preemption_mode"
            value_at(replace(BASE, policy=VllmV0()) if old else BASE, flag.field)
