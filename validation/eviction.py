"""What an eviction costs: recomputing KV (F23a), and swapping it out and in (F24).

Two requests outgrow a KV cache that is sized for it, so that the later one is evicted when it holds
exactly n tokens. The cost is read from the durations of the simulated iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from model import catalogue
from model.iteration_time import Roofline
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES, Scheduler
from model.simulator import simulate
from validation.comparison import Comparison
from validation.throughput_formulas import Engine, engine_values

__all__ = ["COMPARISONS"]

_MODEL, _DEVICE = "llama-3-8b", "a100-80g-sxm"
_CLOCK = Roofline(communication=False)
_BLOCK, _GROWN = 16, 64
_OTHERS, _OTHER_PROMPT = 32, 256
_INTO_BLOCK = 1
_BIG = 100_000


def _run(
    policy: Scheduler, prompts: Sequence[int], outputs: Sequence[int], kv_blocks: int
) -> SimulationResult:
    n = len(prompts)
    requests = Requests.from_columns(
        arrival_s=np.zeros(n), prompt_tokens=prompts, output_tokens=outputs
    )
    scenario = Scenario(
        TraceReference("eviction", "0" * 64, n),
        policy,
        clock=_CLOCK,
        model=_MODEL,
        hardware=_DEVICE,
        memory=Memory(
            kv_blocks=kv_blocks,
            block_size=_BLOCK,
            max_model_len=int(np.max(np.add(prompts, outputs))),
            num_cpu_blocks=_BIG // _BLOCK,
        ),
    )
    return simulate(scenario, requests)


def _durations(result: SimulationResult) -> np.ndarray:
    return result.iterations["end_s"] - result.iterations["start_s"]


def _blocks(prompts: Sequence[int]) -> int:
    """Blocks that hold every prompt, and as many of its outputs as it may grow by."""
    return sum(-(-(prompt + _GROWN) // _BLOCK) for prompt in prompts)


# -- recompute -------------------------------------------------------------------------------------


def _recomputing(n: float, broken: str) -> Mapping[str, float]:
    return {**engine_values(Engine(_MODEL, _DEVICE, clock=_CLOCK)), "n": n, "F_r": _CLOCK.fixed_s}


def _recompute_s(n: float, broken: str) -> float:
    """Seconds of the iteration that computes an evicted context again.

    Alone, or ("beside_decodes") what it adds to an iteration in which 32 others decode.
    """
    policy = POLICIES["vllm-v1"](max_num_seqs=_OTHERS + 2, max_num_batched_tokens=_BIG)
    prompt = int(n) - _GROWN
    if broken:
        # The first one leaves early and makes room while the others decode on.
        prompts = [prompt + 2 * _GROWN, *[_OTHER_PROMPT] * _OTHERS, prompt]
        outputs = [_GROWN + 10, *[300] * (_OTHERS + 1)]
    else:
        prompts, outputs = [prompt, prompt], [_GROWN + 32] * 2
    result = _run(policy, prompts, outputs, _blocks(prompts))
    row = int(np.flatnonzero(result.iterations["recompute_tokens"] == n)[0])
    seconds = _durations(result)
    return seconds[row] - (seconds[row + 1] if broken else 0.0)


# -- swap ------------------------------------------------------------------------------------------


def _swapping(n: float, broken: str) -> Mapping[str, float]:
    given = engine_values(Engine(_MODEL, _DEVICE, clock=_CLOCK))
    held = n - _BLOCK // 2 if broken == "part_block" else n
    return {
        **given,
        "n": held,
        "F_s": 0.0,
        "w": 2.0,
        "beta_h": float(catalogue.device(_DEVICE).host_link_effective_bytes_per_s),
        "m_kv": given["kappa"] * n,
        "beta_pcie": 64e9,
    }


@lru_cache(maxsize=64)
def _swap_s(n: float, broken: str) -> float:
    """What moving a context out and in again adds to two iterations, seconds."""
    policy = POLICIES["vllm-v0"](
        max_num_seqs=2, max_num_batched_tokens=_BIG, preemption_mode="swap", watermark=0.0
    )
    first = int(n) - _GROWN
    # The first one asks for a block when it has grown by 48 tokens. The later one, which then has
    # to go, fills its last block to the end, or half of it.
    later = first + (0 if broken == "part_block" else _BLOCK - _INTO_BLOCK)
    result = _run(policy, [first, later], [_GROWN + 32] * 2, _blocks([first, first]))
    moved = np.flatnonzero(result.iterations["swapped_blocks"])
    seconds = _durations(result)
    # The last way out and the last way in; the iterations after them move nothing.
    out, back = moved[-2], moved[-1]
    return float(seconds[out] - seconds[out + 1] + seconds[back] - seconds[back + 1])


COMPARISONS = (
    Comparison(
        name="recompute",
        formulas=("F23a", "F23"),
        values=_recomputing,
        simulate=_recompute_s,
        axis="n",
        at=640.0,
        points=(640.0, 1024.0, 2048.0, 4096.0, 6144.0, 7936.0),
        unit="ms",
        factor=1e3,
        broken=("beside_decodes",),
    ),
    Comparison(
        name="swap",
        formulas=("F24", "F24p"),
        values=_swapping,
        simulate=_swap_s,
        axis="n",
        at=256.0,
        points=(128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0),
        unit="ms",
        factor=1e3,
        broken=("part_block", "one_way"),
        printed={"one_way": "F24p"},
    ),
)
