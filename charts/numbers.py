"""Numbers of metrics for people: a unit that fits, three significant digits, words from ``t``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from model.metrics import METRICS

__all__ = ["NOTHING", "Scale", "duration", "scale_of", "shown", "significant"]

NOTHING = "–"
_WORDS = {
    "requests": "unit.requests",
    "requests/s": "unit.requests_per_s",
    "tokens": "unit.tokens",
    "tokens/s": "unit.tokens_per_s",
    "iterations": "unit.iterations",
    "blocks": "unit.blocks",
    "times": "unit.times",
}
_COUNTED = {"requests", "tokens", "iterations", "blocks", "times", "0/1"}

Translator = Callable[..., str]


class Scale(NamedTuple):
    """Multiply a metric by ``factor`` to read it in ``unit`` (a word; empty for a pure number)."""

    factor: float
    unit: str

    @property
    def suffix(self) -> str:
        return f" {self.unit}" if self.unit else ""


def significant(value: float, digits: int = 3) -> str:
    """``value`` with that many significant digits, thousands separated, no exponent."""
    if not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".rpartition("e")[2])  # after rounding: 9.999 is 10.0
    return f"{value:,.{max(digits - 1 - exponent, 0)}f}"


def duration(seconds: float, t: Translator) -> str:
    """Seconds, or milliseconds below one second, with their unit."""
    if math.isfinite(seconds) and abs(seconds) < 1:
        return f"{significant(seconds * 1e3)} {t('unit.ms')}"
    return f"{significant(seconds)} {t('unit.s')}"


def scale_of(metric: str, highest: float, t: Translator) -> Scale:
    """How a metric is read whose largest value on show is ``highest``."""
    unit = METRICS[metric].unit
    if unit == "s":
        return Scale(1e3, t("unit.ms")) if 0 < abs(highest) < 1 else Scale(1.0, t("unit.s"))
    if metric.endswith("_share"):
        return Scale(100.0, t("unit.percent"))
    return Scale(1.0, t(_WORDS[unit]) if unit in _WORDS else "")


def shown(metric: str, value: float, t: Translator, *, signed: bool = False) -> str:
    """A metric's value with its unit; ``signed`` writes the sign of a difference."""
    if not math.isfinite(value):
        return NOTHING
    scale = scale_of(metric, value, t)
    number = value * scale.factor
    whole = METRICS[metric].unit in _COUNTED and float(number).is_integer()
    text = f"{number:,.0f}" if whole else significant(number)
    if signed:
        sign = "−" if number < 0 else "+" if number > 0 else "±"
        text = sign + text.removeprefix("-")
    return text + scale.suffix
