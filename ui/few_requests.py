"""A handful of requests under static and continuous batching: small enough to follow one by one.

The runs are real simulations of Llama-3-8B on an A100 (the clock of the presets), so every number
that a page shows of them is computed, not written down.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import streamlit as st

from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES, Scheduler
from model.simulator import simulate
from ui.language import current_language, t
from ui.player import compare
from ui.theme import current_theme

__all__ = ["ENGINES", "Few", "both", "end_ms", "film", "iterations", "run"]

ENGINES = ("static", "continuous")
"""Static batching in which finished rows leave; continuous is vLLM V1."""


@dataclass(frozen=True, slots=True)
class Few:
    """Requests as (arrival in seconds, prompt tokens, output tokens), and the slots for them."""

    rows: tuple[tuple[float, int, int], ...]
    slots: int
    block_size: int = 16
    kv_blocks: int = 512
    max_model_len: int = 1024

    def requests(self) -> Requests:
        arrival_s, prompt, output = zip(*self.rows, strict=True)
        return Requests.from_columns(
            arrival_s=arrival_s,
            prompt_tokens=prompt,
            output_tokens=output,
            request_id=[f"r{number}" for number in range(1, len(self.rows) + 1)],
        )

    def scenario(self, engine: str) -> Scenario:
        digest = hashlib.sha256(repr(self.rows).encode()).hexdigest()
        return Scenario(
            TraceReference(f"{len(self.rows)} requests", digest, len(self.rows)),
            self._policy(engine),
            memory=Memory(
                block_size=self.block_size,
                kv_blocks=self.kv_blocks,
                max_model_len=self.max_model_len,
            ),
        )

    def _policy(self, engine: str) -> Scheduler:
        if engine == "static":
            return POLICIES["static"](max_num_seqs=self.slots)
        return POLICIES["vllm-v1"](max_num_seqs=self.slots, max_num_batched_tokens=2048)


@st.cache_resource(max_entries=128, show_spinner=False)
def run(few: Few, engine: str) -> SimulationResult:
    """The requests under one of :data:`ENGINES`."""
    return simulate(few.scenario(engine), few.requests())


def iterations(result: SimulationResult) -> int:
    """How many iterations a run took."""
    return len(result.iterations["end_s"])


def both(few: Few) -> list[SimulationResult]:
    """The requests under each of :data:`ENGINES`."""
    return [run(few, engine) for engine in ENGINES]


def end_ms(result: SimulationResult) -> float:
    """Milliseconds until the last token of all."""
    return float(result.iterations["end_s"][-1]) * 1e3


def film(few: Few, key: str, film_s: float = 30.0) -> None:
    """Static beside continuous batching on one clock; it plays at once, in ``film_s`` seconds."""
    compare(
        both(few),
        key=key,
        titles=[t(f"engine.{engine}") for engine in ENGINES],
        subtitles=[t(f"engine.{engine}.rule") for engine in ENGINES],
        short_titles=[t(f"engine.{engine}.short") for engine in ENGINES],
        language=current_language(),
        theme=current_theme(),
        film_s=film_s,
        autoplay=True,
    )
