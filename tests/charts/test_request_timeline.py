"""Bars and marks of the chosen requests are where the columns say, few, and readable."""

import dataclasses

import numpy as np
import pytest

from charts.lives import STATES, interesting, lives, window
from charts.palette import COLORS, PATTERNS, THEMES
from charts.request_timeline import MAX_SEGMENTS, MOST_ROWS, description, request_timeline
from model import metrics
from model.requests import Requests
from model.simulator import simulate
from tests.charts.runs import PRESETS, named, notes, run, without_scenario
from ui.language import LANGUAGES, translator

T = translator("en")


def bars(figure, state):
    """Place, start and length of a state's bars; the trace that only feeds the legend is empty."""
    key, trace = named(figure, T(f"life.{state}"))
    assert is_key(key)
    assert not is_key(trace)
    assert trace.showlegend is False
    return np.array(trace.y), np.array(trace.base, float), np.array(trace.x, float)


def is_key(trace):
    return trace.x[0] is None


@pytest.mark.parametrize("policy", [None, "static", "vllm-v0"])
@pytest.mark.parametrize("preset", PRESETS)
def test_it_is_made_of_few_bars(preset, policy):
    result = run(preset, policy)
    figure = request_timeline(result, interesting(result, 30), T)
    assert max(len(trace.x) for trace in figure.data) <= MAX_SEGMENTS
    assert figure.layout.height <= 700


def test_bars_are_the_segments_of_the_lives():
    result = run("law")
    rows = window(result, 24)
    figure = request_timeline(result, rows, T)
    expected = lives(result, rows)
    for state in ("decode", "preempted"):
        place, start_s, length_s = bars(figure, state)
        np.testing.assert_array_equal(place, expected[state].place)
        np.testing.assert_allclose(start_s, expected[state].start_s)
        np.testing.assert_allclose(start_s + length_s, expected[state].end_s)


def test_short_prefills_are_drawn_wide_enough_to_be_seen():
    result = run()
    rows = interesting(result, 30)
    _, start_s, length_s = bars(request_timeline(result, rows, T), "prefill")
    shown_s = result.requests["end_s"][rows].max() - result.requests["arrival_s"][rows].min()
    assert length_s.min() >= shown_s / 500 - 1e-9
    expected = lives(result, rows, shown_s / 500)["prefill"]
    np.testing.assert_allclose(start_s, expected.start_s)


def test_waiting_turns_late_at_the_ttft_bound():
    result = run()
    rows = interesting(result, 30)
    figure = request_timeline(result, rows, T)
    columns = {name: column[rows] for name, column in result.requests.items()}
    place, start_s, length_s = bars(figure, "late")
    np.testing.assert_allclose(start_s, columns["arrival_s"][place] + 2.0)
    np.testing.assert_allclose(start_s + length_s, columns["first_scheduled_s"][place])
    total = np.zeros(len(rows))
    for state in ("waiting", "late"):
        place, _, length_s = bars(figure, state)
        total += np.bincount(place, length_s, minlength=len(rows))
    np.testing.assert_allclose(total, columns["first_scheduled_s"] - columns["arrival_s"])


def test_marks_stand_at_their_moments():
    result = run()
    rows = interesting(result, 30)
    figure = request_timeline(result, rows, T)
    columns = {name: column[rows] for name, column in result.requests.items()}
    slo = result.scenario.slo
    for name, times in (
        ("first_token", columns["first_token_s"]),
        ("finish", columns["end_s"]),
        ("ttft_missed", metrics.ttft_violation_s(columns, slo)),
        ("tpot_missed", metrics.tpot_violation_s(columns, slo)),
    ):
        (trace,) = named(figure, T(f"mark.{name}"))
        there = np.flatnonzero(~np.isnan(times))
        np.testing.assert_allclose(trace.x, times[there])
        np.testing.assert_allclose(trace.y, there, atol=0.3)


def test_rows_are_named_and_go_down_by_arrival():
    result = run()
    rows = interesting(result, 30)
    axis = request_timeline(result, rows, T).layout.yaxis
    assert list(axis.ticktext) == [str(name) for name in result.requests["request_id"][rows]]
    assert axis.range[0] > axis.range[1]
    assert "30 of 200" in notes(request_timeline(result, rows, T))


def test_never_more_rows_than_can_be_read():
    result = run()
    figure = request_timeline(result, np.arange(200), T)
    assert len(figure.layout.yaxis.tickvals) == MOST_ROWS


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_hue_and_pattern_mean_the_same_in_every_theme_and_language(theme, language):
    t = translator(language)
    swaps = run(policy="vllm-v0", policy__preemption_mode="swap")
    for result, states in ((run(), ("prefill", "recompute")), (swaps, ("swapped", "paused"))):
        figure = request_timeline(result, interesting(result, 30), t, theme)
        for state in states:
            meaning = {"swapped": "swap", "paused": "free"}.get(state, state)
            key = named(figure, t(f"life.{state}"))[0]
            assert key.marker.pattern.shape == PATTERNS[meaning]
        (late, _) = named(figure, t("life.late"))
        assert late.marker.pattern.shape == PATTERNS["late"]
        (missed,) = named(figure, t("mark.ttft_missed"))
        assert missed.marker.color == COLORS[theme]["violated"]


def test_bars_that_share_a_height_differ_in_hue_or_pattern():
    result = run(policy="vllm-v0")
    figure = request_timeline(result, interesting(result, 30), T)
    keys = [trace for trace in figure.data if trace.type == "bar" and is_key(trace)]
    looks = [(key.marker.pattern.shape, key.marker.pattern.bgcolor) for key in keys]
    assert len(set(looks)) == len(looks)
    assert {trace.legend for trace in keys} == {"legend", "legend2"}


def test_hover_says_who_what_and_how_long():
    result = run("interactive-offline")
    rows = window(result, 3)
    figure = request_timeline(result, rows, T)
    trace = named(figure, "decode")[1]
    who, length, start, end = trace.customdata[0]
    classes = result.inputs.class_names[result.requests["request_class"][rows[trace.y[0]]]]
    assert who == f"{result.requests['request_id'][rows[trace.y[0]]]} · {classes}"
    assert float(end) - float(start) == pytest.approx(trace.x[0], abs=0.011)
    assert length.endswith(" s")


def test_names_cannot_smuggle_markup():
    n = 3
    requests = Requests.from_columns(
        arrival_s=np.zeros(n),
        prompt_tokens=np.full(n, 30),
        output_tokens=np.full(n, 5),
        request_id=("<b>x</b>", "y" * 300, "z"),
    )
    result = simulate(run("customer-service").scenario, requests)
    figure = request_timeline(result, np.arange(n), T)
    assert "<b>" not in figure.layout.yaxis.ticktext[0]
    assert len(figure.layout.yaxis.ticktext[1]) <= 12
    assert "<b>" not in str(named(figure, "decode")[1].customdata)


def test_a_rejected_request_is_a_cross():
    requests = Requests.from_columns(
        arrival_s=np.zeros(2), prompt_tokens=np.array([30, 100_000]), output_tokens=np.full(2, 5)
    )
    result = simulate(run("customer-service").scenario, requests)
    figure = request_timeline(result, np.arange(2), T)
    (trace,) = named(figure, T("mark.reject"))
    assert (list(trace.x), list(trace.y)) == ([0.0], [1])


def test_nobody_and_a_recording_can_be_drawn():
    result = run()
    figure = request_timeline(result, np.array([], dtype=int), T)
    assert T("life.nobody") in notes(figure)
    bare = without_scenario(result)
    figure = request_timeline(bare, interesting(bare, 10), T)
    assert not named(figure, T("mark.ttft_missed"))
    assert not named(figure, T("life.late"))


def test_unfinished_lives_reach_to_the_end():
    result = run("customer-service")
    n = len(result.inputs)
    columns = result.requests | {
        "end_s": np.full(n, np.nan),
        "status": np.zeros(n, dtype=int),
    }
    figure = request_timeline(dataclasses.replace(result, requests=columns), window(result, 5), T)
    assert figure.layout.xaxis.range[1] > result.iterations["end_s"].max()
    assert not named(figure, T("mark.finish"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_description_has_the_numbers(language):
    result = run()
    rows = interesting(result, 30)
    text = description(result, rows, translator(language))
    assert f"{result.requests['preemptions'][rows].sum():,}" in text
    queue_s = metrics.queue_s(result.requests)[rows]
    assert f"{queue_s.max():.1f} s" in text
    assert "30" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_state_and_mark_has_a_word(language):
    t = translator(language)
    for state in (*STATES, "late", "legend.inside", "legend.outside", "legend.marks"):
        assert t(f"life.{state}")
    for mark in ("first_token", "finish", "cancel", "reject", "ttft_missed", "tpot_missed"):
        assert t(f"mark.{mark}")
