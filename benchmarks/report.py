"""Timing and plain text tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Timing:
    """Seconds of several runs of the same work."""

    runs_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(self.runs_s)


def measure(work: Callable[[], object], repeat: int) -> Timing:
    """Run `work` once to warm up, then `repeat` times with the clock on."""
    work()
    runs_s = []
    for _ in range(repeat):
        start = perf_counter()
        work()
        runs_s.append(perf_counter() - start)
    return Timing(tuple(runs_s))


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Aligned columns: the first to the left, numbers to the right."""
    texts = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    is_number = [
        i > 0 and all(not isinstance(row[i], str) or row[i][:1].isdigit() for row in rows)
        for i in range(len(head))
    ]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, is_number, strict=True)
        ]
        return "  ".join(parts).rstrip()

    lines = [title, line(texts[0]), "  ".join("-" * width for width in widths)]
    lines += [line(row) for row in texts[1:]]
    return "\n".join(lines + ([note] if note else []))


def ms(seconds: float) -> str:
    """Milliseconds with three digits that mean something."""
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _text(cell: object) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"
    return str(cell)
