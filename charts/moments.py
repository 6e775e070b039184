"""Where a few requests stand after so many iterations: what a learner steps through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.result import SimulationResult

__all__ = ["Moment", "Stand", "moment"]


@dataclass(frozen=True, slots=True)
class Stand:
    """One request in an iteration: tokens whose KV was there before, tokens computed now.

    ``phase`` is away (not arrived), waiting, prefill, decode or finished (in an earlier iteration).
    ``emitted_tokens`` counts the one that this iteration puts out; ``leaves``: it was the last.
    ``blocks`` are those it holds, ``new_blocks`` those of them that this iteration took.
    """

    name: str
    phase: str
    prompt_tokens: int
    had_tokens: int
    tokens: int
    emitted_tokens: int
    leaves: bool
    blocks: int
    new_blocks: int

    @property
    def computes(self) -> bool:
        return self.tokens > 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of an iteration (0: before the first). Times in seconds."""

    iteration: int
    time_s: float
    lasted_s: float
    tokens: int
    blocks_used: int
    requests: tuple[Stand, ...]


def moment(result: SimulationResult, iteration: int) -> Moment:
    """How things stand when ``iteration`` iterations (0 to all) of a run on one engine are done."""
    columns, schedule = result.iterations, result.scheduled()
    row = iteration - 1
    now_s = float(columns["end_s"][row]) if iteration else 0.0
    past = schedule["row"] < row
    present = schedule["row"] == row
    n = len(result.inputs)
    had = np.bincount(schedule["request"][past], schedule["tokens"][past], n).astype(int)
    now = np.bincount(schedule["request"][present], schedule["tokens"][present], n).astype(int)
    return Moment(
        iteration=iteration,
        time_s=now_s,
        lasted_s=now_s - float(columns["start_s"][row]) if iteration else 0.0,
        tokens=int(now.sum()),
        blocks_used=int(columns["blocks_used"][row]) if iteration else 0,
        requests=tuple(
            _stand(result, request, now_s, int(had[request]), int(now[request]))
            for request in range(n)
        ),
    )


def _stand(result: SimulationResult, request: int, now_s: float, had: int, now: int) -> Stand:
    columns = result.requests
    prompt = int(columns["prompt_tokens"][request])
    emitted = int(np.searchsorted(result.token_times(request), now_s, side="right"))
    ended = bool(columns["end_s"][request] <= now_s)
    if columns["arrival_s"][request] > now_s:
        phase = "away"
    elif now:
        phase = "prefill" if had < prompt else "decode"
    else:
        phase = "finished" if ended else "waiting"
    held, before = _blocks(result, had + now), _blocks(result, had)
    return Stand(
        name=str(columns["request_id"][request]),
        phase=phase,
        prompt_tokens=prompt,
        had_tokens=had,
        tokens=now,
        emitted_tokens=emitted,
        leaves=ended and now > 0,
        blocks=held if now else 0,
        new_blocks=held - before if now else 0,
    )


def _blocks(result: SimulationResult, tokens: int) -> int:
    """Blocks for so many tokens; a reserving scheduler takes those of a whole life at once."""
    if tokens and result.scenario.policy.reserves:
        tokens = result.scenario.max_model_len()
    return -(-tokens // result.block_size)
