"""A frontier of goodput in a thread of its own: it shows what it has, and ends when asked to.

The thread knows no session: it gets scenarios, hands runs to the server's shared workers, and
leaves a :class:`model.goodput.Frontier` after each run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from model.errors import LabError
from model.goodput import FULL, ROUGH, Effort, Frontier, frontier
from model.scenario import Scenario
from model.workers import shared

__all__ = ["Study", "start"]

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Study:
    """A frontier that is being measured, or has ended (with ``found``, ``error`` or ``failed``)."""

    scenarios: Mapping[str, Scenario]
    found: Frontier | None = None
    error: LabError | None = None
    failed: bool = False
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    @property
    def share_done(self) -> float:
        """Of the runs that are planned."""
        if self.found is None:
            return 0.0
        return min(self.found.done / max(self.found.planned, 1), 1.0)

    def cancel(self) -> None:
        """Ask it to end; what is done is kept."""
        self.stop.set()


def start(scenarios: Mapping[str, Scenario], effort: Effort = FULL, rough: Effort = ROUGH) -> Study:
    """Begin to measure these scenarios."""
    study = Study(dict(scenarios))
    arguments = study, effort, rough
    threading.Thread(target=_work, args=arguments, name="goodput", daemon=True).start()
    return study


def _work(study: Study, effort: Effort, rough: Effort) -> None:
    try:
        steps = frontier(
            study.scenarios,
            effort=effort,
            rough=rough,
            executor=shared(),
            cancelled=study.stop.is_set,
        )
        for found in steps:
            study.found = found
    except LabError as error:
        study.error = error
    except Exception:  # a thread that dies in silence would leave a bar that never moves
        _log.exception("goodput")
        study.failed = True
    finally:
        study.ended.set()
