"""Figures of the lesson on throughput: what they show is what they were given."""

import numpy as np
import pytest

from charts.palette import THEMES
from charts.throughput import Bar, Line, Mark, bars, factors, lines, shares

WORDS = dict.fromkeys(("title", "more", "x", "y", "unit", "batch", "run"), "word")


def said(key, **values):
    return " ".join([key, *(f"{name}={value}" for name, value in values.items())])


def areas(figure):
    """The area of each rectangle."""
    return [(max(trace.x) - min(trace.x)) * (max(trace.y) - min(trace.y)) for trace in figure.data]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("state", "whole"), [("printed", 2.3 * 3.56), ("alike", 2.3), ("same", 3.56)]
)
def test_the_parts_of_the_promise_add_up(state, whole, theme):
    figure = factors(2.3, 3.56, state, said, theme)
    assert sum(areas(figure)) == pytest.approx(whole)
    notes = " ".join(note.text for note in figure.layout.annotations)
    assert ("thr.area.batch percent=+130" in notes) == (state != "same")
    assert ("thr.area.lengths" in notes) == (state != "alike")


def test_what_is_printed_stays_as_an_outline():
    assert not factors(2.3, 3.56, "printed", said).layout.shapes
    (outline,) = factors(2.3, 3.56, "alike", said).layout.shapes
    assert (outline.x1, outline.y1) == (2.3, 3.56)


def test_a_smaller_batch_draws_no_gain():
    figure = factors(0.5, 3.0, "printed", said)
    assert sum(areas(figure)) == pytest.approx(1.5)


def test_only_bars_with_a_range_have_whiskers():
    rows = (Bar("claimed", 8.19, "claim"), Bar("computed", 1.8, "computed", 1.5, 2.0))
    figure = bars(rows, "title", "more", "axis")
    whiskers = figure.data[1]
    assert list(whiskers.y) == ["computed"]
    assert whiskers.error_x.array[0] == pytest.approx(0.2)
    assert whiskers.error_x.arrayminus[0] == pytest.approx(0.3)


def test_shares_are_percent():
    figure = shares({"a": [1.0, 0.14], "b": [1.0, 0.22]}, ["one", "two"], "title", "more")
    assert list(figure.data[0].y) == [100.0, pytest.approx(14.0)]
    assert figure.data[0].marker.pattern.shape != figure.data[1].marker.pattern.shape


@pytest.mark.parametrize("theme", THEMES)
def test_lines_come_with_bands_and_marks(theme):
    x = np.array([1.0, 2.0, 4.0])
    curves = (Line("a", x, "decode", band=(x / 2, x * 2)), Line("b", x, 0, "dot"))
    marks = (Mark("run", 2, 2.1, "decode"), Mark("", 1, 1.1, 0))
    figure = lines(x, curves, marks, WORDS, theme, at=((2.0, "B"),), most=5.0)
    assert [trace.showlegend for trace in figure.data] == [False, None, None, True, False]
    assert figure.layout.yaxis.range == (0, 5.0)
    assert figure.layout.xaxis.type == "log"
