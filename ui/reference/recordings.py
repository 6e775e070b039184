"""How much recorded evidence there is: counted in the recordings, or as last counted.

A copy of the lab without its tests has no recordings; ``recordings.csv`` then says what they held,
and a test keeps the two alike.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["COUNTED", "GOLDEN", "Evidence", "counted", "evidence"]

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
COUNTED = Path(__file__).resolve().parent / "recordings.csv"


class Evidence(NamedTuple):
    """What was recorded of one policy in one engine.

    A decision of an iteration gives tokens to requests; ``grants`` counts these, ``changes`` the
    preemptions and swaps.
    """

    policy: str
    recorded_from: str
    recordings: int
    requests: int
    iterations: int
    grants: int
    changes: int


@cache
def evidence() -> tuple[Evidence, ...]:
    """One row for each policy and engine, in the order of the policies' names."""
    return counted(GOLDEN) or tuple(_last())


def counted(folder: Path) -> tuple[Evidence, ...]:
    """Count in the recordings of a folder; () where there are none."""
    sums: dict[tuple[str, str], list[int]] = {}
    for path in sorted(folder.glob("*/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        key = config["policy"], config["recorded_from"]
        numbers = (1, *_sizes(path.parent))
        before = sums.setdefault(key, [0] * len(numbers))
        sums[key] = [a + b for a, b in zip(before, numbers, strict=True)]
    return tuple(Evidence(*key, *numbers) for key, numbers in sorted(sums.items()))


def _sizes(recording: Path) -> tuple[int, int, int, int]:
    """Requests, iterations, grants and changes of one recording."""
    changes = ("preempted", "swapped_out", "swapped_in")
    rows = list(_rows(recording / "iterations.csv"))
    return (
        sum(1 for _ in _rows(recording / "requests.csv")),
        len(rows),
        sum(len(row["scheduled"].split()) for row in rows),
        sum(len((row.get(name) or "").split()) for row in rows for name in changes),
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _last() -> Iterator[Evidence]:
    for row in _rows(COUNTED):
        policy, engine, *numbers = row.values()
        yield Evidence(policy, engine, *map(int, numbers))
