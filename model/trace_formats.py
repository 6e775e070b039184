"""One line of a trace file to one request: the cells and rows of the four formats.

Everything here meets text of unknown origin, so a number is what :data:`_NUMBER` says (no
underscores, no "inf", no other scripts' digits) and every fault is a :class:`BadRow` with a code
and values for one sentence. Times are returned in the file's own unit (``Format.ticks_per_s``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from model.requests import LABEL, LARGEST_TOKENS, REQUEST_ID

LARGEST_S = 10**9
"""Trace times beyond 31 years from the file's zero are faults."""

_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,4})?", re.ASCII)
_DATE = re.compile(
    r"((?:19[7-9]|20\d)\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,18}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


class BadRow(Exception):
    """A line that is no request; ``code`` is a key of MESSAGES."""

    def __init__(self, code: str, **values: object) -> None:
        super().__init__(code)
        self.code, self.values = code, values


@dataclass(slots=True)
class Row:
    """One request as read; ``notes`` are faults that did not cost the row."""

    time: int | float
    prompt: int
    output: int
    priority: int = 0
    cancel_s: float = float("inf")
    group: int = -1
    shared: int = 0
    label: str | None = None
    class_name: str = "all"
    hash_ids: tuple[int, ...] = ()
    notes: list[BadRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Format:
    """A CSV format: ``required`` columns identify it (lower case), ``optional`` ones may be there.

    ``relative``: times count from the first request of the file, else from their own zero.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    ticks_per_s: float
    relative: bool
    read: Callable[[Mapping[str, str]], Row] | None


def shown(value: object) -> str:
    """A foreign text as it may stand in a sentence: short and on one line."""
    text = str(value)[:200]
    text = "".join(char if char.isprintable() else "�" for char in text).strip()
    return text if len(text) <= 40 else text[:39] + "…"


def number(column: str, text: str, low: float, high: float) -> float:
    """The cell as a float within its bounds."""
    if not _NUMBER.fullmatch(text):
        raise _not_a_number(column, text)
    value = float(text)
    if not low <= value <= high:
        raise BadRow("trace_out_of_range", column=column, value=shown(text), low=low, high=high)
    return value


def whole(column: str, text: str, low: int = 1, high: int = LARGEST_TOKENS) -> int:
    """The cell as a whole number within its bounds; "12.0" is whole, as spreadsheets write it."""
    if len(text) < 16 and text.isascii() and text.isdigit():
        value = int(text)
        if low <= value <= high:
            return value
    value = number(column, text, low, high)
    if value != int(value):
        raise BadRow("trace_not_whole", column=column, value=shown(text))
    return int(value)


def _not_a_number(column: str, text: str) -> BadRow:
    if not text:
        return BadRow("trace_empty_cell", column=column)
    return BadRow("trace_not_a_number", column=column, value=shown(text))


@lru_cache(maxsize=4096)
def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def date_ns(column: str, text: str) -> int:
    """A date and time, any number of fractional digits, as nanoseconds since 1970 (UTC if silent).

    Exact integers: float seconds since 1970 would round Azure's 100 ns to 240 ns.
    """
    match = _DATE.fullmatch(text)
    if not match:
        code = "trace_not_a_date" if text else "trace_empty_cell"
        raise BadRow(code, column=column, value=shown(text))
    date, fraction, zone = match.groups()
    try:
        seconds = _second(date)
    except ValueError:  # 30 February
        raise BadRow("trace_not_a_date", column=column, value=shown(text)) from None
    if zone and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return seconds * 10**9 + (int(fraction[:9].ljust(9, "0")) if fraction else 0)


def _azure(cells: Mapping[str, str]) -> Row:
    return Row(
        date_ns("TIMESTAMP", cells["timestamp"]),
        whole("ContextTokens", cells["contexttokens"]),
        whole("GeneratedTokens", cells["generatedtokens"]),
    )


def _burstgpt(cells: Mapping[str, str]) -> Row:
    time = number("Timestamp", cells["timestamp"], 0, LARGEST_S)
    prompt = whole("Request tokens", cells["request tokens"])
    output = whole("Response tokens", cells["response tokens"], low=0)
    if output == 0:
        raise BadRow("trace_failed_request")
    return Row(time, prompt, output, class_name=_label(cells.get("log type")) or "all")


def _own(cells: Mapping[str, str]) -> Row:
    row = Row(
        number("arrival_s", cells["arrival_s"], 0, LARGEST_S),
        whole("prompt_tokens", cells["prompt_tokens"]),
        whole("output_tokens", cells["output_tokens"]),
    )
    if text := cells.get("priority"):
        row.priority = whole("priority", text, -(10**9), 10**9)
    cancel = cells.get("cancel_s", "")
    if cancel and cancel.lower() != "inf":
        row.cancel_s = number("cancel_s", cancel, 0, LARGEST_S)
        if row.cancel_s < row.time:
            raise BadRow("trace_cancel_early", value=shown(cancel))
    if text := cells.get("prefix_group"):
        row.group = whole("prefix_group", text, -1, 10**9)
    if text := cells.get("shared_prefix_tokens"):
        row.shared = whole("shared_prefix_tokens", text, 0)
    if row.shared > row.prompt:
        raise BadRow("trace_prefix_long", value=row.shared, prompt=row.prompt)
    if row.shared and row.group < 0:
        raise BadRow("trace_prefix_group", value=row.shared)
    row.label = cells.get("request_id") or None
    if row.label is not None and not REQUEST_ID.fullmatch(row.label):
        row.notes.append(BadRow("trace_label", value=shown(row.label)))
        row.label = None
    if text := cells.get("request_class"):
        row.class_name = _label(text) or "all"
    return row


def _label(text: str | None) -> str | None:
    """A name that is safe to write into a CSV file again (nothing a spreadsheet would run)."""
    return text if text and LABEL.fullmatch(text) else None


_OWN_OPTIONAL = (
    "request_id",
    "priority",
    "cancel_s",
    "prefix_group",
    "shared_prefix_tokens",
    "request_class",
)
_BURSTGPT_OPTIONAL = ("session id", "elapsed time", "model", "total tokens", "log type")
OWN = Format(
    "requests", ("arrival_s", "prompt_tokens", "output_tokens"), _OWN_OPTIONAL, 1, False, _own
)
AZURE = Format("azure", ("timestamp", "contexttokens", "generatedtokens"), (), 1e9, True, _azure)
BURSTGPT = Format(
    "burstgpt",
    ("timestamp", "request tokens", "response tokens"),
    _BURSTGPT_OPTIONAL,
    1,
    True,
    _burstgpt,
)
CSV_FORMATS = (OWN, AZURE, BURSTGPT)
MOONCAKE = Format("mooncake", (), (), 1e3, True, None)
MOONCAKE_BLOCK_TOKENS = 512
_MOONCAKE_KEYS = ("timestamp", "input_length", "output_length")


def mooncake(line: str) -> Row:
    """A line of JSON: timestamp (ms), input_length, output_length and perhaps hash_ids."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):  # also a number of more than 4300 digits
        raise BadRow("trace_not_json") from None
    if not isinstance(item, dict):
        raise BadRow("trace_not_json")
    for key in _MOONCAKE_KEYS:
        if key not in item:
            raise BadRow("trace_missing_key", column=key)
    row = Row(
        _json_number("timestamp", item["timestamp"], 0, 1000 * LARGEST_S),
        _json_whole("input_length", item["input_length"]),
        _json_whole("output_length", item["output_length"]),
    )
    ids = item.get("hash_ids")
    if ids is None:
        return row
    blocks = -(-row.prompt // MOONCAKE_BLOCK_TOKENS)
    if not _are_ids(ids):
        row.notes.append(BadRow("trace_hash_ids"))
    elif len(ids) != blocks:
        row.notes.append(BadRow("trace_hash_count", ids=len(ids), blocks=blocks))
    else:
        row.hash_ids = tuple(ids)
    return row


def _are_ids(ids: object) -> bool:
    return isinstance(ids, list) and all(type(item) is int and 0 <= item < 2**63 for item in ids)


def _json_number(column: str, value: object, low: float, high: float) -> int | float:
    if type(value) not in (int, float):
        text = value if isinstance(value, str) else type(value).__name__
        raise _not_a_number(column, text)
    if not low <= value <= high:
        text = "a huge number" if abs(value) > 1e300 else value
        raise BadRow("trace_out_of_range", column=column, value=shown(text), low=low, high=high)
    return value


def _json_whole(column: str, value: object) -> int:
    value = _json_number(column, value, 1, LARGEST_TOKENS)
    if value != int(value):
        raise BadRow("trace_not_whole", column=column, value=shown(value))
    return int(value)


def detect(cells: Sequence[str]) -> tuple[Format, tuple[str, ...]]:
    """The CSV format whose columns the header shows best, and its columns that are missing."""
    names = {cell.strip().lower() for cell in cells}
    best = max(CSV_FORMATS, key=lambda form: len(names & set(form.required)))
    return best, tuple(column for column in best.required if column not in names)
