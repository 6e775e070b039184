"""Units as exponents over base units, and the check that both sides of a relation agree.

The base units are what the field counts: token, request, byte, FLOP, s, GPU (a share or a number
of blocks has unit 1). The check rescales the base units: where "1 token" is measured in units of
a quarter token every token count grows by 4, and a relation that makes sense must still hold. This
works for ⌊ ⌋, max and exp as well, which dimensional algebra does not follow. Scales are powers
of two, so that rescaling is exact in floating point and rounding functions do not jump.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

BASES = ("token", "request", "byte", "FLOP", "s", "GPU")


@dataclass(frozen=True, slots=True)
class Unit:
    """A product of powers of base units; ``exponents`` are in the order of :data:`BASES`."""

    exponents: tuple[int, ...] = (0,) * len(BASES)

    def __mul__(self, other: Unit) -> Unit:
        return Unit(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Unit) -> Unit:
        return Unit(tuple(a - b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __str__(self) -> str:
        """For example ``FLOP/(GPU·s)``; ``1`` without dimension."""
        pairs = list(zip(BASES, self.exponents, strict=True))
        above = "·".join(_power(base, power) for base, power in pairs if power > 0)
        below = [_power(base, -power) for base, power in pairs if power < 0]
        if not below:
            return above or "1"
        return f"{above or '1'}/{below[0] if len(below) == 1 else '(' + '·'.join(below) + ')'}"

    def scaled(self, scales: Mapping[str, float]) -> float:
        """The number by which a value of this unit changes when the base units are rescaled."""
        factor = 1.0
        for base, power in zip(BASES, self.exponents, strict=True):
            factor *= scales[base] ** power
        return factor


ONE = Unit()


@cache
def parse_unit(text: str) -> Unit:
    """The unit written as ``byte/(token·GPU)`` or ``FLOP/s/GPU``; ValueError if it is none."""
    exponents = dict.fromkeys(BASES, 0)
    for part, sign in _factors(text):
        if part == "1":
            continue
        base, _, power = part.partition("^")
        if base not in exponents:
            raise ValueError(f"{text!r}: {base!r} is not a base unit")
        exponents[base] += sign * int(power or 1)
    return Unit(tuple(exponents[base] for base in BASES))


def _factors(text: str):
    """(factor, 1 or −1) of a written unit; a parenthesis after / is below the line as a whole."""
    sign = 1
    for piece in re.findall(r"/|\([^()]*\)|[^/()·]+", text.replace(" ", "")):
        if piece == "/":
            sign = -1
        elif piece.startswith("("):
            for factor in piece[1:-1].split("·"):
                yield factor, sign
        else:
            yield piece, sign


def _power(base: str, power: int) -> str:
    return base if power == 1 else f"{base}{str(power).translate(_SUPERSCRIPT)}"


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
