"""Lesson prose: Markdown files under ``content/``, one a page and language, in sections by id.

A section begins with a heading that ends in ``{#id}``. The ids, not the words, are what a page
asks for, and both languages have the same ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ui.language import current_language

__all__ = ["Section", "prose", "sections"]

_FOLDER = Path(__file__).resolve().parent.parent / "content"
_HEADING = re.compile(r"^#{1,3} +(?P<title>.*?) *\{#(?P<id>[a-z0-9-]+)\} *$")


class Section(NamedTuple):
    """A heading and the Markdown below it."""

    title: str
    text: str


@cache
def sections(language: str, page: str) -> Mapping[str, Section]:
    """All sections of a page by id, in the order of the file."""
    found: dict[str, tuple[str, list[str]]] = {}
    lines: list[str] = []
    for line in (_FOLDER / language / f"{page}.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            lines = []
            found[heading["id"]] = heading["title"], lines
        else:
            lines.append(line)
    return MappingProxyType(
        {name: Section(title, "\n".join(text).strip()) for name, (title, text) in found.items()}
    )


def prose(page: str, section: str) -> Section:
    """A section in the language of this session."""
    return sections(current_language(), page)[section]
