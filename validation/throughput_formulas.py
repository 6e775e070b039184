"""Throughput by formula (F12–F18): a case, the values of its symbols, and curves over the batch.

:mod:`validation.throughput` has the simulations beside them.

Public: :class:`Engine`, :class:`Case`, :func:`values`, :func:`curves`, :func:`improvements`,
:func:`longest`, :func:`decode_s`, :func:`prefill_s`, :func:`parameters_read`, :func:`kv_batch`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import formulas
from model import catalogue, kv_cache
from model.catalogue import DTYPE_BYTES
from model.iteration_time import Roofline
from model.scenario import Memory, Scenario

__all__ = [
    "BAND",
    "BLOCK_TOKENS",
    "LENGTHS",
    "UNBOUND",
    "Case",
    "Curves",
    "Engine",
    "Improvements",
    "curves",
    "decode_s",
    "engine_of",
    "hybrid",
    "improvements",
    "kv_batch",
    "kv_blocks",
    "longest",
    "parameters_read",
    "prefill_s",
    "timed",
    "values",
]

LENGTHS = ("fixed", "geometric")

BAND: Mapping[str, tuple[float, float]] = {
    "eta_c": (0.3, 0.7),
    "eta_m": (0.5, 0.95),
    "t_0": (0.0, 0.03),
}
"""Published engines lie in here: share of peak compute and bandwidth reached, fixed seconds."""

UNBOUND = 1e30
"""A rate (FLOP/s or bytes/s) that never binds."""

_PLAIN_F5, _MEMORY = Roofline(communication=False), Memory()
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Engine:
    """What iterations are timed by. Communication between GPUs is left out, as in F5."""

    model: str = "llama-3-8b"
    hardware: str = "a100-80g-sxm"
    tensor_parallel: int = 1
    clock: Roofline = _PLAIN_F5
    memory: Memory = _MEMORY


_TEACHING = Engine()


@dataclass(frozen=True, slots=True)
class Case:
    """Two batches and one kind of request; ``lengths`` (of outputs) is one of LENGTHS."""

    static_batch: int = 10
    dynamic_batch: int = 23
    prompt_tokens: int = 512
    output_tokens: int = 200
    lengths: str = "fixed"
    engine: Engine = _TEACHING


def engine_of(scenario: Scenario) -> Engine:
    """The engine of a scenario, the teaching one where it names no model."""
    if scenario.model is None or scenario.hardware is None:
        return Engine()
    clock = scenario.clock if isinstance(scenario.clock, Roofline) else Roofline()
    memory = replace(Memory(), weight_dtype=scenario.memory.weight_dtype,
                     kv_dtype=scenario.memory.kv_dtype)  # fmt: skip
    return Engine(
        scenario.model,
        scenario.hardware,
        scenario.tensor_parallel,
        replace(clock, communication=False),
        memory,
    )


# -- values of the formulas' symbols ---------------------------------------------------------------


@lru_cache(maxsize=512)
def values(case: Case) -> Mapping[str, float]:
    """Every symbol of F12–F18 by id, in SI units; times come from F5, L_max from F16c."""
    longest_tokens = float(case.output_tokens)
    if case.lengths == "geometric":
        given = {"B_s": case.static_batch, "L": case.output_tokens}
        longest_tokens = formulas.get("F16c").evaluate(given)
    mean = float(case.output_tokens)
    grown = mean / 2 if case.lengths == "fixed" else mean  # seen by a decode, on average
    return timed(case, mean, longest_tokens, case.prompt_tokens + grown)


def timed(case: Case, mean: float, longest_tokens: float, ctx: float) -> dict[str, float]:
    """The same for outputs of this mean and longest length; ``ctx``: tokens a decode reads."""
    found = {
        "B_s": float(case.static_batch),
        "B_d": float(case.dynamic_batch),
        "L_in": float(case.prompt_tokens),
        "L": mean,
        "L_max": longest_tokens,
        "ctx": ctx,
        **engine_values(case.engine),
    }
    return found | _times(found)


def engine_values(engine: Engine) -> dict[str, float]:
    """What model, device and clock give the formulas: symbols by id, in SI units."""
    model, device = catalogue.model(engine.model), catalogue.device(engine.hardware)
    return {
        "n_L": float(model.layers),
        "d_a": float(model.attention_width),
        "Psi_a": float(model.active_parameters),
        "Psi": float(model.parameters),
        "E_x": float(model.experts),
        "k_x": float(model.experts_per_token),
        "b_w": float(DTYPE_BYTES[engine.memory.weight_dtype]),
        "kappa": float(kv_cache.kv_bytes_per_token(model, engine.memory, engine.tensor_parallel)),
        "g": float(engine.tensor_parallel),
        "P": float(device.bf16_flop_per_s),
        "beta": float(device.hbm_bytes_per_s),
        "eta_c": engine.clock.compute_efficiency,
        "eta_m": engine.clock.memory_efficiency,
        "t_0": engine.clock.fixed_s,
    }


def _times(given: Mapping[str, float]) -> dict[str, float]:
    """Seconds of iterations: T_s, t_p, t_pB, t_d, t_ds."""
    # Rows leave a static batch one by one: of B_s so many are left on average.
    left = given["B_s"] * max(given["L"] - 1, 1) / max(given["L_max"] - 1, 1)
    return {
        "T_s": float(decode_s(given, given["B_s"])),
        "t_p": float(prefill_s(given, 1.0)),
        "t_pB": float(prefill_s(given, given["B_s"])),
        "t_d": float(decode_s(given, given["B_d"])),
        "t_ds": float(decode_s(given, left)),
    }


def parameters_read(given: Mapping[str, float], tokens):
    """Parameters that an iteration of ``tokens`` tokens reads; number or array.

    Ψ_a in a dense model. Of a mixture of experts F2e's distinct experts, and all that is no expert;
    one token reads Ψ_a then as well.
    """
    if given["E_x"] <= given["k_x"]:
        return given["Psi_a"]
    one_expert = (given["Psi"] - given["Psi_a"]) / (given["E_x"] - given["k_x"])
    touched = _vector("F2e", {**given, "T": tokens})
    return given["Psi"] - (given["E_x"] - touched) * one_expert


def decode_s(given: Mapping[str, float], batch):
    """F5a of ``batch`` decodes, reading what F2e says; number or array."""
    return _forward_s("F5a", {**given, "B": batch}, batch)


def prefill_s(given: Mapping[str, float], prompts):
    """F5b of ``prompts`` prompts of L_in tokens, reading what F2e says; number or array."""
    return _forward_s("F5b", {**given, "n": given["L_in"], "k_p": prompts}, prompts * given["L_in"])


def _forward_s(formula_id: str, given: Mapping[str, object], tokens) -> np.ndarray:
    """The longer side of F5: Ψ_a parameters compute, ``parameters_read`` of them are moved."""
    compute = _vector(formula_id, {**given, "beta": UNBOUND})
    moved = {**given, "Psi_a": parameters_read(given, tokens), "P": UNBOUND}
    return np.maximum(compute, _vector(formula_id, moved))


def kv_batch(case: Case) -> int:
    """Requests of the case's mean context that the KV memory holds at once (F9a)."""
    given = {
        "N_kv": float(kv_blocks(case.engine) * BLOCK_TOKENS),
        "n": values(case)["ctx"],
        "bs": float(BLOCK_TOKENS),
    }
    return int(formulas.get("F9a").evaluate(given))


def kv_blocks(engine: Engine) -> int:
    """Blocks of BLOCK_TOKENS that an engine's memory has for KV."""
    return kv_cache.kv_capacity(
        catalogue.model(engine.model),
        catalogue.device(engine.hardware),
        engine.memory,
        engine.tensor_parallel,
    ).blocks


# -- curves ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curves:
    """Columns over the batch: tokens per second, and milliseconds of a decode iteration.

    A band is (lowest, highest) over :data:`BAND`, and holds the line in its middle.
    """

    batch: np.ndarray
    printed: np.ndarray
    static: np.ndarray
    static_band: tuple[np.ndarray, np.ndarray]
    continuous: np.ndarray
    continuous_band: tuple[np.ndarray, np.ndarray]
    bound: np.ndarray
    decode_ms: np.ndarray
    decode_band_ms: tuple[np.ndarray, np.ndarray]
    compute_ms: np.ndarray
    memory_ms: np.ndarray


@lru_cache(maxsize=128)
def curves(case: Case) -> Curves:
    """F13, F15, F17, F18 and F5a over batches from 1 to well beyond those of the case."""
    most = max(4 * case.dynamic_batch, 4 * case.static_batch, 128)
    batch = np.unique(np.rint(np.geomspace(1, most, 48)))
    given = values(case)
    longest_tokens = _longest_over(case, batch)
    fast = {key: high for key, (_, high) in BAND.items()} | {"t_0": BAND["t_0"][0]}
    slow = {key: low for key, (low, _) in BAND.items()} | {"t_0": BAND["t_0"][1]}
    here = _over(given, batch, longest_tokens)
    low, high = (_over({**given, **edge}, batch, longest_tokens) for edge in (slow, fast))
    return Curves(
        batch=batch,
        printed=_vector("F13", {**given, "B_d": batch}),
        static=here["static"],
        static_band=(low["static"], high["static"]),
        continuous=here["continuous"],
        continuous_band=(low["continuous"], high["continuous"]),
        bound=_bound(given, batch),
        decode_ms=here["decode"] * 1e3,
        decode_band_ms=(high["decode"] * 1e3, low["decode"] * 1e3),
        compute_ms=decode_s({**given, "t_0": 0.0, "beta": UNBOUND}, batch) * 1e3,
        memory_ms=decode_s({**given, "t_0": 0.0, "P": UNBOUND}, batch) * 1e3,
    )


def _over(given: Mapping[str, float], batch: np.ndarray, longest_tokens) -> dict[str, np.ndarray]:
    """Static and continuous throughput, and the decode time, for an array of batches."""
    decode = decode_s(given, batch)
    left = batch * max(given["L"] - 1, 1) / np.maximum(longest_tokens - 1, 1)
    static = {
        **given,
        "B_s": batch,
        "L_max": longest_tokens,
        "t_pB": prefill_s(given, batch),
        "t_ds": decode_s(given, left),
    }
    alone = prefill_s(given, np.ones(1))
    continuous = {**given, "B_d": batch, "t_d": decode, "t_p": alone}
    return {
        "decode": decode,
        "static": _vector("F15", static),
        "continuous": _vector("F17", continuous),
    }


def _bound(given: Mapping[str, float], batch: np.ndarray) -> np.ndarray:
    compute = _vector("F18a", {**given, "B_d": batch}) * np.ones(len(batch))
    memory = _vector("F18b", {**given, "B_d": batch})
    return _vector("F18", {"c_tok": compute, "m_tok": memory})


def _longest_over(case: Case, batch: np.ndarray) -> np.ndarray:
    if case.lengths == "fixed":
        return np.full(len(batch), float(case.output_tokens))
    return np.array([longest("F16c", case.output_tokens, float(B)) for B in batch])


@lru_cache(maxsize=8192)
def longest(formula_id: str, mean: float, batch: float, cv: float = 1.0) -> float:
    """Mean length of the longest of ``batch`` outputs (F16a–F16d), tokens."""
    return formulas.get(formula_id).evaluate({"L": mean, "B_s": batch, "CV": cv})


def _vector(formula_id: str, given: Mapping[str, object]) -> np.ndarray:
    formula = formulas.get(formula_id)
    names = tuple(entry.id for entry in formula.inputs)
    return np.asarray(_function(formula_id, names)(*(given[name] for name in names)), dtype=float)


@lru_cache(maxsize=64)
def _function(formula_id: str, names: tuple[str, ...]):
    return formulas.get(formula_id).lambdify(*names)


def hybrid(given: Mapping[str, float]) -> float:
    """F18, the bound of mixed iterations, in output tokens per second."""
    parts = {
        key: formulas.get(f).evaluate(given) for key, f in (("c_tok", "F18a"), ("m_tok", "F18b"))
    }
    return formulas.get("F18").evaluate(parts)


@dataclass(frozen=True, slots=True)
class Improvements:
    """Shares (1 is +100 %): as printed, with prompts charged alike, corrected, its range, bound."""

    printed: float
    alike: float
    same_batch: float
    corrected: float
    lowest: float
    highest: float
    bound: float


@lru_cache(maxsize=256)
def improvements(case: Case) -> Improvements:
    """F14, B_d/B_s − 1, F14 at B_d = B_s, F17a here and over the corners of BAND, F18 over F15."""
    given = values(case)
    printed = formulas.get("F14")
    corrected = formulas.get("F17a")
    corners = []
    for corner in itertools.product(*BAND.values()):
        there = {**given, **dict(zip(BAND, corner, strict=True))}
        corners.append(corrected.evaluate(there | _times(there)))
    bound = hybrid(given) / formulas.get("F15").evaluate(given) - 1
    here = corrected.evaluate(given)
    return Improvements(
        printed=printed.evaluate(given),
        alike=given["B_d"] / given["B_s"] - 1,
        same_batch=printed.evaluate({**given, "B_d": given["B_s"]}),
        corrected=here,
        lowest=min(here, *corners),
        highest=max(here, *corners),
        bound=bound,
    )
