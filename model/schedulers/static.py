"""Static batching: a batch is formed, runs until its last member has finished, then the next one.

Source: FasterTransformer's rule as in the Sarathi-Serve repository. Reproduces recorded
schedules (finished rows removed) decision by decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from model import checks
from model.events import REASON
from model.schedulers.base import Decision, register
from model.schedulers.reserving import ReservingScheduler

if TYPE_CHECKING:
    from model.state import EngineState


@register
@dataclass(frozen=True)
class Static(ReservingScheduler):
    """Static batching.

    `finished_rows`: "removed" lets a finished request leave its row and its memory at once (as
    recorded); "padded" computes it on until the batch ends and pads prompts to the longest, as the
    classic kernels do.
    """

    name: ClassVar[str] = "static"
    source: ClassVar[str] = (
        "Sarathi-Serve repository (FasterTransformer rule), recorded schedules; padded rows "
        "modelled from source"
    )
    works_in_pools: ClassVar[bool] = False  # nobody joins a batch that runs

    finished_rows: str = "removed"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("finished_rows", self.finished_rows, ("removed", "padded"))

    @property
    def keeps_finished_rows(self) -> bool:
        return self.finished_rows == "padded"

    def decide(self, state: EngineState, decision: Decision) -> None:
        if state.running:
            self.continue_running(state, decision)
            if state.waiting:
                state.refuse(state.waiting.head(), REASON["batch_running"])
            return
        self.admit_waiting(state, decision)
        if self.keeps_finished_rows and decision.chunks:
            longest = max(size for _, size in decision.chunks)
            for _, size in decision.chunks:
                decision.padding_tokens += longest - size
                decision.padding_pairs += (longest * (longest + 1) - size * (size + 1)) // 2
