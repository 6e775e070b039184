"""A result as files: iterations.csv, requests.csv, tokens.csv, events.csv and summary.json.

Iterations and tokens have the columns of the recorded schedules first, so that a run can be
compared with a recording line by line; times there are rounded to microseconds as they are.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from model import metrics
from model.events import EVENTS, FIELDS, REASONS
from model.recording import ITERATION_COLUMNS, iteration_rows
from model.result import SimulationResult
from model.state import STATUS

MORE_ITERATION_COLUMNS = (
    "engine_id",
    "decode_requests",
    "prefill_requests",
    "prefill_tokens",
    "recompute_tokens",
    "padding_tokens",
    "tokens",
    "swapped",
    "swapped_blocks",
    "attention_pairs",
    "kv_tokens_read",
)
TOKEN_COLUMNS = ("request_id", "first_token_s", "last_token_s", "output_tokens")
_CODES = {"status": STATUS, "reason": REASONS, "event": EVENTS}


def write(result: SimulationResult, folder: Path) -> None:
    """Write all files of a result into `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (columns, rows) in tables(result).items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
    (folder / "summary.json").write_text(summary_json(result) + "\n", encoding="utf-8")


def tables(result: SimulationResult) -> dict[str, tuple[Sequence[str], Iterable[Sequence]]]:
    """File name -> (column names, rows)."""
    return {
        "iterations.csv": (ITERATION_COLUMNS + MORE_ITERATION_COLUMNS, _iterations(result)),
        "requests.csv": (tuple(result.requests), _rows(result.requests)),
        "tokens.csv": (TOKEN_COLUMNS, _tokens(result)),
        "events.csv": _events(result),
    }


def summary_json(result: SimulationResult) -> str:
    """The run's metrics, names with units; null where a metric is undefined."""
    summary = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in metrics.summary(result).items()
    }
    return json.dumps(summary, indent=2)


def _iterations(result: SimulationResult) -> Iterator[list]:
    more = [result.iterations[name].tolist() for name in MORE_ITERATION_COLUMNS]
    for row, extra in zip(iteration_rows(result), zip(*more, strict=True), strict=True):
        row["start_s"] = f"{row['start_s']:.6f}"
        row["end_s"] = f"{row['end_s']:.6f}"
        yield [*row.values(), *extra]


def _tokens(result: SimulationResult) -> Iterator[list]:
    table = result.requests
    columns = ("first_token_s", "last_token_s", "emitted_tokens")
    times = zip(*(table[name].tolist() for name in columns), strict=True)
    for name, (first, last, tokens) in zip(table["request_id"], times, strict=True):
        yield [name, *("" if math.isnan(t) else f"{t:.6f}" for t in (first, last)), tokens]


def _events(result: SimulationResult) -> tuple[Sequence[str], Iterator[list]]:
    names = ("time_s", "engine_id", *FIELDS, "recompute_s", "swap_s")
    ids = result.inputs.request_id
    columns = dict(result.events)
    columns["request"] = [ids[i] for i in columns["request"].tolist()]
    columns["other"] = [ids[i] if i >= 0 else "" for i in columns["other"].tolist()]
    return names, _rows({name: columns[name] for name in names})


def _rows(columns: dict) -> Iterator[list]:
    lists = []
    for name, values in columns.items():
        values = values if isinstance(values, list) else values.tolist()
        if name in _CODES:
            values = [_CODES[name][code] for code in values]
        elif values and isinstance(values[0], float):
            values = ["" if math.isnan(value) else repr(value) for value in values]
        lists.append(values)
    return zip(*lists, strict=True)
