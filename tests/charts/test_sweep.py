"""A sweep's chart: means and bands of its columns, dots for names, crosses for what cannot run."""

import numpy as np
import pytest

from charts.palette import COLORS, GHOST, SERIES, THEMES
from charts.sweep import Pinned, description, sweep_chart
from charts.sweep_axis import ParameterAxis
from model import catalogue
from model.errors import LabError
from model.experiment import Impossible, Sweep, sweep
from model.metrics import METRICS
from tests.charts.runs import named, notes
from ui.language import LANGUAGES, error_sentence, translator

T = translator("en")
SCENARIO = catalogue.presets()["customer-service"].scenario
REFUSED = LabError("out_of_range", field="policy.max_num_seqs", value=0, low=1, high=9)


def made(values, samples, metric="ttft_p99_s", *, impossible=(), parameter="policy.max_num_seqs"):
    """A sweep as if it had run: for each value the numbers of its seeds 0, 1, 2, ..."""
    ran = [(v, seed, x) for v, s in zip(values, samples, strict=True) for seed, x in enumerate(s)]
    numbers = all(isinstance(value, int | float) for value in values)
    return Sweep(
        SCENARIO,
        parameter,
        tuple(values),
        tuple(range(max(map(len, samples), default=1))),
        (metric,),
        {
            "value": np.array([v for v, _, _ in ran], dtype=None if numbers else object),
            "seed": np.array([seed for _, seed, _ in ran], dtype=int),
            metric: np.array([x for _, _, x in ran], dtype=float),
        },
        tuple(impossible),
    )


def mean_of(figure):
    return named(figure, T("sweep.mean"))[0]


def test_the_line_is_the_mean_in_the_unit_of_the_axis():
    figure = sweep_chart(made((1, 2, 4), [[0.1, 0.3], [0.2, 0.2], [0.4, 0.8]]), "ttft_p99_s", T)
    line = mean_of(figure)
    assert list(line.x) == [1, 2, 4]
    np.testing.assert_allclose(line.y, [200, 200, 600])  # ms
    assert line.mode == "lines+markers"
    assert "ms · 2 seeds" in notes(figure)
    assert "0.1" not in line.customdata[1]
    assert line.customdata[0] == ", 100 to 300"


def test_the_band_is_named_for_what_it_is():
    two = sweep_chart(made((1, 2), [[0.1, 0.3], [0.2, 0.6]]), "ttft_p99_s", T)
    (band,) = named(two, T("sweep.band.range"))
    np.testing.assert_allclose(band.y, [300, 600, 200, 100])
    assert list(band.x) == [1, 2, 2, 1]
    found = made((1, 2), [[0.1, 0.2, 0.3], [0.2, 0.4, 0.6]])
    three = sweep_chart(found, "ttft_p99_s", T)
    (band,) = named(three, T("sweep.band.t95"))
    # Student's t for 2 degrees of freedom at 97.5 % is 4.3027.
    assert band.y[0] == pytest.approx(200 + 4.3027 * 100 / np.sqrt(3), rel=1e-4)


def test_one_seed_has_no_band():
    figure = sweep_chart(made((1, 2), [[0.1], [0.2]]), "ttft_p99_s", T)
    assert not named(figure, T("sweep.band.range"))
    assert "1 seed" in notes(figure)


def test_what_cannot_run_is_a_cross_with_its_sentence_and_a_gap_in_the_line():
    found = made(
        (1, 2, 3, 4),
        [[0.1, 0.2], [0.2, 0.2], [], [0.3, 0.4]],
        impossible=[Impossible(3, None, REFUSED)],
    )
    figure = sweep_chart(found, "ttft_p99_s", T)
    (cross,) = named(figure, T("sweep.impossible"))
    assert list(cross.x) == [3]
    assert cross.customdata[0].replace("<br>", " ") == str(REFUSED)
    assert cross.marker.color == COLORS["light"]["violated"]
    assert np.isnan(mean_of(figure).y[2])
    assert len(named(figure, T("sweep.band.range"))) == 2  # a band on each side of the gap


def test_some_seeds_may_fail_alone():
    found = made((1, 2), [[0.1, 0.2], [0.2]], impossible=[Impossible(2, 1, REFUSED)])
    figure = sweep_chart(found, "ttft_p99_s", T)
    (cross,) = named(figure, T("sweep.impossible"))
    assert cross.customdata[0].startswith("With 1 seed: ")
    assert not np.isnan(mean_of(figure).y).any()


def test_sentences_can_be_translated_and_are_wrapped():
    found = made((1, 2), [[0.1], []], impossible=[Impossible(2, None, REFUSED)])
    figure = sweep_chart(
        found,
        "ttft_p99_s",
        translator("zh"),
        sentence=lambda error: error_sentence(error, "zh") * 4,
    )
    (cross,) = named(figure, translator("zh")("sweep.impossible"))
    assert "须在" in cross.customdata[0]
    assert max(map(len, cross.customdata[0].split("<br>"))) <= 30


@pytest.mark.parametrize("values", [("orca", "static"), (False, True), (None, 512)])
def test_names_switches_and_mixtures_are_dots(values):
    found = made(values, [[0.1, 0.2], [0.3, 0.5]])
    figure = sweep_chart(found, "ttft_p99_s", T, word=lambda value: f"<{value}>")
    dots = mean_of(figure)
    assert dots.mode == "markers"
    assert list(dots.x) == [0, 1]
    np.testing.assert_allclose(dots.y, [150, 400])
    assert figure.layout.xaxis.ticktext[0] == f"‹{values[0]}>"
    (whiskers,) = named(figure, T("sweep.band.range"))
    np.testing.assert_allclose(whiskers.error_y.array, [50, 100])
    np.testing.assert_allclose(whiskers.error_y.arrayminus, [50, 100])


def test_numbers_stand_at_themselves_whatever_their_order():
    figure = sweep_chart(made((4, 1, 2), [[0.4], [0.1], [0.2]]), "ttft_p99_s", T)
    assert list(mean_of(figure).x) == [1, 2, 4]
    np.testing.assert_allclose(mean_of(figure).y, [100, 200, 400])


def test_a_geometric_series_gets_a_log_axis():
    assert ParameterAxis.of((1, 2, 4, 8, 16)).log
    assert ParameterAxis.of((0.05, 0.1, 0.5, 1.0, 5.0)).log
    assert not ParameterAxis.of((1, 2, 3, 4, 5)).log
    assert not ParameterAxis.of((0, 2, 4, 8, 16)).log
    assert not ParameterAxis.of((10, 20, 40)).log
    ticks = ParameterAxis.of(tuple(range(1, 101))).layout()["tickvals"]
    assert len(ticks) <= 20


def test_short_times_beside_long_ones_get_a_log_axis_and_shares_never():
    times = sweep_chart(made((1, 2), [[0.1, 0.1, 0.1], [2.0, 40.0, 9.0]]), "ttft_p99_s", T)
    axis = times.layout.yaxis
    assert axis.type == "log"
    (band,) = named(times, T("sweep.band.t95"))
    assert min(band.y) >= 10 ** axis.range[0] * (1 - 1e-9)  # a logarithm has no place for less
    note = next(n for n in times.layout.annotations if n.text.startswith("bound"))
    assert note.y == pytest.approx(np.log10(1.0))
    shares = made((1, 2), [[0.001], [0.9]], "slo_attainment_share")
    assert sweep_chart(shares, "slo_attainment_share", T).layout.yaxis.type != "log"


def test_latencies_have_the_line_of_their_bound():
    figure = sweep_chart(made((1, 2), [[0.9], [1.5]]), "ttft_p99_s", T)
    (line,) = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert (line.y0, line.line.color) == (1.0, COLORS["light"]["violated"])
    far = sweep_chart(made((1, 2), [[0.01], [0.02]]), "ttft_p99_s", T)
    assert not far.layout.shapes
    itself = made((1.0, 2.0), [[0.9], [1.5]], parameter="slo.ttft_s")
    assert not sweep_chart(itself, "ttft_p99_s", T).layout.shapes


@pytest.mark.parametrize("theme", THEMES)
def test_the_baseline_is_a_diamond_on_a_dashed_level(theme):
    pinned = Pinned(3, {"ttft_p99_s": 0.5})
    found = made((1, 2), [[0.1], [0.2]])
    figure = sweep_chart(found, "ttft_p99_s", T, theme, pinned=pinned)
    (diamond,) = named(figure, T("ghost.baseline"))
    assert (list(diamond.x), list(diamond.y)) == ([3.0], [500.0])
    assert figure.layout.xaxis.range[1] > 3
    assert figure.layout.yaxis.range[1] > 500
    (line,) = [s for s in figure.layout.shapes if s.line.color == COLORS[theme]["ink"]]
    assert (line.y0, line.line.dash) == (500, GHOST["dash"])
    assert mean_of(figure).line.color == SERIES[theme][0]
    nowhere = sweep_chart(
        made(("orca", "static"), [[0.1], [0.2]]),
        "ttft_p99_s",
        T,
        theme,
        pinned=Pinned("sarathi", {"ttft_p99_s": 0.5}),
    )
    (diamond,) = named(nowhere, T("ghost.baseline"))
    assert list(diamond.y) == [None]
    assert {shape.y0 for shape in nowhere.layout.shapes} == {500.0, 1000.0}  # level and bound


def test_two_metrics_share_the_axis_and_the_legend():
    found = sweep(
        SCENARIO, "policy.max_num_seqs", (2, 8, 32), ("ttft_p50_s", "preemptions"), (0, 1)
    )
    figure = sweep_chart(found, "ttft_p50_s", T, second="preemptions", parameter="slots")
    first, second = named(figure, T("sweep.mean"))
    assert (first.yaxis, second.yaxis) == ("y", "y2")
    assert (first.showlegend, second.showlegend) == (True, False)
    assert figure.layout.xaxis.anchor == "y2"
    assert figure.layout.xaxis.title.text == "slots"
    curve = found.curve("preemptions")
    np.testing.assert_allclose(second.y, curve["mean"])
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]


def test_a_metric_that_is_nowhere_defined_and_an_empty_sweep_can_be_drawn():
    undefined = made((1, 2), [[np.nan], [np.nan]], "mfu_share")
    assert sweep_chart(undefined, "mfu_share", T).layout.yaxis.range == (0, 1)
    assert "no value has a result" in description(undefined, "mfu_share", T)
    cancelled = made((1, 2), [[], []])
    assert T("sweep.nothing") in notes(sweep_chart(cancelled, "ttft_p99_s", T))
    assert "no value has a result" in description(cancelled, "ttft_p99_s", T)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_metric_can_be_swept_in_every_language(language):
    t = translator(language)
    for metric in METRICS:
        found = made((1, 2), [[0.0, 1.0], [3.0, 5.0]], metric)
        figure = sweep_chart(found, metric, t)
        assert t(f"measure.{metric}") in notes(figure)
        assert t(f"measure.{metric}") in description(found, metric, t)


def test_the_description_names_the_extremes():
    found = made((1, 2, 4), [[0.3], [0.1], [2.0]], impossible=[Impossible(9, None, REFUSED)])
    text = description(found, "ttft_p99_s", T, parameter="slots")
    assert "lowest 100 ms at 2" in text
    assert "highest 2.00 s at 4" in text
    assert "1 values cannot run" in text
