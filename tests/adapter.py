"""Run the simulator or the reference on the same files and get answers in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from model.recording import iteration_rows, load
from model.result import SimulationResult
from model.simulator import simulate
from tests import reference
from tests.reference.common import parse_iteration

Run = Callable[[Mapping, Sequence[Mapping]], list[dict]]
"""(configuration, request rows) -> iterations as ``reference.common.Recording`` holds them."""


def simulate_model(
    config: Mapping, requests: Sequence[Mapping], *, fast_forward: bool = True
) -> SimulationResult:
    """``simulate`` on a recording's configuration and requests."""
    scenario, columns = load(dict(config), [dict(row) for row in requests])
    return simulate(scenario, columns, fast_forward=fast_forward)


def run_model(
    config: Mapping, requests: Sequence[Mapping], *, fast_forward: bool = True
) -> list[dict]:
    return rows_of(simulate_model(config, requests, fast_forward=fast_forward))


def rows_of(result: SimulationResult) -> list[dict]:
    """The iterations of a SimulationResult as ``reference.common.Recording`` holds them."""
    return [parse_iteration(row) for row in iteration_rows(result)]


def run_reference(config: Mapping, requests: Sequence[Mapping]) -> list[dict]:
    return reference.run(config, requests).iterations


def request_row(
    request_id: str, arrival_s: float, prompt_tokens: int, output_tokens: int, **columns
) -> dict:
    """A row of ``requests.csv``."""
    return {
        "request_id": request_id,
        "arrival_s": arrival_s,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "priority": 0,
        **columns,
    }
