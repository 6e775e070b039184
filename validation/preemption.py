"""What recomputing and swapping a preempted request cost, and which is quicker: F21, F23–F25.

Public: :class:`Costs`, :func:`values`, :func:`borders`, :func:`curves`, :func:`ratio`,
:func:`riding`, :func:`decoding`, :func:`vector`. Simulations of the same: :mod:`.preemption_runs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import formulas
from formulas.topics.preemption import crossovers
from model import catalogue
from model.catalogue import DTYPE_BYTES
from validation.throughput import UNBOUND, Engine, parameters_read
from validation.throughput_formulas import engine_values

__all__ = [
    "CASES",
    "PRINTED_LINK_BYTES_PER_S",
    "Borders",
    "Costs",
    "Curves",
    "Riding",
    "borders",
    "case_of",
    "curves",
    "decoding",
    "ratio",
    "riding",
    "values",
    "vector",
]

PRINTED_LINK_BYTES_PER_S = 64e9
"""What a source text puts in for PCIe."""
CASES = ("swap_always", "fixed", "window", "long")
"""By the signs of F_s − F_r and of s − r: neither is positive, the first, the second, both."""

_BLOCK = 16
_LONGEST = 262_144
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
        **engine_values(engine),
        "n": n,
        "s_g": float(costs.context_tokens // 4),
        "s_p": n - costs.context_tokens // 4,
        "d": float(model.hidden),
        "b_kv": float(DTYPE_BYTES[engine.memory.kv_dtype]),
        "beta_h": link / costs.gpus_per_link,
        "beta_pcie": PRINTED_LINK_BYTES_PER_S,
        "w": float(costs.copies),
        "F_s": costs.swap_fixed_s,
        "F_r": costs.recompute_fixed_s,
        # F24a counts two pieces a layer; a latent cache is one.
        "delta_copy": costs.copy_s / (2 if model.kv_kind == "mla" else 1),
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
        recompute_s=vector("F23a", given),
        swap_s=vector("F24a", given),
        printed_recompute_s=vector("F23p", printed) / speed,
        printed_swap_s=vector("F24p", printed),
        block_size=sizes,
        swap_over_blocks_s=vector("F24a", {**values(costs), "bs": sizes}),
    )


def vector(formula_id: str, given: Mapping[str, object]) -> np.ndarray:
    """A formula over arrays."""
    names = tuple(entry.id for entry in formulas.get(formula_id).inputs)
    return np.asarray(_function(formula_id, names)(*(given[name] for name in names)), dtype=float)


@lru_cache(maxsize=16)
def _function(formula_id: str, names: tuple[str, ...]):
    return formulas.get(formula_id).lambdify(*names)


# -- riding along ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Riding:
    """Prompt tokens that cost a batch of decodes no time (F21), and what they make of a context.

    ``compute_s`` and ``memory_s`` are the two sides of the iteration without them. Attention of
    the recomputed tokens is left out, as in F21.
    """

    batch: int
    context_tokens: int
    compute_s: float
    memory_s: float
    tokens: int
    iterations: int
    iteration_s: float

    @property
    def wait_s(self) -> float:
        """Until the whole context is back."""
        return self.iterations * self.iteration_s


def decoding(engine: Engine, batch: int, context_tokens: float) -> dict[str, float]:
    """The values of F5a for a batch of decodes, and those of F2e."""
    return {**values(Costs(engine)), "B": float(batch), "ctx": float(context_tokens)}


def riding(costs: Costs, batch: int = 32, context_tokens: int = 1500) -> Riding:
    """The context recomputed in what decodes leave free; no iterations where nothing is free."""
    engine = costs.engine
    given = {**decoding(engine, batch, context_tokens), "t_0": 0.0}
    decode = formulas.get("F5a")
    moved = {**given, "Psi_a": float(parameters_read(given, float(batch)))}
    compute_s = decode.evaluate({**given, "beta": UNBOUND})
    memory_s = decode.evaluate({**moved, "P": UNBOUND})
    free = formulas.get("F21").evaluate({**given, "t_c": compute_s, "t_m": memory_s})
    tokens = max(int(free), 0)
    return Riding(
        batch=batch,
        context_tokens=context_tokens,
        compute_s=compute_s,
        memory_s=memory_s,
        tokens=tokens,
        iterations=-(-costs.context_tokens // tokens) if tokens else 0,
        iteration_s=max(compute_s, memory_s) + engine.clock.fixed_s,
    )
