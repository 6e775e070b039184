"""Figures of the lesson on SLOs: what is drawn, once in the legend, inside its axes."""

import numpy as np
import pytest

from charts.slo import Bar, Curve, Level, Place, Row, bars, rows

X = np.array([1.0, 2.0, 4.0])


def two_rows(**more):
    first = Curve("a", X, np.array([10.0, 20.0, np.nan]), 0, band=(X, X * 3), hollow=X > 1)
    second = Curve("a", X, np.array([1e-3, 1.0, 30.0]), 0)
    parts = (
        Row("Share", "%", " %", (first,), (Level(90, "90 %"),), top=108),
        Row("TTFT", "s", " s", (second,), (Level(0.5, "bound"),), log=True),
    )
    return rows(parts, "rate", "rate %{x}", **more)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rows_share_an_axis_and_a_legend(theme):
    figure = two_rows(theme=theme, at=(Place(2.0, "here"),))
    shown = [trace.name for trace in figure.data if trace.showlegend]
    assert shown == ["a"]
    assert figure.layout.xaxis.anchor == "y2"
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]
    assert figure.layout.yaxis2.domain[0] >= 0
    assert list(figure.layout.yaxis.range) == [0, 108]
    low, high = figure.layout.yaxis2.range
    assert figure.layout.yaxis2.type == "log"
    assert low < -3
    assert high > np.log10(30)


def test_rings_mark_what_is_hollow():
    line = next(trace for trace in two_rows().data if trace.marker.size)
    fills = line.marker.color
    assert fills[0] == line.marker.line.color
    assert fills[1] == fills[2] != fills[0]


def test_a_log_axis_has_the_ticks_it_is_given():
    figure = two_rows(log_x=(1, 2, 4))
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1", "2", "4"]


def test_bars_carry_their_formula_as_a_tick():
    parts = (Bar("whole", 100.0, "prefill", 98.0), Bar("chunks", 10.0, "decode"))
    figure = bars(parts, "t", "m", "ms", " ms", "F22", level=Level(50.0, "bound"))
    bar, ticks, bound = figure.data
    assert list(bar.x) == [100.0, 10.0]
    assert list(ticks.y) == ["whole"]
    assert list(ticks.x) == [98.0]
    assert figure.layout.xaxis.range[1] > 100
    assert bound.name == "bound"
