"""Iteration time: F5 and what follows from it, table A10, MoE coverage F2, scalar = array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalogue
from model.errors import LabError
from model.iteration_time import CLOCKS, IterationCost, Linear, Roofline, Textbook
from model.kv_cache import Memory

PLAIN = Roofline(communication=False)
IDEAL = Roofline(compute_efficiency=1.0, memory_efficiency=1.0, fixed_s=0.0, communication=False)


def cost(model, device, gpus=1, clock=PLAIN, **memory):
    return clock.cost(catalogue.model(model), catalogue.device(device), Memory(**memory), gpus)


def decode_s(bound: IterationCost, batch: int, context: int) -> float:
    return bound.seconds(batch, batch * context, batch * context)


def prefill_s(bound: IterationCost, prompt: int) -> float:
    return bound.seconds(prompt, prompt * (prompt + 1) // 2, prompt)


def hybrid_s(bound: IterationCost, batch: int, context: int, chunk: int) -> float:
    pairs = batch * context + chunk * (chunk + 1) // 2
    return bound.seconds(batch + chunk, pairs, batch * context + chunk)


@pytest.mark.parametrize(
    ("model", "device", "gpus", "decode_ms", "prefill_ms"),
    [
        ("llama-3-8b", "a100-80g-sxm", 1, "11.9 12.2 12.6 13.7 15.0 18.1", "55.2"),
        ("llama-2-13b", "a100-80g-sxm", 1, "18.3 20.4 22.9 29.3 37.6 57.3", "88.1"),
        ("llama-3-70b", "a100-80g-sxm", 4, "23.7 23.9 24.1 24.8 25.6 31.3", "118.3"),
        ("llama-3-8b", "910b2", 1, "14.6 15.0 15.5 16.9 18.6 22.6", "46.1"),
        ("llama-3-8b", "h100-sxm", 1, "8.0 8.2 8.5 9.1 9.9 11.8", "18.8"),
    ],
)
def test_table_a10(model, device, gpus, decode_ms, prefill_ms):
    """Context 612; the printed row of four GPUs leaves communication out, as F5 does."""
    bound = cost(model, device, gpus)
    decode = [decode_s(bound, batch, 612) for batch in (1, 8, 16, 37, 64, 128)]
    assert " ".join(f"{1e3 * seconds:.1f}" for seconds in decode) == decode_ms
    assert f"{1e3 * prefill_s(bound, 512):.1f}" == prefill_ms


def test_iteration_time_grows_from_batch_16_to_37():
    """The audit's 9 % is 13.7/12.6, of rounded entries; unrounded it is 8.2 %."""
    for model, growth in (("llama-3-8b", 0.082), ("llama-2-13b", 0.28)):
        bound = cost(model, "a100-80g-sxm")
        ratio = decode_s(bound, 37, 612) / decode_s(bound, 16, 612)
        assert ratio - 1 == pytest.approx(growth, abs=0.005)


@pytest.mark.parametrize(
    ("device", "ideal", "achieved"),
    [
        ("a100-80g-sxm", 153, 96),
        ("h100-sxm", 295, 185),
        ("910b2", 235, 147),
        ("h20", 37, 23),
    ],
)
def test_critical_batch_f6(device, ideal, achieved):
    for clock, batch in ((IDEAL, ideal), (PLAIN, achieved)):
        bound = cost("llama-3-8b", device, clock=clock)
        assert bound.weights_read_s / bound.compute_token_s == pytest.approx(batch, abs=0.7)
        compute, memory, _ = bound.parts(batch - 1, 0, 0)
        assert compute < memory
        compute, memory, _ = bound.parts(batch + 1, 0, 0)
        assert compute > memory


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("llama-3-8b", 122.5e3), ("llama-2-7b", 25.7e3), ("llama-3-70b", 430.6e3)],
)
def test_kv_reads_exceed_weight_reads_f7(model, tokens):
    bound = cost(model, "a100-80g-sxm")
    assert bound.weights_read_s / bound.kv_token_read_s == pytest.approx(tokens, rel=5e-4)


def test_chunk_budget_f19():
    bound = cost("llama-3-8b", "a100-80g-sxm")
    assert 1e3 * decode_s(bound, 32, 1500) == pytest.approx(15.7, abs=0.05)
    for limit_ms, chunk in ((30, 224), (50, 416), (100, 896), (200, 1824)):
        fitting = [c for c in range(16, 4096, 16) if hybrid_s(bound, 32, 1500, c) <= limit_ms / 1e3]
        assert fitting[-1] == chunk


@pytest.mark.parametrize(
    ("model", "device", "gpus", "tokens"),
    [
        ("llama-3-8b", "a100-80g-sxm", 1, 99),
        ("llama-3-8b", "h100-sxm", 1, 223),
        ("llama-3-70b", "a100-80g-sxm", 4, 73),
    ],
)
def test_free_slack_f21(model, device, gpus, tokens):
    bound = cost(model, device, gpus)
    compute, memory, _ = bound.parts(32, 32 * 1500, 32 * 1500)
    assert (memory - compute) / bound.compute_token_s == pytest.approx(tokens, abs=1)


def test_a_32k_prompt_stalls_the_decodes_for_five_seconds():
    assert prefill_s(cost("llama-3-8b", "a100-80g-sxm"), 32_768) == pytest.approx(5.2, abs=0.05)


def test_swapping_a_context_takes_the_dossiers_time():
    """§1.5: out and in again, 512 / 8,192 / 32,768 tokens of Llama-3-8B on an A100."""
    bound = cost("llama-3-8b", "a100-80g-sxm")
    for tokens, milliseconds in ((512, 5.4), (8192, 86), (32768, 344)):
        seconds = 2 * (tokens // 16) * bound.swapped_block_s
        assert 1e3 * seconds == pytest.approx(milliseconds, rel=0.01)


def test_communication_of_tensor_parallel_gpus():
    """F5: 2·80 all-reduces, each 2·3/4·T·8192·2 bytes at 300 GB/s and 10 µs of latency."""
    with_link = cost("llama-3-70b", "a100-80g-sxm", 4, Roofline())
    without = cost("llama-3-70b", "a100-80g-sxm", 4)
    for tokens in (1, 512):
        extra = with_link.seconds(tokens, 0, 0) - without.seconds(tokens, 0, 0)
        assert extra == pytest.approx(160 * (1.5 * tokens * 8192 * 2 / 300e9 + 1e-5), rel=1e-9)
    assert cost("llama-3-8b", "a100-80g-sxm", 1, Roofline()) == cost("llama-3-8b", "a100-80g-sxm")
    slower = cost("llama-3-70b", "a800-80g-sxm", 4, Roofline())
    assert slower.token_s == with_link.token_s * 1.5


def test_precision_changes_the_bytes_and_not_the_compute():
    bf16 = cost("llama-3-8b", "a100-80g-sxm")
    for dtype, factor in (("fp8", 2), ("int4", 4)):
        bound = cost("llama-3-8b", "a100-80g-sxm", weight_dtype=dtype)
        assert bound.weights_read_s == pytest.approx(bf16.weights_read_s / factor)
        assert bound.compute_token_s == bf16.compute_token_s
    fp8_kv = cost("llama-3-8b", "a100-80g-sxm", kv_dtype="fp8")
    assert fp8_kv.kv_token_read_s == bf16.kv_token_read_s / 2


def test_replicated_kv_is_read_on_every_gpu():
    eight, sixteen = (cost("llama-3-70b", "a100-80g-sxm", gpus) for gpus in (8, 16))
    assert sixteen.kv_token_read_s == eight.kv_token_read_s  # 8 KV heads: no gain beyond 8
    one, four = (cost("deepseek-v3", "h20", gpus) for gpus in (1, 4))
    assert four.kv_token_read_s == one.kv_token_read_s  # the latent is on every GPU


@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"])
def test_one_token_reads_the_active_and_many_read_all_weights(name):
    model, device = catalogue.model(name), catalogue.device("h20")
    bound = PLAIN.cost(model, device, Memory(), 16)
    per_parameter = 2 / (16 * 4e12 * 0.8)
    assert bound.weights_s(1) == pytest.approx(model.active_parameters * per_parameter, rel=1e-12)
    assert bound.weights_s(10**6) == pytest.approx(model.parameters * per_parameter, rel=1e-12)
    assert (np.diff(bound.weights_read_table_s) > 0).all()
    # FLOPs stay those of the active parameters.
    assert bound.compute_token_s == 2 * model.active_parameters / (16 * 148e12 * 0.5)


def test_expert_coverage_f2_against_random_routing():
    """Experts touched by T tokens that each choose k of E, drawn without replacement."""
    model = catalogue.model("qwen3-30b-a3b")  # 8 of 128
    bound = PLAIN.cost(model, catalogue.device("h100-sxm"), Memory(), 1)
    scale = 2 / (3.35e12 * 0.8)
    one_expert = (model.parameters - model.active_parameters) / 120
    dense = model.active_parameters - 8 * one_expert
    rng = np.random.default_rng(1)
    for tokens in (2, 16, 64):
        draws = rng.random((400, tokens, 128)).argpartition(8, axis=2)[:, :, :8]
        touched = np.mean([len(np.unique(draw)) for draw in draws])
        expected = (bound.weights_s(tokens) / scale - dense) / one_expert
        assert touched == pytest.approx(expected, rel=0.01)


def test_linear_is_the_clock_of_the_recordings():
    bound = Linear(0.005, 5e-5, 2e-5).cost(None, None, Memory(kv_blocks=1), 1)
    assert bound.seconds(0, 0, 0) == 0.005
    assert bound.seconds(512, 10**9, 10**9, 7) == 0.005 + 5e-5 * 512 + 2e-5 * 7


def test_textbook_lasts_the_same_whatever_is_in_it():
    bound = Textbook(0.01).cost(None, None, Memory(kv_blocks=1), 1)
    assert bound.seconds(1, 1, 1) == bound.seconds(4096, 10**7, 10**5, 9) == 0.01
    assert Textbook(prefill_accounting="serial").prefill_token_cap == 1
    assert Textbook(prefill_accounting="free").prefill_token_cap is None
    assert Linear().prefill_token_cap is Roofline().prefill_token_cap is None


def test_textbook_default_is_an_entry_of_table_a10():
    seconds = decode_s(cost("llama-3-8b", "a100-80g-sxm"), 16, 612)
    assert round(seconds, 4) == Textbook().forward_s


COSTS = st.sampled_from(
    [
        Linear(0.005, 5e-5, 2e-5).cost(None, None, Memory(), 1),
        Textbook().cost(None, None, Memory(), 1),
        cost("llama-3-8b", "a100-80g-sxm"),
        cost("llama-3-70b", "h100-sxm", 4, Roofline()),
        cost("mixtral-8x7b", "910b2", 2, Roofline(), kv_dtype="fp8"),
        cost("deepseek-v3", "h20", 16, Roofline(0.37, 0.61, 0.0013), weight_dtype="fp8"),
    ]
)
WORK = st.tuples(
    st.integers(0, 10**5), st.integers(0, 10**13), st.integers(0, 10**9), st.integers(0, 10**6)
)


@given(COSTS, st.lists(WORK, min_size=1, max_size=20))
def test_scalars_and_arrays_give_the_same_bits(bound: IterationCost, work):
    columns = [np.array(column, dtype=np.int64) for column in zip(*work, strict=True)]
    array = bound.seconds(*columns)
    assert array.dtype == np.float64
    one_by_one = [bound.seconds(*row) for row in work]
    assert all(type(seconds) is float for seconds in one_by_one)
    assert array.tolist() == one_by_one
    compute, memory, other = bound.parts(*columns)
    assert (np.maximum(compute, memory) + other).tolist() == one_by_one


@given(COSTS, WORK, WORK)
def test_more_work_never_takes_less_time(bound: IterationCost, work, more):
    together = [a + b for a, b in zip(work, more, strict=True)]
    assert bound.seconds(*together) >= bound.seconds(*work)


def test_bound_costs_are_hashable_and_equal_by_value():
    assert cost("mixtral-8x7b", "h20") == cost("mixtral-8x7b", "h20")
    assert len({cost("mixtral-8x7b", "h20"), cost("mixtral-8x7b", "h20")}) == 1


@pytest.mark.parametrize(
    ("clock", "setting", "value"),
    [
        (Linear, "base_s", -0.1),
        (Linear, "per_scheduled_token_s", float("nan")),
        (Linear, "per_swapped_block_s", "1"),
        (Textbook, "forward_s", 0.0),
        (Textbook, "prefill_accounting", "cheap"),
        (Roofline, "compute_efficiency", 0.0),
        (Roofline, "memory_efficiency", 1.5),
        (Roofline, "fixed_s", float("inf")),
        (Roofline, "communication", 1),
    ],
)
def test_settings_are_checked_by_name(clock, setting, value):
    with pytest.raises(LabError, match=rf"clock\.{setting} is "):
        clock(**{setting: value})


def test_a_clock_must_move():
    with pytest.raises(LabError, match=r"clock\.base_s"):
        Linear(0.0, 0.0)


def test_registry():
    assert set(CLOCKS) >= {"linear", "textbook", "roofline"}
    assert all(clock.name == name for name, clock in CLOCKS.items())
