"""The exercise: read off a schedule of a few iterations how many tokens were computed in vain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.events import EVENT
from model.iteration_time import Linear
from model.kv_cache import Memory
from model.metrics import wasted_tokens
from model.recording import iteration_rows
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate

__all__ = ["POLICY", "Task", "task"]

POLICY = "vllm-v0"
OTHER = "vllm-v1"
_NO_FILE = "0" * 64
_MEMORY = Memory(block_size=4, kv_blocks=6)
_LIMITS = {"max_num_seqs": 3, "max_num_batched_tokens": 16}
_MOST_ITERATIONS = 9


@dataclass(frozen=True, slots=True)
class Task:
    """Three requests and two schedules of them.

    ``rows`` are (name, prompt tokens, output tokens); ``schedule`` has one (scheduled, preempted)
    an iteration of POLICY, as text. ``total`` tokens are computed, ``least`` would be enough, the
    difference is the answer; ``again`` are those of the iterations in which victims come back,
    ``other`` is what OTHER wastes, ``victims`` counts the preemptions.
    """

    rows: tuple[tuple[str, int, int], ...]
    schedule: tuple[tuple[str, str], ...]
    total: int
    least: int
    answer: int
    again: int
    other: int
    victims: int


def task(variant: int) -> Task:
    """The exercise of this number, drawn until no wrong way gives the right answer."""
    rng = np.random.default_rng(variant)
    while True:
        rows = tuple(
            (name, int(rng.integers(4, 9)), int(rng.integers(2, 6))) for name in ("A", "B", "C")
        )
        result, other = (_simulated(rows, policy) for policy in (POLICY, OTHER))
        found = _task(rows, result, other)
        wrong = (found.total, found.least, found.again, found.other, found.victims)
        is_short = len(found.schedule) <= _MOST_ITERATIONS
        if is_short and found.answer > 0 and found.answer not in wrong:
            return found


def _simulated(rows: tuple[tuple[str, int, int], ...], policy: str) -> SimulationResult:
    names, prompts, outputs = zip(*rows, strict=True)
    requests = Requests.from_columns(
        arrival_s=[0.0] * len(rows),
        prompt_tokens=prompts,
        output_tokens=outputs,
        request_id=names,
    )
    scenario = Scenario(
        TraceReference("exercise", _NO_FILE, len(rows)),
        POLICIES[policy](**_LIMITS, watermark=0.0),
        clock=Linear(),
        model=None,
        hardware=None,
        memory=_MEMORY,
    )
    return simulate(scenario, requests)


def _task(
    rows: tuple[tuple[str, int, int], ...], result: SimulationResult, other: SimulationResult
) -> Task:
    total = int(result.iterations["tokens"].sum())
    least = sum(prompt + output - 1 for _, prompt, output in rows)
    return Task(
        rows=rows,
        schedule=tuple((row["scheduled"], row["preempted"]) for row in iteration_rows(result)),
        total=total,
        least=least,
        answer=total - least,
        again=int(result.events["tokens"][result.events["event"] == EVENT["resume"]].sum()),
        other=wasted_tokens(other.iterations).recomputed_tokens,
        victims=int(result.requests["preemptions"].sum()),
    )
