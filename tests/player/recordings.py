"""Recorded schedules as results, for the tests of the film."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from model import catalogue, recording
from model.iteration_time import Linear
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, Slo, TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload

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


@cache
def film_result(case: str, ttft_ms: int = 400, tpot_ms: float = 6.5) -> SimulationResult:
    """A result to look at: a recording with bounds, a preset by its id, or the start film."""
    slo = Slo(ttft_ms / 1e3, tpot_ms / 1e3)
    if case.startswith("start_"):
        return start_result(case.removeprefix("start_"), slo)
    if "@" in case:  # preset@policy
        preset, policy = case.split("@")
        scenario = catalogue.presets()[preset].scenario
        return simulate(replace(scenario, policy=OTHER_POLICIES[policy]))
    if case == "nothing":
        stream = Stream("s", 2, Arrivals("at_once"), Lengths("fixed", 3000), Lengths("fixed", 9))
        policy = POLICIES["vllm-v1"](enable_chunked_prefill=False)
        return simulate(Scenario(Workload((stream,)), policy))
    if case in catalogue.presets():
        return simulate(catalogue.presets()[case].scenario)
    recording_result = recorded(case)
    scenario = replace(recording_result.scenario, slo=slo)
    return simulate(scenario, recording_result.inputs)


OTHER_POLICIES = {
    "v0": POLICIES["vllm-v0"](max_num_seqs=128, preemption_mode="swap"),
    "padded": POLICIES["static"](max_num_seqs=16, finished_rows="padded"),
    "orca": POLICIES["orca"](max_num_seqs=64),
    "sarathi": POLICIES["sarathi"](max_num_seqs=128),
}

START_ROWS = (  # arrival s, prompt tokens, output tokens
    (0.0, 90, 80),
    (0.005, 60, 22),
    (0.01, 110, 150),
    (0.015, 80, 38),
    (0.06, 100, 35),
    (0.1, 120, 110),
    (0.14, 60, 30),
    (0.18, 90, 60),
)


def start_result(kind: str, slo: Slo) -> SimulationResult:
    """Eight requests into four slots, under static or continuous batching."""
    policy = POLICIES["static"](max_num_seqs=4)
    if kind == "continuous":
        policy = POLICIES["vllm-v1"](max_num_seqs=4, max_num_batched_tokens=512)
    arrival, prompt, output = zip(*START_ROWS, strict=True)
    requests = Requests.from_columns(
        arrival_s=arrival,
        prompt_tokens=prompt,
        output_tokens=output,
        request_id=[f"r{i + 1}" for i in range(len(arrival))],
    )
    scenario = Scenario(
        TraceReference("start", "0" * 64, len(arrival)),
        policy,
        clock=Linear(0.005, 5e-5),
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=512, max_model_len=512),
        slo=slo,
    )
    return simulate(scenario, requests)
