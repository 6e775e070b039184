"""Two languages: the words of labels, errors and decision reasons, found by language-neutral keys.

The catalogues are gettext ``.po`` files under ``locales/`` and are read as they are: nothing has to
be compiled before the app starts. A message with plural forms chooses by its value ``n``.
Prose lives in ``content/`` (see :mod:`ui.prose`).
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

import streamlit as st
from babel.messages.pofile import read_po

from model.errors import LabError, sentence
from model.metrics import DEFINITIONS, METRICS

__all__ = [
    "LANGUAGES",
    "as_text",
    "browser_language",
    "catalogue",
    "current_language",
    "definition",
    "error_markdown",
    "error_sentence",
    "sentences",
    "set_language",
    "t",
    "translate",
    "translator",
]

LANGUAGES = MappingProxyType({"en": "English", "zh": "简体中文"})
_LOCALES = {"en": "en", "zh": "zh_CN"}
_FOLDER = Path(__file__).resolve().parent.parent / "locales"
_STATE_KEY = "language"
_BETWEEN = {"en": " ", "zh": ""}

Message = str | tuple[str, ...]
Translator = Callable[..., str]


def po_path(language: str) -> Path:
    """The catalogue of a language."""
    return _FOLDER / _LOCALES[language] / "LC_MESSAGES" / "messages.po"


@cache
def _read(language: str) -> tuple[Mapping[str, Message], Callable[[int], int]]:
    with po_path(language).open("rb") as file:
        po = read_po(file, locale=_LOCALES[language])
    messages = {
        (m.id[0] if isinstance(m.id, tuple) else m.id): (
            tuple(m.string) if isinstance(m.string, tuple | list) else m.string
        )
        for m in po
        if m.id
    }
    return MappingProxyType(messages), gettext.c2py(po.plural_expr)


def catalogue(language: str) -> Mapping[str, Message]:
    """All messages of a language by key; a tuple holds plural forms."""
    return _read(language)[0]


def translate(language: str, key: str, /, **values: object) -> str:
    """The message ``key`` in a language, with its values filled in.

    Raises KeyError for an unknown key: a missing word is a fault of the program, not of the user.
    """
    messages, plural = _read(language)
    message = messages[key]
    if isinstance(message, tuple):
        message = message[plural(int(values["n"]))]
    return message.format(**values) if values else message


def translator(language: str) -> Translator:
    """:func:`translate` with the language fixed, for code that knows no session."""
    return partial(translate, language)


def browser_language() -> str:
    """The language the browser asks for: Chinese of any kind, otherwise English."""
    locale = st.context.locale or ""
    return "zh" if locale.lower().startswith("zh") else "en"


def current_language() -> str:
    """The language of this session."""
    return st.session_state.get(_STATE_KEY) or browser_language()


def set_language(language: str) -> None:
    """Speak this language from here on (called by the entry script in every run)."""
    st.session_state[_STATE_KEY] = language


def t(key: str, /, **values: object) -> str:
    """The message ``key`` in the language of this session."""
    return translate(current_language(), key, **values)


def definition(name: str) -> str:
    """What a metric or a word about metrics means; English is the model's own, as for errors."""
    language = current_language()
    if language == "en":
        return METRICS[name].definition if name in METRICS else DEFINITIONS[name]
    return translate(language, f"{'metric' if name in METRICS else 'word'}.{name}")


def error_markdown(error: LabError) -> str:
    """:func:`error_sentence` for a place that reads Markdown, which quoted words must not write."""
    return as_text(error_sentence(error))


def as_text(sentence: str) -> str:
    """A sentence with words of a file or a person in it, for Markdown that must not act on them."""
    return re.sub(r"([\\`*_{}\[\]()<>#$:!|~])", r"\\\1", sentence)


def sentences(*parts: str) -> str:
    """Sentences of the current language in a row: Chinese ones have no space between them."""
    return _BETWEEN[current_language()].join(parts)


def error_sentence(error: LabError, language: str | None = None) -> str:
    """What a LabError says, in the language of this session.

    English is the model's own sentence, so that a terminal and a page say the same.
    """
    language = language or current_language()
    if language == "en":
        return str(error)
    prefix = "error."
    messages = {
        key.removeprefix(prefix): text
        for key, text in catalogue(language).items()
        if key.startswith(prefix) and isinstance(text, str)
    }
    if error.code not in messages:
        return str(error)
    return sentence(error.code, error.values, messages)
