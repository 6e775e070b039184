"""Columns of whole numbers as few bytes: what a film of a simulation is stored in.

Each column takes the shortest of four forms: plain numbers, differences, differences of
differences (clocks and sums that grow evenly), or runs of equal values. The last three are
zigzag varints, seven bits a byte, so most entries take one byte. ``ui/player/js/decode.js`` reads
the same forms.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import numpy as np

__all__ = ["MAGIC", "pack", "pack_column", "unpack", "unpack_column", "varints"]

MAGIC = b"ILF1"
_ALIGN = 8
_PLAIN = ("u1", "i1", "u2", "i2", "u4", "i4", "f8")  # f8 holds whole numbers up to 2**53


def varints(values: np.ndarray) -> bytes:
    """Zigzag varints of int64 values: sign in the lowest bit, then seven bits a byte."""
    if not len(values):
        return b""
    folded = (values << 1 ^ values >> 63).astype(np.uint64)
    length = np.ones(len(values), dtype=np.int64)
    for k in range(1, 10):
        length += folded >= np.uint64(1 << 7 * k)
    first = np.cumsum(length) - length
    out = np.empty(int(length.sum()), dtype=np.uint8)
    for k in range(int(length.max())):
        has = length > k
        part = (folded[has] >> np.uint64(7 * k)).astype(np.uint8) & np.uint8(127)
        more = (length[has] > k + 1).astype(np.uint8) << np.uint8(7)
        out[first[has] + k] = part | more
    return out.tobytes()


def pack_column(values: np.ndarray) -> tuple[str, bytes]:
    """(form, bytes) of a column of whole numbers, the shortest form there is."""
    values = np.asarray(values, dtype=np.int64)
    plain = next(name for name in _PLAIN if _holds(name, values))
    first = np.diff(values, prepend=0)
    forms = [
        (plain, values.astype(f"<{plain}").tobytes()),
        ("d1", varints(first)),
        ("d2", varints(np.diff(first, prepend=0))),
    ]
    starts = np.flatnonzero(np.append(True, first[1:] != 0)) if len(values) else first[:0]
    if 4 * len(starts) < len(values) + 8:
        runs = np.diff(starts, append=len(values))
        heads = np.diff(values[starts], prepend=0)
        numbers = np.concatenate(([len(starts)], heads, runs)).astype(np.int64)
        forms.append(("rle", varints(numbers)))
    return min(forms, key=lambda form: len(form[1]))


def pack(header: Mapping[str, object], columns: Mapping[str, Mapping[str, np.ndarray]]) -> bytes:
    """One file: magic, length of the header, header (JSON), columns.

    The header gets ``tables``: table name -> column name -> [form, length, first byte, bytes],
    bytes counted from the end of the header. Tables of floats are stored as they are (f8).
    """
    tables: dict[str, dict[str, list]] = {}
    body = bytearray()
    for table, named in columns.items():
        tables[table] = {}
        for name, values in named.items():
            if values.dtype.kind == "f":
                form, data = "f8", values.astype("<f8").tobytes()
            else:
                form, data = pack_column(values)
            if len(form) == 2 and form[0] in "uif":  # plain numbers are read in place
                body.extend(bytes(-len(body) % _ALIGN))
            tables[table][name] = [form, len(values), len(body), len(data)]
            body += data
    text = json.dumps({**header, "tables": tables}, ensure_ascii=False, separators=(",", ":"))
    head = text.encode()
    head += b" " * (-(len(head) + len(MAGIC) + 4) % _ALIGN)
    return b"".join((MAGIC, struct.pack("<I", len(head)), head, bytes(body)))


def unpack(data: bytes) -> tuple[dict, dict[str, dict[str, np.ndarray]]]:
    """(header, tables of columns) of :func:`pack`; ValueError where it is none."""
    if data[:4] != MAGIC:
        raise ValueError("not a film")
    (length,) = struct.unpack_from("<I", data, 4)
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    tables = header.pop("tables")
    return header, {
        table: {
            name: unpack_column(form, n, body[first : first + size])
            for name, (form, n, first, size) in named.items()
        }
        for table, named in tables.items()
    }


def unpack_column(form: str, length: int, data: bytes) -> np.ndarray:
    """The values of :func:`pack_column`."""
    if form in _PLAIN:
        return np.frombuffer(data, dtype=f"<{form}", count=length)
    numbers = _read_varints(bytes(data))
    if form == "rle":
        n = numbers[0] if len(numbers) else 0
        return np.repeat(np.cumsum(numbers[1 : 1 + n]), numbers[1 + n :])
    for _ in range(int(form[1])):
        numbers = np.cumsum(numbers)
    return numbers


def _holds(name: str, values: np.ndarray) -> bool:
    if not len(values):
        return True
    kind = np.dtype(name)
    low, high = (-(2**53), 2**53) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return low <= int(values.min()) and int(values.max()) <= high


def _read_varints(data: bytes) -> np.ndarray:
    octets = np.frombuffer(data, dtype=np.uint8)
    last = np.flatnonzero(octets < 128)
    first = np.append(0, last[:-1] + 1) if len(last) else last
    folded = np.zeros(len(last), dtype=np.uint64)
    length = last - first + 1
    for k in range(int(length.max()) if len(last) else 0):
        has = length > k
        part = (octets[first[has] + k] & np.uint8(127)).astype(np.uint64)
        folded[has] |= part << np.uint64(7 * k)
    return (folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64)
