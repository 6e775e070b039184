"""Prompts beside decodes: chunks that keep a bound (F19, F19a), prompts that go first (F22).

For F19 and F19a the budget is searched by running the engine: 32 requests decode at a context of
1,500 tokens when a long prompt arrives, and the duration of the iteration that takes its chunk is
read. F22 reads the time for which a decode stands still.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from model.iteration_time import Linear, Roofline
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.comparison import Comparison
from validation.throughput_formulas import Engine, engine_values

__all__ = ["COMPARISONS"]

_MODEL, _DEVICE = "llama-3-8b", "a100-80g-sxm"
_CLOCK = Roofline(communication=False)
_DECODES, _CONTEXT, _GRID = 32, 1500, 16
_FIRST_ONLY = 4096  # a prompt whose first chunk counts
_LONG = 6144  # one whose last chunk counts too


# -- the budget that keeps a bound -----------------------------------------------------------------


def _chunk_values(bound_s: float, broken: str) -> Mapping[str, float]:
    given = {
        **engine_values(Engine(_MODEL, _DEVICE, clock=_CLOCK)),
        "TBT": bound_s,
        "C_grid": float(_GRID),
        "B": float(_DECODES),
        "ctx": float(_CONTEXT),
        "s_0": 0.0,
    }
    per_decode = 2 * given["Psi_a"] + 4 * given["n_L"] * given["d_a"] * _CONTEXT
    return {**given, "F_dec": _DECODES * per_decode}


def _run_chunks(chunk: int, prompt: int, arrival_s: float):
    """32 equal requests, and a long prompt that joins in chunks of this size."""
    n = _DECODES + 1
    requests = Requests.from_columns(
        arrival_s=[0.0] * _DECODES + [arrival_s],
        prompt_tokens=[_CONTEXT - 1] * _DECODES + [prompt],
        output_tokens=[2 + -(-prompt // chunk)] * _DECODES + [1],
    )
    policy = POLICIES["vllm-v1"](
        max_num_seqs=n,
        max_num_batched_tokens=n * max(chunk, _CONTEXT),
        long_prefill_token_threshold=chunk,
    )
    scenario = Scenario(
        TraceReference("chunks", "0" * 64, n),
        policy,
        clock=_CLOCK,
        model=_MODEL,
        hardware=_DEVICE,
    )
    return simulate(scenario, requests)


@lru_cache(maxsize=512)
def _longest_iteration_s(chunk: int, prompt: int, only_first: bool) -> float:
    """Seconds of the first iteration, or of the longest, that takes a chunk beside the decodes."""
    alone = _run_chunks(chunk, prompt, 1e6)
    first_token_s = float(alone.requests["first_token_s"][0])
    result = _run_chunks(chunk, prompt, first_token_s - 1e-6)
    table = result.iterations
    beside = (table["decode_requests"] == _DECODES) & (table["prefill_tokens"] == chunk)
    seconds = (table["end_s"] - table["start_s"])[beside]
    return float(seconds[0] if only_first else seconds.max())


def _largest_chunk(bound_s: float, grid: int, broken: str) -> float:
    """The largest chunk, a multiple of ``grid``, that an engine gets through within the bound."""
    prompt = _LONG if broken == "later_chunks" else _FIRST_ONLY
    low, high = 0, _FIRST_ONLY // grid
    while high - low > 1:
        middle = (low + high) // 2
        kept = _longest_iteration_s(middle * grid, prompt, not broken) <= bound_s
        low, high = (middle, high) if kept else (low, middle)
    return float(low * grid)


# -- prompts that go first -------------------------------------------------------------------------

_PROMPT, _BUDGET = 512, 2048
_LINEAR = Linear(base_s=0.002, per_scheduled_token_s=1e-4)


def _stall_values(waiting: float, broken: str) -> Mapping[str, float]:
    full_s = _LINEAR.base_s + _BUDGET * _LINEAR.per_scheduled_token_s
    return {"n": float(_PROMPT), "k_wait": waiting, "b_tok": float(_BUDGET), "t_b": full_s}


def _stall_s(waiting: float, broken: str) -> float:
    """For how long a request that decodes gets no token when so many prompts arrive at once."""
    k = int(waiting)
    requests = Requests.from_columns(
        arrival_s=np.concatenate(([0.0], np.full(k, 0.1))),
        prompt_tokens=np.concatenate(([64], np.full(k, _PROMPT))),
        output_tokens=np.concatenate(([80], np.ones(k, dtype=np.int64))),
    )
    policy = POLICIES["vllm-v1" if broken == "chunked" else "vllm-v0"](
        max_num_seqs=k + 1, max_num_batched_tokens=_BUDGET
    )
    scenario = Scenario(
        TraceReference("stall", "0" * 64, k + 1),
        policy,
        clock=_LINEAR,
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=4_000, block_size=16, max_model_len=2048),
    )
    gaps_s = np.diff(simulate(scenario, requests).token_times(0))
    return float(gaps_s.max() - gaps_s.min())  # less the decode's own iteration


COMPARISONS = (
    Comparison(
        name="chunk_budget",
        formulas=("F19",),
        values=_chunk_values,
        simulate=lambda bound_s, broken: _largest_chunk(bound_s, 1, broken),
        axis="TBT",
        at=0.05,
        points=(0.03, 0.05, 0.075, 0.1, 0.15, 0.2),
        unit="tokens",
        broken=("later_chunks",),
    ),
    Comparison(
        name="chunk_grid",
        formulas=("F19a",),
        values=_chunk_values,
        simulate=lambda bound_s, broken: _largest_chunk(bound_s, _GRID, broken),
        axis="TBT",
        at=0.05,
        points=(0.03, 0.05, 0.075, 0.1, 0.15, 0.2),
        unit="tokens",
        broken=("later_chunks",),
    ),
    Comparison(
        name="stall",
        formulas=("F22",),
        values=_stall_values,
        simulate=_stall_s,
        axis="k_wait",
        at=8.0,
        points=(4.0, 8.0, 12.0, 16.0, 20.0, 24.0),
        unit="ms",
        factor=1e3,
        broken=("chunked",),
    ),
)
