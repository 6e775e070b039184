"""Throughput by formula (F12, F13, F15, F17) beside simulations of the same case.

The simulations meet the formulas' assumptions: a queue that never empties, one prompt per prefill
iteration under continuous batching, a joint prefill under static batching, and enough KV memory
for the batch. Outputs are all equal, or geometric; of the latter the same lengths are put into the
formula as into the simulation, so that chance can be told from what a formula leaves out.

Public: :func:`compare`, :func:`corrected`, :class:`Pair`, :func:`utilizations`,
:func:`continuous_run`, :func:`textbook_improvement`, :func:`textbook_throughput`; and from
:mod:`validation.throughput_formulas` what belongs to the formulas alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from model import catalogue
from model.iteration_time import IterationTime, Textbook
from model.metrics import output_throughput_per_s, residency, utilization
from model.metrics.latency import Window
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario, TraceReference
from model.schedulers import POLICIES, Scheduler
from model.simulator import simulate
from validation.throughput_formulas import (
    BAND,
    BLOCK_TOKENS,
    LENGTHS,
    UNBOUND,
    Case,
    Curves,
    Engine,
    Improvements,
    curves,
    decode_s,
    engine_of,
    hybrid,
    improvements,
    kv_batch,
    kv_blocks,
    longest,
    parameters_read,
    prefill_s,
    timed,
    values,
)

__all__ = [
    "ACCOUNTINGS",
    "BAND",
    "LENGTHS",
    "UNBOUND",
    "Case",
    "Curves",
    "Engine",
    "Improvements",
    "Pair",
    "compare",
    "continuous_run",
    "corrected",
    "curves",
    "decode_s",
    "engine_of",
    "improvements",
    "kv_batch",
    "longest",
    "parameters_read",
    "prefill_s",
    "textbook_improvement",
    "textbook_throughput",
    "utilizations",
    "values",
]

_FEWEST_REQUESTS = 480


@dataclass(frozen=True, slots=True)
class Pair:
    """A formula and its simulation, in output tokens per second.

    ``drawn`` is the formula with the lengths that the simulation drew (the same as ``formula``
    where all are equal). ``reasons`` are keys of what tells simulation and formula apart.
    """

    id: str
    formula: float
    drawn: float
    simulated: float
    reasons: tuple[str, ...]

    @property
    def difference(self) -> float:
        """Simulation over formula, less 1."""
        return self.simulated / self.formula - 1

    @property
    def unexplained(self) -> float:
        """The same without the chance in the draw."""
        return self.simulated / self.drawn - 1


@lru_cache(maxsize=256)
def compare(case: Case) -> tuple[Pair, ...]:
    """F12 and F13 under the Textbook clock; F15, F17 and the bound F18 under the Roofline."""
    return (*_printed(case), *corrected(case), _bounded(case))


def _printed(case: Case) -> tuple[Pair, Pair]:
    given = values(case)
    pairs = []
    for formula_id, policy, accounting, reasons in (
        ("F12", _static(case), "serial", ("first_token",)),
        ("F13", _mixed(case), "free", ()),
    ):
        formula = formulas.get(formula_id).evaluate(given)
        simulated = textbook_throughput(case, policy, accounting)
        pairs.append(Pair(formula_id, formula, formula, simulated, reasons))
    return pairs[0], pairs[1]


def textbook_throughput(case: Case, policy: Scheduler, accounting: str) -> float:
    """Output tokens per second of two full batches under the Textbook clock."""
    clock = Textbook(values(case)["T_s"], accounting)
    return _whole(_run(case, policy, clock, np.full(2 * policy.max_num_seqs, case.output_tokens)))


ACCOUNTINGS = ("printed", "alike", "same")
"""Prompts charged to static batching alone; to both sides; to one, with the same batch on both."""


@lru_cache(maxsize=256)
def textbook_improvement(case: Case, accounting: str) -> float:
    """Δ of two simulations under the Textbook clock, by one of ACCOUNTINGS; a share."""
    if accounting == "same":
        case = replace(case, dynamic_batch=case.static_batch)
    charged = "serial" if accounting == "alike" else "free"
    continuous = textbook_throughput(case, _mixed(case), charged)
    return continuous / textbook_throughput(case, _static(case), "serial") - 1


def corrected(case: Case) -> tuple[Pair, Pair]:
    """F15 and F17 beside their runs under the Roofline; LabError where the model does not fit."""
    given = values(case)
    chance = ("draw",) if case.lengths == "geometric" else ()
    # Static rows leave one by one where lengths differ: F15 takes the coverage at their mean.
    uneven = _experts(case) if case.lengths == "geometric" else ()
    pairs = []
    for formula_id, run in (("F15", _static_run(case)), ("F17", continuous_run(case))):
        formula = formulas.get(formula_id)
        drawn = formula.evaluate(_drawn(case, run.inputs.output_tokens))
        measured = output_throughput_per_s(run, _window(case, formula_id, run))
        full = ("memory",) if case.dynamic_batch > kv_batch(case) and formula_id == "F17" else ()
        experts = uneven if formula_id == "F15" else ()
        reasons = (*full, "last_decode", *experts, *chance)
        pairs.append(Pair(formula_id, formula.evaluate(given), drawn, measured, reasons))
    return pairs[0], pairs[1]


def _bounded(case: Case) -> Pair:
    """The bound, and vLLM V1 mixing chunks of prompts into decode iterations."""
    full = ("memory",) if case.dynamic_batch > kv_batch(case) else ()
    budget = case.prompt_tokens + case.dynamic_batch
    policy = POLICIES["vllm-v1"](max_num_seqs=case.dynamic_batch, max_num_batched_tokens=budget)
    run = _run(case, policy, case.engine.clock, _outputs(case, case.dynamic_batch))
    measured = output_throughput_per_s(run, _window(case, "F18", run))
    bound = hybrid(values(case))
    together = ("waves",) if case.lengths == "fixed" else ()
    return Pair("F18", bound, bound, measured, (*full, "bound", *_experts(case), *together))


def _experts(case: Case) -> tuple[str, ...]:
    return ("experts",) if catalogue.model(case.engine.model).experts > 1 else ()


def _window(case: Case, formula_id: str, run: SimulationResult) -> Window:
    """All of a run of whole batches; of a mixed one the time from full to the last admission."""
    end_s = float(run.iterations["end_s"][-1])
    if formula_id == "F15" or case.lengths == "fixed":
        return Window(0.0, end_s, True)
    first = np.sort(run.requests["first_scheduled_s"])
    return Window(float(first[case.dynamic_batch - 1]), float(first[-1]), True)


@lru_cache(maxsize=64)
def _static_run(case: Case) -> SimulationResult:
    return _run(case, _static(case), case.engine.clock, _outputs(case, case.static_batch))


@lru_cache(maxsize=64)
def continuous_run(case: Case) -> SimulationResult:
    """The run beside F17, by vLLM V0's rule: prompts go before decodes.

    The budget lets one prompt into an iteration.
    """
    policy = POLICIES["vllm-v0"](
        max_num_seqs=case.dynamic_batch, max_num_batched_tokens=case.prompt_tokens, watermark=0.0
    )
    return _run(case, policy, case.engine.clock, _outputs(case, case.dynamic_batch))


def _static(case: Case) -> Scheduler:
    return POLICIES["static"](max_num_seqs=case.static_batch)


def _mixed(case: Case) -> Scheduler:
    budget = case.dynamic_batch * case.prompt_tokens
    return POLICIES["vllm-v1"](max_num_seqs=case.dynamic_batch, max_num_batched_tokens=budget)


def _outputs(case: Case, batch: int) -> np.ndarray:
    """Output lengths of whole batches: equal, or the quantiles of a geometric in random order."""
    if case.lengths == "fixed":
        return np.full(2 * batch, case.output_tokens)
    n = -(-max(_FEWEST_REQUESTS, 8 * batch) // batch) * batch
    shares = (np.arange(n) + 0.5) / n
    if case.output_tokens == 1:
        return np.ones(n, dtype=np.int64)
    tokens = np.ceil(np.log1p(-shares) / np.log1p(-1 / case.output_tokens))
    most = catalogue.model(case.engine.model).max_context_tokens - case.prompt_tokens
    tokens = np.clip(tokens, 1, max(most, 1)).astype(np.int64)
    return np.random.default_rng(1).permutation(tokens)


def _drawn(case: Case, outputs: np.ndarray) -> Mapping[str, float]:
    """The formulas' values at the lengths that were drawn."""
    if case.lengths == "fixed":
        return values(case)
    mean = float(outputs.mean())
    whole = outputs[: len(outputs) // case.static_batch * case.static_batch]
    longest_tokens = float(whole.reshape(-1, case.static_batch).max(axis=1).mean())
    decodes = outputs - 1.0
    seen = float((decodes * (case.prompt_tokens + outputs / 2)).sum() / max(decodes.sum(), 1.0))
    return timed(case, mean, longest_tokens, seen)


def _run(
    case: Case, policy: Scheduler, clock: IterationTime, outputs: np.ndarray
) -> SimulationResult:
    n, longest_tokens = len(outputs), case.prompt_tokens + int(outputs.max())
    requests = Requests.from_columns(
        arrival_s=np.zeros(n), prompt_tokens=np.full(n, case.prompt_tokens), output_tokens=outputs
    )
    engine, needs_model = case.engine, clock.needs_model
    blocks = (longest_tokens // BLOCK_TOKENS + 2) * policy.max_num_seqs
    if needs_model:
        blocks = min(blocks, kv_blocks(engine))
    scenario = Scenario(
        TraceReference("throughput", "0" * 64, n),
        policy,
        clock=clock,
        model=engine.model if needs_model else None,
        hardware=engine.hardware if needs_model else None,
        tensor_parallel=engine.tensor_parallel if needs_model else 1,
        memory=replace(
            engine.memory, kv_blocks=blocks, max_model_len=longest_tokens, block_size=BLOCK_TOKENS
        ),
    )
    return simulate(scenario, requests)


def _whole(run: SimulationResult) -> float:
    return output_throughput_per_s(run, Window(0.0, float(run.iterations["end_s"][-1]), True))


def utilizations(case: Case) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Shares residency, mfu and mbu of static and of continuous batching, simulated."""
    return _usage(case, "F15", _static_run(case)), _usage(case, "F17", continuous_run(case))


def _usage(case: Case, formula_id: str, run: SimulationResult) -> Mapping[str, float]:
    engine, window = case.engine, _window(case, formula_id, run)
    found = utilization(
        run.iterations,
        catalogue.model(engine.model),
        catalogue.device(engine.hardware),
        engine.memory,
        engine.tensor_parallel,
        window,
    )
    busy = residency(run.iterations, window, 1)
    return {"residency": busy, "mfu": found.mfu, "mbu": found.mbu}
