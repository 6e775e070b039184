"""Words of the formulas: names, meanings, reasons and sentences in every language.

Each table is a CSV file of this folder with the columns ``key`` and one per language, so that a
translator edits a spreadsheet and no code. A third language is a third column and one entry in
:data:`LANGUAGES`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

LANGUAGES = ("en", "zh")


@cache
def table(name: str) -> Mapping[str, Mapping[str, str]]:
    """Key → language → text, in the order of ``<name>.csv``. Raises KeyError for a double key."""
    content = resources.files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    rows: dict[str, Mapping[str, str]] = {}
    for row in csv.DictReader(content.splitlines()):
        if row["key"] in rows:
            raise KeyError(f"{name}.csv has {row['key']!r} twice")
        rows[row["key"]] = MappingProxyType({code: row[code] for code in LANGUAGES})
    return MappingProxyType(rows)


def text(name: str, key: str, language: str = "en") -> str:
    """One text; KeyError for an unknown key or language, a fault of the program."""
    return table(name)[key][language]
