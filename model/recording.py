"""Recorded schedules: their configuration and requests in, iterations in the same form out.

The format is that of `tests/golden`: `config.json` names a policy and its scheduler's parameters,
`requests.csv` the requests, `iterations.csv` what was decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from model import checks
from model.errors import LabError
from model.events import EVENT
from model.iteration_time import Linear
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES

ITERATION_COLUMNS = (
    "iteration",
    "start_s",
    "end_s",
    "scheduled",
    "preempted",
    "blocks_used",
    "waiting",
    "running",
    "swapped_out",
    "swapped_in",
    "cached",
    "cancelled",
)
_MEMORY_KEYS = ("kv_blocks", "block_size", "max_model_len", "num_cpu_blocks")
_PARTS = ("policy", "scheduler", "iteration_time")
_ROWS_AT_ONCE = 5_000
_NO_FILE = "0" * 64


def scenario_of(config: Mapping, n_requests: int = 1) -> Scenario:
    """The scenario of a recording's `config.json`.

    Raises LabError unknown_choice, json_type, json_unknown_key or the sentence of the setting that
    is wrong.
    """
    config = _object("config", config)
    _require_known("config", config, (*_PARTS, "recorded_from"))
    for part in _PARTS:
        if part not in config:
            raise LabError("json_missing_key", field=f"config.{part}")
    policy_name = config["policy"]
    checks.choice("policy", policy_name, POLICIES)
    policy_type = POLICIES[policy_name]
    settings = _object("scheduler", config["scheduler"])
    memory = {key: settings.pop(key) for key in _MEMORY_KEYS if key in settings}
    _require_known("scheduler", settings, [f.name for f in fields(policy_type)] + [*_MEMORY_KEYS])
    clock = _object("iteration_time", config["iteration_time"])
    _require_known("iteration_time", clock, [f.name for f in fields(Linear)])
    return Scenario(
        workload=TraceReference("recording", _NO_FILE, max(1, n_requests)),
        policy=policy_type(**settings),
        clock=Linear(**clock),
        model=None,
        hardware=None,
        memory=Memory(**memory),
    )


def load(config: Mapping, rows: Sequence[Mapping[str, object]]) -> tuple[Scenario, Requests]:
    """Scenario and requests of a recording; `rows` are the rows of its `requests.csv`."""

    def column(name: str, kind: type, default: object) -> list | None:
        if not any(name in row for row in rows):
            return None
        return [kind(row[name]) if row.get(name) not in (None, "") else default for row in rows]

    columns = {
        "arrival_s": column("arrival_s", float, 0.0),
        "prompt_tokens": column("prompt_tokens", int, 0),
        "output_tokens": column("output_tokens", int, 0),
        "priority": column("priority", int, 0),
        "cancel_s": column("cancel_s", float, float("inf")),
        "prefix_group": column("prefix_group", int, -1),
        "shared_prefix_tokens": column("shared_prefix_tokens", int, 0),
        "request_id": column("request_id", str, ""),
    }
    given = {name: values for name, values in columns.items() if values is not None}
    return scenario_of(config, len(rows)), Requests.from_columns(**given)


def iteration_rows(result: SimulationResult) -> Iterator[dict[str, object]]:
    """The iterations in the recordings' form, request ids as text, times to the microsecond."""
    n = len(result.iterations["start_s"])
    moves = {
        name: _by_row(result, name, n) for name in ("preempt", "swap_out", "swap_in", "cancel")
    }
    cached = _by_row(result, "admit", n, with_tokens=True)
    columns = result.iterations
    for i, scheduled in enumerate(_scheduled(result, n)):
        yield {
            "iteration": int(columns["iteration"][i]),
            "start_s": round(float(columns["start_s"][i]), 6),
            "end_s": round(float(columns["end_s"][i]), 6),
            "scheduled": scheduled,
            "preempted": " ".join(moves["preempt"].get(i, ())),
            "blocks_used": int(columns["blocks_used"][i]),
            "waiting": int(columns["waiting"][i]),
            "running": int(columns["running"][i]),
            "swapped_out": " ".join(moves["swap_out"].get(i, ())),
            "swapped_in": " ".join(moves["swap_in"].get(i, ())),
            "cached": " ".join(cached.get(i, ())),
            "cancelled": " ".join(moves["cancel"].get(i, ())),
        }


def _scheduled(result: SimulationResult, n: int) -> Iterator[str]:
    """ "request:tokens" of everybody in each iteration; made in blocks, to bound the memory."""
    ids = result.inputs.request_id
    for first in range(0, n, _ROWS_AT_ONCE):
        end = min(n, first + _ROWS_AT_ONCE)
        columns = result.scheduled(first, end)
        pairs = zip(columns["request"].tolist(), columns["tokens"].tolist(), strict=True)
        names = [f"{ids[request]}:{tokens}" for request, tokens in pairs]
        bounds = np.searchsorted(columns["row"], np.arange(first, end + 1))
        for start, stop in pairwise(bounds.tolist()):
            yield " ".join(names[start:stop])


def _by_row(
    result: SimulationResult, event: str, n: int, *, with_tokens: bool = False
) -> dict[int, list[str]]:
    """The requests that moved in each iteration row; what happened after the last row has none."""
    moves, ids = result.moves, result.inputs.request_id
    chosen = np.flatnonzero((moves["event"] == EVENT[event]) & (moves["row"] < n))
    rows: dict[int, list[str]] = {}
    for i in chosen.tolist():
        name = ids[int(moves["request"][i])]
        if with_tokens:
            name = f"{name}:{int(moves['tokens'][i])}"
        rows.setdefault(int(moves["row"][i]), []).append(name)
    return rows


def _object(where: str, given: object) -> dict:
    if not isinstance(given, Mapping):
        raise LabError("json_type", field=where, expected="an object", found=repr(given)[:40])
    return dict(given)


def _require_known(where: str, given: Mapping, known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            raise LabError("json_unknown_key", field=f"{where}.{key}", allowed=", ".join(known))
