"""How much KV cache an engine has, in bytes, tokens and blocks (F3, F8–F11), and who fits.

All numbers are of one engine: its tensor-parallel GPUs together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from model import checks
from model.catalogue import DTYPE_BYTES, Device, Model
from model.errors import LabError

GIB = 2**30
WEIGHT_DTYPES = ("bf16", "fp8", "int4")
KV_DTYPES = ("bf16", "fp8")
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8, 16)
"""Sizes that advice considers and pages offer; others that share the heads evenly work too."""

LARGEST_BLOCKS = 10_000_000
LARGEST_CONTEXT = 10_000_000
_HIGHEST_UTILIZATION = 0.98  # advice stops here: the driver needs some memory as well


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory settings of one engine, under vLLM's names where vLLM has them.

    The KV cache is what the GPUs have left (F8), or is given directly in blocks or GiB.
    ``activation_bytes_per_gpu`` is F8's reserve, a teaching constant. ``num_cpu_blocks`` are host
    blocks for swapping; None computes them from ``swap_space_gib`` per GPU, as vLLM V0 does.
    """

    block_size: int = 16
    gpu_memory_utilization: float = 0.9
    max_model_len: int | None = None
    weight_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    activation_bytes_per_gpu: float = 2e9
    kv_blocks: int | None = None
    kv_gib: float | None = None
    num_cpu_blocks: int | None = None
    swap_space_gib: float = 4.0

    def __post_init__(self) -> None:
        checks.whole_number("memory.block_size", self.block_size, 1, 4096)
        checks.number("memory.gpu_memory_utilization", self.gpu_memory_utilization, 0.05, 1.0)
        checks.choice("memory.weight_dtype", self.weight_dtype, WEIGHT_DTYPES)
        checks.choice("memory.kv_dtype", self.kv_dtype, KV_DTYPES)
        checks.number("memory.activation_bytes_per_gpu", self.activation_bytes_per_gpu, 0.0, 1e12)
        checks.number("memory.swap_space_gib", self.swap_space_gib, 0.0, 4096.0)
        if self.max_model_len is not None:
            checks.whole_number("memory.max_model_len", self.max_model_len, 1, LARGEST_CONTEXT)
        if self.kv_blocks is not None:
            checks.whole_number("memory.kv_blocks", self.kv_blocks, 1, LARGEST_BLOCKS)
        if self.kv_gib is not None:
            checks.number("memory.kv_gib", self.kv_gib, 1e-6, 1e5)
        if self.num_cpu_blocks is not None:
            checks.whole_number("memory.num_cpu_blocks", self.num_cpu_blocks, 0, LARGEST_BLOCKS)
        if self.kv_blocks is not None and self.kv_gib is not None:
            raise LabError("kv_size_twice")


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """The KV cache of one engine.

    ``pool_tokens`` is F8's ⌊M_kv/κ⌋, ``tokens`` what whole blocks hold. Bytes are None where the
    blocks were given without a model.
    """

    blocks: int
    block_size: int
    pool_tokens: int
    cpu_blocks: int
    gpus: int
    bytes_per_token: float | None = None
    kv_bytes: float | None = None
    weight_bytes: float | None = None

    @property
    def tokens(self) -> int:
        return self.blocks * self.block_size

    @property
    def bytes_per_block(self) -> float | None:
        return None if self.bytes_per_token is None else self.bytes_per_token * self.block_size

    @property
    def kv_bytes_per_gpu(self) -> float | None:
        return None if self.kv_bytes is None else self.kv_bytes / self.gpus

    @property
    def weight_bytes_per_gpu(self) -> float | None:
        return None if self.weight_bytes is None else self.weight_bytes / self.gpus


def blocks_for_tokens(tokens, block_size: int):
    """F10: ⌈n/bs⌉ for a number or an integer array."""
    return -(-tokens // block_size)


def mean_block_waste_tokens(block_size: int) -> float:
    """F10: mean tokens lost in a request's last block when n mod bs is uniform."""
    return (block_size - 1) / 2


def reserved_batch(tokens: int, max_model_len: int) -> int:
    """F9: requests that fit when each reserves the context limit (Orca-Max)."""
    return tokens // max_model_len


def paged_batch(tokens: int, mean_context_tokens: float, block_size: int) -> int:
    """F9: requests of that mean context that fit in whole blocks of ``block_size``."""
    return int(tokens // (math.ceil(mean_context_tokens / block_size) * block_size))


def effective_share(used_tokens: Iterable[float], reserved_tokens: Iterable[float]) -> float:
    """F11: the share of reserved KV that holds tokens; nan when nothing is reserved."""
    reserved = sum(reserved_tokens)
    return sum(used_tokens) / reserved if reserved else math.nan


def weight_bytes(model: Model, memory: Memory) -> float:
    """Bytes of all parameters in the chosen precision (split over the GPUs)."""
    return model.parameters * DTYPE_BYTES[memory.weight_dtype]


def kv_bytes_per_token(model: Model, memory: Memory, tensor_parallel: int) -> float:
    """F3 on all GPUs together: more than κ where heads or the MLA latent are replicated."""
    kv_heads = 1 if model.kv_kind == "mla" else model.kv_heads
    copies = max(1.0, tensor_parallel / kv_heads)
    return model.kv_bytes_per_token(memory.kv_dtype) * copies


def shares_heads_evenly(model: Model, tensor_parallel: int) -> bool:
    """Whether each GPU gets as many heads, and KV heads divide or repeat without a rest."""
    if model.heads % tensor_parallel:
        return False
    kv_heads = model.kv_heads
    return kv_heads % tensor_parallel == 0 or tensor_parallel % kv_heads == 0


def max_model_len(model: Model | None, memory: Memory) -> int | None:
    """The context limit in tokens that a request must keep; None without model and setting."""
    if memory.max_model_len is not None or model is None:
        return memory.max_model_len
    return model.max_context_tokens


@lru_cache(maxsize=1024)
def kv_capacity(
    model: Model | None, device: Device | None, memory: Memory, tensor_parallel: int
) -> KvCapacity:
    """The KV cache, from F8 or as given in blocks or GiB.

    Raises LabError where the weights leave no room for a block (model_does_not_fit,
    no_whole_block), or where a given size exceeds the memory (kv_above_memory).
    Whether one full context fits is a question of its own: :func:`check_context`.
    """
    if model is None or device is None:
        return _blocks_without_model(memory, tensor_parallel)
    per_token = kv_bytes_per_token(model, memory, tensor_parallel)
    weights = weight_bytes(model, memory)
    if memory.kv_blocks is not None:
        kv_bytes = memory.kv_blocks * memory.block_size * per_token
    elif memory.kv_gib is not None:
        kv_bytes = memory.kv_gib * GIB
    else:
        kv_bytes = _pool_bytes(model, device, memory, tensor_parallel)
        if kv_bytes <= 0:
            raise _does_not_fit("model_does_not_fit", model, device, memory, tensor_parallel)
    # A label of 80 GB means 80 GiB on most boards; a size given directly may use all of that.
    if weights + kv_bytes > device.hbm_bytes * tensor_parallel * (GIB / 1e9):
        raise _above_memory(model, device, memory, tensor_parallel, kv_bytes)
    pool_tokens = int(kv_bytes // per_token)
    blocks = pool_tokens // memory.block_size
    if blocks < 1:
        raise _does_not_fit("no_whole_block", model, device, memory, tensor_parallel, kv_bytes)
    cpu_blocks = memory.num_cpu_blocks
    if cpu_blocks is None:
        swap_bytes = memory.swap_space_gib * GIB * tensor_parallel
        cpu_blocks = int(swap_bytes // (per_token * memory.block_size))
    return KvCapacity(
        blocks=blocks,
        block_size=memory.block_size,
        pool_tokens=pool_tokens,
        cpu_blocks=cpu_blocks,
        gpus=tensor_parallel,
        bytes_per_token=per_token,
        kv_bytes=kv_bytes,
        weight_bytes=weights,
    )


def check_context(
    capacity: KvCapacity,
    model: Model | None,
    device: Device | None,
    memory: Memory,
    tensor_parallel: int,
) -> None:
    """Refuse a context limit that the whole KV cache cannot hold, as vLLM does at its start.

    Raises LabError context_does_not_fit, which says how many tokens fit and what to change.
    """
    tokens = max_model_len(model, memory)
    if tokens is None or tokens <= capacity.tokens:
        return
    needed = blocks_for_tokens(tokens, memory.block_size)
    hints = [("hint_max_model_len", {"tokens": capacity.tokens})]
    if memory.kv_blocks is None and memory.kv_gib is None:
        hints += _roomier(model, device, memory, tensor_parallel, needed)
    elif _physically_free(capacity, device) >= needed * (capacity.bytes_per_block or 0):
        if memory.kv_blocks is not None:
            hints.append(("hint_kv_blocks", {"blocks": needed}))
        else:
            gib = math.ceil(needed * capacity.bytes_per_block / GIB * 100) / 100
            hints.append(("hint_kv_gib", {"gib": gib}))
    raise LabError(
        "context_does_not_fit",
        tokens=tokens,
        needed=needed,
        blocks=capacity.blocks,
        block_size=memory.block_size,
        held=capacity.tokens,
        hints=tuple(hints),
    )


def _blocks_without_model(memory: Memory, tensor_parallel: int) -> KvCapacity:
    if memory.kv_blocks is None:
        raise LabError("kv_size_needed")
    return KvCapacity(
        blocks=memory.kv_blocks,
        block_size=memory.block_size,
        pool_tokens=memory.kv_blocks * memory.block_size,
        cpu_blocks=memory.num_cpu_blocks or 0,
        gpus=tensor_parallel,
    )


def _physically_free(capacity: KvCapacity, device: Device | None) -> float:
    """Bytes beside the weights, however little the settings use of them; inf without hardware."""
    if device is None:
        return math.inf
    return device.hbm_bytes * capacity.gpus - capacity.weight_bytes


def _pool_bytes(model: Model, device: Device, memory: Memory, gpus: int) -> float:
    """F8: u·M·g − weights − reserve."""
    usable = memory.gpu_memory_utilization * device.hbm_bytes * gpus
    return usable - weight_bytes(model, memory) - memory.activation_bytes_per_gpu * gpus


def _pool_blocks(model: Model, device: Device, memory: Memory, gpus: int) -> int:
    per_token = kv_bytes_per_token(model, memory, gpus)
    return int(_pool_bytes(model, device, memory, gpus) // per_token) // memory.block_size


def _roomier(model: Model, device: Device, memory: Memory, gpus: int, needed: int) -> list:
    """Single changes of a setting after which ``needed`` blocks fit."""

    def fits(other: Memory, size: int = gpus) -> bool:
        return _pool_blocks(model, device, other, size) >= needed

    hints = []
    for size in TENSOR_PARALLEL_SIZES:
        if size > gpus and shares_heads_evenly(model, size) and fits(memory, size):
            hints.append(("hint_gpus", {"gpus": size}))
            break
    for dtype in WEIGHT_DTYPES[WEIGHT_DTYPES.index(memory.weight_dtype) + 1 :]:
        if fits(replace(memory, weight_dtype=dtype)):
            hints.append(("hint_weight_dtype", {"dtype": dtype}))
            break
    if memory.kv_dtype != "fp8" and fits(replace(memory, kv_dtype="fp8")):
        hints.append(("hint_kv_dtype", {"dtype": "fp8"}))
    block_bytes = kv_bytes_per_token(model, memory, gpus) * memory.block_size
    missing = needed * block_bytes - _pool_bytes(model, device, memory, gpus)
    exact = memory.gpu_memory_utilization + missing / (device.hbm_bytes * gpus)
    utilization = math.ceil(exact * 100 + 1e-9) / 100
    if utilization <= _HIGHEST_UTILIZATION:
        hints.append(("hint_utilization", {"value": utilization}))
    return hints


def _does_not_fit(
    code: str, model: Model, device: Device, memory: Memory, gpus: int, kv_bytes: float = 0.0
) -> LabError:
    # Advice is for a cache that is of use: one full context.
    needed = blocks_for_tokens(max_model_len(model, memory), memory.block_size)
    hints = _roomier(model, device, memory, gpus, needed)
    hints = hints or _roomier(model, device, memory, gpus, 1)
    return LabError(
        code,
        model=model.name,
        weights_gb=weight_bytes(model, memory) / 1e9,
        gpus=gpus,
        gpu_gb=device.hbm_bytes / 1e9,
        kv_bytes=kv_bytes,
        block_size=memory.block_size,
        block_bytes=kv_bytes_per_token(model, memory, gpus) * memory.block_size,
        hints=tuple(hints) or (("hint_device", {}),),
    )


def _above_memory(
    model: Model, device: Device, memory: Memory, gpus: int, kv_bytes: float
) -> LabError:
    left = device.hbm_bytes * gpus - weight_bytes(model, memory)
    blocks = int(left // (kv_bytes_per_token(model, memory, gpus) * memory.block_size))
    if blocks < 1:
        hints = (("hint_device", {}),)
    elif memory.kv_blocks is not None:
        hints = (("hint_kv_blocks", {"blocks": blocks}),)
    else:
        hints = (("hint_kv_gib", {"gib": math.floor(left / GIB * 100) / 100}),)
    return LabError(
        "kv_above_memory",
        kv_gb=kv_bytes / 1e9,
        weights_gb=weight_bytes(model, memory) / 1e9,
        gpus=gpus,
        gpu_gb=device.hbm_bytes / 1e9,
        hints=hints,
    )
