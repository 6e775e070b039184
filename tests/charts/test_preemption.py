"""Figures of the lesson on preemption: what they show is what they were given."""

import numpy as np
import pytest

from charts.palette import THEMES
from charts.preemption import Border, Line, Mark, Ratio, chances, curves, ratios

WORDS = dict.fromkeys(
    ("title", "more", "x", "y", "unit", "at", "swap", "recompute", "others", "measured", "formula"),
    "word",
)
X = np.array([16.0, 1024.0, 65_536.0])


def notes(figure):
    return " ".join(note.text for note in figure.layout.annotations)


@pytest.mark.parametrize("theme", THEMES)
def test_curves_have_two_logarithmic_axes_with_readable_ticks(theme):
    lines = (Line("a", X * 1e-4, "recompute"), Line("b", X * 1e-5, "swap", "dot"))
    marks = (Mark("run", 1024, 0.1, "swap", "square"),)
    figure = curves(X, lines, WORDS, theme, marks=marks)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert figure.layout.xaxis.ticktext == ("16", "64", "256", "1,024", "4,096", "16,384", "65,536")
    assert figure.layout.yaxis.ticktext == ("0.001", "0.01", "0.1", "1", "10")
    assert [trace.name for trace in figure.data] == ["a", "b", "run"]
    assert figure.data[0].line.dash != figure.data[1].line.dash


def test_borders_and_limits_stand_where_they_were_put():
    lines = (Line("a", X, "recompute"),)
    figure = curves(X, lines, WORDS, borders=(Border(95.0, "border"),), across=(10.0, "limit"))
    upright, level = figure.layout.shapes
    assert (upright.x0, upright.x1) == (95.0, 95.0)
    assert (level.y0, level.y1) == (10.0, 10.0)
    places = {note.text: (note.x, note.y) for note in figure.layout.annotations}
    assert places["border"][0] == pytest.approx(np.log10(95))
    assert places["limit"][1] == pytest.approx(1)


def test_linear_axes_keep_the_range_that_was_asked_for():
    figure = curves(X, (Line("a", X, 0),), WORDS, log=(False, False), y_range=(0.0, 3.0))
    assert figure.layout.yaxis.range == (0.0, 3.0)
    assert figure.layout.xaxis.type is None


@pytest.mark.parametrize("theme", THEMES)
def test_every_ratio_is_printed_and_the_line_is_at_one(theme):
    rows = (
        Ratio("first", 1.94, (("x", 2.5), ("y", 0.7)), "n* = 48,430"),
        Ratio("second", 0.102, (("x", 0.2),)),
    )
    figure = ratios(rows, WORDS, theme)
    others, swap, recompute = figure.data
    assert len(others.x) == 3
    assert (list(swap.y), list(recompute.y)) == (["second"], ["first"])
    assert swap.marker.symbol != recompute.marker.symbol
    assert "<b>1.94</b> · n* = 48,430" in notes(figure)
    assert "<b>0.102</b>" in notes(figure)
    (line,) = figure.layout.shapes
    assert (line.x0, line.x1) == (1, 1)
    low, high = figure.layout.xaxis.range
    assert low < np.log10(0.102) < np.log10(2.5) < high


def test_nobody_on_one_side_leaves_an_entry_of_the_legend():
    figure = ratios((Ratio("one", 0.5, ()),), WORDS)
    assert list(figure.data[2].x) == [None]


def test_measured_shares_stand_beside_powers_of_the_chance():
    bars, points = chances((0.5, 0.3), 0.6, WORDS).data
    assert list(bars.y) == [50, 30]
    assert list(points.y) == [60, pytest.approx(36)]
    assert bars.marker.pattern.shape


def test_words_of_a_late_border_stand_on_its_left():
    late, early = Border(60_000.0, "late"), Border(20.0, "early")
    figure = curves(X, (Line("a", X, 0),), WORDS, borders=(late, early))
    sides = {note.text: note.xanchor for note in figure.layout.annotations}
    assert (sides["late"], sides["early"]) == ("right", "left")
