"""Options and films as one run of bytes: the only thing that a component can be sent uncopied."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

__all__ = ["COMPARED_BYTES", "pack_data"]

COMPARED_BYTES = 4 << 20
"""The films of a comparison have one window each; beyond this size the rest is not shown."""

_ALIGN = 8


def pack_data(options: Mapping[str, object], films: Sequence[bytes]) -> bytes:
    """Length of the options, the options as JSON (without what is None), the films aligned."""
    given = {name: value for name, value in options.items() if value is not None}
    text = json.dumps({**given, "sizes": [len(data) for data in films]}, ensure_ascii=False)
    parts = [struct.pack("<I", len(text.encode())), text.encode()]
    length = sum(map(len, parts))
    for data in films:
        gap = bytes(-length % _ALIGN)
        parts += [gap, data]
        length += len(gap) + len(data)
    return b"".join(parts)
