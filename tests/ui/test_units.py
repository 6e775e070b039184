"""Numbers for people: differences with their sign, in one piece."""

import pytest

from ui.units import signed


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.1234, "+12.3\u00a0%"),
        (-0.5, "−50.0\u00a0%"),
        (2.961, "+296\u00a0%"),
        (1e-6, "0\u00a0%"),
        (-1e-6, "0\u00a0%"),
        (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)
def test_differences(share, shown):
    assert signed(share) == shown


def test_fewer_digits():
    assert signed(0.1234, 2) == "+12\u00a0%"
