"""Preemptions in the simulator beside the formulas: one eviction both ways, and a whole run.

The formulas know fixed costs, small copies and any link; the simulator's clock knows whole blocks
and iterations. One eviction is played under vLLM V0, once each way: a request that arrived last
loses its memory to another one, and comes back when that has ended.

Public: :func:`evictions`, :class:`Eviction`, :func:`chances`, :class:`Chances`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from model import catalogue, kv_cache
from model.events import EVENT
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.preemption import Costs, values, vector
from validation.throughput import Engine

__all__ = ["Chances", "Eviction", "chances", "evictions"]

_BLOCK = 16
_FEW = 8  # tokens that are decoded after the eviction


# -- one eviction in the simulator -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eviction:
    """One preempted request, by formula and simulated; seconds.

    ``formula_s`` has no fixed cost and no small copies, and the device's own link, as the
    simulator has. ``event_s`` is what the simulator's event says, ``iterations_s`` what the
    iterations that recompute or copy really take. ``end_s`` is when the request ends.
    ``reasons`` are keys of what tells ``iterations_s`` and ``formula_s`` apart.
    """

    mode: str
    context_tokens: int
    blocks: int
    formula_s: float
    event_s: float
    iterations_s: float
    end_s: float
    undisturbed_end_s: float
    reasons: tuple[str, ...]

    @property
    def difference(self) -> float:
        """Simulated over formula, less 1."""
        return self.iterations_s / self.formula_s - 1


@lru_cache(maxsize=64)
def evictions(engine: Engine, context_tokens: int) -> tuple[Eviction, Eviction]:
    """A request of about this context evicted under vLLM V0: recomputed, and swapped.

    The context is cut to what the model's limit and the KV memory hold. Raises LabError where the
    weights leave no KV memory.
    """
    longest = _longest_context(engine)
    context = max(min(context_tokens, longest), 4 * _BLOCK)
    return _eviction(engine, context, "recompute"), _eviction(engine, context, "swap")


def _eviction(engine: Engine, context_tokens: int, mode: str) -> Eviction:
    run, calm = (_run(engine, context_tokens, mode, tight=tight) for tight in (True, False))
    events, iterations = run.events, run.iterations
    leaves = EVENT["swap_out" if mode == "swap" else "preempt"]
    (row,) = np.flatnonzero(events["event"] == leaves)
    tokens, blocks = int(events["tokens"][row]), int(events["blocks_needed"][row])
    cost = run.scenario.cost()
    durations = iterations["end_s"] - iterations["start_s"]
    if mode == "swap":
        # V0 writes the tokens at stake into either kind of event; a swap moves whole blocks.
        plain = cost.seconds(
            iterations["tokens"], iterations["attention_pairs"], iterations["kv_tokens_read"]
        )
        moves = iterations["swapped_blocks"] > 0
        taken = float((durations - plain)[moves].sum())
        formula_id, reasons = "F24", ("whole_blocks",)
    else:
        moves = iterations["recompute_tokens"] > 0
        taken = float(durations[moves].sum())
        formula_id, reasons = "F23a", _reasons(cost, iterations, moves)
    given = values(Costs(engine, context_tokens=tokens, swap_fixed_s=0.0))
    return Eviction(
        mode=mode,
        context_tokens=tokens,
        blocks=blocks,
        formula_s=formulas.get(formula_id).evaluate(given),
        event_s=float(events["swap_s" if mode == "swap" else "recompute_s"][row]),
        iterations_s=taken,
        end_s=float(run.requests["end_s"][1]),
        undisturbed_end_s=float(calm.requests["end_s"][1]),
        reasons=reasons,
    )


def _reasons(cost, iterations, rows: np.ndarray) -> tuple[str, ...]:
    compute, memory, _ = cost.parts(
        iterations["tokens"][rows],
        iterations["attention_pairs"][rows],
        iterations["kv_tokens_read"][rows],
    )
    weights = ("weights",) if np.any(np.asarray(memory) > np.asarray(compute)) else ()
    return (*weights, "alone", "next_token")


def _longest_context(engine: Engine) -> int:
    """Tokens that the request may have before its eviction."""
    model, device = catalogue.model(engine.model), catalogue.device(engine.hardware)
    memory = replace(engine.memory, block_size=_BLOCK)
    pool = kv_cache.kv_capacity(model, device, memory, engine.tensor_parallel)
    return min(model.max_context_tokens - 2 * _FEW, pool.tokens - 10 * _BLOCK)


def _run(engine: Engine, context: int, mode: str, *, tight: bool) -> SimulationResult:
    """Two requests: the second is evicted once its context is long, if memory is ``tight``."""
    grown = _BLOCK + 1  # the other request has then taken one block more than it came with
    prompts = np.array([_BLOCK, context - grown])
    outputs = np.array([grown + _FEW, grown + 2 * _FEW])
    requests = Requests.from_columns(
        arrival_s=np.array([0.0, 1e-6]), prompt_tokens=prompts, output_tokens=outputs
    )
    fits = int((-(-(prompts + grown) // _BLOCK)).sum())
    blocks = fits if tight else fits + 4
    policy = POLICIES["vllm-v0"](
        max_num_seqs=2,
        max_num_batched_tokens=int((prompts + outputs).sum()),
        preemption_mode=mode,
        watermark=1.5 / blocks,  # one block: the evicted one stays out until the other has ended
    )
    memory = replace(
        Memory(),
        weight_dtype=engine.memory.weight_dtype,
        kv_dtype=engine.memory.kv_dtype,
        kv_blocks=blocks,
        block_size=_BLOCK,
        num_cpu_blocks=blocks,
        max_model_len=int((prompts + outputs).max()),
    )
    scenario = Scenario(
        TraceReference("preemption", "0" * 64, 2),
        policy,
        clock=engine.clock,
        model=engine.model,
        hardware=engine.hardware,
        tensor_parallel=engine.tensor_parallel,
        memory=memory,
    )
    return simulate(scenario, requests)


# -- how often it happens --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chances:
    """Preemptions of a run.

    ``once`` is the share of admitted requests that were preempted at all, ``again`` the chance of
    an attempt (an admission or a return) to end in a preemption. ``at_least[k]`` is the share
    preempted more than k times. ``swaps`` of the preemptions copied the KV out instead of dropping
    it. Work in FLOP is F23's of the contexts that had to go, as if all of them were recomputed;
    ``again_flop`` is NaN if no attempt ever ended well.
    """

    requests: int
    hit: int
    preemptions: int
    swaps: int
    once: float
    again: float
    at_least: tuple[float, ...]
    context_tokens: float
    one_flop: float
    measured_flop: float
    once_flop: float
    again_flop: float

    @property
    def repeated(self) -> float:
        """The share of those that were preempted at all that were preempted again."""
        return self.at_least[1] / self.once if len(self.at_least) > 1 else 0.0


def chances(run: SimulationResult, engine: Engine) -> Chances | None:
    """Chances and work of a run, beside F23b and F23c; None if it preempted nobody."""
    events = run.events
    lost = np.isin(events["event"], [EVENT["preempt"], EVENT["swap_out"]])
    attempts = np.isin(events["event"], [EVENT["admit"], EVENT["resume"], EVENT["swap_in"]])
    if not lost.any():
        return None
    admitted = int((events["event"] == EVENT["admit"]).sum())
    times = np.bincount(events["request"][lost], minlength=len(run.requests["request_id"]))
    tokens = events["tokens"][lost].astype(float)
    given = values(Costs(engine))
    work = vector("F23", {**given, "n": tokens})
    once = int((times > 0).sum()) / admitted
    again = int(lost.sum()) / int(attempts.sum())
    one = formulas.get("F23").evaluate({**given, "n": float(tokens.mean())})
    return Chances(
        requests=admitted,
        hit=int((times > 0).sum()),
        preemptions=int(lost.sum()),
        swaps=int((events["event"] == EVENT["swap_out"]).sum()),
        once=once,
        again=again,
        at_least=tuple(float((times > k).sum() / admitted) for k in range(int(times.max()))),
        context_tokens=float(tokens.mean()),
        one_flop=one,
        measured_flop=float(work.sum()) / admitted,
        once_flop=formulas.get("F23b").evaluate({"p": once, "C_rec": one}),
        again_flop=(
            formulas.get("F23c").evaluate({"p": again, "C_rec": one}) if again < 1 else float("nan")
        ),
    )
