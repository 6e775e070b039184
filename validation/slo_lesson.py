"""What the lesson on SLOs shows: simulations of single mechanisms beside their formulas.

Every case is made of the engine of a scenario (its clock, model, hardware and memory) and a
workload of its own that meets the formula's assumptions. Seconds, tokens, requests per second.

Public: :func:`stall` (F22), :func:`little` (F29, F28c), :func:`waits` and :func:`server` (F26,
F28e), :func:`loads_allowed` (F28, F28b), :func:`prefill_rate` (C_p), :func:`values`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from model.cluster import Cluster
from model.metrics import itl_counts, measuring_window, ttft_s
from model.metrics.latency import Window, whole_run
from model.metrics.usage import time_mean
from model.result import SimulationResult
from model.scenario import Scenario
from model.schedulers import VllmV0, VllmV1
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload
from validation import throughput
from validation.lindley import poisson_gaps, waits_s

__all__ = [
    "LOADS",
    "STALL_PROMPTS",
    "Allowed",
    "Balance",
    "Stall",
    "Waits",
    "chunk_budget",
    "decode_work",
    "in_system",
    "kv_tokens",
    "little",
    "loads_allowed",
    "mean_context",
    "mean_lengths",
    "prefill_rate",
    "prefill_s",
    "server",
    "stall",
    "values",
    "waits",
]

LOADS = (0.8, 0.95, 1.1)
"""Of the prefill server: easy, hardly bearable, too much."""
SHOWN_WAITS = 600
_SHOWN_SEED = 9  # a draw whose overload lies near the mean that F28e speaks of
LONG_RUN = 400_000
STALL_PROMPTS = (512, 1024, 2048, 4000)


def engine_only(scenario: Scenario, context: int, **changes) -> Scenario:
    """One engine of the scenario that does both phases, for requests of so many tokens."""
    memory = replace(scenario.memory, max_model_len=context)
    return replace(scenario, n_engines=1, cluster=Cluster(), memory=memory, seed=0, **changes)


# -- symbols ---------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def mean_lengths(scenario: Scenario) -> tuple[float, float]:
    """Mean prompt and output of the scenario's own requests, weighted by how many there are."""
    requests = scenario.requests()
    return float(requests.prompt_tokens.mean()), float(requests.output_tokens.mean())


@lru_cache(maxsize=128)
def mean_context(scenario: Scenario) -> float:
    """Mean context of a request that decodes, over time: long answers are there for longer.

    Prompt and half the answer, weighted by the answer; s_p + L/2 where all are equal, s_p + L
    for geometric answers.
    """
    requests = scenario.requests()
    prompt, output = requests.prompt_tokens, requests.output_tokens
    return float(((prompt + output / 2) * output).sum() / output.sum())


def prefill_s(scenario: Scenario, tokens: int) -> float:
    """D: an iteration that computes one whole prompt and nothing else."""
    return float(scenario.cost().seconds(tokens, tokens * (tokens + 1) // 2, tokens))


def prefill_rate(scenario: Scenario, tokens: int) -> float:
    """C_p: prompt tokens per second of an engine that does nothing but prefill such prompts."""
    return tokens / prefill_s(scenario, tokens)


def values(scenario: Scenario, rate_per_s: float) -> dict[str, float]:
    """Values of the lesson's symbols by id, for a rate of all engines together.

    Model and hardware are those of the scenario, the teaching engine's where it has none.
    """
    prompt, output = mean_lengths(scenario)
    tokens = max(round(prompt), 1)
    case = throughput.Case(
        prompt_tokens=tokens,
        output_tokens=max(round(output), 1),
        engine=throughput.engine_of(scenario),
    )
    capacity = scenario.kv_capacity()
    known = dict(throughput.values(case))
    return known | {
        "lambda": rate_per_s / scenario.n_engines,
        "s_mean": prompt,
        "L": output,
        "C_p": prefill_rate(scenario, tokens),
        "D": prefill_s(scenario, tokens),
        "D_ttft": scenario.slo.ttft_s,
        "TBT": scenario.slo.tpot_s,
        "ctx": mean_context(scenario),
        "M_kv": capacity.pool_tokens * known["kappa"],
        "x_ttft": scenario.slo.ttft_s / prefill_s(scenario, tokens),
        "q_share": 0.99,
        "s_0": 0.0,
    }


def decode_work(scenario: Scenario, decodes: int, context: int) -> float:
    """FLOP of an iteration of so many decodes with so long contexts (F2)."""
    given = throughput.values(throughput.Case(engine=throughput.engine_of(scenario)))
    return decodes * (2 * given["Psi_a"] + 4 * given["n_L"] * given["d_a"] * context)


def chunk_budget(scenario: Scenario, decodes: int, context: int, bound_s: float) -> int:
    """F19: prompt tokens beside so many decodes that keep an iteration within ``bound_s``.

    On the grid of 16 tokens that kernels have; 0 where the decodes alone take longer.
    """
    case = throughput.Case(engine=throughput.engine_of(scenario))
    given = dict(throughput.values(case)) | {"TBT": bound_s, "s_0": 0.0}
    given["F_dec"] = decode_work(scenario, decodes, context)
    chunk = formulas.get("F19").evaluate(given)
    return max(int(chunk // 16) * 16, 0) if math.isfinite(chunk) else 0


# -- the stall behind whole prompts ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stall:
    """Longest gap between two tokens of requests that decode while prompts arrive together.

    ``formula_s`` is F22 of iterations that take ``iteration_s`` for ``together`` prompts; the run
    adds the decode iteration that ends the gap (``decode_s``).
    """

    formula_s: float
    iteration_s: float
    together: int
    decode_s: float
    whole_s: float
    chunked_s: float
    whole_ttft_s: float
    chunked_ttft_s: float

    @property
    def expected_s(self) -> float:
        """F22 and the decode iteration after it."""
        return self.formula_s + self.decode_s


STALL_DECODES, STALL_BUDGET, STALL_CHUNK = 16, 8192, 512
_BURST_S, _DECODED = 0.5, 300


@lru_cache(maxsize=128)
def stall(scenario: Scenario, prompts: int, tokens: int) -> Stall:
    """So many prompts of ``tokens`` tokens arrive together while 16 requests decode.

    Whole prompts first (vLLM V0 without chunking, 8,192 tokens an iteration) beside chunks of 512
    mixed into decode iterations (vLLM V1).
    """
    streams = (
        _at_once("decodes", STALL_DECODES, 16, _DECODED),
        replace(_at_once("prompts", prompts, tokens, 2), start_s=_BURST_S),
    )
    context = max(tokens + 2, 16 + _DECODED)
    engine = engine_only(scenario, context, workload=Workload(streams))
    whole = VllmV0(max_num_seqs=256, max_num_batched_tokens=STALL_BUDGET)
    chunks = VllmV1(max_num_seqs=256, max_num_batched_tokens=STALL_CHUNK)
    first = simulate(replace(engine, policy=whole))
    second = simulate(replace(engine, policy=chunks))
    together = min(STALL_BUDGET // tokens, prompts)
    pairs = together * (tokens * (tokens + 1) // 2)
    full_s = float(engine.cost().seconds(together * tokens, pairs, together * tokens))
    given = {"k_wait": prompts, "b_tok": together * tokens, "n": tokens, "t_b": full_s}
    return Stall(
        formula_s=formulas.get("F22").evaluate(given),
        iteration_s=full_s,
        together=together,
        decode_s=_decode_after(first),
        whole_s=_longest_gap(first),
        chunked_s=_longest_gap(second),
        whole_ttft_s=_last_ttft(first),
        chunked_ttft_s=_last_ttft(second),
    )


def _at_once(name: str, n: int, prompt: int, output: int) -> Stream:
    lengths = (Lengths("fixed", float(tokens)) for tokens in (prompt, output))
    return Stream(name, n, Arrivals("at_once"), *lengths)


def _longest_gap(run: SimulationResult) -> float:
    return float(itl_counts(run)[0].max())


def _decode_after(run: SimulationResult) -> float:
    """The iteration that ends the longest pause of those who decode."""
    decodes = run.iterations["decode_requests"] >= STALL_DECODES
    start_s, end_s = run.iterations["start_s"][decodes], run.iterations["end_s"][decodes]
    last = int(np.argmax(start_s[1:] - end_s[:-1])) + 1
    return float(end_s[last] - start_s[last])


def _last_ttft(run: SimulationResult) -> float:
    """Of the burst."""
    return float(ttft_s(run.requests)[run.requests["request_class"] == 1].max())


# -- Little's law ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Balance:
    """Arrivals per second, mean stay and mean number of requests over a stretch of a run."""

    window: Window
    rate_per_s: float
    stay_s: float
    number: float

    @property
    def product(self) -> float:
        """λ·W."""
        return self.rate_per_s * self.stay_s

    @property
    def difference(self) -> float:
        """Of the product from the number that was there, as a share of it."""
        return self.product / self.number - 1 if self.number else float("nan")


def little(run: SimulationResult, *, whole: bool) -> Balance:
    """λ, W and N of a run: of all of it, or of its steady window.

    Over the whole run the stays add up to the area under N(t), so that λ·W = N to the last bit;
    in a window requests are cut off at both ends.
    """
    requests = run.requests
    came_s, left_s = requests["arrival_s"], requests["end_s"]
    there = np.isfinite(came_s) & np.isfinite(left_s)
    came_s, left_s = came_s[there], left_s[there]
    window = whole_run(requests) if whole else measuring_window(requests)
    length_s = window.length_s
    inside = (came_s >= window.start_s) & (came_s <= window.end_s)
    area = np.minimum(left_s, window.end_s) - np.maximum(came_s, window.start_s)
    stay_s = float((left_s - came_s)[inside].mean()) if inside.any() else float("nan")
    return Balance(
        window,
        float(np.count_nonzero(inside) / length_s) if length_s > 0 else float("nan"),
        stay_s,
        float(np.maximum(area, 0.0).sum() / length_s) if length_s > 0 else float("nan"),
    )


def in_system(run: SimulationResult) -> tuple[np.ndarray, np.ndarray]:
    """N(t) as steps: times in seconds, and how many requests are there from each on."""
    came_s, left_s = run.requests["arrival_s"], run.requests["end_s"]
    came_s, left_s = came_s[np.isfinite(came_s)], left_s[np.isfinite(left_s)]
    time_s = np.unique(np.concatenate((came_s, left_s)))
    came = np.searchsorted(np.sort(came_s), time_s, side="right")
    return time_s, came - np.searchsorted(np.sort(left_s), time_s, side="right")


def kv_tokens(run: SimulationResult) -> float:
    """Mean KV tokens held on all engines in the steady window, in whole blocks."""
    window = measuring_window(run.requests)
    blocks = time_mean(run.iterations, run.iterations["blocks_used"], window)
    return blocks * run.block_size


# -- the prefill server ----------------------------------------------------------------------------


def server(scenario: Scenario, tokens: int, load: float, n: int) -> Scenario:
    """An engine that prefills prompts of ``tokens`` tokens one after the other: M/D/1."""
    rate = load / prefill_s(scenario, tokens)
    stream = Stream(
        "prompts",
        n,
        Arrivals("poisson", rate),
        Lengths("fixed", float(tokens)),
        Lengths("fixed", 1.0),
    )
    policy = VllmV1(max_num_seqs=1, max_num_batched_tokens=tokens)
    engine = engine_only(scenario, tokens + 1, workload=Workload((stream,)), policy=policy)
    return replace(engine, seed=_SHOWN_SEED)


@dataclass(frozen=True, eq=False, slots=True)
class Waits:
    """TTFT of successive prompts at one load, and what a long run of the same gives.

    ``mean`` and ``p99`` are TTFTs over D of LONG_RUN arrivals by Lindley's recursion;
    they and the formulas' are inf from load 1 on.
    """

    load: float
    service_s: float
    arrival_s: np.ndarray
    ttft_s: np.ndarray
    mean: float
    p99: float
    formula_mean: float
    formula_p99: float

    def growth_s(self, times_s: np.ndarray) -> np.ndarray:
        """F28e turned around: TTFT of an arrival after so many seconds of overload."""
        return self.service_s + np.maximum(self.load - 1, 0.0) * times_s


@lru_cache(maxsize=64)
def waits(scenario: Scenario, tokens: int, load: float) -> Waits:
    """Successive prompts at the prefill server under this load."""
    shown = simulate(server(scenario, tokens, load, SHOWN_WAITS)).requests
    service_s = prefill_s(scenario, tokens)
    first = load, service_s, shown["arrival_s"], ttft_s(shown)
    if load >= 1:
        return Waits(*first, *([float("inf")] * 4))
    given = {"rho": load, "lambda": load / service_s, "D": service_s, "q_share": 0.99}
    long = 1 + waits_s(poisson_gaps(LONG_RUN - 1, 0) / load, 1.0)  # in units of D
    return Waits(
        *first,
        float(long.mean()),
        float(np.percentile(long, 99)),
        formulas.get("F26").evaluate(given) / service_s,
        formulas.get("F26e").evaluate(given),
    )


@dataclass(frozen=True, eq=False, slots=True)
class Allowed:
    """The largest load that keeps TTFT within x·D: in the mean, for 90 %, for 99 % of requests."""

    x: np.ndarray
    mean: np.ndarray
    p90: np.ndarray
    p99: np.ndarray


@lru_cache(maxsize=8)
def loads_allowed(bounds: tuple[float, ...]) -> Allowed:
    """F28 and F28b for these bounds x = D_ttft/D."""

    def share(q: float) -> np.ndarray:
        formula = formulas.get("F28b")
        return np.array([formula.evaluate({"x_ttft": x, "q_share": q}) for x in bounds])

    mean = np.array([formulas.get("F28").evaluate({"x_ttft": x}) for x in bounds])
    return Allowed(np.array(bounds), mean, share(0.9), share(0.99))
