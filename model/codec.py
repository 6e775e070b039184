"""Frozen dataclasses to plain JSON values and back, by their type hints.

Decoding is strict, because what is read may come from a link or a hand-written file: an unknown
key, a missing one or a value of the wrong type is a LabError that names the key and what is
allowed. Where a field holds one of several classes (a family), the object carries the name of its
class under "kind".
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from functools import cache

from model.errors import LabError

KIND = "kind"
LARGEST_INTEGER = 2**63 - 1

Families = Mapping[object, Mapping[str, type]]
"""A type hint → {kind: class}; for example Scheduler → POLICIES."""


def encode(value: object, hint: object, families: Families) -> object:
    """``value`` of a field declared as ``hint``, as JSON values.

    A float field is always written as a float, so that equal objects give equal text.
    """
    if value is None:
        return None
    if hint in families:
        kind = next(name for name, cls in families[hint].items() if cls is type(value))
        return {KIND: kind, **_encode_fields(value, families)}
    hint = _without_none(hint)
    if dataclasses.is_dataclass(hint):
        return _encode_fields(value, families)
    if typing.get_origin(hint) is tuple:
        return [encode(item, kind, families) for item, kind in _items(hint, value)]
    if hint in (int, float):
        return hint(value)
    return value


def decode(data: object, hint: object, families: Families, path: str = "") -> typing.Any:
    """The object that :func:`encode` wrote; LabError names the faulty key by its path."""
    if hint in families:
        return _decode_family(data, families[hint], families, path)
    inner = _without_none(hint)
    if data is None:
        if inner is hint:
            raise _wrong_type(path, _expected(hint), data)
        return None
    if dataclasses.is_dataclass(inner):
        return _decode_fields(data, inner, families, path)
    if typing.get_origin(inner) is tuple:
        return _decode_tuple(data, inner, families, path)
    return _decode_scalar(data, inner, path)


def parse_json(text: str) -> object:
    """JSON text as plain values; LabError json_syntax says where it is wrong."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError:  # Python refuses integers of thousands of digits
        reason = "a number is too long"
    raise LabError("json_syntax", reason=reason)


@cache
def _hints(cls: type) -> dict[str, object]:
    """Type hints of the dataclass fields, in their order."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _encode_fields(value: object, families: Families) -> dict[str, object]:
    return {
        name: encode(getattr(value, name), hint, families)
        for name, hint in _hints(type(value)).items()
    }


def _decode_family(
    data: object, classes: Mapping[str, type], families: Families, path: str
) -> object:
    if not isinstance(data, dict):
        raise _wrong_type(path, "an object", data)
    if KIND not in data:
        raise LabError("json_missing_key", field=_join(path, KIND))
    kind = data[KIND]
    if not isinstance(kind, str) or kind not in classes:
        raise LabError(
            "unknown_choice", field=_join(path, KIND), value=kind, choices=", ".join(classes)
        )
    rest = {key: value for key, value in data.items() if key != KIND}
    return _decode_fields(rest, classes[kind], families, path)


def _decode_fields(data: object, cls: type, families: Families, path: str) -> object:
    if not isinstance(data, dict):
        raise _wrong_type(path, "an object", data)
    hints = _hints(cls)
    for key in data:
        if key not in hints:
            raise LabError(
                "json_unknown_key", field=_join(path, key), allowed=", ".join(hints) or "nothing"
            )
    for field in dataclasses.fields(cls):
        required = field.default is field.default_factory is dataclasses.MISSING
        if field.init and required and field.name not in data:
            raise LabError("json_missing_key", field=_join(path, field.name))
    values = {
        key: decode(value, hints[key], families, _join(path, key)) for key, value in data.items()
    }
    try:
        return cls(**values)
    except LabError as error:
        field = error.values.get("field")
        if not path or field not in hints:
            raise
        # The class knows its own field; which of several objects it is only the path says.
        raise LabError(error.code, **{**error.values, "field": _join(path, field)}) from None


def _decode_tuple(data: object, hint: object, families: Families, path: str) -> tuple:
    if not isinstance(data, list):
        raise _wrong_type(path, "a list", data)
    arguments = typing.get_args(hint)
    if arguments[-1] is not Ellipsis and len(arguments) != len(data):
        raise _wrong_type(path, f"a list of {len(arguments)}", data)
    return tuple(
        decode(item, kind, families, f"{path}[{index}]")
        for index, (item, kind) in enumerate(_items(hint, data))
    )


def _decode_scalar(data: object, hint: object, path: str) -> object:
    number = isinstance(data, (int, float)) and not isinstance(data, bool)
    if hint is float and number:
        try:
            value = float(data)
        except OverflowError:
            value = math.inf
        if math.isfinite(value):
            return value
        raise LabError("not_finite", field=path, value=value)
    if hint is int and number and isinstance(data, int) and abs(data) <= LARGEST_INTEGER:
        return data
    if hint in (str, bool) and isinstance(data, hint):
        return data
    raise _wrong_type(path, _expected(hint), data)


def _items(hint: object, values):
    """(item, its hint) of a tuple[X, ...] or tuple[X, Y]."""
    arguments = typing.get_args(hint)
    if arguments[-1] is Ellipsis:
        return ((value, arguments[0]) for value in values)
    return zip(values, arguments, strict=True)


def _without_none(hint: object) -> object:
    """X of "X | None", else the hint itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        if len(inner) == 1:
            return inner[0]
    return hint


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _expected(hint: object) -> str:
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    return names.get(hint, "a list" if typing.get_origin(hint) is tuple else "an object")


def _wrong_type(path: str, expected: str, data: object) -> LabError:
    found = json.dumps(data, default=str)
    found = found if len(found) <= 40 else found[:37] + "..."
    return LabError("json_type", field=path or "The scenario", expected=expected, found=found)
