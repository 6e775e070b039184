"""A scenario says everything about one simulation; it is frozen, hashable and travels as JSON."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from types import MappingProxyType

from model import catalogue, checks, codec, kv_cache
from model.catalogue import Device, Model
from model.cluster import Cluster, Link
from model.errors import LabError
from model.iteration_time import CLOCKS, IterationCost, IterationTime, Roofline
from model.kv_cache import KvCapacity, Memory
from model.requests import Requests
from model.schedulers.base import POLICIES, Scheduler
from model.workload import Workload

__all__ = ["VERSION", "Memory", "Scenario", "Slo", "TraceReference"]

VERSION = 1
"""Of the JSON form; raise it when an old file would mean something else."""

LARGEST_TENSOR_PARALLEL = 64
LARGEST_ENGINES = 64
LARGEST_SEED = 2**53 - 1  # what JavaScript keeps exactly

_DEFAULT_CLOCK = Roofline()  # shared by all scenarios, which frozen objects allow
_DEFAULT_MEMORY = Memory()
_DEFAULT_CLUSTER = Cluster()


@dataclass(frozen=True, slots=True)
class Slo:
    """The two promises to a user: time to first token, mean time per further token (seconds)."""

    ttft_s: float = 1.0
    tpot_s: float = 0.05

    def __post_init__(self) -> None:
        checks.number("slo.ttft_s", self.ttft_s, 1e-6, 1e6)
        checks.number("slo.tpot_s", self.tpot_s, 1e-6, 1e6)


@dataclass(frozen=True, slots=True)
class TraceReference:
    """Requests that are not part of the scenario: a trace, known by the hash of its file."""

    name: str
    sha256: str
    n_requests: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200:
            raise LabError("trace_name")
        digits = isinstance(self.sha256, str) and set(self.sha256) <= set(string.hexdigits.lower())
        if not digits or len(self.sha256) != 64:
            raise LabError("trace_hash", name=self.name)
        checks.whole_number("workload.n_requests", self.n_requests, 1, 10_000_000)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Workload, policy, clock, model, hardware, memory, SLOs and seed of one simulation.

    ``model`` and ``hardware`` are ids of the catalogue; both may be None where the clock needs no
    model and ``memory.kv_blocks`` is given (recorded schedules). ``tensor_parallel`` GPUs form one
    engine; ``n_engines`` engines work together as ``cluster`` says.

    Raises LabError, whose sentence says what to change, for any combination that cannot run.
    """

    workload: Workload | TraceReference
    policy: Scheduler
    clock: IterationTime = _DEFAULT_CLOCK
    model: str | None = "llama-3-8b"
    hardware: str | None = "a100-80g-sxm"
    tensor_parallel: int = 1
    memory: Memory = _DEFAULT_MEMORY
    slo: Slo = Slo()
    seed: int = 0
    n_engines: int = 1
    cluster: Cluster = _DEFAULT_CLUSTER

    def __post_init__(self) -> None:
        checks.whole_number("tensor_parallel", self.tensor_parallel, 1, LARGEST_TENSOR_PARALLEL)
        checks.whole_number("seed", self.seed, 0, LARGEST_SEED)
        checks.whole_number("n_engines", self.n_engines, 1, LARGEST_ENGINES)
        self.validate()

    @property
    def model_entry(self) -> Model | None:
        """The model's row of the catalogue."""
        return None if self.model is None else catalogue.model(self.model)

    @property
    def device(self) -> Device | None:
        """The hardware's row of the catalogue."""
        return None if self.hardware is None else catalogue.device(self.hardware)

    def kv_capacity(self) -> KvCapacity:
        """The KV cache of one engine."""
        return kv_cache.kv_capacity(
            self.model_entry, self.device, self.memory, self.tensor_parallel
        )

    def cost(self) -> IterationCost:
        """What an iteration costs on one engine."""
        return self.clock.cost(self.model_entry, self.device, self.memory, self.tensor_parallel)

    def link(self) -> Link:
        """The link between a prefill engine and the decode engines; without a model it is free."""
        cluster, model, device = self.cluster, self.model_entry, self.device
        if model is None:
            return Link(latency_s=cluster.link_latency_s)
        per_s = cluster.link_bytes_per_s or device.gpu_link_bytes_per_s
        return Link(
            bytes_per_token=kv_cache.kv_bytes_per_token(model, self.memory, self.tensor_parallel),
            bytes_per_s=per_s * self.tensor_parallel,
            layers=model.layers,
            latency_s=cluster.link_latency_s,
            layer_wise=cluster.is_layer_wise,
        )

    def max_model_len(self) -> int | None:
        """The context limit in tokens; None: only the KV cache limits a request."""
        return kv_cache.max_model_len(self.model_entry, self.memory)

    def requests(self) -> Requests:
        """The requests of this workload and seed; LabError trace_needed for a trace."""
        if isinstance(self.workload, TraceReference):
            raise LabError("trace_needed", name=self.workload.name)
        return self.workload.generate(self.seed)

    def validate(self) -> None:
        """Check the combination of settings (each setting has checked itself)."""
        model, device, gpus = self.model_entry, self.device, self.tensor_parallel
        if (model is None) != (device is None):
            raise LabError("model_without_hardware")
        if model is None and self.clock.needs_model:
            raise LabError("model_needed", clock=self.clock.name)
        if model is not None:
            _check_sharing(model, gpus)
            _check_context_of_model(model, self.memory)
        if self.policy.needs_max_model_len and self.max_model_len() is None:
            raise LabError("max_model_len_needed", policy=self.policy.name)
        _check_pools(self.cluster, self.n_engines, self.policy)
        capacity = self.kv_capacity()
        kv_cache.check_context(capacity, model, device, self.memory, gpus)
        if device is not None:
            _check_host_memory(capacity, device, self.memory, gpus)

    def to_dict(self) -> dict[str, object]:
        """JSON values, every field written out."""
        return {"version": VERSION, **codec.encode(self, Scenario, _FAMILIES)}

    @classmethod
    def from_dict(cls, data: object) -> Scenario:
        """The scenario of :meth:`to_dict`; fields left out have their defaults.

        Raises LabError naming an unknown, missing or ill-typed key, or as the constructor does.
        """
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            if version != VERSION:
                raise LabError("json_version", found=version, expected=VERSION)
            data = {key: value for key, value in data.items() if key != "version"}
        return codec.decode(data, cls, _FAMILIES)

    def to_json(self, indent: int | None = None) -> str:
        """The text of :meth:`to_dict`: equal scenarios give equal text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        """The scenario of :meth:`to_json`; raises as :meth:`from_dict`, and json_syntax."""
        return cls.from_dict(codec.parse_json(text))


_FAMILIES: codec.Families = MappingProxyType(
    {
        Scheduler: POLICIES,
        IterationTime: CLOCKS,
        Workload | TraceReference: {"streams": Workload, "trace": TraceReference},
    }
)


def _check_pools(cluster: Cluster, n_engines: int, policy: Scheduler) -> None:
    prefill = cluster.prefill_engines
    if prefill and prefill >= n_engines:
        raise LabError("pool_without_decode", prefill=prefill, engines=n_engines)
    if prefill and not policy.works_in_pools:
        raise LabError("pool_policy", policy=policy.name)


def _check_sharing(model: Model, gpus: int) -> None:
    if not kv_cache.shares_heads_evenly(model, gpus):
        sizes = range(1, LARGEST_TENSOR_PARALLEL + 1)
        choices = [str(size) for size in sizes if kv_cache.shares_heads_evenly(model, size)]
        raise LabError(
            "tensor_parallel_heads",
            model=model.name,
            heads=model.heads,
            kv_heads=model.kv_heads,
            gpus=gpus,
            choices=", ".join(choices),
        )


def _check_context_of_model(model: Model, memory: Memory) -> None:
    tokens, limit = memory.max_model_len, model.max_context_tokens
    if tokens is not None and tokens > limit:
        raise LabError("context_above_model", tokens=tokens, limit=limit, model=model.name)


def _check_host_memory(capacity: KvCapacity, device: Device, memory: Memory, gpus: int) -> None:
    there = device.host_memory_bytes * gpus
    asked = capacity.cpu_blocks * capacity.bytes_per_block
    if asked > there:
        if memory.num_cpu_blocks is None:
            field, limit = "memory.swap_space_gib", device.host_memory_bytes / kv_cache.GIB
        else:
            field, limit = "memory.num_cpu_blocks", there / capacity.bytes_per_block
        raise LabError(
            "swap_above_host",
            field=field,
            asked_gb=asked / 1e9,
            host_gb=there / 1e9,
            limit=int(limit),
        )
