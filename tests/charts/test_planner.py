"""GPUs and price over the load: steps above, curves below, and words for who cannot see them."""

import numpy as np
import pytest

from charts.planner import Sizes, description, over_load
from ui.language import translator

RATES = np.array([1.0, 2.0, 3.0])
SIZES = (
    Sizes("both", np.array([1.0, 2.0, 2.0]), np.array([0.9, 0.9, 0.6])),
    Sizes("pools", np.array([2.0, 2.0, np.nan]), np.array([1.8, 0.9, np.nan])),
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_engines_are_steps_and_prices_are_not(theme):
    figure = over_load(RATES, SIZES, 2.0, translator("en"), theme)
    shapes = [(trace.name, trace.line.shape) for trace in figure.data]
    assert shapes == [("both", "hv"), ("pools", "hv"), ("both", "linear"), ("pools", "linear")]
    assert list(figure.data[0].y) == [1, 2, 2]
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False]


def test_the_description_says_from_where_to_where():
    said = description(RATES, SIZES[:1], translator("en"))
    assert "from 1.00 to 3.00 requests/s" in said
    assert "both: from 1.00 to 2.00 GPUs" in said
