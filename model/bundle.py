"""A scenario with all it needs in one file: what a link cannot hold, one file down, one file up.

A bundle is a ZIP of ``manifest.json`` (format, version, and the SHA-256 of every other file),
``scenario.json``, and where there is one ``requests.csv`` (the requests of a trace, every number
as it is) and ``note.txt``. Equal contents give equal bytes.

A bundle may come from anywhere, so reading trusts nothing: names, sizes before and after
unpacking, hashes, versions and every cell are checked, and each fault is one LabError.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from model import checks
from model.codec import parse_json
from model.errors import LabError
from model.requests import LABEL, LARGEST_TOKENS, REQUEST_ID, Requests
from model.scenario import Scenario, TraceReference
from model.trace_formats import shown
from model.traces import LARGEST_TRACE

__all__ = ["VERSION", "Bundle", "read_bundle", "write_bundle"]

FORMAT = "iteration-lab-bundle"
VERSION = 1
"""Of the bundle; the scenario in it has a version of its own."""

LARGEST_PACKED = 64 * 2**20
MANIFEST, SCENARIO, REQUESTS, NOTE = "manifest.json", "scenario.json", "requests.csv", "note.txt"
LARGEST = MappingProxyType({MANIFEST: 2**18, SCENARIO: 2**20, REQUESTS: 128 * 2**20, NOTE: 2**17})
"""Bytes of each file that a bundle may hold, unpacked; no other names are allowed."""

LONGEST_LINE = 100_000  # characters of a row of requests.csv
MOST_CLASSES = 1000

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a ZIP can say
_END_RECORD = b"PK\x05\x06"
_LARGEST_DIRECTORY = 4096  # bytes; four short names need a tenth of it

# What the standard library raises for a damaged archive, depending on the damage.
_UNPACKING = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)

_WHOLE_COLUMNS = ("priority", "prefix_group", "shared_prefix_tokens")
_REQUIRED = ("arrival_s", "prompt_tokens", "output_tokens")
_COLUMNS = (
    "request_id",
    *_REQUIRED,
    "priority",
    "cancel_s",
    "prefix_group",
    "shared_prefix_tokens",
    "request_class",
    "think_s",
    "follows",
    "patience_s",
    "retries",
    "retry_after_s",
    "retry_factor",
    "hash_ids",
)
_OPTIONAL = {"think_s": float, "follows": int, "patience_s": float, "retries": int}
_OPTIONAL |= {"retry_after_s": float, "retry_factor": float}


@dataclass(frozen=True, eq=False, slots=True)
class Bundle:
    """What a bundle holds; ``requests`` are there exactly if the workload is a trace."""

    scenario: Scenario
    requests: Requests | None = None
    note: str = ""


def write_bundle(scenario: Scenario, requests: Requests | None = None, note: str = "") -> bytes:
    """The bytes of a bundle; ``requests`` are those of a scenario whose workload is a trace.

    Raises LabError trace_needed, bundle_trace_differs, bundle_label or bundle_too_large.
    """
    files = {SCENARIO: scenario.to_json(indent=1) + "\n"}
    manifest: dict[str, object] = {"format": FORMAT, "version": VERSION}
    if isinstance(scenario.workload, TraceReference):
        if requests is None:
            raise LabError("trace_needed", name=scenario.workload.name)
        _check_trace(scenario.workload, requests)
        manifest["requests"] = {
            "class_names": list(requests.class_names),
            "hash_block_tokens": requests.hash_block_tokens,
            "users": requests.users,
        }
        _check_about(manifest["requests"], len(requests))
        files[REQUESTS] = _to_csv(requests)
    if note:
        files[NOTE] = note
    contents = {name: text.encode("utf-8", errors="replace") for name, text in files.items()}
    manifest["files"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in contents.items()
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    contents = {MANIFEST: text.encode("utf-8"), **contents}
    for name, data in contents.items():
        _check_size(name, len(data))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 6)
    if packed.tell() > LARGEST_PACKED:
        raise LabError("bundle_too_large", name="bundle", limit_mb=LARGEST_PACKED / 1e6)
    return packed.getvalue()


def read_bundle(data: bytes) -> Bundle:
    """The contents of :func:`write_bundle`, checked.

    Raises LabError: bundle_* for the file as a whole, or the sentence of the scenario or the
    request that is wrong.
    """
    contents = _unpacked(bytes(data))
    manifest = _manifest(contents)
    scenario = Scenario.from_json(_text(SCENARIO, contents[SCENARIO]))
    note = _text(NOTE, contents.get(NOTE, b""))
    if not isinstance(scenario.workload, TraceReference):
        if REQUESTS in contents:
            raise LabError("bundle_unexpected_file", name=REQUESTS)
        return Bundle(scenario, None, note)
    if REQUESTS not in contents:
        raise LabError("bundle_file_missing", name=REQUESTS)
    requests = _from_csv(_text(REQUESTS, contents[REQUESTS]), manifest.get("requests"))
    _check_trace(scenario.workload, requests)
    return Bundle(scenario, requests, note)


def _check_trace(reference: TraceReference, requests: Requests) -> None:
    if len(requests) != reference.n_requests:
        raise LabError(
            "bundle_trace_differs",
            name=reference.name,
            expected=reference.n_requests,
            found=len(requests),
        )


def _check_size(name: str, size: int) -> None:
    if size > LARGEST[name]:
        raise LabError("bundle_too_large", name=name, limit_mb=LARGEST[name] / 1e6)


# -- the archive -----------------------------------------------------------------------------------


def _unpacked(data: bytes) -> dict[str, bytes]:
    """Contents by name; refuses odd archives before unpacking anything of them."""
    if len(data) > LARGEST_PACKED:
        raise LabError("bundle_too_large", name="bundle", limit_mb=LARGEST_PACKED / 1e6)
    end = data[-22:]  # without a comment, as bundles are written
    if len(end) < 22 or not end.startswith(_END_RECORD) or not end.endswith(b"\0\0"):
        raise LabError("bundle_not_one")
    if int.from_bytes(end[12:16], "little") > _LARGEST_DIRECTORY:
        raise LabError("bundle_not_one")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            return {entry.filename: _content(archive, entry) for entry in entries}
    except LabError:
        raise
    except _UNPACKING:
        raise LabError("bundle_broken") from None


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        if name not in LARGEST or name in seen:
            raise LabError("bundle_unexpected_file", name=shown(name))
        seen.add(name)
        if entry.flag_bits & 1 or entry.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise LabError("bundle_broken")
        _check_size(name, entry.file_size)
    for name in (MANIFEST, SCENARIO):
        if name not in seen:
            raise LabError("bundle_file_missing", name=name)


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The unpacked bytes; what is declared may be a lie, so never more than the limit."""
    with archive.open(entry) as file:
        data = file.read(LARGEST[entry.filename] + 1)
    _check_size(entry.filename, len(data))
    return data


def _manifest(contents: dict[str, bytes]) -> dict[str, object]:
    """The manifest, after every file has been compared with it."""
    manifest = parse_json(_text(MANIFEST, contents[MANIFEST]))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise LabError("bundle_not_one")
    version = manifest.get("version")
    if version != VERSION:
        found = shown(version) if isinstance(version, int | str) else "none"
        raise LabError("bundle_version", found=found, expected=VERSION)
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        raise LabError("bundle_not_one")
    for name in listed:
        if name not in contents:
            raise LabError("bundle_file_missing", name=shown(name))
    for name, data in contents.items():
        if name == MANIFEST:
            continue
        about = listed.get(name)
        if not isinstance(about, dict) or about.get("sha256") != hashlib.sha256(data).hexdigest():
            raise LabError("bundle_hash", name=name)
    return manifest


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise LabError("bundle_not_text", name=name) from None


# -- requests as CSV -------------------------------------------------------------------------------


def _check_about(about: object, n: int) -> None:
    """What the manifest says of the requests: {class_names, hash_block_tokens, users}."""
    if not isinstance(about, dict):
        raise LabError("bundle_not_one")
    names = about.get("class_names")
    if not isinstance(names, list) or not 0 < len(names) <= MOST_CLASSES:
        raise LabError("bundle_not_one")
    for name in names:
        if not isinstance(name, str) or not LABEL.fullmatch(name):
            raise LabError("bundle_label", column="request_class", value=shown(name))
        if names.count(name) > 1:
            raise LabError("stream_names", name=name)
    checks.whole_number("hash_block_tokens", about.get("hash_block_tokens"), 1, LARGEST_TOKENS)
    if about.get("users") is not None:
        checks.whole_number("users", about["users"], 1, n)


def _to_csv(requests: Requests) -> str:
    """Columns that say nothing but their default are left out."""
    n = len(requests)
    for label in requests.request_id:
        if not REQUEST_ID.fullmatch(label):
            raise LabError("bundle_label", column="request_id", value=shown(label))
    columns: dict[str, Iterable[object]] = {
        "arrival_s": _times(requests.arrival_s),
        "prompt_tokens": requests.prompt_tokens.tolist(),
        "output_tokens": requests.output_tokens.tolist(),
    }
    if requests.request_id != tuple(map(str, range(n))):
        columns["request_id"] = requests.request_id
    for name, default in zip(_WHOLE_COLUMNS, (0, -1, 0), strict=True):
        values = getattr(requests, name)
        if (values != default).any():
            columns[name] = values.tolist()
    if np.isfinite(requests.cancel_s).any():
        columns["cancel_s"] = _times(requests.cancel_s)
    if requests.request_class.any():
        columns["request_class"] = [requests.class_names[i] for i in requests.request_class]
    for name, kind in _OPTIONAL.items():
        values = getattr(requests, name)
        if values is not None:
            columns[name] = values.tolist() if kind is int else _times(values)
    if requests.hash_ids is not None:
        columns["hash_ids"] = [" ".join(map(str, ids)) for ids in requests.hash_ids]
    names = [name for name in _COLUMNS if name in columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(columns[name] for name in names), strict=True))
    return text.getvalue()


def _times(values: np.ndarray) -> list[str]:
    """Shortest text that reads back to the same float; nan (not yet known) is empty."""
    return ["" if math.isnan(value) else repr(value) for value in values.tolist()]


def _from_csv(text: str, about: object) -> Requests:
    cells = _columns_of(text)
    n = len(cells["arrival_s"])
    _check_about(about, n)
    columns: dict[str, object] = {
        "prompt_tokens": _read("prompt_tokens", cells["prompt_tokens"], int),
        "output_tokens": _read("output_tokens", cells["output_tokens"], int),
        "arrival_s": _read("arrival_s", cells["arrival_s"], _time),
    }
    for name, read in (
        *((name, int) for name in _WHOLE_COLUMNS),
        ("cancel_s", _time),
        *((name, int if kind is int else _time) for name, kind in _OPTIONAL.items()),
        ("hash_ids", lambda cell: tuple(map(int, cell.split(" "))) if cell else ()),
    ):
        if name in cells:
            columns[name] = _read(name, cells[name], read)
    if "request_class" in cells:
        place = {name: index for index, name in enumerate(about["class_names"])}
        columns["request_class"] = _read("request_class", cells["request_class"], place.__getitem__)
    if "request_id" in cells:
        for label in cells["request_id"]:
            if not REQUEST_ID.fullmatch(label):
                raise LabError("bundle_label", column="request_id", value=shown(label))
        columns["request_id"] = cells["request_id"]
    return Requests.from_columns(
        **columns,
        class_names=about["class_names"],
        hash_block_tokens=about["hash_block_tokens"],
        users=about.get("users"),
    )


def _columns_of(text: str) -> dict[str, tuple[str, ...]]:
    """Cells by column; every row has as many as the header."""
    for number, line in enumerate(io.StringIO(text), 1):
        if len(line) > LONGEST_LINE:
            raise LabError("bundle_row", line=number, expected=len(_COLUMNS))
    reader = csv.reader(io.StringIO(text, newline=""))
    header: list[str] = []
    try:
        header = next(reader, [])
        known = set(header) <= set(_COLUMNS) and len(set(header)) == len(header)
        if not known or not set(_REQUIRED) <= set(header):
            raise LabError("bundle_columns", columns=", ".join(_COLUMNS))
        rows = []
        for row in reader:
            if len(row) != len(header):
                raise LabError("bundle_row", line=reader.line_num, expected=len(header))
            rows.append(row)
            if len(rows) > LARGEST_TRACE:
                raise LabError("too_many_requests", n_requests=len(rows), limit=LARGEST_TRACE)
    except csv.Error:
        raise LabError("bundle_row", line=reader.line_num, expected=len(header)) from None
    if not rows:
        raise LabError("trace_empty")
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _read(column: str, cells: tuple[str, ...], read: Callable[[str], object]) -> list:
    try:
        return [read(cell) for cell in cells]
    except (ValueError, KeyError):
        pass
    for line, cell in enumerate(cells, 2):
        try:
            read(cell)
        except (ValueError, KeyError):
            raise LabError("bundle_cell", line=line, column=column, value=shown(cell)) from None
    raise AssertionError("a cell that could not be read can be read now")


def _time(cell: str) -> float:
    return float(cell) if cell else math.nan
