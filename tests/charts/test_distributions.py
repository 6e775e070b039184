"""The four panels say what the metrics say, of everybody and by class."""

import numpy as np
import pytest

from charts.distributions import WORDS, description, distributions, latencies
from charts.ecdf import MAX_POINTS
from charts.palette import COLORS, DASHES, GHOST, SERIES, THEMES
from model import metrics
from model.requests import Requests
from model.simulator import simulate
from tests.charts.runs import PRESETS, named, notes, run, without_scenario
from ui.language import LANGUAGES, translator

T = translator("en")
SHARES = (50, 90, 99)


def dots(figure):
    return [trace for trace in figure.data if trace.mode == "markers"]


def curves(figure):
    return [trace for trace in figure.data if trace.mode == "lines"]


@pytest.mark.parametrize("preset", PRESETS)
def test_percentiles_are_those_of_the_summary(preset):
    result = run(preset)
    data, numbers = latencies(result), metrics.summary(result)
    for word in WORDS:
        expected = [numbers[f"{word}_p{share}_s"] for share in SHARES]
        np.testing.assert_allclose(data.samples[word].percentiles(SHARES), expected, rtol=1e-12)


def test_dots_stand_at_the_percentiles_and_say_their_values():
    result = run("customer-service")
    numbers = metrics.summary(result)
    figure = distributions(latencies(result), T)
    ttft, tpot = dots(figure)[:2]
    assert ttft.y.tolist() == [0.5, 0.9, 0.99]
    expected_ms = [1e3 * numbers[f"ttft_p{share}_s"] for share in SHARES]
    np.testing.assert_allclose(ttft.x, expected_ms)
    assert tpot.text[0] == f"P50 {1e3 * numbers['tpot_p50_s']:.1f} ms"
    assert tpot.text[0] in notes(figure)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_draws_in_every_theme_and_language_with_few_points(theme, language):
    t = translator(language)
    for preset in ("law", "interactive-offline"):
        figure = distributions(latencies(run(preset)), t, theme, baseline=latencies(run()))
        assert max(len(trace.x) for trace in figure.data) <= MAX_POINTS
        assert {trace.line.color for trace in curves(figure)} <= {
            *SERIES[theme],
            COLORS[theme]["ink"],
        }
        assert figure.layout.plot_bgcolor == COLORS[theme]["panel"]
        assert figure.layout.xaxis.title.text.startswith("TTFT")


def test_the_bound_stands_where_it_is_with_the_share_that_keeps_it():
    result = run()  # TTFT bound 2 s
    figure = distributions(latencies(result), T)
    line = figure.layout.shapes[0]
    assert (line.x0, line.xref, line.line.color) == (2.0, "x", COLORS["light"]["violated"])
    assert figure.layout.xaxis.type == "log"
    share = np.mean(metrics.ttft_s(result.requests) <= 2.0)
    assert f"bound 2 s: {100 * share:.1f} % within" in notes(figure)
    # A note on a log axis stands at the logarithm.
    note = next(n for n in figure.layout.annotations if n.text.startswith("bound 2 s"))
    assert note.x == pytest.approx(np.log10(2.0))


def test_a_bound_far_away_is_an_arrow_not_a_flat_curve():
    figure = distributions(latencies(run("customer-service")), T)  # bound 1 s, longest 0.2 s
    assert "bound 1 s: 100 % within →" in notes(figure)
    assert figure.layout.xaxis.range[1] < 1000
    assert all(shape.xref != "x" for shape in figure.layout.shapes)


def test_log_axes_only_beyond_two_decades():
    figure = distributions(latencies(run()), T)
    samples = latencies(run()).samples
    for axis, word in zip(("xaxis", "xaxis2", "xaxis3", "xaxis4"), WORDS, strict=True):
        values = samples[word].values
        is_log = figure.layout[axis].type == "log"
        assert is_log == (values[-1] / values[0] > 100), word


def test_classes_are_told_apart_by_color_and_dash():
    result = run("interactive-offline")
    data = latencies(result)
    assert list(data.by_class) == ["interactive", "offline"]
    table = metrics.class_summary(result)
    gaps_s, owner = result.itl_s()
    for index, (name, samples) in enumerate(data.by_class.items()):
        for word in ("ttft", "tpot", "e2e"):
            expected = [table[name][f"{word}_p{share}_s"] for share in SHARES]
            np.testing.assert_allclose(samples[word].percentiles(SHARES), expected, rtol=1e-12)
        mine = gaps_s[result.requests["request_class"][owner] == index]
        assert samples["itl"].size == len(mine)
        np.testing.assert_allclose(samples["itl"].percentiles(SHARES), np.percentile(mine, SHARES))
    figure = distributions(data, T)
    for index, name in enumerate(data.by_class):
        traces = named(figure, name)
        assert len(traces) == 4
        assert {trace.line.dash for trace in traces} == {DASHES[index]}
        assert [trace.showlegend for trace in traces] == [True, False, False, False]


def test_many_classes_are_folded():
    names = tuple(f"class {i}" for i in range(9))
    n = 45
    requests = Requests.from_columns(
        arrival_s=np.arange(n) * 0.05,
        prompt_tokens=np.full(n, 30),
        output_tokens=np.full(n, 5),
        request_class=np.repeat(np.arange(9), 5),
        class_names=names,
    )
    result = simulate(run("customer-service").scenario, requests)
    data = latencies(result, "other classes")
    assert list(data.by_class) == [*names[:3], "other classes"]
    assert sum(samples["ttft"].size for samples in data.by_class.values()) == n


def test_the_baseline_is_one_thin_dashed_line_a_panel():
    data, baseline = latencies(run()), latencies(run(policy="static"))
    figure = distributions(data, T, baseline=baseline)
    ghosts = named(figure, "baseline")
    assert [ghost.showlegend for ghost in ghosts] == [True, False, False, False]
    for ghost, word in zip(ghosts, WORDS, strict=True):
        assert ghost.line.dash == GHOST["dash"]
        assert ghost.line.width == GHOST["width"]
        assert ghost.line.color == COLORS["light"]["ink"]
        factor = 1.0 if baseline.samples[word].values[-1] >= 1 or word != "tpot" else 1e3
        assert max(ghost.x) == pytest.approx(baseline.samples[word].values[-1] * factor)
    # The axis has room for it.
    assert 10 ** figure.layout.xaxis.range[1] > baseline.samples["ttft"].values[-1]


def with_refused(refused):
    """Four requests, of which so many are longer than the model's context."""
    prompts = np.where(np.arange(4) < refused, 100_000, 30)
    requests = Requests.from_columns(
        arrival_s=np.zeros(4), prompt_tokens=prompts, output_tokens=np.full(4, 5)
    )
    return simulate(run("customer-service").scenario, requests)


def test_who_never_got_a_token_is_counted_in_the_heading():
    assert "3 of 4 requests" in notes(distributions(latencies(with_refused(1)), T))


def test_a_run_without_tokens_says_so():
    data = latencies(with_refused(4))
    assert notes(distributions(data, T)).count("no request has this value") == 4
    assert "no values" in description(data, T)


def test_a_recording_has_no_bounds():
    figure = distributions(latencies(without_scenario(run())), T)
    assert not figure.layout.shapes


def test_names_cannot_smuggle_markup():
    requests = Requests.from_columns(
        arrival_s=np.zeros(4),
        prompt_tokens=np.full(4, 30),
        output_tokens=np.full(4, 5),
        request_class=np.array([0, 0, 1, 1]),
        class_names=("<a href='x'>a</a>", "b%{x}"),
    )
    figure = distributions(latencies(simulate(run("customer-service").scenario, requests)), T)
    for trace in curves(figure):
        assert "<a" not in trace.name + trace.hovertemplate
        assert "b%{x}" not in trace.hovertemplate


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_description_has_the_numbers(language):
    result = run("interactive-offline")
    text = description(latencies(result), translator(language))
    assert f"{1e3 * metrics.summary(result)['tpot_p50_s']:.1f} ms" in text
    assert "offline" in text
