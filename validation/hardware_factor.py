"""What a factor such as 0.85 on a device's throughput can mean: F39 beside pairs of runs.

Public: :data:`REFERENCE`, :class:`Mixture`, :func:`mixture`, :func:`ratio_at`, :func:`ratios`,
:func:`share_for`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import formulas
from formulas.errors import FormulaError
from model import catalogue
from model.metrics import output_throughput_per_s
from model.metrics.latency import Window
from model.result import SimulationResult
from validation.hardware import cost_of, on
from validation.hardware_causes import causes
from validation.throughput import Case, continuous_run

__all__ = ["REFERENCE", "Mixture", "mixture", "ratio_at", "ratios", "share_for"]

REFERENCE = "a100-80g-sxm"
"""The device that the widely copied answer compares with."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """Throughput on a device over that on REFERENCE.

    ``measured_f`` is the share of running time that reading binds in a run on REFERENCE,
    ``formula`` what F39 makes of it, ``simulated`` the ratio of the two runs.
    """

    device: str
    batch: int
    measured_f: float
    formula: float
    simulated: float


def mixture(case: Case) -> Mixture:
    """Continuous batching of the case on its device and on REFERENCE; LabError: does not fit."""
    there = replace(case, engine=on(case.engine, REFERENCE))
    here_run, there_run = continuous_run(case), continuous_run(there)
    found = ratios(case.engine.hardware)
    share = causes(there_run, cost_of(there.engine)).memory_share
    return Mixture(
        device=case.engine.hardware,
        batch=case.dynamic_batch,
        measured_f=share,
        formula=formulas.get("F39").evaluate({**found, "f_mem": share}),
        simulated=_tokens_per_s(here_run) / _tokens_per_s(there_run),
    )


def _tokens_per_s(run: SimulationResult) -> float:
    return output_throughput_per_s(run, Window(0.0, float(run.iterations["end_s"][-1]), True))


def ratio_at(device: str, share: float | np.ndarray) -> float | np.ndarray:
    """F39: throughput over that of REFERENCE when reading binds that share of the time."""
    return _device_change()(**ratios(device), f_mem=share)


@cache
def _device_change():
    return formulas.get("F39").lambdify()


def share_for(device: str, ratio: float) -> float | None:
    """The share f at which a device has ``ratio`` times the throughput of REFERENCE (F39)."""
    try:
        solution = formulas.get("F39").solve_for("f_mem", {**ratios(device), "r_X": ratio})
    except FormulaError:
        return None
    return solution.value


def ratios(device: str) -> dict[str, float]:
    """Peak FLOP/s (r_P) and bandwidth (r_beta) over those of REFERENCE."""
    here, there = catalogue.device(device), catalogue.device(REFERENCE)
    return {
        "r_P": here.bf16_flop_per_s / there.bf16_flop_per_s,
        "r_beta": here.hbm_bytes_per_s / there.hbm_bytes_per_s,
    }
