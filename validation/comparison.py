"""A formula beside the simulation of the same case: the frame that every comparison fills.

A :class:`Comparison` knows the values of the formula's symbols at a place x on one axis, and how to
simulate there; :func:`record` measures both, :func:`curve` does so along the axis. Where an
assumption is broken on purpose the formula stays as it is and only the simulation changes.

Public: :class:`Comparison`, :class:`Record`, :class:`Curve`, :func:`record`, :func:`curve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import formulas

__all__ = ["DETERMINISTIC", "KINDS", "STOCHASTIC", "Comparison", "Curve", "Record", "curve",
           "record"]  # fmt: skip

KINDS = DETERMINISTIC, STOCHASTIC = "deterministic", "stochastic"
_LINE = 80


@dataclass(frozen=True, slots=True)
class Record:
    """Both values of one comparison at one place.

    ``broken`` names the assumption that the simulation does not meet ("" where it meets all);
    ``parameters`` are the formula's values by symbol, in SI units; ``tolerance`` is the largest
    ``difference`` (a share) at which both count as equal.
    """

    name: str
    formulas: tuple[str, ...]
    broken: str
    kind: str
    parameters: tuple[tuple[str, float], ...]
    formula: float
    simulated: float
    unit: str
    tolerance: float

    @property
    def difference(self) -> float:
        """Simulation over formula, less 1."""
        return self.simulated / self.formula - 1

    @property
    def agrees(self) -> bool:
        """Whether both count as equal."""
        return abs(self.difference) <= self.tolerance

    @property
    def verdict(self) -> str:
        """ "agrees", "apart" (an assumption is broken, and it shows) or "fails"."""
        if self.broken:
            return "fails" if self.agrees else "apart"
        return "agrees" if self.agrees else "fails"

    @property
    def reason(self) -> str:
        """Key of the words that say why both agree or differ."""
        return f"{self.name}.{self.broken or 'intact'}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """How a formula is held against simulations.

    ``values(x, broken)`` gives the formula's symbols in SI units, ``simulate(x, broken)`` what the
    formula should give, both in the formula's own unit; ``factor`` turns that into ``unit``.
    ``axis`` is the symbol that x stands for, ``at`` its place in the table, ``points`` those of the
    curve (with ``at`` among them). ``broken`` are the assumptions that can be broken on purpose.
    ``again(x, broken)`` simulates a second time by another way, None where there is none.
    ``smooth``: whether the formula needs no simulation and can be drawn between the points.
    """

    name: str
    formulas: tuple[str, ...]
    values: Callable[[float, str], Mapping[str, float]]
    simulate: Callable[[float, str], float]
    axis: str
    at: float
    points: tuple[float, ...]
    unit: str
    tolerance: float = 5e-3
    kind: str = DETERMINISTIC
    broken: tuple[str, ...] = ()
    factor: float = 1.0
    again: Callable[[float, str], float] | None = None
    smooth: bool = True
    log_axis: bool = False
    printed: Mapping[str, str] | None = None

    def formula_id(self, broken: str = "") -> str:
        """The formula that gives the value: the first one, or what stands for a broken case."""
        return (self.printed or {}).get(broken, self.formulas[0])

    def predicted(self, x: float, broken: str = "") -> float:
        """What the formula gives, in ``unit``."""
        given = self.values(x, broken)
        return formulas.get(self.formula_id(broken)).evaluate(given) * self.factor


@dataclass(frozen=True, eq=False)
class Curve:
    """Along the axis: the formula's line, the simulated points, and those of the second way."""

    line_x: np.ndarray
    line_y: np.ndarray
    x: np.ndarray
    simulated: np.ndarray
    again: np.ndarray | None


@lru_cache(maxsize=512)
def record(comparison: Comparison, broken: str = "") -> Record:
    """Both values at the comparison's own place."""
    x = comparison.at
    given = comparison.values(x, broken)
    used = {entry.id for entry in formulas.get(comparison.formula_id(broken)).inputs}
    return Record(
        name=comparison.name,
        formulas=comparison.formulas,
        broken=broken,
        kind=comparison.kind,
        parameters=tuple((name, value) for name, value in given.items() if name in used),
        formula=comparison.predicted(x, broken),
        simulated=_simulated(comparison, x, broken),
        unit=comparison.unit,
        tolerance=comparison.tolerance,
    )


@lru_cache(maxsize=256)
def curve(comparison: Comparison, broken: str = "") -> Curve:
    """Both along the axis."""
    x = np.array(comparison.points)
    line_x = _between(comparison) if comparison.smooth else x
    return Curve(
        line_x=line_x,
        line_y=np.array([comparison.predicted(float(at), broken) for at in line_x]),
        x=x,
        simulated=np.array([_simulated(comparison, at, broken) for at in comparison.points]),
        again=_again(comparison, broken),
    )


@lru_cache(maxsize=4096)
def _simulated(comparison: Comparison, x: float, broken: str) -> float:
    return float(comparison.simulate(x, broken)) * comparison.factor


def _again(comparison: Comparison, broken: str) -> np.ndarray | None:
    if comparison.again is None or broken:
        return None
    return np.array([comparison.again(x, broken) for x in comparison.points]) * comparison.factor


def _between(comparison: Comparison) -> np.ndarray:
    """Places of the line, evenly over the axis as it is drawn; whole ones where the points are."""
    first, last = comparison.points[0], comparison.points[-1]
    spread = np.geomspace if comparison.log_axis else np.linspace
    line = spread(first, last, _LINE)
    if all(x == int(x) for x in comparison.points):
        return np.unique(np.rint(line))
    return line
