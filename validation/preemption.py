"""Recompute and swap by formula (F23–F25) beside one eviction and a whole run in the simulator.

The formulas know fixed costs, small copies and any link; the simulator's clock knows whole blocks
and iterations. One eviction is played under vLLM V0, once each way: a request that arrived last
loses its memory to another one, and comes back when that has ended.

Public: :class:`Costs`, :func:`values`, :func:`borders`, :func:`curves`, :func:`evictions`,
:func:`ratio`, :class:`Chances`, :func:`chances`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from formulas.topics.preemption import crossovers
from model import catalogue, kv_cache
from model.catalogue import DTYPE_BYTES
from model.events import EVENT
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from validation.throughput import Engine

__all__ = [
    "CASES",
    "PRINTED_LINK_BYTES_PER_S",
    "Borders",
    "Chances",
    "Costs",
    "Curves",
    "Eviction",
    "borders",
    "case_of",
    "chances",
    "curves",
    "evictions",
    "ratio",
    "values",
]

PRINTED_LINK_BYTES_PER_S = 64e9
"""What a source text puts in for PCIe."""
CASES = ("swap_always", "fixed", "window", "long")
"""By the signs of F_s − F_r and of s − r: neither is positive, the first, the second, both."""

_BLOCK = 16
_LONGEST = 262_144
_FEW = 8  # tokens that are decoded after the eviction
_TEACHING = Engine()


@dataclass(frozen=True, slots=True)
class Costs:
    """A request, and what moving its KV or computing it again costs.

    ``swap_fixed_s``, ``recompute_fixed_s`` and ``copy_s`` (of each small copy) are teaching
    constants. ``link_share`` is the part of the nominal host link that is reached; None takes the
    device's measured one. ``copies`` is 2 where both ways are waited for, 1 for the way back alone.
    """

    engine: Engine = _TEACHING
    context_tokens: int = 2000
    swap_fixed_s: float = 5e-3
    recompute_fixed_s: float = 0.0
    copy_s: float = 0.0
    block_size: int = 16
    link_share: float | None = None
    copies: int = 2
    gpus_per_link: int = 1


@lru_cache(maxsize=1024)
def values(costs: Costs) -> Mapping[str, float]:
    """Every symbol of F23–F25 by id, in SI units."""
    engine = costs.engine
    model, device = catalogue.model(engine.model), catalogue.device(engine.hardware)
    link = device.host_link_effective_bytes_per_s
    if costs.link_share is not None:
        link = costs.link_share * device.host_link_bytes_per_s
    n = float(costs.context_tokens)
    found = {
        "n": n,
        "s_g": float(costs.context_tokens // 4),
        "s_p": n - costs.context_tokens // 4,
        "n_L": float(model.layers),
        "d": float(model.hidden),
        "d_a": float(model.attention_width),
        "Psi": float(model.parameters),
        "Psi_a": float(model.active_parameters),
        "b_kv": float(DTYPE_BYTES[engine.memory.kv_dtype]),
        "kappa": float(kv_cache.kv_bytes_per_token(model, engine.memory, engine.tensor_parallel)),
        "g": float(engine.tensor_parallel),
        "P": float(device.bf16_flop_per_s),
        "eta_c": engine.clock.compute_efficiency,
        "beta_h": link / costs.gpus_per_link,
        "beta_pcie": PRINTED_LINK_BYTES_PER_S,
        "w": float(costs.copies),
        "F_s": costs.swap_fixed_s,
        "F_r": costs.recompute_fixed_s,
        "delta_copy": costs.copy_s,
        "bs": float(costs.block_size),
    }
    found["m_kv"] = found["kappa"] * n
    one = {**found, "n": 1.0, "F_s": 0.0, "F_r": 0.0}
    found["C_rec"] = formulas.get("F23").evaluate(found)
    found["a_sq"] = 2 * found["n_L"] * found["d_a"] / (found["g"] * found["P"] * found["eta_c"])
    found["r_tok"] = formulas.get("F23a").evaluate(one) - found["a_sq"]
    found["s_tok"] = formulas.get("F24a").evaluate(one)
    found["R_hat"] = formulas.get("F25a").evaluate(found)
    found["t_rec"] = formulas.get("F23a").evaluate(found)
    found["t_swap"] = formulas.get("F24a").evaluate(found)
    return found


# -- who wins where --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Borders:
    """``case`` of :data:`CASES`, what happens there, and the lengths (tokens) of a change.

    ``kind`` is that of :func:`formulas.topics.preemption.crossovers`: in the case "window" it may
    be "swap_always". ``slopes`` is s/r, which is R̂ with the small copies counted.
    """

    case: str
    kind: str
    lengths: tuple[float, ...]
    slopes: float

    def winner(self, tokens: float) -> str:
        """ "swap" or "recompute" at a length."""
        recompute_first = self.kind == "recompute_then_swap"
        changes = sum(tokens >= length for length in self.lengths)
        return "recompute" if (changes + recompute_first) % 2 else "swap"


def borders(costs: Costs) -> Borders:
    """Who wins where, copies and fixed costs included."""
    given = values(costs)
    kind, lengths = crossovers(given)
    return Borders(case_of(given), kind, lengths, given["s_tok"] / given["r_tok"])


def case_of(given: Mapping[str, float]) -> str:
    """One of :data:`CASES` for values with F_s, F_r, r_tok and s_tok."""
    fixed, slope = given["F_s"] > given["F_r"], given["s_tok"] > given["r_tok"]
    return CASES[fixed + 2 * slope]


def ratio(engine: Engine, *, copies: int, gpus_per_link: int, link_share: float | None) -> float:
    """R̂ (F25a) of a model on a device."""
    costs = Costs(engine, copies=copies, gpus_per_link=gpus_per_link, link_share=link_share)
    return values(costs)["R_hat"]


@dataclass(frozen=True, eq=False)
class Curves:
    """Seconds over the context in tokens; the printed pair leaves out all but the slopes.

    ``swap_over_blocks_s`` belongs to ``block_size`` and the one context of the costs.
    """

    context: np.ndarray
    recompute_s: np.ndarray
    swap_s: np.ndarray
    printed_recompute_s: np.ndarray
    printed_swap_s: np.ndarray
    block_size: np.ndarray
    swap_over_blocks_s: np.ndarray


@lru_cache(maxsize=256)
def curves(costs: Costs) -> Curves:
    """F23a, F24a and the printed costs F23p and F24p over contexts from a block to 262,144."""
    n = np.unique(np.rint(np.geomspace(_BLOCK, _LONGEST, 65)))
    given = {**values(costs), "n": n}
    printed = {**given, "s_p": n, "s_g": np.zeros(len(n)), "m_kv": given["kappa"] * n}
    sizes = 2.0 ** np.arange(9)
    speed = given["g"] * given["P"] * given["eta_c"]
    return Curves(
        context=n,
        recompute_s=_vector("F23a", given),
        swap_s=_vector("F24a", given),
        printed_recompute_s=_vector("F23p", printed) / speed,
        printed_swap_s=_vector("F24p", printed),
        block_size=sizes,
        swap_over_blocks_s=_vector("F24a", {**values(costs), "bs": sizes}),
    )


def _vector(formula_id: str, given: Mapping[str, object]) -> np.ndarray:
    names = tuple(entry.id for entry in formulas.get(formula_id).inputs)
    return np.asarray(_function(formula_id, names)(*(given[name] for name in names)), dtype=float)


@lru_cache(maxsize=16)
def _function(formula_id: str, names: tuple[str, ...]):
    return formulas.get(formula_id).lambdify(*names)


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
def evictions(costs: Costs) -> tuple[Eviction, Eviction]:
    """A request of about this context evicted under vLLM V0: recomputed, and swapped.

    The context is cut to what the model's limit and the KV memory hold. Raises LabError where the
    weights leave no KV memory.
    """
    return _eviction(costs, "recompute"), _eviction(costs, "swap")


def _eviction(costs: Costs, mode: str) -> Eviction:
    run, calm = _run(costs, mode, tight=True), _run(costs, mode, tight=False)
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
    bare = replace(costs, link_share=None, gpus_per_link=1, copies=2)
    given = {**values(bare), "n": float(tokens), "F_s": 0.0, "F_r": 0.0}
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


def _run(costs: Costs, mode: str, *, tight: bool) -> SimulationResult:
    """Two requests: the second is evicted once its context is long, if memory is ``tight``."""
    engine = costs.engine
    grown = _BLOCK + 1  # the other request has then taken one block more than it came with
    context = max(min(costs.context_tokens, _longest_context(engine)), 4 * _BLOCK)
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
    preempted more than k times. Work is F23's of the contexts that were really lost, in FLOP.
    """

    requests: int
    hit: int
    preemptions: int
    once: float
    again: float
    at_least: tuple[float, ...]
    context_tokens: float
    one_flop: float
    measured_flop: float
    once_flop: float
    again_flop: float


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
    work = _vector("F23", {**given, "n": tokens})
    once = int((times > 0).sum()) / admitted
    again = int(lost.sum()) / int(attempts.sum())
    one = formulas.get("F23").evaluate({**given, "n": float(tokens.mean())})
    return Chances(
        requests=admitted,
        hit=int((times > 0).sum()),
        preemptions=int(lost.sum()),
        once=once,
        again=again,
        at_least=tuple(float((times > k).sum() / admitted) for k in range(int(times.max()))),
        context_tokens=float(tokens.mean()),
        one_flop=one,
        measured_flop=float(work.sum()) / admitted,
        once_flop=formulas.get("F23b").evaluate({"p": once, "C_rec": one}),
        again_flop=formulas.get("F23c").evaluate({"p": again, "C_rec": one}),
    )
