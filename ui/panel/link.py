"""Choices as a parameter of the address, and back: codes that mean the same in every language.

``?s=preset-law~bd-32~rate-0.1~tpot-0.08~v-2`` is the preset "law" with Bd 32 and two settings of
the expert part, whose codes are in :mod:`ui.panel.settings`. A link says only what differs from its
preset, and its version. ``none`` leaves a setting open, flags are 1 and 0. One parameter holds all,
so that one change is one step of the back button.

The plain form ``?preset=law&bd=32&x=rate-0.1~tpot-0.08&v=2`` is read as well: it is what the first
links looked like, and easier to write by hand.

Whatever stands in a link is read value by value: what is unknown or impossible is left out and
named, and the rest is used. Versions:

1. Plain ``preset``, ``policy``, ``hardware``, ``gpus``, ``model``. A static batch was as large as
   the dynamic one.
2. With ``bs``, ``bd``, ``lin``, ``l`` and the expert settings; in one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from model import catalogue
from model.scenario import LARGEST_TENSOR_PARALLEL
from model.schedulers import POLICIES
from ui.panel.choices import MOST_SEQS, MOST_TOKENS, Choices, Value, is_static
from ui.panel.settings import Setting, setting_of

__all__ = [
    "BUNDLE",
    "PARAMETER",
    "PLAIN",
    "VERSION",
    "default_base",
    "holds",
    "read",
    "read_plain",
    "spelled",
    "write",
]

VERSION = 2
PARAMETER = "s"
"""Name of the one parameter."""

_BASIC = ("preset", "policy", "bs", "bd", "lin", "l", "hardware", "gpus", "model")
_EXPERT, _VERSION = "x", "v"
PLAIN = (*_BASIC, _EXPERT, _VERSION)
"""Parameters of the plain form."""

BUNDLE = re.compile(r"bundle-[0-9a-f]{16}", re.ASCII)
"""A base that is no preset: the scenario of a file, by its hash."""

LONGEST = 4000  # characters; a link with every setting has about 700
MEASURED = "measured"
"""Code of a flag: formulas take the simulated mean batch for Bd."""

_BETWEEN, _IS = "~", "-"  # neither is escaped in an address
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})(e[+-]?[0-9]{1,3})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9.]{1,24}", re.ASCII)

Pairs = tuple[tuple[str, str], ...]


@cache
def default_base() -> str:
    """The preset where no link names one."""
    return next(iter(catalogue.presets()))


# -- writing ---------------------------------------------------------------------------------------


def write(choices: Choices) -> str:
    """The parameter for these choices; empty where nothing differs from the first preset."""
    return "" if choices == Choices(default_base()) else spelled(choices)


def spelled(choices: Choices) -> str:
    """The parameter, also where it could be left out."""
    pairs = [("preset", choices.base)]
    for name in _BASIC[1:]:
        if (value := getattr(choices, name)) is not None:
            pairs.append((name, str(value)))
    pairs += [(code, _text(value)) for code, value in choices.expert]
    if choices.measured:
        pairs.append((MEASURED, "1"))
    pairs.append((_VERSION, str(VERSION)))
    return _BETWEEN.join(f"{name}{_IS}{text}" for name, text in pairs)


def _text(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        short = f"{value:.12g}"
        return short if float(short) == value else repr(value)
    return str(value)


def holds(choices: Choices) -> bool:
    """Whether a link says all of these choices: no number is beyond the limits of a link."""
    return read(spelled(choices)) == (choices, ())


# -- reading ---------------------------------------------------------------------------------------


def read(text: str) -> tuple[Choices, tuple[str, ...]]:
    """The choices of the one parameter, and the names of what was left out of it.

    A name is that of a control or the code of a setting, safe to show; "?" stands for what has no
    readable name, "v" for a version that this program does not know.
    """
    return _read_text(text)


def read_plain(fields: Mapping[str, str]) -> tuple[Choices, tuple[str, ...]]:
    """The choices of the plain form, as :func:`read`."""
    pairs: list[tuple[str, str]] = []
    too_long = tuple(name for name in PLAIN if len(fields.get(name, "")) > LONGEST)
    for name in PLAIN:
        text = "" if name in too_long else fields.get(name, "")
        if name == _EXPERT:
            pairs += _pairs(text)
        elif text:
            pairs.append((name, text))
    choices, left_out = _read(tuple(pairs))
    return choices, (*too_long, *left_out)


@lru_cache(maxsize=512)
def _read_text(text: str) -> tuple[Choices, tuple[str, ...]]:
    if len(text) > LONGEST:
        return Choices(default_base()), (PARAMETER,)
    return _read(tuple(_pairs(text)))


def _pairs(text: str) -> list[tuple[str, str]]:
    """(name, value) of what stands between the separators."""
    parts = (part.partition(_IS) for part in text.split(_BETWEEN) if part)
    return [(name, value) for name, _, value in parts]


def _read(pairs: Pairs) -> tuple[Choices, tuple[str, ...]]:
    left_out: list[str] = []
    values: dict[str, Value] = {}
    expert: dict[str, Value] = {}
    version, measured = "", False
    for name, text in pairs:
        if name in _READERS:
            if (value := _READERS[name](text)) is None:
                left_out.append(name)
            else:
                values[name] = value
        elif name == _VERSION:
            version = text
        elif name == MEASURED and text in ("0", "1"):
            measured = text == "1"
        elif (value := _setting_value(name, text)) is not _UNREADABLE:
            expert[name] = value
        else:
            left_out.append(name if _NAME.fullmatch(name) else "?")
    if version not in ("", *map(str, range(1, VERSION + 1))):
        left_out.append(_VERSION)
    base = values.pop("preset", None) or default_base()
    if version == "1":
        values |= _version_1(base, values)
    choices = Choices(
        base=base,
        expert=tuple(sorted(expert.items(), key=lambda item: item[0])),
        measured=measured,
        **values,
    )
    return choices, tuple(dict.fromkeys(left_out))


def _version_1(base: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """In the first links a static batch took the batch limit of the preset."""
    if "bs" in values or not is_static(values.get("policy") or ""):
        return {}
    preset = catalogue.presets().get(base)
    return {"bs": preset.scenario.policy.max_num_seqs} if preset else {}


_UNREADABLE = object()


def _setting_value(code: str, text: str) -> Value | object:
    setting = setting_of(code) if _NAME.fullmatch(code) else None
    value = _UNREADABLE if setting is None else _typed(setting, text)
    return value if value is not _UNREADABLE and setting.allows(value) else _UNREADABLE


def _typed(setting: Setting, text: str) -> Value | object:
    if text == "none":
        return None
    if setting.kind == "flag":
        return {"1": True, "0": False}.get(text, _UNREADABLE)
    if setting.kind == "whole" and _WHOLE.fullmatch(text):
        return int(text)
    if setting.kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    return text if setting.kind == "choice" else _UNREADABLE


def _whole(low: int, high: int) -> Callable[[str], int | None]:
    def reader(text: str) -> int | None:
        value = int(text) if _WHOLE.fullmatch(text) else None
        return value if value is not None and low <= value <= high else None

    return reader


def _one_of(known: Callable[[], Collection[str]]) -> Callable[[str], str | None]:
    return lambda text: text if text in known() else None


def _base(text: str) -> str | None:
    return text if text in catalogue.presets() or BUNDLE.fullmatch(text) else None


_READERS: Mapping[str, Callable[[str], Value]] = MappingProxyType(
    {
        "preset": _base,
        "policy": _one_of(lambda: POLICIES),
        "bs": _whole(1, MOST_SEQS),
        "bd": _whole(1, MOST_SEQS),
        "lin": _whole(1, MOST_TOKENS),
        "l": _whole(1, MOST_TOKENS),
        "hardware": _one_of(catalogue.devices),
        "gpus": _whole(1, LARGEST_TENSOR_PARALLEL),
        "model": _one_of(catalogue.models),
    }
)
