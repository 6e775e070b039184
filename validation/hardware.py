"""What a device changes: formulas of the roofline beside runs of the same case on each device.

An iteration as a point under the roof (F4, F5), the batch at which computing overtakes reading
(F6, F7), tiles of attention (F4c), and the improvement Δ by F15 and F17. All take the model's
numbers from an :class:`~validation.throughput.Engine`, whose device :func:`on` exchanges.

Public: :func:`on`, :func:`cost_of`, :class:`Roof`, :func:`roof`, :class:`Spot`, :func:`spots`,
:class:`Critical`, :func:`critical`, :func:`kv_border`, :class:`Elsewhere`, :func:`elsewhere`,
:class:`Tile`, :func:`tile`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from model import catalogue
from model.errors import LabError
from model.iteration_time import IterationCost, Roofline
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.throughput import (
    UNBOUND,
    Case,
    Engine,
    Pair,
    corrected,
    decode_s,
    kv_batch,
    parameters_read,
    prefill_s,
    values,
)

__all__ = [
    "Critical",
    "Elsewhere",
    "Roof",
    "Spot",
    "Tile",
    "cost_of",
    "critical",
    "elsewhere",
    "kv_border",
    "on",
    "roof",
    "spots",
    "tile",
]

_MOST_BATCH = 2048  # beyond, a crossing is not looked for
_PEAK = Roofline(compute_efficiency=1.0, memory_efficiency=1.0, fixed_s=0.0, communication=False)


def on(engine: Engine, device: str) -> Engine:
    """The same engine on other GPUs."""
    return replace(engine, hardware=device)


def cost_of(engine: Engine, clock: Roofline | None = None) -> IterationCost:
    """What iterations of the engine cost, under its own clock or another."""
    return (clock or engine.clock).cost(
        catalogue.model(engine.model),
        catalogue.device(engine.hardware),
        engine.memory,
        engine.tensor_parallel,
    )


# -- roofs, and iterations under them --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roof:
    """Of one GPU: FLOP/s and bytes/s at peak and as achieved, and the ridge in FLOP/byte (F4)."""

    device: str
    flop_per_s: float
    bytes_per_s: float
    achieved_flop_per_s: float
    achieved_bytes_per_s: float
    ridge: float


def roof(engine: Engine) -> Roof:
    """The roof of the engine's device."""
    device, clock = catalogue.device(engine.hardware), engine.clock
    flop, moved = device.bf16_flop_per_s, device.hbm_bytes_per_s
    return Roof(
        device=engine.hardware,
        flop_per_s=flop,
        bytes_per_s=moved,
        achieved_flop_per_s=flop * clock.compute_efficiency,
        achieved_bytes_per_s=moved * clock.memory_efficiency,
        ridge=formulas.get("F4").evaluate({"P": flop, "beta": moved}),
    )


@dataclass(frozen=True, slots=True)
class Spot:
    """An iteration: its intensity F/Q (F5), its seconds, its FLOP/s of one GPU; and the run's.

    ``kind`` is "prefill" or "decode". Seconds of a decode are those at its mean context. What a run
    gave is None where the batch does not fit in memory.
    """

    kind: str
    batch: int
    intensity: float
    seconds: float
    flop_per_s: float
    run_intensity: float | None = None
    run_seconds: float | None = None
    run_flop_per_s: float | None = None


@lru_cache(maxsize=256)
def spots(case: Case) -> tuple[Spot, ...]:
    """The prefill of one prompt, and decodes of 1, B_s and B_d requests, on the case's device."""
    batches = sorted({1, case.static_batch, case.dynamic_batch})
    return (_spot(case, "prefill", 1), *(_spot(case, "decode", batch) for batch in batches))


def _spot(case: Case, kind: str, batch: int) -> Spot:
    given = values(case)
    prompt, gpus = given["L_in"], given["g"]
    if kind == "prefill":
        tokens, pairs, reads = prompt, prompt * (prompt + 1) / 2, prompt
        seconds = float(prefill_s(given, 1.0))
    else:
        tokens, pairs, reads = batch, batch * given["ctx"], batch * given["ctx"]
        seconds = float(decode_s(given, float(batch)))
    # F and Q as F5 defines them; of a mixture of experts with the weights that F2e touches.
    work = 2 * given["Psi_a"] * tokens + 4 * given["n_L"] * given["d_a"] * pairs
    moved = given["b_w"] * parameters_read(given, float(tokens)) + given["kappa"] * reads
    spot = Spot(kind, batch, float(work / moved), seconds, float(work / (gpus * seconds)))
    ran = _ran(case, kind, batch)
    if ran is None:
        return spot
    run_work, run_moved, run_seconds = ran
    return replace(
        spot,
        run_intensity=run_work / run_moved,
        run_seconds=run_seconds,
        run_flop_per_s=run_work / (gpus * run_seconds),
    )


def _ran(case: Case, kind: str, batch: int) -> tuple[float, float, float] | None:
    """Mean FLOP, bytes and seconds of the iterations of that kind in a run of ``batch`` requests.

    All arrive at once, so that the first iteration is their prefill and all others decode.
    """
    outputs = np.full(batch, max(case.output_tokens, 2))
    run = _at_once(case.engine, case.prompt_tokens, outputs)
    if run is None:
        return None
    rows = run.iterations["prefill_requests"] > 0
    rows = rows if kind == "prefill" else ~rows
    work, moved = _work_and_bytes(case.engine, run)
    seconds = run.iterations["end_s"] - run.iterations["start_s"]
    return float(work[rows].mean()), float(moved[rows].mean()), float(seconds[rows].mean())


def _work_and_bytes(engine: Engine, run: SimulationResult) -> tuple[np.ndarray, np.ndarray]:
    """FLOP and bytes of each iteration, of all GPUs together."""
    device, gpus = catalogue.device(engine.hardware), engine.tensor_parallel
    columns = run.iterations
    compute_s, memory_s, _ = cost_of(engine, _PEAK).parts(
        columns["tokens"], columns["attention_pairs"], columns["kv_tokens_read"]
    )
    return compute_s * gpus * device.bf16_flop_per_s, memory_s * gpus * device.hbm_bytes_per_s


def _at_once(engine: Engine, prompt_tokens: int, outputs: np.ndarray) -> SimulationResult | None:
    """All requests at time 0, prefilled in one iteration and never preempted; None: no room.

    A run with more prompt tokens than an iteration may have is none either.
    """
    n, longest = len(outputs), prompt_tokens + int(outputs.max())
    requests = Requests.from_columns(
        arrival_s=np.zeros(n), prompt_tokens=np.full(n, prompt_tokens), output_tokens=outputs
    )
    budget = n * (prompt_tokens + 1)
    try:
        scenario = Scenario(
            TraceReference("hardware", "0" * 64, n),
            POLICIES["vllm-v1"](max_num_seqs=n, max_num_batched_tokens=budget),
            clock=engine.clock,
            model=engine.model,
            hardware=engine.hardware,
            tensor_parallel=engine.tensor_parallel,
            memory=replace(engine.memory, max_model_len=longest),
        )
        run = simulate(scenario, requests)
    except LabError:
        return None
    columns = run.iterations
    whole = columns["prefill_requests"][0] == n and not columns["recompute_tokens"].any()
    return run if whole else None


# -- the critical batch ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Critical:
    """Batches at which computing takes as long as reading, on one device.

    ``peak`` is F6 at η = 1, ``achieved`` F6 with the engine's η; ``run`` is the smallest batch that
    computes longer than it reads in a simulation with empty contexts, F6's case. ``in_context`` and
    ``run_in_context`` are the same by F5 and by simulation after the case's prompts: attention
    reads more than it computes. None: no batch up to 2,048 does, or a run has no room for it.
    ``memory_holds`` are the requests of the case's context that fit, None where the model does not.
    """

    device: str
    ridge: float
    peak: float
    achieved: float
    run: int | None
    in_context: int | None
    run_in_context: int | None
    memory_holds: int | None


@lru_cache(maxsize=256)
def critical(case: Case) -> Critical:
    """F6 and F5 on the case's device beside simulations of a batch that shrinks one by one."""
    engine, given = case.engine, values(case)
    F6 = formulas.get("F6")
    try:
        holds = kv_batch(case)
    except LabError:
        holds = None
    empty, full = (_crossing(case, tokens) for tokens in (1, case.prompt_tokens))
    return Critical(
        device=engine.hardware,
        ridge=roof(engine).ridge,
        peak=F6.evaluate({**given, "eta_c": 1.0, "eta_m": 1.0}),
        achieved=F6.evaluate(given),
        run=_run_crossing(engine, 1, empty),
        in_context=full,
        run_in_context=_run_crossing(engine, case.prompt_tokens, full),
        memory_holds=holds,
    )


def _crossing(case: Case, prompt_tokens: int) -> int | None:
    """The smallest batch of decodes that F5a calls bound by computing."""
    batch = np.arange(1.0, _MOST_BATCH + 1)
    given = {**values(case), "ctx": prompt_tokens + 1.0, "t_0": 0.0}
    compute_s = decode_s({**given, "beta": UNBOUND}, batch)
    above = np.flatnonzero(compute_s > decode_s({**given, "P": UNBOUND}, batch))
    return int(batch[above[0]]) if len(above) else None


@lru_cache(maxsize=512)
def _run_crossing(engine: Engine, prompt_tokens: int, near: int | None) -> int | None:
    """The same in a run, which begins little above ``near``: contexts have hardly grown there.

    One request ends in every iteration, so that a single run passes through all batches.
    """
    run = near and _at_once(engine, prompt_tokens, np.arange(2, near + 8))
    if not run:
        return None
    columns = run.iterations
    compute_s, memory_s, _ = cost_of(engine).parts(
        columns["tokens"], columns["attention_pairs"], columns["kv_tokens_read"]
    )
    bound = (compute_s > memory_s) & (columns["prefill_requests"] == 0)
    return int(columns["tokens"][bound].min()) if bound.any() else None


def kv_border(case: Case) -> float:
    """KV tokens in flight beyond which a decode reads more KV than weights (F7); of the model."""
    return formulas.get("F7").evaluate(values(case))


# -- Δ on several devices --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Throughput (tokens/s) of static and continuous batching on a device, and what it gains."""

    device: str
    static: Pair
    continuous: Pair

    @property
    def formula(self) -> float:
        """Δ by F15 and F17, a share."""
        return self.continuous.formula / self.static.formula - 1

    @property
    def simulated(self) -> float:
        """Δ of the two runs, a share."""
        return self.continuous.simulated / self.static.simulated - 1


def elsewhere(case: Case) -> Elsewhere:
    """The case on its device; raises LabError where the model does not fit."""
    return Elsewhere(case.engine.hardware, *corrected(case))


# -- tiles of attention ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tile:
    """Tokens of a tile that reach a ridge (F4c solved for b), and the ridge's share that b has."""

    device: str
    ridge: float
    needed: float
    share: float


def tile(device: str, block_tokens: float, element_bytes: float = 2.0) -> Tile:
    """A FlashAttention tile against the ridge of a device, by id."""
    entry = catalogue.device(device)
    ridge = formulas.get("F4").evaluate(
        {"P": entry.bf16_flop_per_s, "beta": entry.hbm_bytes_per_s}
    )
    F4c = formulas.get("F4c")
    intensity = F4c.evaluate({"b_blk": block_tokens, "b_el": element_bytes})
    needed = F4c.solve_for("b_blk", {"I_tile": ridge, "b_el": element_bytes}).value
    return Tile(device, ridge, needed, intensity / ridge)
