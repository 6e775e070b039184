"""The words of the field in English and Chinese, with their meanings: one table for everything.

``content/glossary.csv`` has a row a term. Its Chinese name is the one that labels, reasons, metric
definitions and prose use (``zh_also``: further accepted ways to say it); a test holds them to it.
A term with a ``word`` is defined by the model, see :func:`ui.language.definition`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ui.language import current_language, definition

__all__ = ["GROUPS", "Term", "entries", "meaning", "table", "term"]

_FILE = Path(__file__).resolve().parent.parent / "content" / "glossary.csv"

GROUPS = ("request", "engine", "memory", "scheduling", "latency", "beyond")


class Term(NamedTuple):
    """A row of the table; texts in both languages."""

    id: str
    group: str
    en: str
    abbreviation: str
    zh: str
    zh_also: tuple[str, ...]
    word: str
    en_meaning: str
    zh_meaning: str

    def name(self, language: str) -> str:
        """The term in a language, with its abbreviation where it has one."""
        name, brackets = (self.zh, "（{}）") if language == "zh" else (self.en, " ({})")
        return name + (brackets.format(self.abbreviation) if self.abbreviation else "")


@cache
def entries() -> Mapping[str, Term]:
    """All terms by id, in the order of the file."""
    with _FILE.open(newline="", encoding="utf-8") as file:
        rows = [
            Term(**{**row, "zh_also": tuple(filter(None, row["zh_also"].split("|")))})
            for row in csv.DictReader(file)
        ]
    return MappingProxyType({row.id: row for row in rows})


def term(term_id: str) -> str:
    """A term in the language of this session."""
    return entries()[term_id].name(current_language())


def meaning(term_id: str) -> str:
    """What a term means, in the language of this session."""
    row = entries()[term_id]
    if row.word:
        return definition(row.word)
    return row.zh_meaning if current_language() == "zh" else row.en_meaning


def table(*term_ids: str) -> list[dict[str, str]]:
    """Rows for a page: the term in both languages, this session's first, and its meaning."""
    first, second = ("zh", "en") if current_language() == "zh" else ("en", "zh")
    chosen = [entries()[term_id] for term_id in term_ids] or list(entries().values())
    return [
        {
            "term": row.name(first),
            "translation": row.zh if second == "zh" else row.en,
            "meaning": meaning(row.id),
        }
        for row in chosen
    ]
