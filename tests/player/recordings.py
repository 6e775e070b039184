"""Recorded schedules as results, for the tests of the film."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

from model import recording
from model.result import SimulationResult
from model.simulator import simulate

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if (path / "config.json").exists())


@cache
def recorded(case: str) -> SimulationResult:
    """The run of a recorded schedule."""
    folder = GOLDEN / case
    config = json.loads((folder / "config.json").read_text())
    with (folder / "requests.csv").open(newline="", encoding="utf-8") as file:
        scenario, requests = recording.load(config, list(csv.DictReader(file)))
    return simulate(scenario, requests)
