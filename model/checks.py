"""Checks of single values, each with a sentence that names the field and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from model.errors import LabError


def number(field: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a finite int or float in ``low <= value <= high``.

    Raises LabError not_a_number, not_finite, out_of_range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LabError("not_a_number", field=field, value=value)
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        finite = False
    if not finite:
        raise LabError("not_finite", field=field, value=str(value)[:40])
    if not low <= value <= high:
        low, high = (int(bound) if bound == int(bound) else bound for bound in (low, high))
        raise LabError("out_of_range", field=field, value=value, low=low, high=high)


def whole_number(field: str, value: object, low: int, high: int) -> None:
    """Refuse what is not an int in ``low <= value <= high`` (also LabError not_a_whole_number)."""
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, float):
            raise LabError("not_a_whole_number", field=field, value=value)
        raise LabError("not_a_number", field=field, value=value)
    if not low <= value <= high:
        shown = value if abs(value) < 10**40 else f"{str(value)[:40]}…"
        raise LabError("out_of_range", field=field, value=shown, low=low, high=high)


def choice(field: str, value: object, choices: Iterable[str]) -> None:
    """Refuse what is not one of ``choices`` (LabError unknown_choice)."""
    allowed = tuple(choices)
    if value not in allowed:
        raise LabError("unknown_choice", field=field, value=value, choices=", ".join(allowed))


def flag(field: str, value: object) -> None:
    """Refuse what is not True or False (LabError unknown_choice)."""
    if not isinstance(value, bool):
        raise LabError("unknown_choice", field=field, value=value, choices="true, false")
