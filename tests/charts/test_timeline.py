"""The timeline says what the columns say, in colors and patterns that mean the same everywhere."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest

from charts.palette import COLORS, PATTERNS, THEMES, pattern
from charts.phases import batch_by_phase, blocks_by_use
from charts.timeline import description, timeline
from model import catalogue, metrics
from model.schedulers import POLICIES
from model.simulator import simulate
from tests.charts.runs import timeline_of
from ui.language import LANGUAGES, translator

ROOT = Path(__file__).resolve().parents[2]


def result_of(preset, policy=None):
    scenario = catalogue.presets()[preset].scenario
    if policy:
        old = scenario.policy
        scenario = dataclasses.replace(
            scenario, policy=POLICIES[policy](max_num_seqs=old.max_num_seqs)
        )
    return simulate(scenario)


@pytest.fixture(scope="module")
def storm():
    return result_of("preemption-storm")


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


@pytest.mark.parametrize("policy", [None, "orca", "static", "vllm-v0", "sarathi"])
@pytest.mark.parametrize("preset", ["preemption-storm", "interactive-offline"])
def test_phases_add_up(preset, policy):
    result = result_of(preset, policy)
    columns = result.iterations
    batch = batch_by_phase(result)
    assert all((part >= 0).all() for part in batch.values())
    total = columns["decode_requests"] + columns["prefill_requests"]
    np.testing.assert_array_equal(sum(batch.values()), total)
    blocks = blocks_by_use(result)
    assert all((part >= 0).all() for part in blocks.values())
    np.testing.assert_array_equal(sum(blocks.values()), columns["blocks_used"])


def test_recomputing_requests_are_those_that_recompute_tokens(storm):
    recompute = batch_by_phase(storm)["recompute"]
    tokens = storm.iterations["recompute_tokens"]
    assert recompute.any()
    assert ((tokens > 0) <= (recompute > 0)).all()


def test_only_policies_that_reserve_show_empty_blocks(storm):
    assert not blocks_by_use(storm)["empty"].any()
    reserved = blocks_by_use(result_of("interactive-offline", "orca"))
    assert reserved["empty"].max() > reserved["decode"].max()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figure_draws_in_every_language_and_theme(storm, language, theme):
    t = translator(language)
    figure = timeline(timeline_of(storm), t, theme)
    for meaning in ("decode", "prefill", "recompute"):
        area = trace(figure, t(f"phase.{meaning}"))
        assert area.line.color == COLORS[theme][meaning]
        assert area.fillpattern.shape == PATTERNS.get(meaning, "")
    assert figure.layout.xaxis.title.text == t("chart.time_s")
    assert max(len(t.x) for t in figure.data) <= 500


def test_every_missed_promise_is_in_the_bars(storm):
    t = translator("en")
    figure = timeline(timeline_of(storm), t)
    counts = metrics.violation_counts(storm.requests, storm.scenario.slo)
    for kind in ("ttft", "tpot"):
        assert np.nansum(trace(figure, t(f"slo.{kind}_missed")).y) == counts[kind]


def test_a_calm_run_says_so():
    scenario = catalogue.presets()["customer-service"].scenario
    slo = dataclasses.replace(scenario.slo, ttft_s=100.0, tpot_s=100.0)
    result = simulate(dataclasses.replace(scenario, slo=slo))
    t = translator("en")
    words = [a.text for a in timeline(timeline_of(result), t).layout.annotations]
    assert t("slo.none_missed") in words


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_description_has_the_numbers(storm, language):
    numbers = metrics.summary(storm)
    text = description(storm, numbers, translator(language))
    assert f"{storm.kv_blocks:,}" in text
    assert f"{numbers['preemptions']:,}" in text


def test_areas_that_meet_differ_in_pattern_not_only_in_color():
    for meet in (("decode", "prefill", "recompute", "swap", "free"), ("waiting", "late", "swap")):
        shapes = [pattern(meaning, "light")["shape"] for meaning in meet]
        assert len(set(shapes)) == len(shapes)


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["ink", "muted"])
def test_text_stands_out_from_every_ground(theme, name):
    for ground in ("ground", "panel", "sidebar"):
        dark, light = sorted(luminance(COLORS[theme][color]) for color in (name, ground))
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_pages_and_charts_stand_on_the_same_ground(theme):
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    settings = config["theme"][theme]
    assert settings["backgroundColor"] == COLORS[theme]["ground"]
    assert settings["secondaryBackgroundColor"] == COLORS[theme]["panel"]
    assert settings["textColor"] == COLORS[theme]["ink"]
    assert settings["primaryColor"] == COLORS[theme]["decode"]
    assert settings["sidebar"]["backgroundColor"] == COLORS[theme]["sidebar"]
