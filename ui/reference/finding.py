"""What a search on the Reference page finds: ids, best matches first. No Streamlit here.

Every word of a query has to be found, each somewhere else if need be. ``F14`` finds the formulas of
that number, ``B_d`` or ``λ`` those that write or need the symbol, ``padding`` and ``填充`` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import formulas
from formulas import claims, entries
from ui.glossary import entries as terms
from ui.glossary import meaning

__all__ = [
    "STATUSES",
    "VERDICTS",
    "claims_found",
    "formulas_found",
    "known",
    "section_of",
    "terms_found",
]

LANGUAGES = ("en", "zh")
STATUSES = ("correct", "printed")
VERDICTS = ("right", "conditional", "wrong", "unverified")
_NUMBER = re.compile(r"f\d+[a-z]*", re.IGNORECASE)
_SHORT = 3
"""Fewer Latin letters than this are a symbol or an id, not a part of a name."""


def known(section: str, name: str) -> str:
    """The id as the lab writes it, whatever its case in the address; "" where there is none."""
    ids = {"formulas": entries, "claims": claims}.get(section, dict)()
    return next((one for one in ids if one.casefold() == name.strip().casefold()), "")


def section_of(name: str) -> str:
    """The section of an id; "" where no entry has it."""
    return next((section for section in ("formulas", "claims") if known(section, name)), "")


def formulas_found(query: str, status: str = "", topic: str = "") -> list[str]:
    """Formulas by id, symbol, name or the meaning of a symbol, in this order of worth."""
    rows = entries()
    ids = [
        name
        for name, row in rows.items()
        if status in ("", row.status) and topic in ("", row.topic)
    ]
    return _best(query, ids, _worth_of_formula)


def claims_found(query: str, verdict: str = "", text: str = "") -> list[str]:
    """Claims by id, formula or words; a claim has all its verdicts."""
    ids = [
        name
        for name, claim in claims().items()
        if (not verdict or verdict in claim.verdicts) and text in ("", claim.source)
    ]
    return _best(query, ids, _worth_of_claim)


def terms_found(query: str, group: str = "") -> list[str]:
    """Terms of the glossary by either name, abbreviation or meaning in the session's language."""
    ids = [name for name, row in terms().items() if group in ("", row.group)]
    return _best(query, ids, _worth_of_term)


def _best(query: str, ids: Sequence[str], worth: Callable[[str, str], int | None]) -> list[str]:
    """Those in which every word is found; the order of the table among equals."""
    words = query.split()
    if not words:
        return list(ids)
    found = []
    for place, name in enumerate(ids):
        values = [worth(name, word) for word in words]
        if None not in values:
            found.append((sum(values), place, name))
    return [name for _, _, name in sorted(found)]


def _worth_of_formula(name: str, word: str) -> int | None:
    if _NUMBER.fullmatch(word):
        if word.casefold() == name.casefold():
            return 0
        if word[-1].isdigit() and entries()[name].number == int(word[1:]):
            return 1
        return None
    symbols = _symbols(name)
    if word in symbols:
        return 1
    if _said(word, (entries()[name].name(language) for language in LANGUAGES)):
        return 2
    if _is_long(word) and _said(word, (*symbols, *_meanings(name))):
        return 3
    return None


def _worth_of_claim(name: str, word: str) -> int | None:
    claim = claims()[name]
    if word.casefold() == name.casefold():
        return 0
    if word.casefold() in (one.casefold() for one in claim.formulas):
        return 1
    said = (
        text(language)
        for language in LANGUAGES
        for text in (claim.claim, claim.corrected, claim.reason)
    )
    return 2 if _said(word, said) else None


def _worth_of_term(name: str, word: str) -> int | None:
    row = terms()[name]
    names = (row.en, row.abbreviation, row.zh, *row.zh_also)
    if word.casefold() in (one.casefold() for one in names):
        return 0
    if _said(word, names):
        return 1
    return 2 if _is_long(word) and _said(word, (meaning(name),)) else None


def _is_long(word: str) -> bool:
    return len(word) >= _SHORT or not word.isascii()


def _said(word: str, texts: Iterable[str]) -> bool:
    """Is the word in one of the texts? A short Latin one only at the beginning of a word."""
    if _is_long(word):
        return any(word.casefold() in text.casefold() for text in texts)
    begins = re.compile(rf"(?<![a-z0-9_]){re.escape(word.casefold())}")
    return any(begins.search(text.casefold()) for text in texts)


@cache
def _symbols(name: str) -> frozenset[str]:
    """The symbols of a formula as they are typed: by id (lambda) and as written (λ)."""
    return frozenset(form for q in formulas.get(name).symbols for form in (q.id, q.plain))


@cache
def _meanings(name: str) -> tuple[str, ...]:
    return tuple(q.meaning(language) for q in formulas.get(name).symbols for language in LANGUAGES)
