"""What is known of attainment over arrival rates: runs to points, points to curves and brackets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from model import checks
from model.errors import LabError
from model.intervals import Spread, spread_of
from model.scenario import Scenario
from model.steady_load import Run, grows

__all__ = ["FULL", "ROUGH", "SHARE", "Bracket", "Curve", "Effort", "Frontier", "Point"]

SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Effort:
    """What a point costs: requests counted in a run, and seeds (from the scenario's own on)."""

    requests: int = 2000
    seeds: int = 3

    def __post_init__(self) -> None:
        checks.whole_number("requests", self.requests, 10, 1_000_000)
        checks.whole_number("seeds", self.seeds, 1, 100)


FULL = Effort()
ROUGH = Effort(250, 1)


class Bracket(NamedTuple):
    """The goodput lies between two rates in requests/s per GPU.

    ``low`` is the largest good rate (0 where none is), ``high`` the next one above it that is not
    good (inf where none is known). ``monotone`` is False where a rate below ``low`` is not good.
    """

    low: float
    high: float
    monotone: bool


@dataclass(frozen=True, slots=True)
class Point:
    """What runs at one arrival rate (requests/s per GPU) gave; ``error`` where none can run.

    ``settled``: no run is missing that could change whether the rate is good.
    """

    rate_per_s: float
    runs: tuple[Run, ...] = ()
    below_limit: bool = True
    settled: bool = False
    error: LabError | None = None

    @property
    def requests(self) -> int:
        """Requests counted in all its runs."""
        return sum(run.requests for run in self.runs)

    @property
    def growing(self) -> bool:
        """Whether the backlog of its runs, taken together, grew with time."""
        return grows(sum(run.growth for run in self.runs), self.requests)

    @property
    def stable(self) -> bool:
        return self.below_limit and not self.growing

    def spread(self, name: str) -> Spread:
        """Mean and interval of a field of :class:`~model.steady_load.Run` over the seeds."""
        sample = np.array([getattr(run, name) for run in self.runs], dtype=float)
        sample = sample[~np.isnan(sample)]
        return spread_of(sample, share=name.endswith("_share"))

    def good(self, share: float) -> bool:
        """Attainment of at least ``share``, and stable."""
        return bool(self.runs) and self.stable and _mean_attainment(self.runs) >= share


@dataclass(frozen=True, slots=True)
class Curve:
    """Attainment of one scenario over arrival rates; ``points`` by ascending rate.

    ``limit_per_s`` is the rate (per GPU) at which a saturated engine finishes requests, inf where
    there is no such limit, nan while it is not known yet.
    """

    name: str
    scenario: Scenario
    share: float
    limit_per_s: float = math.nan
    points: tuple[Point, ...] = ()

    @property
    def rough(self) -> bool:
        """Whether points still have fewer requests or seeds than they are meant to have."""
        return not all(point.settled for point in self.points)

    @property
    def goodput(self) -> Bracket:
        """Between which rates the goodput lies, of the points there are."""
        rates = [point.rate_per_s for point in self.points]
        good = [point.good(self.share) for point in self.points]
        last = max((i for i, is_good in enumerate(good) if is_good), default=-1)
        low = rates[last] if last >= 0 else 0.0
        high = rates[last + 1] if last + 1 < len(rates) else math.inf
        return Bracket(low, high, all(good[: last + 1]))


@dataclass(frozen=True, slots=True)
class Frontier:
    """What is known so far of several curves; ``done`` of about ``planned`` runs are finished."""

    curves: tuple[Curve, ...]
    done: int
    planned: int
    finished: bool = False
    cancelled: bool = False


def _mean_attainment(runs: Sequence[Run]) -> float:
    return sum(run.slo_attainment_share for run in runs) / len(runs)
