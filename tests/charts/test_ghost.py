"""Ghosts over the timeline are the baseline's curves, and leave the figure itself alone."""

import numpy as np
import pytest

from charts.ghost import with_baseline
from charts.palette import COLORS, GHOST, THEMES
from charts.timeline import ROWS, timeline
from tests.charts.runs import named, run, timeline_of
from ui.language import LANGUAGES, translator

T = translator("en")


def pair(baseline_policy="static", theme="light", t=T):
    data, baseline = timeline_of(run()), timeline_of(run(policy=baseline_policy))
    figure = timeline(data, t, theme)
    return figure, with_baseline(figure, data, baseline, t, theme), data, baseline


def area(trace):
    return float(np.sum(np.diff(trace.x) * np.array(trace.y)[:-1]))


@pytest.mark.parametrize("policy", ["static", "sarathi", "vllm-v1"])
def test_the_curves_are_the_baselines(policy):
    _, figure, data, baseline = pair(policy)
    columns = baseline.result.iterations
    took_s = columns["end_s"] - columns["start_s"]
    ghosts = dict(zip(ROWS, named(figure, "baseline"), strict=True))
    for row, column in (
        ("batch", columns["decode_requests"] + columns["prefill_requests"]),
        ("kv", columns["blocks_used"]),
        ("queue", columns["waiting"]),
    ):
        assert area(ghosts[row]) == pytest.approx((column * took_s).sum(), rel=1e-9)
        assert len(ghosts[row].x) <= 500
    missed = len(baseline.ttft_missed_s) + len(baseline.tpot_missed_s)
    assert area(ghosts["slo"]) / (data.until_s / 80) == pytest.approx(missed)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_thin_dashed_ink_and_one_line_in_the_legend(theme, language):
    t = translator(language)
    _, figure, _, _ = pair(theme=theme, t=t)
    ghosts = named(figure, t("ghost.baseline"))
    assert len(ghosts) == 4
    assert [ghost.showlegend for ghost in ghosts] == [True, False, False, False]
    for ghost in ghosts:
        assert (ghost.line.color, ghost.line.dash, ghost.line.width) == (
            COLORS[theme]["ink"],
            GHOST["dash"],
            GHOST["width"],
        )


def test_the_axes_make_room_and_limits_go_along():
    before, after, data, baseline = pair()
    assert after.layout.xaxis.range == (0, max(data.until_s, baseline.until_s))
    assert baseline.until_s > data.until_s
    waiting = baseline.result.iterations["waiting"].max()
    assert after.layout.yaxis3.range[1] > waiting > before.layout.yaxis3.range[1]
    assert {s.x1 for s in after.layout.shapes if s.type == "line"} == {baseline.until_s}


def test_the_figure_itself_is_not_changed():
    data, baseline = timeline_of(run()), timeline_of(run(policy="static"))
    figure = timeline(data, T)
    before = figure.to_json()
    with_baseline(figure, data, baseline, T)
    assert figure.to_json() == before


def test_a_run_is_its_own_ghost():
    data = timeline_of(run())
    figure = timeline(data, T)
    same = with_baseline(figure, data, data, T)
    for axis in ("xaxis", "yaxis", "yaxis2", "yaxis3", "yaxis4"):
        assert tuple(same.layout[axis].range) == tuple(figure.layout[axis].range)


def test_a_baseline_far_longer_than_the_run_has_few_bars_of_misses():
    data = timeline_of(run("customer-service", workload__streams__0__n_requests=3))
    baseline = timeline_of(run(policy="static"))
    figure = with_baseline(timeline(data, T), data, baseline, T)
    assert max(len(ghost.x) for ghost in named(figure, "baseline")) <= 500
    missed = len(baseline.ttft_missed_s) + len(baseline.tpot_missed_s)
    bar_s = data.until_s / 80
    assert area(named(figure, "baseline")[3]) / bar_s == pytest.approx(missed)
