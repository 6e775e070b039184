"""Recorded arrivals: Azure and BurstGPT CSV, Mooncake JSON lines, the lab's own requests.csv.

A fault costs the line it is on and nothing else: it gets one sentence with its line number, and
the trace says how many lines were kept and refused. The whole file is refused only when nothing
sensible remains or its columns are unknown. Azure, BurstGPT and Mooncake times count from the first
request of the file; the lab's own times are taken as they stand.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from model import trace_formats as formats
from model.errors import LabError, sentence
from model.requests import Requests
from model.trace_formats import BadRow, Format, Row, shown

LARGEST_TRACE = 1_000_000
LISTED_FAULTS = 50
HOPELESS = 50_000  # lines refused in a row from the start
LONGEST_LINE = 200_000
"""Characters; a Mooncake line of a million tokens has about 20,000."""
FARTHEST_S = 366 * 86400
"""A request farther than this from the median time of its file is a fault of its date."""

_PACKED = {b"PK\x03\x04": "zip or xlsx", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xd0\xcf": "xls"}
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was wrong on a line (counted from 1). ``refused``: the line was left out."""

    line: int
    code: str
    values: Mapping[str, object]
    refused: bool = True

    @property
    def sentence(self) -> str:
        return sentence(self.code, {"line": self.line, **self.values})


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """Requests of a file and what was wrong with it.

    ``faults`` lists the first ones; ``fault_counts`` counts all of them by code.
    ``kept + refused`` is the number of lines that are neither blank nor the header.
    ``sha256`` is the hash of the file's bytes, by which a scenario names the trace.
    """

    name: str
    format: str
    requests: Requests
    faults: tuple[Fault, ...]
    fault_counts: Mapping[str, int]
    kept: int
    refused: int
    sha256: str


class TraceError(LabError):
    """The whole file is refused; ``faults`` are those of its lines, if it came to that."""

    faults: tuple[Fault, ...] = ()


@dataclass(slots=True)
class _Log:
    """Counts all faults and keeps the first ones of each code."""

    faults: list[tuple[int, Fault]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    def add(self, line: int, fault: BadRow, *, refused: bool = True) -> None:
        self.refused += refused
        self.counts[fault.code] += 1
        nth = self.counts[fault.code]
        if nth <= LISTED_FAULTS:
            self.faults.append((nth, Fault(line, fault.code, fault.values, refused)))

    def listed(self) -> tuple[Fault, ...]:
        """At most LISTED_FAULTS by line: the first of every code before the second of any."""
        first = sorted(self.faults, key=lambda entry: (entry[0], entry[1].line))[:LISTED_FAULTS]
        return tuple(sorted((fault for _, fault in first), key=lambda fault: fault.line))


def read_trace(
    data: bytes | str | Path, name: str = "", *, max_requests: int = LARGEST_TRACE
) -> Trace:
    """Read a trace from its bytes or its path; the format is found from the first line.

    Raises TraceError when the file as a whole cannot be used.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        path = Path(data)
        name = name or path.name
        try:
            data = path.read_bytes()
        except OSError:
            raise TraceError("trace_unreadable", name=shown(path.name)) from None
    data = bytes(data)
    lines = _LINE_END.split(_text(data))
    start = next((i for i, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise TraceError("trace_empty")
    log = _Log()
    if lines[start].lstrip().startswith("{"):
        form, read, first = formats.MOONCAKE, formats.mooncake, start
    else:
        form, read = _csv_reader(lines[start], start + 1, log)
        first = start + 1
    kept = _read_rows(lines, first, read, log, max_requests)
    kept = _without_far_times(kept, form, log)
    if not kept:
        error = TraceError(
            "trace_nothing_left",
            refused=log.refused,
            line=min((fault.line for fault in log.listed() if fault.refused), default=start + 1),
        )
        error.faults = log.listed()
        raise error
    requests = _requests(kept, form, log)
    return Trace(
        name=name,
        format=form.name,
        requests=requests,
        faults=log.listed(),
        fault_counts=dict(log.counts),
        kept=len(requests),
        refused=log.refused,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _text(data: bytes) -> str:
    for start, kind in _PACKED.items():
        if data.startswith(start):
            raise TraceError("trace_packed", kind=kind)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # a spreadsheet's "Unicode text"
        return data.decode("utf-16", errors="replace")
    if b"\0" in data[:65536]:
        raise TraceError("trace_binary")
    return data.decode("utf-8-sig", errors="replace")


def _cells(line: str, delimiter: str) -> list[str]:
    # Line by line, so that one stray quote cannot swallow the rest of the file.
    if '"' in line:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    return [cell.strip() for cell in line.split(delimiter)]


def _csv_reader(header: str, line: int, log: _Log) -> tuple[Format, Callable[[str], Row]]:
    """The format that the header names and a function from a line to its request."""
    if len(header) > LONGEST_LINE:
        raise TraceError("trace_unknown", value=shown(header))
    if header.lstrip().startswith("["):
        raise TraceError("trace_json_array")
    choices = []
    for delimiter in ",;\t":
        names = [name.lower() for name in _cells(header, delimiter)]
        form, missing = formats.detect(names)
        choices.append((len(missing) - len(form.required), delimiter, names, form, missing))
    best, delimiter, names, form, missing = min(choices, key=lambda choice: choice[0])
    if best == 0:
        raise TraceError("trace_unknown", value=shown(header))
    if missing:
        raise TraceError("trace_missing_columns", format=form.name, columns=", ".join(missing))
    known = (*form.required, *form.optional)
    for column in dict.fromkeys(names):
        if column in known and names.count(column) > 1:
            raise TraceError("trace_column_twice", column=column)
        if column and column not in known:
            unused = BadRow("trace_unused_column", column=shown(column))
            log.add(line, unused, refused=False)
    while names and not names[-1]:
        names.pop()
    width, make = len(names), form.read

    def read(text: str) -> Row:
        cells = _cells(text, delimiter)
        if len(cells) != width and (len(cells) < width or any(cells[width:])):
            raise BadRow("trace_columns", cells=len(cells), expected=width)
        return make(dict(zip(names, cells, strict=False)))

    return form, read


def _read_rows(
    lines: list[str], first: int, read: Callable[[str], Row], log: _Log, limit: int
) -> list[tuple[int, Row]]:
    kept: list[tuple[int, Row]] = []
    line_of: dict[str, int] = {}
    for number, text in enumerate(lines[first:], first + 1):
        if not text or not text.strip(" \t,;"):
            continue
        if log.refused > HOPELESS and not kept:
            break  # this is no trace; reading on would only take time
        if len(kept) == limit:
            log.add(number, BadRow("trace_too_many", limit=limit))
            log.refused += sum(1 for rest in lines[number:] if rest.strip(" \t,;"))
            break
        try:
            if len(text) > LONGEST_LINE:
                raise BadRow("trace_line_long", limit=LONGEST_LINE)
            row = read(text)
            if row.label is not None:
                seen = line_of.setdefault(row.label, number)
                if seen != number:
                    raise BadRow("trace_same_id", value=shown(row.label), first=seen)
        except BadRow as fault:
            log.add(number, fault)
        except csv.Error:
            log.add(number, BadRow("trace_line_long", limit=csv.field_size_limit()))
        else:
            kept.append((number, row))
            for note in row.notes:
                log.add(number, note, refused=False)
    return kept


def _without_far_times(
    kept: list[tuple[int, Row]], form: Format, log: _Log
) -> list[tuple[int, Row]]:
    """Drop times of another year: one wrong date would stretch the trace over decades."""
    if not kept:
        return kept
    times = np.array([row.time for _, row in kept])
    away_s = np.abs(times - np.median(times)) / form.ticks_per_s
    far = away_s > FARTHEST_S
    for index in np.flatnonzero(far):
        days = int(away_s[index] // 86400)
        log.add(kept[index][0], BadRow("trace_time_far", days=days))
    return [pair for pair, is_far in zip(kept, far, strict=True) if not is_far]


def _requests(kept: list[tuple[int, Row]], form: Format, log: _Log) -> Requests:
    times = np.array([row.time for _, row in kept])
    back = np.flatnonzero(times[1:] < times[:-1])
    if len(back):
        line = kept[back[0] + 1][0]
        log.add(line, BadRow("trace_unsorted", times=len(back)), refused=False)
    origin = times.min() if form.relative else 0
    rows = [row for _, row in kept]
    class_names = tuple(dict.fromkeys(row.class_name for row in rows))
    class_of = {name: index for index, name in enumerate(class_names)}
    hash_ids = [row.hash_ids for row in rows]
    return Requests.from_columns(
        arrival_s=(times - origin) / form.ticks_per_s,
        prompt_tokens=[row.prompt for row in rows],
        output_tokens=[row.output for row in rows],
        priority=[row.priority for row in rows],
        cancel_s=[row.cancel_s for row in rows],
        prefix_group=[row.group for row in rows],
        shared_prefix_tokens=[row.shared for row in rows],
        request_class=[class_of[row.class_name] for row in rows],
        class_names=class_names,
        request_id=_labels(kept),
        hash_ids=hash_ids if any(hash_ids) else None,
        hash_block_tokens=formats.MOONCAKE_BLOCK_TOKENS,
    )


def _labels(kept: Iterable[tuple[int, Row]]) -> list[str] | None:
    """The file's labels, "line-7" where one is missing; None when there are no labels at all."""
    if all(row.label is None for _, row in kept):
        return None
    return [row.label if row.label is not None else f"line-{line}" for line, row in kept]
