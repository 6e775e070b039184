"""The same load on two pools: engines that only prefill and engines that only decode (F32).

A prefill engine takes one prompt after the other and is loaded as far as TTFT allows (F28, F28b); a
decode engine holds the largest batch that memory and TPOT allow. KV crosses the link once, after
the prefill, and takes its time from the gap between the first two tokens. Rates are requests/s of
one engine, times seconds.

Public: :class:`Split`, :func:`split`, :func:`split_deployment`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import formulas
from model.parameters import with_policy
from model.scenario import Scenario
from validation.planner import MOST_ENGINES, Refusal
from validation.planner_engine import (
    GRID,
    batch_in_memory,
    chunk_s,
    decode_batch,
    engines_for,
    load_that_keeps,
)
from validation.planner_load import load_of

__all__ = ["Split", "split", "split_deployment"]


@dataclass(frozen=True, slots=True)
class Split:
    """Two pools for a load.

    ``prefill_s`` is t_p of the mean prompt alone; ``prefill_load`` the load that keeps TTFT;
    ``prefill_rate`` and ``decode_rate`` are what one engine carries (μ_p and μ_d under the SLOs);
    ``batch`` decodes at ``decode_s`` an iteration; ``transfer_s`` (F32e) is one handover in one
    piece, ``seen_s`` (F32f) what remains of it layer by layer; ``link_load`` is the share of time
    in which the link of a prefill engine is busy.
    """

    prefill_s: float
    prefill_load: float
    prefill_rate: float
    batch: int
    decode_s: float
    decode_rate: float
    transfer_s: float
    seen_s: float
    link_load: float
    prefill_engines: int
    decode_engines: int
    gpus_per_engine: int
    max_num_batched_tokens: int

    @property
    def engines(self) -> int:
        return self.prefill_engines + self.decode_engines

    @property
    def gpus(self) -> int:
        return self.engines * self.gpus_per_engine

    @property
    def ratio(self) -> float:
        """F32: prefill engines for a decode engine."""
        return formulas.get("F32").evaluate({"mu_d": self.decode_rate, "mu_p": self.prefill_rate})

    @property
    def rate_per_engine(self) -> float:
        """F32b: what the placement carries, for each of its engines."""
        given = {
            "n_p": self.prefill_engines,
            "n_d": self.decode_engines,
            "mu_p": self.prefill_rate,
            "mu_d": self.decode_rate,
        }
        return formulas.get("F32b").evaluate(given)


@lru_cache(maxsize=1024)
def split(scenario: Scenario, promise: float | None = 0.99) -> Split | Refusal:
    """Two pools for a scenario of :func:`validation.planner_load.asked`, or why there are none."""
    load, slo, cost = load_of(scenario), scenario.slo, scenario.cost()
    prompt, output = load.prompt_tokens, load.output_tokens
    prefill_s = chunk_s(cost, 0, 0.0, max(round(prompt), 1), 0.0)
    prefill_load = load_that_keeps(slo.ttft_s / prefill_s, promise)
    if prefill_load <= 0:
        return Refusal("ttft", prefill_s, slo.ttft_s)
    link = scenario.link()
    given = {
        "kappa": link.bytes_per_token,
        "L_in": prompt,
        "beta_net": link.bytes_per_s,
        "n_L": float(link.layers),
        "t_sync": link.latency_s,
    }
    transfer_s = formulas.get("F32e").evaluate(given) + link.latency_s
    gap_s = slo.tpot_s - transfer_s / max(output - 1, 1)
    batch = decode_batch(cost, load.context_tokens, gap_s)
    if not batch:
        return Refusal("tpot", chunk_s(cost, 1, load.context_tokens, 0, 0.0), gap_s)
    batch = max(min(batch, batch_in_memory(scenario, load.context_tokens)), 1)
    decode_s = chunk_s(cost, batch, load.context_tokens, 0, 0.0)
    decode_rate = formulas.get("F32d").evaluate({"B_d": batch, "L": output, "t_d": decode_s})
    prefill_rate = prefill_load * formulas.get("F32c").evaluate({"t_p": prefill_s})
    pools = [engines_for(load.rate_per_s, rate) for rate in (prefill_rate, decode_rate)]
    if sum(pools) > MOST_ENGINES:
        return Refusal("engines")
    return Split(
        prefill_s=prefill_s,
        prefill_load=prefill_load,
        prefill_rate=prefill_rate,
        batch=batch,
        decode_s=decode_s,
        decode_rate=decode_rate,
        transfer_s=transfer_s,
        seen_s=formulas.get("F32f").evaluate(given),
        link_load=load.rate_per_s / pools[0] * transfer_s,
        prefill_engines=pools[0],
        decode_engines=pools[1],
        gpus_per_engine=scenario.tensor_parallel,
        max_num_batched_tokens=max(GRID * math.ceil(prompt / GRID), batch),
    )


def split_deployment(scenario: Scenario, found: Split) -> Scenario:
    """Both pools as a scenario: DistServe's dispatch, a mean prompt an iteration.

    Raises LabError where a scenario may not have so many engines.
    """
    policy = replace(
        with_policy(scenario, "vllm-v1").policy,
        max_num_seqs=found.batch,
        max_num_batched_tokens=found.max_num_batched_tokens,
        enable_chunked_prefill=True,
    )
    prefill = found.prefill_engines
    cluster = replace(scenario.cluster, prefill_engines=prefill, dispatch="distserve")
    return replace(scenario, policy=policy, n_engines=found.engines, cluster=cluster)
