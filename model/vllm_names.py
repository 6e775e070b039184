"""Hugging Face names of the catalogue's models, and what a name says of the weights' precision."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from model.catalogue import models

__all__ = ["model_of", "names"]

_CHECKPOINTS = (  # endings of a checkpoint's name that say how it is quantized
    ("-awq", "int4"),
    ("-awq-int4", "int4"),
    ("-gptq", "int4"),
    ("-gptq-int4", "int4"),
    ("-int4", "int4"),
    ("-4bit", "int4"),
    ("-bnb-4bit", "int4"),
    ("-quantized.w4a16", "int4"),
    ("-fp8", "fp8"),
    ("-fp8-dynamic", "fp8"),
)


@cache
def names() -> tuple[tuple[str, str, str], ...]:
    """(Hugging Face id, catalogue id, weight precision); a model's usual name comes first."""
    text = resources.files("model.catalogue").joinpath("vllm_models.csv").read_text("utf-8")
    return tuple(
        (row["hf_id"], row["model"], row["weight_dtype"])
        for row in csv.DictReader(text.splitlines())
    )


@cache
def _by_name() -> Mapping[str, tuple[str, str]]:
    """Lower-case last part of a name → (catalogue id, weight precision)."""
    table = {name.rsplit("/", 1)[-1].lower(): (model, dtype) for name, model, dtype in names()}
    for model in models():
        table.setdefault(model, (model, "bf16"))
    return MappingProxyType(table)


def model_of(name: str) -> tuple[str, str] | None:
    """(catalogue id, weight precision) of a Hugging Face id, a local folder or a catalogue id."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    table = _by_name()
    if last in table:
        return table[last]
    for ending, dtype in _CHECKPOINTS:
        plain = last.removesuffix(ending)
        if plain != last and plain in table:
            return table[plain][0], dtype
    return None
