"""The simulated engine as a single server: requests of one output token, one prompt at a time.

A linear clock charges every prompt token the same, so that a prompt of :data:`PROMPT` tokens takes
:data:`SERVICE_S` seconds (10,000 tokens per second, close to an 8B model on an A100). What breaks
the picture of one server can be added: decodes, several prompts at once, fixed time an iteration.

Public: :func:`run`, :func:`gaps`, :func:`arrivals_s`, :func:`ttft_s`, :data:`PROMPT`,
:data:`SERVICE_S`, :data:`TOKEN_S`, :data:`BURSTS_CV`.
"""

from __future__ import annotations

import numpy as np

from model.iteration_time import Linear
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.lindley import bursty_gaps, poisson_gaps

__all__ = ["BURSTS_CV", "PROMPT", "SERVICE_S", "TOKEN_S", "arrivals_s", "gaps", "run", "ttft_s"]

PROMPT = 1000
SERVICE_S = 0.1
TOKEN_S = SERVICE_S / PROMPT
BURSTS_CV = 3.0
"""Coefficient of variation of the gaps where arrivals come in bursts."""

_BLOCK = 16
_DECODES, _DECODE_BATCH = 40, 64
_FIXED_S = 0.01
_TOGETHER = 8
_ORDERS = {"fcfs": ("vllm-v1", {}), "sjf": ("lab", {"queue_order": "sjf"})}


def gaps(n: int, seed: int, broken: str = "") -> np.ndarray:
    """``n`` gaps of mean 1: at random, or in bursts where that is what is broken."""
    return bursty_gaps(n, seed, BURSTS_CV) if broken == "bursty" else poisson_gaps(n, seed)


def arrivals_s(n: int, rate_per_s: float, seed: int, broken: str = "") -> np.ndarray:
    """Seconds at which ``n`` requests arrive, the first at 0."""
    return np.concatenate(([0.0], np.cumsum(gaps(n - 1, seed, broken)))) / rate_per_s


def run(
    arrival_s: np.ndarray, prompt_tokens: np.ndarray | int, broken: str = "", order: str = "fcfs"
) -> SimulationResult:
    """Simulate these requests, who is next by ``order`` ("fcfs" or "sjf").

    ``broken`` is one of the keys of this table, or none of them.

    ==========  =============================================================================
    "decodes"   each request goes on for 39 output tokens, in iterations shared with prompts;
                of a prompt's time 10 ms are fixed and are paid by every iteration
    "together"  up to 8 waiting prompts are computed in one iteration
    "overhead"  10 ms are added to every iteration
    ==========  =============================================================================
    """
    n = len(arrival_s)
    prompts = np.broadcast_to(np.asarray(prompt_tokens), n)
    longest = int(prompts.max())
    outputs = _DECODES if broken == "decodes" else 1
    seats = {"decodes": _DECODE_BATCH, "together": _TOGETHER}.get(broken, 1)
    fixed_s = _FIXED_S if broken in ("decodes", "overhead") else 0.0
    token_s = TOKEN_S - (_FIXED_S / PROMPT if broken == "decodes" else 0.0)
    name, more = _ORDERS[order]
    policy = POLICIES[name](
        max_num_seqs=seats,
        max_num_batched_tokens=longest * (_TOGETHER if broken == "together" else 1)
        + (seats if broken == "decodes" else 0),
        **more,
    )
    requests = Requests.from_columns(
        arrival_s=arrival_s, prompt_tokens=prompts, output_tokens=np.full(n, outputs)
    )
    scenario = Scenario(
        TraceReference("queue", "0" * 64, n),
        policy,
        clock=Linear(base_s=fixed_s, per_scheduled_token_s=token_s),
        model=None,
        hardware=None,
        memory=Memory(
            kv_blocks=seats * ((longest + outputs) // _BLOCK + 2),
            block_size=_BLOCK,
            max_model_len=longest + outputs,
        ),
    )
    return simulate(scenario, requests)


def ttft_s(result: SimulationResult) -> np.ndarray:
    """Seconds from arrival to the first token, a row a request."""
    return result.requests["first_token_s"] - result.requests["arrival_s"]
