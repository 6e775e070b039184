"""Use of batch, memory and hardware on columns made by hand; expected values by pencil."""

import numpy as np
import pytest

from model import catalogue, metrics
from model.kv_cache import Memory
from model.metrics.latency import Window
from tests.hand_made import iterations

# Three iterations of 1, 2 and 1 s; a pause of one second before the last.
RUN = iterations(
    {"start_s": 0, "end_s": 1, "prefill_requests": 2, "prefill_tokens": 20, "tokens": 20},
    {"start_s": 1, "end_s": 3, "decode_requests": 2, "prefill_requests": 1, "tokens": 7},
    {"start_s": 4, "end_s": 5, "decode_requests": 3, "tokens": 3},
)
RUN |= {
    "running": np.array([2, 3, 3]),
    "blocks_used": np.array([2, 4, 5]),
    "kv_tokens_read": np.array([20, 27, 34]),
}
WHOLE, MIDDLE = Window(0.0, 5.0, False), Window(2.0, 4.5, True)


def test_mean_batch_weighs_by_time_and_counts_idle_time():
    batch = metrics.mean_batch(RUN, WHOLE)
    assert batch.decode_requests == pytest.approx((2 * 2 + 3 * 1) / 5)
    assert batch.prefill_requests == pytest.approx((2 * 1 + 1 * 2) / 5)
    assert batch.total == pytest.approx(11 / 5)


def test_iterations_that_cross_the_window_count_with_their_part():
    assert metrics.overlap_s(RUN, MIDDLE).tolist() == [0, 1, 0.5]
    batch = metrics.mean_batch(RUN, MIDDLE)
    assert batch.decode_requests == pytest.approx((2 * 1 + 3 * 0.5) / 2.5)
    assert metrics.residency(RUN, MIDDLE) == pytest.approx(1.5 / 2.5)


def test_residency():
    assert metrics.residency(RUN, WHOLE) == pytest.approx(4 / 5)
    assert metrics.residency(iterations(), WHOLE) == 0.0
    assert np.isnan(metrics.residency(RUN, Window(1.0, 1.0, False)))


def test_means_are_of_one_engine():
    two = iterations(
        {"start_s": 0, "end_s": 4, "decode_requests": 6},
        {"engine_id": 1, "start_s": 0, "end_s": 2, "decode_requests": 2},
    )
    window = Window(0.0, 4.0, False)
    assert metrics.mean_batch(two, window, 2).decode_requests == pytest.approx((24 + 4) / 8)
    assert metrics.residency(two, window, 2) == pytest.approx(6 / 8)


def test_kv_use():
    used = metrics.kv_use(RUN, 10, MIDDLE)
    assert used.mean == pytest.approx((0.4 * 1 + 0.5 * 0.5) / 2.5)
    assert used.peak == 0.5


def test_fragmentation_is_the_empty_share_of_held_slots():
    # blocks of 8: 16, 32, 40 slots, and 20, 27, 34 tokens read. More tokens than slots means
    # shared blocks, so the first is left out: 1 − (27·2 + 34·1)/(32·2 + 40·1) = 1 − 88/104
    assert metrics.kv_fragmentation(RUN, 8, WHOLE) == pytest.approx(16 / 104)
    # blocks of 16: 1 − (20·1 + 27·2 + 34·1)/(32·1 + 64·2 + 80·1) = 1 − 108/240
    assert metrics.kv_fragmentation(RUN, 16, WHOLE) == pytest.approx(132 / 240)


def test_fragmentation_needs_everybody_to_run():
    someone_waits = RUN | {"running": np.array([2, 4, 3])}
    assert metrics.kv_fragmentation(someone_waits, 16, WHOLE) == pytest.approx(1 - 54 / 112)
    assert np.isnan(metrics.kv_fragmentation(RUN | {"running": RUN["running"] + 1}, 16, WHOLE))


def test_wasted_tokens():
    waste = metrics.wasted_tokens(
        RUN | {"recompute_tokens": np.array([0, 4, 0]), "padding_tokens": np.array([2, 0, 0])}
    )
    assert (waste.recomputed_tokens, waste.padded_tokens) == (4, 2)
    assert waste.share == pytest.approx(6 / 30)
    assert np.isnan(metrics.wasted_tokens(iterations()).share)


# ---- hardware -----------------------------------------------------------------------------


def one_iteration(batch: int, context: int, seconds: float) -> dict:
    return iterations(
        {
            "end_s": seconds,
            "decode_requests": batch,
            "tokens": batch,
            "attention_pairs": batch * context,
            "kv_tokens_read": batch * context,
        }
    )


def use_of(model: str, device: str, run: dict, tensor_parallel=1, memory=None) -> tuple:
    return metrics.utilization(
        run,
        catalogue.models()[model],
        catalogue.devices()[device],
        memory or Memory(),
        tensor_parallel,
        Window(0.0, float(run["end_s"][-1]), False),
    )


def test_mfu_and_mbu_as_in_the_audit():
    # A11: Llama-3-8B, A100, 37 decodes of context 612 in 13.7 ms. By pencil:
    # FLOP: 2·8.03e9·37 + 4·32·4096·612·37 = 5.942e11 + 0.119e11; of 312e12·0.0137 = 4.274e12
    # bytes: 2·8.03e9 + 131,072·37·612 = 16.06e9 + 2.968e9; of 2.039e12·0.0137 = 27.93e9
    mfu, mbu = use_of("llama-3-8b", "a100-80g-sxm", one_iteration(37, 612, 0.0137))
    assert mfu == pytest.approx(0.1418, abs=0.0002)
    assert mbu == pytest.approx(0.6812, abs=0.0005)
    assert mfu == pytest.approx(0.14, abs=0.005)
    assert mbu == pytest.approx(0.68, abs=0.005)


def test_idle_time_lowers_both():
    run = one_iteration(37, 612, 0.0137)
    half = metrics.utilization(
        run,
        catalogue.models()["llama-3-8b"],
        catalogue.devices()["a100-80g-sxm"],
        Memory(),
        1,
        Window(0.0, 0.0274, False),
    )
    assert half.mfu == pytest.approx(0.1418 / 2, abs=0.0002)


def test_more_gpus_share_the_work_and_smaller_numbers_move_fewer_bytes():
    run = one_iteration(37, 612, 0.0137)
    mfu, mbu = use_of("llama-3-8b", "a100-80g-sxm", run, tensor_parallel=2)
    assert mfu == pytest.approx(0.1418 / 2, abs=0.0002)
    assert mbu == pytest.approx(0.6812 / 2, abs=0.0005)
    fp8 = Memory(weight_dtype="fp8", kv_dtype="fp8")
    mfu, mbu = use_of("llama-3-8b", "a100-80g-sxm", run, memory=fp8)
    assert mfu == pytest.approx(0.1418, abs=0.0002)
    assert mbu == pytest.approx(0.6812 / 2, abs=0.0005)


def test_an_iteration_without_tokens_moves_nothing():
    assert use_of("llama-3-8b", "a100-80g-sxm", one_iteration(0, 612, 0.01)) == (0.0, 0.0)
