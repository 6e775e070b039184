"""Sizes of the KV cache: F8–F11 with their check values, the field cases C7 and C8, advice."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalogue, kv_cache
from model.errors import LabError
from model.kv_cache import GIB, Memory

A100 = catalogue.device("a100-80g-sxm")


def capacity(model, device, gpus=1, **memory):
    """Capacity after both checks, as a scenario makes them."""
    arguments = (catalogue.model(model), catalogue.device(device), Memory(**memory), gpus)
    result = kv_cache.kv_capacity(*arguments)
    kv_cache.check_context(result, *arguments)
    return result


@pytest.mark.parametrize(
    ("model", "device", "gpus", "kv_gb", "tokens"),
    [
        ("llama-3-8b", "a100-80g-sxm", 1, 53.9, 411_525),
        ("llama-2-13b", "a100-80g-sxm", 1, 44.0, 53_672),
        ("llama-3-70b", "a100-80g-sxm", 4, 138.9, 423_866),
        ("llama-3-8b", "910b2", 1, 39.5, 301_662),
    ],
)
def test_pool_f8(model, device, gpus, kv_gb, tokens):
    pool = capacity(model, device, gpus)
    assert pool.kv_bytes / 1e9 == pytest.approx(kv_gb, abs=0.05)
    assert pool.pool_tokens == tokens
    assert pool.blocks == tokens // 16
    assert pool.tokens == pool.blocks * 16 <= tokens
    assert pool.kv_bytes_per_gpu * gpus == pool.kv_bytes


@pytest.mark.parametrize(
    ("model", "max_len", "reserved", "paged"),
    [("llama-3-8b", 8192, 50, 672), ("llama-2-13b", 8192, 6, 87)],
)
def test_largest_batch_f9(model, max_len, reserved, paged):
    tokens = capacity(model, "a100-80g-sxm").pool_tokens
    assert kv_cache.reserved_batch(tokens, max_len) == reserved
    # The dossier divides by the mean context; whole blocks (612 → 624) leave a little less.
    assert kv_cache.paged_batch(tokens, 612, 1) == paged
    assert kv_cache.paged_batch(tokens, 612, 16) == tokens // 624


def test_block_rounding_f10():
    assert kv_cache.blocks_for_tokens(1, 16) == kv_cache.blocks_for_tokens(16, 16) == 1
    assert kv_cache.blocks_for_tokens(17, 16) == 2
    np.testing.assert_array_equal(
        kv_cache.blocks_for_tokens(np.array([0, 1, 16, 17]), 16), [0, 1, 1, 2]
    )
    for block_size, waste, share in ((16, 7.5, 0.0148), (128, 63.5, 0.113)):
        assert kv_cache.mean_block_waste_tokens(block_size) == waste
        assert waste / (500 + waste) == pytest.approx(share, abs=6e-4)
        contexts = np.arange(1, 64 * block_size + 1)
        held = kv_cache.blocks_for_tokens(contexts, block_size) * block_size
        assert (held - contexts).mean() == waste


def test_effective_share_f11():
    # Four requests of 512 tokens that each reserve 2,048: a quarter holds tokens.
    assert kv_cache.effective_share([512] * 4, [2048] * 4) == 0.25
    assert np.isnan(kv_cache.effective_share([], []))


def test_case_c7_rtx_3090():
    """vllm#10517: 1,952 blocks serve 20k; 1,478 blocks hold 23,648 tokens, so 29k fails."""
    serves = capacity("llama-3.1-8b", "rtx-3090", kv_blocks=1952, max_model_len=20_000)
    assert serves.tokens == 31_232
    assert round(serves.kv_bytes / GIB, 2) == 3.81
    with pytest.raises(LabError) as error:
        capacity("llama-3.1-8b", "rtx-3090", kv_blocks=1478, max_model_len=29_000)
    assert error.value.values["held"] == 23_648
    assert "hold only 23,648 tokens: reduce memory.max_model_len to 23,648" in str(error.value)
    fails = capacity("llama-3.1-8b", "rtx-3090", kv_blocks=1478, max_model_len=23_648)
    assert round(fails.kv_bytes / GIB, 2) == 2.89


@pytest.mark.parametrize(("gib", "blocks"), [(2.89, 1478), (3.81, 1952)])
def test_case_c7_from_the_printed_gib(gib, blocks):
    """The log rounds to 0.01 GiB, which is ± 2.56 blocks of 2 MiB."""
    pool = capacity("llama-3.1-8b", "rtx-3090", kv_gib=gib, max_model_len=20_000)
    assert abs(pool.blocks - blocks) <= 3
    exactly = capacity(
        "llama-3.1-8b", "rtx-3090", kv_gib=blocks * 2**21 / GIB, max_model_len=20_000
    )
    assert exactly.blocks == blocks


def test_case_c8_229_blocks():
    """vllm#2418: 229 blocks of 16 hold 3,664 tokens, fewer than 4,096."""
    with pytest.raises(LabError, match=r"3,664 tokens: reduce memory.max_model_len to 3,664"):
        capacity("llama-2-7b", "a100-80g-sxm", kv_blocks=229)
    assert capacity("llama-2-7b", "a100-80g-sxm", kv_blocks=229, max_model_len=3664).blocks == 229
    assert capacity("llama-2-7b", "a100-80g-sxm", kv_blocks=256).tokens == 4096


def test_a_model_that_does_not_fit_says_what_would_help():
    with pytest.raises(LabError) as error:
        capacity("llama-3-70b", "a100-80g-sxm", 2)
    assert str(error.value) == (
        "Llama-3-70B needs 141 GB for weights; 2 × 80 GB leave no room for KV: use 4 GPUs, or set "
        "memory.weight_dtype to fp8, or raise memory.gpu_memory_utilization to 0.93."
    )
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize(
    ("model", "device", "gpus", "memory", "code"),
    [
        ("llama-3-70b", "a100-80g-sxm", 2, {}, "model_does_not_fit"),
        ("llama-3-70b", "a100-80g-sxm", 1, {}, "model_does_not_fit"),
        ("llama-2-13b", "rtx-4090", 1, {}, "model_does_not_fit"),
        ("mixtral-8x7b", "a100-80g-sxm", 1, {}, "model_does_not_fit"),
        ("llama-3.1-8b", "rtx-3090", 1, {}, "context_does_not_fit"),
        (
            "llama-3.1-8b",
            "a100-40g-sxm",
            1,
            {"gpu_memory_utilization": 0.85},
            "context_does_not_fit",
        ),
        ("llama-3.1-8b", "rtx-3090", 1, {"kv_gib": 1.0}, "context_does_not_fit"),
        ("llama-2-7b", "a100-80g-sxm", 1, {"kv_blocks": 229}, "context_does_not_fit"),
        ("llama-3-8b", "rtx-4090", 1, {"kv_gib": 20.0}, "kv_above_memory"),
        ("llama-3-8b", "rtx-4090", 1, {"kv_blocks": 9_000}, "kv_above_memory"),
        (
            "llama-2-7b",
            "rtx-4090",
            1,
            {"activation_bytes_per_gpu": 8.12e9, "max_model_len": 16},
            "no_whole_block",
        ),
    ],
)
def test_each_advice_works_when_followed(model, device, gpus, memory, code):
    with pytest.raises(LabError) as error:
        capacity(model, device, gpus, **memory)
    assert error.value.code == code
    assert error.value.values["hints"]
    for hint, numbers in error.value.values["hints"]:
        (value,) = numbers.values()
        if hint == "hint_gpus":
            assert capacity(model, device, value, **memory).blocks > 0
            assert value in kv_cache.TENSOR_PARALLEL_SIZES
        else:
            setting = hint.removeprefix("hint_").replace("utilization", "gpu_memory_utilization")
            assert capacity(model, device, gpus, **{**memory, setting: value}).blocks > 0


def test_what_no_setting_can_mend_asks_for_another_gpu():
    with pytest.raises(LabError, match="choose a GPU with more memory"):
        capacity("gpt-3-175b", "rtx-4090")


def test_precision_changes_weights_and_kv():
    bf16 = capacity("llama-3-8b", "a100-80g-sxm")
    fp8 = capacity("llama-3-8b", "a100-80g-sxm", weight_dtype="fp8", kv_dtype="fp8")
    int4 = capacity("llama-3-8b", "a100-80g-sxm", weight_dtype="int4")
    assert (fp8.weight_bytes, int4.weight_bytes) == (bf16.weight_bytes / 2, bf16.weight_bytes / 4)
    assert fp8.bytes_per_token == bf16.bytes_per_token / 2
    assert fp8.kv_bytes - bf16.kv_bytes == bf16.weight_bytes / 2


def test_heads_are_replicated_when_gpus_outnumber_them():
    memory = Memory()
    llama = catalogue.model("llama-3-70b")  # 8 KV heads
    assert kv_cache.kv_bytes_per_token(llama, memory, 8) == llama.kv_bytes_per_token()
    assert kv_cache.kv_bytes_per_token(llama, memory, 16) == 2 * llama.kv_bytes_per_token()
    deepseek = catalogue.model("deepseek-v3")  # one latent, on every GPU
    assert kv_cache.kv_bytes_per_token(deepseek, memory, 16) == 16 * 70_272


def test_heads_must_be_shared_evenly():
    qwen = catalogue.model("qwen2.5-7b")  # 28 heads, 4 KV heads
    sizes = [size for size in range(1, 65) if kv_cache.shares_heads_evenly(qwen, size)]
    assert sizes == [1, 2, 4, 28]


def test_host_blocks_of_vllm_v0():
    # 4 GiB of swap space in blocks of 2 MiB.
    assert capacity("llama-3-8b", "a100-80g-sxm").cpu_blocks == 2048
    assert capacity("llama-3-8b", "a100-80g-sxm", num_cpu_blocks=7).cpu_blocks == 7


def test_blocks_alone_are_enough_without_a_model():
    pool = kv_cache.kv_capacity(None, None, Memory(kv_blocks=120), 1)
    assert (pool.blocks, pool.tokens, pool.kv_bytes) == (120, 1920, None)
    with pytest.raises(LabError, match=r"set memory\.kv_blocks"):
        kv_cache.kv_capacity(None, None, Memory(), 1)


@given(
    st.sampled_from([1, 8, 16, 32, 128]),
    st.floats(0.5, 1.0),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["bf16", "fp8"]),
)
def test_blocks_use_the_memory_up_to_one_block(block_size, utilization, gpus, dtype):
    memory = Memory(block_size=block_size, gpu_memory_utilization=utilization, kv_dtype=dtype)
    pool = kv_cache.kv_capacity(catalogue.model("llama-3-8b"), A100, memory, gpus)
    used = pool.weight_bytes + 2e9 * gpus + pool.blocks * pool.bytes_per_block
    assert 0 <= utilization * 80e9 * gpus - used < pool.bytes_per_block + 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("block_size", 0),
        ("block_size", 16.0),
        ("gpu_memory_utilization", 1.1),
        ("gpu_memory_utilization", float("nan")),
        ("max_model_len", 0),
        ("weight_dtype", "fp16"),
        ("kv_dtype", "int4"),
        ("activation_bytes_per_gpu", -1.0),
        ("activation_bytes_per_gpu", "2e9"),
        ("kv_blocks", True),
        ("kv_gib", float("inf")),
        ("num_cpu_blocks", -1),
        ("swap_space_gib", None),
    ],
)
def test_settings_are_checked_by_name(setting, value):
    with pytest.raises(LabError, match=f"memory.{setting} is "):
        Memory(**{setting: value})


def test_the_kv_size_is_given_once():
    with pytest.raises(LabError, match="give only one"):
        Memory(kv_blocks=10, kv_gib=1.0)
