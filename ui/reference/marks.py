"""How the Reference page writes: verdicts with icon and word, plain text safe in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ui.language import catalogue, current_language, t

__all__ = ["CONFIDENCES", "confidence", "icon", "plain", "table", "verdict", "word", "words"]

_LOOKS = {
    "right": ("green", "check_circle"),
    "conditional": ("orange", "rule"),
    "wrong": ("red", "cancel"),
    "unverified": ("violet", "help"),
    "correct": ("blue", "calculate"),
    "printed": ("gray", "format_quote"),
}
"""Color and icon; the word says the same for those who see neither."""
CONFIDENCES = {
    "SRC": ":material/verified:",
    "card": ":material/badge:",
    "paper": ":material/article:",
    "2ND": ":material/hearing:",
    "MEM": ":material/psychology_alt:",
}
_SPECIAL = re.compile(r"([\\`*_\[\]<>$|~#:])")


def verdict(name: str) -> str:
    """A badge of a verdict or of a formula's status."""
    color, icon = _LOOKS[name]
    return f":{color}-badge[:material/{icon}: {t(f'ref.verdict.{name}')}]"


def icon(name: str) -> str:
    """The icon of a verdict alone, for a choice that says the word beside it."""
    return f":material/{_LOOKS[name][1]}:"


def confidence(code: str) -> str:
    """How sure a number of the catalogue is."""
    return f"{CONFIDENCES.get(code, '')} {word(f'ref.confidence.{code}', code)}".strip()


def word(key: str, otherwise: str) -> str:
    """A message; what a table has gained since it was translated speaks for itself."""
    return t(key) if key in catalogue(current_language()) else otherwise


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def words(stem: str, codes: Iterable[str], whole: str = "") -> dict[str, str]:
    """The words of a choice by code; ``whole`` is the key of the word for no choice at all."""
    found = {"": t(whole)} if whole else {}
    return found | {code: word(f"{stem}.{code}", code) for code in codes}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A Markdown table; columns of ``numbers`` are aligned to the right."""
    line = ["---:" if place in numbers else ":---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, line, *rows))
