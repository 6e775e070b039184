"""How long one iteration takes: strategies that turn a batch's work into seconds.

A strategy (frozen, hashable, part of the scenario) is bound to a model and its hardware once,
which gives an :class:`IterationCost` of plain numbers; the simulator evaluates only that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from model import checks, kv_cache
from model.catalogue import DTYPE_BYTES, Device, Model
from model.kv_cache import Memory

LONGEST_S = 3600.0
"""No iteration, and no part of one, is longer; catches seconds entered as milliseconds."""


@dataclass(frozen=True, slots=True)
class IterationCost:
    """Seconds of an iteration as a function of its work.

    With T tokens in the iteration, A attention pairs (the context of each decode, and C·s +
    C(C+1)/2 for a chunk of C tokens that starts at position s), R KV tokens read (the contexts,
    and s + C of each chunk) and S blocks swapped::

        max(compute_token_s·T + compute_pair_s·A, weights_s(T) + kv_token_read_s·R)
            + (fixed_s + token_s·T + swapped_block_s·S)

    The context of a decode includes the token being decoded. ``weights_read_table_s`` is None in
    a dense model; in a mixture of experts entry T is the time to read what T tokens touch, and
    its last entry holds for all larger T. An iteration without tokens costs as an empty one.
    """

    fixed_s: float = 0.0
    token_s: float = 0.0
    compute_token_s: float = 0.0
    compute_pair_s: float = 0.0
    weights_read_s: float = 0.0
    weights_read_table_s: tuple[float, ...] | None = None
    kv_token_read_s: float = 0.0
    swapped_block_s: float = 0.0
    _table: np.ndarray | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.weights_read_table_s is not None:
            object.__setattr__(self, "_table", np.array(self.weights_read_table_s))

    def weights_s(self, tokens):
        """Seconds to read the weights that ``tokens`` tokens touch; scalar or array."""
        if self.weights_read_table_s is None:
            return self.weights_read_s
        last = len(self.weights_read_table_s) - 1
        if isinstance(tokens, np.ndarray):
            return self._table[np.minimum(tokens, last)]
        return self.weights_read_table_s[min(tokens, last)]

    def seconds(self, tokens, attention_pairs, kv_tokens_read, swapped_blocks=0):
        """Seconds of one iteration (numbers) or of many (arrays): the same bits either way."""
        compute, memory, other = self.parts(tokens, attention_pairs, kv_tokens_read, swapped_blocks)
        if isinstance(compute, np.ndarray) or isinstance(memory, np.ndarray):
            return np.maximum(compute, memory) + other
        return (compute if compute > memory else memory) + other

    def recompute_s(self, tokens):
        """Seconds that computing the KV of a context of ``tokens`` again adds to iterations (F23).

        Compute only: the work rides along with decodes, whose weight reads and fixed time are paid
        anyway. Scalar or array.
        """
        pairs = tokens * (tokens + 1) / 2
        return (self.compute_token_s + self.token_s) * tokens + self.compute_pair_s * pairs

    def swap_s(self, blocks):
        """Seconds to move ``blocks`` KV blocks to host memory and back (F24, no overhead)."""
        return 2 * self.swapped_block_s * blocks

    def parts(self, tokens, attention_pairs, kv_tokens_read, swapped_blocks=0):
        """(compute_s, memory_s, other_s): the longer of the first two is paid, and the third."""
        compute = self.compute_token_s * tokens + self.compute_pair_s * attention_pairs
        memory = self.weights_s(tokens) + self.kv_token_read_s * kv_tokens_read
        other = self.fixed_s + self.token_s * tokens + self.swapped_block_s * swapped_blocks
        return compute, memory, other


class IterationTime:
    """Base of the strategies. ``name`` is the kind in JSON; subclasses are frozen dataclasses."""

    __slots__ = ()
    name: ClassVar[str]
    needs_model: ClassVar[bool] = False

    @property
    def prefill_token_cap(self) -> int | None:
        """Prompt tokens a request may be fed in one iteration; None: no limit of the clock's."""
        return None

    def cost(
        self, model: Model | None, device: Device | None, memory: Memory, tensor_parallel: int
    ) -> IterationCost:
        """The cost on this model and hardware; both may be None unless ``needs_model``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Linear(IterationTime):
    """Base plus a price per scheduled token and per swapped block (the recordings' clock)."""

    name: ClassVar[str] = "linear"

    base_s: float = 0.005
    per_scheduled_token_s: float = 5e-05
    per_swapped_block_s: float = 0.0

    def __post_init__(self) -> None:
        for key in ("base_s", "per_scheduled_token_s", "per_swapped_block_s"):
            checks.number(f"clock.{key}", getattr(self, key), 0.0, LONGEST_S)
        # A clock that stands still would let a request arrive, run and end at one moment.
        if self.base_s + self.per_scheduled_token_s < 1e-9:
            checks.number("clock.base_s", self.base_s, 1e-9, LONGEST_S)

    def cost(self, model, device, memory, tensor_parallel) -> IterationCost:
        return IterationCost(
            fixed_s=float(self.base_s),
            token_s=float(self.per_scheduled_token_s),
            swapped_block_s=float(self.per_swapped_block_s),
        )


@dataclass(frozen=True, slots=True)
class Textbook(IterationTime):
    """Every iteration lasts ``forward_s``, whatever is in it (the source text's T_s).

    ``prefill_accounting``: "serial" feeds a prompt one token an iteration in its slot, so that a
    request holds it for prompt + output − 1 iterations; "free" lets the whole prompt ride in
    the request's first iteration. A comparison is fair only with one for both sides.
    """

    name: ClassVar[str] = "textbook"
    ACCOUNTINGS: ClassVar[tuple[str, ...]] = ("serial", "free")

    forward_s: float = 0.0126  # F5: Llama-3-8B on an A100, 16 decodes of context 612
    prefill_accounting: str = "serial"

    def __post_init__(self) -> None:
        checks.number("clock.forward_s", self.forward_s, 1e-9, LONGEST_S)
        checks.choice("clock.prefill_accounting", self.prefill_accounting, self.ACCOUNTINGS)

    @property
    def prefill_token_cap(self) -> int | None:
        return 1 if self.prefill_accounting == "serial" else None

    def cost(self, model, device, memory, tensor_parallel) -> IterationCost:
        return IterationCost(fixed_s=float(self.forward_s))


@dataclass(frozen=True, slots=True)
class Roofline(IterationTime):
    """F5: the longer of computing and of moving bytes, plus a fixed time.

    All constants are teaching constants: the achieved share of peak FLOP/s and of HBM bandwidth,
    the fixed time of an iteration, and the latency of one all-reduce. With g GPUs each of the
    2·layers all-reduces moves 2(g−1)/g of the activations over the GPU link and overlaps with
    nothing; ``communication=False`` leaves link and latency out, as plain F5 and its table do.
    Weight precision changes the bytes read, not the compute peak. A swapped block crosses every
    GPU's host link at once and hides behind nothing.
    """

    name: ClassVar[str] = "roofline"
    needs_model: ClassVar[bool] = True

    compute_efficiency: float = 0.5
    memory_efficiency: float = 0.8
    fixed_s: float = 2e-3
    communication: bool = True
    link_latency_s: float = 1e-5

    def __post_init__(self) -> None:
        checks.number("clock.compute_efficiency", self.compute_efficiency, 0.01, 1.0)
        checks.number("clock.memory_efficiency", self.memory_efficiency, 0.01, 1.0)
        checks.number("clock.fixed_s", self.fixed_s, 0.0, LONGEST_S)
        checks.number("clock.link_latency_s", self.link_latency_s, 0.0, 1.0)
        checks.flag("clock.communication", self.communication)

    def cost(self, model, device, memory, tensor_parallel) -> IterationCost:
        g = tensor_parallel
        flop_per_s = g * device.bf16_flop_per_s * self.compute_efficiency
        bytes_per_s = g * device.hbm_bytes_per_s * self.memory_efficiency
        weight_bytes = DTYPE_BYTES[memory.weight_dtype]
        kv_bytes = kv_cache.kv_bytes_per_token(model, memory, g)
        fixed_s, token_s = float(self.fixed_s), 0.0
        if g > 1 and self.communication:
            reduces = 2 * model.layers
            activation_bytes = model.hidden * DTYPE_BYTES["bf16"]
            token_s = reduces * 2 * (g - 1) / g * activation_bytes / device.gpu_link_bytes_per_s
            fixed_s += reduces * self.link_latency_s
        return IterationCost(
            fixed_s=fixed_s,
            token_s=token_s,
            compute_token_s=2 * model.active_parameters / flop_per_s,
            compute_pair_s=4 * model.layers * model.attention_width / flop_per_s,
            weights_read_s=weight_bytes * model.active_parameters / bytes_per_s,
            weights_read_table_s=_expert_table(model, weight_bytes / bytes_per_s),
            kv_token_read_s=kv_bytes / bytes_per_s,
            swapped_block_s=memory.block_size
            * kv_bytes
            / (g * device.host_link_effective_bytes_per_s),
        )


def _expert_table(model: Model, seconds_per_parameter: float) -> tuple[float, ...] | None:
    """F2: seconds to read the weights that T = 0, 1, 2, ... tokens touch, until all are touched.

    With uniform routing T tokens touch E(1−(1−k/E)^T) of a layer's E experts. One expert (of all
    layers) has (Ψ−Ψ_a)/(E−k) parameters, since Ψ_a counts k of E; so T = 1 reads exactly Ψ_a.
    """
    experts, chosen = model.experts, model.experts_per_token
    if experts <= chosen:
        return None
    one_expert = (model.parameters - model.active_parameters) / (experts - chosen)
    dense = model.parameters - experts * one_expert
    table = []
    untouched = 1.0
    while not table or untouched > 1e-9:
        touched = experts * (1.0 - untouched)
        table.append((dense + touched * one_expert) * seconds_per_parameter)
        untouched *= 1.0 - chosen / experts
    table.append(model.parameters * seconds_per_parameter)
    return tuple(table)


CLOCKS = MappingProxyType({clock.name: clock for clock in (Linear, Textbook, Roofline)})
"""Strategies by the name they have in JSON and on the command line."""
