"""Numbers for people: three significant digits, a unit that fits, quieter than the number."""

from __future__ import annotations

import math

from charts.numbers import NOTHING, significant
from ui.language import t

__all__ = [
    "count",
    "duration",
    "figure",
    "percent",
    "rate",
    "setting",
    "share",
    "signed",
    "significant",
    "time",
]


def figure(number: str, unit: str) -> str:
    """A big number with a small unit, as Markdown for ``st.metric``."""
    return number if number == NOTHING else f"{number} :small[:gray[{unit}]]"


def duration(seconds: float) -> tuple[str, str]:
    """Seconds or milliseconds, whichever reads better, and the word for them."""
    if math.isfinite(seconds) and abs(seconds) < 1:
        return significant(seconds * 1e3), t("unit.ms")
    return significant(seconds), t("unit.s")


def time(seconds: float) -> str:
    """Seconds or milliseconds with their unit, in one piece."""
    return "\u00a0".join(duration(seconds))


def setting(seconds: float) -> tuple[str, str]:
    """A time that somebody has set: as many digits as it has, no more."""
    if abs(seconds) < 1:
        return f"{seconds * 1e3:,g}", t("unit.ms")
    return f"{seconds:,g}", t("unit.s")


def percent(share: float) -> tuple[str, str]:
    """A share of 1 as percent."""
    return significant(share * 100), t("unit.percent")


def share(part: float) -> str:
    """A share of 1 as percent, in one piece."""
    return "\u00a0".join(percent(part))


def signed(share: float, digits: int = 3) -> str:
    """A difference as percent with its sign, in one piece."""
    if not math.isfinite(share):
        return NOTHING
    if abs(share) < 5e-5:
        return "0\u00a0%"
    return f"{'+' if share > 0 else '−'}{significant(abs(share) * 100, digits)}\u00a0%"


def rate(value: float) -> tuple[str, str]:
    """Tokens a second."""
    return significant(value), t("unit.tokens_per_s")


def count(value: float) -> str:
    """A whole number."""
    return f"{value:,.0f}" if math.isfinite(value) else NOTHING
