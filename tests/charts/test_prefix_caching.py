"""The stacked bars of the lesson on prefix caching."""

import pytest

from charts.palette import THEMES
from charts.prefix_caching import Part, stacked

WORDS = dict.fromkeys(("title", "more", "x", "y", "unit", "formula"), "word")
PARTS = (Part("found", (0, 784), "free"), Part("computed", (600, 76), "prefill"))


@pytest.mark.parametrize("theme", THEMES)
def test_parts_stand_on_each_other_and_differ_in_pattern(theme):
    figure = stacked(["1", "2"], PARTS, WORDS, theme, formula=(0, 784))
    found, computed, said = figure.data
    assert figure.layout.barmode == "stack"
    assert [f + c for f, c in zip(found.y, computed.y, strict=True)] == [600, 860]
    assert list(said.y) == [0, 784]
    assert found.marker.pattern.shape != computed.marker.pattern.shape


def test_groups_have_two_lines_of_labels():
    figure = stacked((["a", "b"], ["1", "1"]), PARTS, WORDS)
    assert figure.layout.xaxis.type == "multicategory"
    assert [list(line) for line in figure.data[0].x] == [["a", "b"], ["1", "1"]]
    assert len(figure.data) == 2
