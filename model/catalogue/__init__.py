"""Devices, models and presets: tables with sources, read once.

``hardware.csv`` and ``models.csv`` carry a ``confidence`` column: ``SRC`` read in the primary
source, ``card`` the model card, ``paper`` the paper, ``2ND`` secondary, ``MEM`` from memory.
``host_memory_gb`` is a teaching constant (a server's memory is its owner's choice), and so is
``host_link_effective_gb_per_s``: about 0.78 of nominal, as commonly measured.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING

from model.errors import LabError

if TYPE_CHECKING:
    from model.scenario import Scenario

DTYPE_BYTES: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp8": 1.0, "int4": 0.5})
"""Bytes of one stored number, by the name a weight or KV precision has in a scenario."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator; every number is of one GPU.

    ``bf16_flop_per_s`` is dense (no sparsity); links are bytes/s in one direction;
    ``host_memory_bytes`` is this GPU's share of its server's memory.
    """

    id: str
    name: str
    bf16_flop_per_s: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    host_link_bytes_per_s: float
    host_link_effective_bytes_per_s: float
    gpu_link_bytes_per_s: float
    host_memory_bytes: float
    source: str
    confidence: str

    @property
    def ridge_flop_per_byte(self) -> float:
        """F4: the arithmetic intensity at which compute and memory take equally long."""
        return self.bf16_flop_per_s / self.hbm_bytes_per_s


@dataclass(frozen=True, slots=True)
class Model:
    """One language model; ``parameters`` counts all, ``active_parameters`` those a token uses.

    ``experts`` and ``experts_per_token`` are 0 in a dense model. ``mla_latent`` is the width of
    the cached latent (with its rotary part) where ``kv_kind`` is "mla", else 0.
    ``feed_forward``, ``ffn_matrices`` (3 gated, 2 plain), ``vocabulary`` and ``tied_embeddings``
    serve F1; ``feed_forward`` is 0 where layers differ and F1 does not apply.
    """

    id: str
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    parameters: int
    active_parameters: int
    experts: int
    experts_per_token: int
    kv_kind: str
    mla_latent: int
    max_context_tokens: int
    source: str
    confidence: str
    context_confidence: str = "MEM"
    feed_forward: int = 0
    ffn_matrices: int = 3
    vocabulary: int = 0
    tied_embeddings: bool = False

    @property
    def attention_width(self) -> int:
        """H·h, which is not the hidden size in every model."""
        return self.heads * self.head_dim

    def kv_bytes_per_token(self, kv_dtype: str = "bf16") -> float:
        """F3: bytes of KV a token takes, counted once (see kv_cache for tensor parallelism)."""
        per_layer = self.mla_latent if self.kv_kind == "mla" else 2 * self.kv_heads * self.head_dim
        return self.layers * per_layer * DTYPE_BYTES[kv_dtype]


@dataclass(frozen=True, slots=True)
class Preset:
    """A scenario to start from; ``note`` says where its numbers come from."""

    id: str
    scenario: Scenario
    note: str


@cache
def devices() -> Mapping[str, Device]:
    """All devices by id, in the order of the table."""
    table = {}
    for row in _rows("hardware.csv"):
        host_link = _scaled(row["host_link_gb_per_s"], 9)
        table[row["id"]] = Device(
            id=row["id"],
            name=row["name"],
            bf16_flop_per_s=_scaled(row["bf16_tflop_per_s"], 12),
            hbm_bytes=_scaled(row["hbm_gb"], 9),
            hbm_bytes_per_s=_scaled(row["hbm_tb_per_s"], 12),
            host_link_bytes_per_s=host_link,
            host_link_effective_bytes_per_s=_scaled(row["host_link_effective_gb_per_s"], 9),
            # Without a GPU link peers talk over the host link.
            gpu_link_bytes_per_s=_scaled(row["gpu_link_gb_per_s"], 9) or host_link,
            host_memory_bytes=_scaled(row["host_memory_gb"], 9),
            source=row["source"],
            confidence=row["confidence"],
        )
    return MappingProxyType(table)


@cache
def models() -> Mapping[str, Model]:
    """All models by id, in the order of the table."""
    table = {}
    for row in _rows("models.csv"):
        numbers = {name: int(row[name] or 0) for name in _MODEL_INTEGERS}
        numbers["active_parameters"] = numbers["active_parameters"] or numbers["parameters"]
        table[row["id"]] = Model(
            id=row["id"],
            name=row["name"],
            kv_kind=row["kv_kind"],
            tied_embeddings=row["tied"] == "1",
            source=row["source"],
            confidence=row["confidence"],
            context_confidence=row["context_confidence"],
            **numbers,
        )
    return MappingProxyType(table)


@cache
def presets() -> Mapping[str, Preset]:
    """All presets by id, in the order of the file; read with the codec of scenarios."""
    from model.scenario import Scenario

    text = resources.files(__name__).joinpath("presets.json").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            entry["id"]: Preset(entry["id"], Scenario.from_dict(entry["scenario"]), entry["note"])
            for entry in json.loads(text)
        }
    )


def device(device_id: str) -> Device:
    """The device of that id; LabError not_a_choice_of_ids lists the others."""
    return _lookup("hardware", devices(), device_id)


def model(model_id: str) -> Model:
    """The model of that id; LabError not_a_choice_of_ids lists the others."""
    return _lookup("model", models(), model_id)


_MODEL_INTEGERS = (
    *("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "ffn_matrices"),
    *("vocabulary", "parameters", "active_parameters", "experts", "experts_per_token"),
    *("mla_latent", "max_context_tokens"),
)


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _scaled(text: str, power: int) -> float:
    """``text`` × 10^power, rounded once (2.039 TB/s is exactly 2,039,000,000,000)."""
    return float(Decimal(text or 0).scaleb(power))


def _lookup(what: str, table: Mapping, key: object):
    if not isinstance(key, str) or key not in table:
        raise LabError("not_a_choice_of_ids", what=what, value=key, choices=", ".join(table))
    return table[key]
