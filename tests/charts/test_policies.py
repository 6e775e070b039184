"""Several policies in one picture and in one table: the numbers are those of the metrics."""

import math
import re

import numpy as np
import pytest

from charts.ecdf import MAX_POINTS
from charts.palette import COLORS, THEMES
from charts.policies import MOST, WORDS, curves, description, distributions, style
from charts.policy_table import Head, Row, marks, table
from model import metrics
from tests.charts.runs import named, notes, run
from ui.language import LANGUAGES, translator

T = translator("en")
POLICIES = ("static", "orca", "vllm-v0", "vllm-v1", "sarathi")
BOUNDS_S = {"ttft": 1.0, "tpot": 0.05}


def six():
    """As many curves as can be told apart."""
    runs = [curves(policy, run("conversation", policy)) for policy in POLICIES]
    return [*runs, curves("budget 512", run("conversation", policy__max_num_batched_tokens=512))]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_six_curves_a_panel_in_every_theme_and_language(theme, language):
    figure = distributions(six(), BOUNDS_S, translator(language), theme)
    assert len(figure.data) == MOST * len(WORDS)
    assert max(len(trace.x) for trace in figure.data) <= MAX_POINTS + 1
    assert sum(trace.showlegend for trace in figure.data) == MOST
    assert figure.layout.plot_bgcolor == COLORS[theme]["panel"]


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_curves_look_alike_even_without_color(theme):
    styles = [style(place, theme) for place in range(MOST)]
    for name in ("dash", "color"):
        assert len({one[name] for one in styles}) == MOST


def test_a_curve_stands_for_all_values_of_its_run():
    result = run("conversation", "vllm-v0")
    figure = distributions([curves("V0", result)], BOUNDS_S, T)
    ttft, tpot, itl = named(figure, "V0")
    numbers = metrics.summary(result)
    assert ttft.x[-1] == pytest.approx(metrics.ttft_s(result.requests).max())  # seconds
    assert tpot.x[-1] == pytest.approx(1e3 * np.nanmax(metrics.tpot_s(result.requests)))
    assert itl.x[-1] == pytest.approx(numbers["itl_max_s"])
    assert ttft.y[-1] == tpot.y[-1] == itl.y[-1] == 1


def test_bounds_are_lines_where_there_is_a_promise():
    figure = distributions(six(), BOUNDS_S, T)
    assert len(figure.layout.shapes) == 2
    assert "bound 1 s" in notes(figure)
    assert "bound 50 ms" in notes(figure)


def test_a_bound_far_away_is_an_arrow():
    figure = distributions([curves("V1", run("customer-service"))], {"tpot": 5.0}, T)
    assert not figure.layout.shapes
    assert "bound 5 s →" in notes(figure)


def test_the_words_say_percentiles_and_shares_of_each_policy():
    result = run("conversation")
    numbers = metrics.summary(result)
    said = description([curves("V1", result)], BOUNDS_S, T)
    within = (metrics.tpot_s(result.requests) <= 0.05 + 1e-9).mean()
    assert f"TTFT P50 {1e3 * numbers['ttft_p50_s']:.0f} ms" in said
    assert f"{100 * within:.1f} % within the bound of 50 ms" in said


# -- the table -------------------------------------------------------------------------------------

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "better", "expected"),
    [
        ((3, 1, 2), "higher", ("best", "worst", "")),
        ((3, 1, 2), "lower", ("worst", "best", "")),
        ((3, 1, 2), "", ("", "", "")),
        ((3, 3, 2), "higher", ("", "", "worst")),
        ((2, 2, 2), "higher", ("", "", "")),
        ((3, NAN, 2), "lower", ("worst", "", "best")),
        ((3, NAN, NAN), "lower", ("", "", "")),
        ((NAN, NAN), "lower", ("", "")),
        ((10.01, 10.02, 20), "lower", ("", "", "worst")),  # 10.0 both, as shown
        ((0.0, 0.0, 5), "lower", ("", "", "worst")),
    ],
)
def test_best_and_worst_of_a_row(values, better, expected):
    assert marks(values, better) == expected


def html(rows, theme="light"):
    return table([Head("One", "budget 512"), Head("Two", is_panel=True)], rows, T, theme)


def test_a_mark_is_a_sign_and_a_word():
    page = html([Row("Price", "preemptions", "Preemptions", "Times.", (3.0, 7.0))])
    cells = re.findall(r"<td.*?</td>", page)
    assert "▲" in cells[0]
    assert 'best of the row' in cells[0]
    assert "▽" in cells[1]
    assert "3 times" in cells[0]
    assert page.count("in the panel") == 1


def test_groups_are_named_once():
    rows = [
        Row("TTFT", "ttft_p50_s", "TTFT P50", "", (0.1, 0.2)),
        Row("TTFT", "ttft_p99_s", "TTFT P99", "", (1.0, 0.2)),
        Row("Price", "iterations", "Iterations", "", (10, 20)),
    ]
    page = html(rows)
    assert page.count("il-group'") + page.count('il-group"') == 2
    assert "▲" not in page.partition("Price")[2]  # of iterations neither fewer nor more are better


def test_names_of_classes_cannot_act_as_markup():
    page = html([Row("g", "preemptions", "<script>x</script>", "\"'<b>", (1.0, 2.0))])
    assert "<script>" not in page
    assert "<b>" not in page
