"""Rows of a static batch that wait for its longest output: F16 with F16a to F16d.

Static batches run in the simulated engine under the textbook clock; the waste is the share of row
iterations in which a row has no token left to give.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

import formulas
from model.iteration_time import Textbook
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Lengths
from validation.comparison import STOCHASTIC, Comparison

__all__ = ["COMPARISONS"]

_MEAN, _PROMPT, _BLOCK = 200, 64, 16
_REQUESTS = 2880
_SEED = 2
_LENGTHS = {  # formula of the longest, and the lengths that it is about
    "F16a": Lengths("exponential", mean_tokens=_MEAN),
    "F16b": Lengths("uniform", low_tokens=1, high_tokens=2 * _MEAN - 1),
    "F16c": Lengths("geometric", mean_tokens=_MEAN),
    "F16d": Lengths("lognormal", mean_tokens=_MEAN, cv=1.0),
}


@lru_cache(maxsize=128)
def _outputs(formula_id: str, batch: int, broken: str) -> np.ndarray:
    tokens = _LENGTHS[formula_id].sample(np.random.default_rng(_SEED), _REQUESTS)
    # Requests of like lengths in one batch: as after sorting by a predicted length.
    return np.sort(tokens) if broken == "sorted" else tokens


@lru_cache(maxsize=128)
def waste(formula_id: str, batch: int, broken: str = "") -> float:
    """Share of the row iterations of simulated static batches that give no token."""
    outputs = _outputs(formula_id, batch, broken)
    n, longest = len(outputs), _PROMPT + int(outputs.max())
    requests = Requests.from_columns(
        arrival_s=np.zeros(n), prompt_tokens=np.full(n, _PROMPT), output_tokens=outputs
    )
    scenario = Scenario(
        TraceReference("padding", "0" * 64, n),
        POLICIES["static"](max_num_seqs=batch),
        clock=Textbook(prefill_accounting="free"),
        model=None,
        hardware=None,
        memory=Memory(
            kv_blocks=batch * (longest // _BLOCK + 2), block_size=_BLOCK, max_model_len=longest
        ),
    )
    result = simulate(scenario, requests)
    rows = batch * len(result.iterations["start_s"])
    return 1 - float(result.requests["emitted_tokens"].sum()) / rows


def _values(formula_id: str):
    def found(batch: float, broken: str) -> Mapping[str, float]:
        given = {"L": float(_MEAN), "B_s": batch, "CV": 1.0}
        return {**given, "L_max": formulas.get(formula_id).evaluate(given)}

    return found


def _given_lengths(batch: float, broken: str) -> Mapping[str, float]:
    """Mean and mean longest of the very lengths that are simulated."""
    outputs = _outputs("F16c", int(batch), broken)
    longest = outputs.reshape(-1, int(batch)).max(axis=1)
    return {"L": float(outputs.mean()), "L_max": float(longest.mean()), "B_s": batch}


def _expected(formula_id: str, name: str, **more: object) -> Comparison:
    return Comparison(
        name=name,
        formulas=("F16", formula_id),
        values=_values(formula_id),
        simulate=lambda batch, broken: waste(formula_id, int(batch), broken),
        axis="B_s",
        at=16.0,
        points=(3.0, 6.0, 12.0, 16.0, 24.0, 32.0),
        unit="percent",
        factor=100.0,
        tolerance=0.02,
        kind=STOCHASTIC,
        log_axis=True,
        **more,
    )


COMPARISONS = (
    Comparison(
        name="padding_given",
        formulas=("F16",),
        values=_given_lengths,
        simulate=lambda batch, broken: waste("F16c", int(batch), broken),
        axis="B_s",
        at=16.0,
        points=(3.0, 6.0, 12.0, 16.0, 24.0, 32.0),
        unit="percent",
        factor=100.0,
        smooth=False,
        log_axis=True,
    ),
    _expected("F16c", "padding_geometric", broken=("sorted",)),
    _expected("F16a", "padding_exponential"),
    _expected("F16b", "padding_uniform"),
    _expected("F16d", "padding_lognormal", broken=("sorted",)),
)
