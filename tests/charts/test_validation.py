"""The line of a formula and the points of simulations."""

import numpy as np
import pytest

from charts.palette import COLORS, THEMES
from charts.validation import Points, beside, description

WORDS = {"title": "Mean wait", "more": "ms", "x": "Load", "y": "ms", "formula": "F26"}
X = np.array([0.5, 0.7, 0.9])
LINE = (np.linspace(0.5, 0.9, 5), np.array([1.0, 1.2, 1.6, 2.6, 5.0]))
INTACT = Points("intact", "simulated", X, np.array([1.0, 1.6, 5.1]))
FAR = Points("broken", "in bursts", X, np.array([10.0, 16.0, 151.0]))


def by_name(figure):
    return {trace.name: trace for trace in figure.data}


@pytest.mark.parametrize("theme", THEMES)
def test_the_line_and_every_kind_of_points_are_there(theme):
    drawn = by_name(beside(LINE, [INTACT, FAR], 0.7, WORDS, theme))
    assert list(drawn) == ["F26", "simulated", "in bursts"]
    assert drawn["F26"].line.color == COLORS[theme]["ink"]
    assert list(drawn["simulated"].y) == [1.0, 1.6, 5.1]
    assert drawn["simulated"].marker.symbol != drawn["in bursts"].marker.symbol


def test_what_lies_close_begins_at_zero():
    axis = beside(LINE, [INTACT], 0.7, WORDS).layout.yaxis
    assert axis.rangemode == "tozero"
    assert axis.type is None


def test_what_lies_far_apart_has_a_log_axis_with_whole_numbers():
    axis = beside(LINE, [INTACT, FAR], 0.7, WORDS).layout.yaxis
    assert axis.type == "log"
    assert {"1", "2", "5", "10", "200"} <= set(axis.ticktext)


def test_zeros_keep_the_axis_plain():
    nothing = Points("broken", "none", X, np.array([0.0, 0.0, 900.0]))
    assert beside(LINE, [INTACT, nothing], 0.7, WORDS).layout.yaxis.type is None


def test_a_log_axis_below_has_the_points_as_ticks():
    points = Points("intact", "simulated", np.array([3.0, 12.0, 32.0]), np.ones(3))
    axis = beside((points.x, points.y), [points], 12.0, WORDS, log_x=True).layout.xaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == ["3", "12", "32"]


def test_screen_readers_hear_the_span_of_the_points():
    said = description(WORDS, [INTACT, FAR])
    assert said == "Mean wait. Load, ms. simulated: 1.00 – 5.10. in bursts: 10.0 – 151."
