"""What SGLang keeps free for those who run, and what one pass over its queue gives away (F42).

Source: SGLang 0.5.23, `managers/scheduler_components/new_token_ratio_tracker.py`,
`managers/schedule_policy.py` (PrefillAdder), `mem_cache/prefill_budget.py`, `environ.py`.
"""

from __future__ import annotations

INITIAL_RATIO = 0.7  # SGLANG_INIT_NEW_TOKEN_RATIO
LOWEST_SHARE = 0.14  # SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR
DECAY_STEPS = 600  # SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS
RETRACT_STEPS = 20  # SGLANG_RETRACT_DECODE_STEPS
MOST_NEW_TOKENS = 4096  # SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION


class NewTokenRatio:
    """Share of the outstanding outputs that is reserved; it falls with every decode step.

    Steps are counted by the engine's ticks, so that a run of decodes costs nothing here.
    """

    __slots__ = ("_decay", "_initial", "_lowest", "_since_tick", "_start")

    def __init__(self, conservativeness: float) -> None:
        self._initial = min(INITIAL_RATIO * conservativeness, 1.0)
        self._lowest = self._initial * LOWEST_SHARE
        self._decay = (self._initial - self._lowest) / DECAY_STEPS
        self.reset(0)

    def at(self, tick: int) -> float:
        """The share at a tick."""
        steps = tick - self._since_tick
        return max(self._start - steps * self._decay, self._lowest) if steps > 0 else self._start

    def reset(self, tick: int) -> None:
        """The engine was idle: start anew."""
        self._start, self._since_tick = self._initial, tick

    def skip_tick(self) -> None:
        """A tick beside prompts is no decode step: the share stands still."""
        self._since_tick += 1

    def retracted(self, tick: int, *, running: int, written: int, asked: int) -> None:
        """After a retraction: what those who stay have written of what they asked for.

        The step that retracts does not let the share fall. It may well be lower than before.
        """
        self._start = min(1.0, (written + RETRACT_STEPS * running) / (asked + 1))
        self._since_tick = tick + 1
