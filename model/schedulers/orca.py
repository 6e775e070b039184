"""Orca: iteration-level scheduling with reserved KV; prompts and decodes share a batch.

Source: Orca (OSDI'22) section 3, algorithm 1. With `reserve="max"` it reproduces recorded schedules
of the Sarathi-Serve repository's Orca decision by decision; "pow2" and "oracle" are the variants
that the vLLM paper compares with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.schedulers.base import Decision, register
from model.schedulers.reserving import ReservingScheduler

if TYPE_CHECKING:
    from model.state import EngineState


@register
@dataclass(frozen=True)
class Orca(ReservingScheduler):
    """Orca; `reserve` says for how long an output memory is set aside.

    "max": up to max_model_len; "oracle": exactly prompt + output; "pow2": the output rounded up to
    a power of two, so at most twice the real one.
    """

    name: ClassVar[str] = "orca"
    source: ClassVar[str] = (
        "Sarathi-Serve repository (Orca rule), recorded schedules; pow2 and oracle modelled from "
        "source"
    )

    reserve: str = "max"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("reserve", self.reserve, ("max", "pow2", "oracle"))

    @property
    def needs_max_model_len(self) -> bool:
        return self.reserve == "max"

    def tokens_reserved(self, state: EngineState, request: int) -> int:
        if self.reserve == "max":
            return super().tokens_reserved(state, request)
        total, prompt = state.last_token[request], state.prompt[request]
        if self.reserve == "oracle":
            return total
        reserved = prompt + (1 << (total - prompt - 1).bit_length())
        return min(reserved, state.max_model_len or reserved)

    def decide(self, state: EngineState, decision: Decision) -> None:
        self.continue_running(state, decision)
        self.admit_waiting(state, decision)
