"""Choices as the parameters of a link, and back: codes that mean the same in every language.

A link holds differences only, and its version. ``preset=law&bd=32&x=rate-0.1*tpot-0.08&v=2`` is
the preset "law" with Bd 32 and two settings of the expert part, whose codes are in
:mod:`ui.panel.settings`. ``none`` leaves a setting open, flags are 1 and 0.

Whatever stands in a link is read value by value: what is unknown or impossible is left out and
named, and the rest is used. Versions:

1. ``preset``, ``policy``, ``hardware``, ``gpus``, ``model``. A static batch was as large as the
   dynamic one.
2. With ``bs``, ``bd``, ``lin``, ``l`` and ``x``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from model import catalogue
from model.scenario import LARGEST_TENSOR_PARALLEL
from model.schedulers import POLICIES
from ui.address import VERSION
from ui.panel.choices import MOST_SEQS, MOST_TOKENS, Choices, Value, is_static
from ui.panel.settings import Setting, setting_of

__all__ = ["BUNDLE", "FIELDS", "default_base", "read", "write"]

FIELDS = ("preset", "policy", "bs", "bd", "lin", "l", "hardware", "gpus", "model", "x")
"""Parameters of the panel in a link, beside the version ``v``."""

BUNDLE = re.compile(r"bundle-[0-9a-f]{16}", re.ASCII)
"""A base that is no preset: the scenario of a file, by its hash."""

LONGEST = 4000  # characters of a parameter; a link with every setting has about 700
MEASURED = "measured"
"""In ``x``: formulas take the simulated mean batch for Bd."""

_BETWEEN, _IS = "*", "-"  # neither is escaped in an address
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})(e[+-]?[0-9]{1,3})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9.]{1,24}", re.ASCII)


@cache
def default_base() -> str:
    """The preset where no link names one."""
    return next(iter(catalogue.presets()))


# -- writing ---------------------------------------------------------------------------------------


def write(choices: Choices) -> Mapping[str, str]:
    """The parameters of a link by name; empty where there is no difference."""
    expert = [f"{code}{_IS}{_text(value)}" for code, value in choices.expert]
    if choices.measured:
        expert.append(f"{MEASURED}{_IS}1")
    fields = {
        "preset": "" if choices.base == default_base() else choices.base,
        "x": _BETWEEN.join(expert),
    }
    for name in FIELDS[1:-1]:
        value = getattr(choices, name)
        fields[name] = "" if value is None else str(value)
    return MappingProxyType({name: fields[name] for name in FIELDS})


def _text(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        short = f"{value:.12g}"
        return short if float(short) == value else repr(value)
    return str(value)


# -- reading ---------------------------------------------------------------------------------------


def read(fields: Mapping[str, str], version: str = "") -> tuple[Choices, tuple[str, ...]]:
    """The choices of a link, and the names of what was left out of it.

    A name is a parameter or the code of a setting, safe to show; "?" stands for what has no
    readable name, "v" for a version that this program does not know.
    """
    return _read(tuple(fields.get(name) or "" for name in FIELDS), version or "")


@lru_cache(maxsize=512)
def _read(texts: tuple[str, ...], version: str) -> tuple[Choices, tuple[str, ...]]:
    left_out: list[str] = []
    fields = dict(zip(FIELDS, texts, strict=True))
    for name, text in fields.items():
        if len(text) > LONGEST:
            left_out.append(name)
            fields[name] = ""
    if version not in ("", *map(str, range(1, int(VERSION) + 1))):
        left_out.append("v")
    values: dict[str, Value] = {}
    for name, reader in _READERS.items():
        if text := fields[name]:
            values[name] = reader(text)
            if values[name] is None:
                left_out.append(name)
    base = values.pop("preset", None) or default_base()
    if version == "1" and (change := _version_1(base, values)):
        values |= change
    expert, measured = _expert(fields["x"], left_out)
    names = tuple(dict.fromkeys(left_out))
    return Choices(base=base, expert=expert, measured=measured, **values), names


def _version_1(base: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """In the first links a static batch took the batch limit of the preset."""
    if values.get("bs") is not None or not is_static(values.get("policy") or ""):
        return {}
    preset = catalogue.presets().get(base)
    return {"bs": preset.scenario.policy.max_num_seqs} if preset else {}


def _expert(text: str, left_out: list[str]) -> tuple[tuple[tuple[str, Value], ...], bool]:
    found: dict[str, Value] = {}
    measured = False
    for pair in filter(None, text.split(_BETWEEN)):
        code, _, value = pair.partition(_IS)
        if code == MEASURED and value in ("0", "1"):
            measured = value == "1"
            continue
        setting = setting_of(code) if _NAME.fullmatch(code) else None
        read = _UNREADABLE if setting is None else _value(setting, value)
        if read is _UNREADABLE or not setting.allows(read):
            left_out.append(code if _NAME.fullmatch(code) else "?")
        else:
            found[code] = read
    return tuple(sorted(found.items(), key=lambda item: item[0])), measured


_UNREADABLE = object()


def _value(setting: Setting, text: str) -> Value | object:
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


_READERS: Mapping[str, Callable[[str], Value]] = MappingProxyType(
    {
        "preset": lambda text: (
            text if text in catalogue.presets() or BUNDLE.fullmatch(text) else None
        ),
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
