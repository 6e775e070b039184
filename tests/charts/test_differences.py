"""Differences between runs: right numbers, right verdict, words with units."""

import math

import pytest

from charts.differences import VERDICTS, differences, in_words
from charts.numbers import scale_of, shown, significant
from model import metrics
from model.metrics import METRICS
from tests.charts.runs import run
from ui.language import LANGUAGES, translator

T = translator("en")


def one(metric, value, baseline):
    (row,) = differences({metric: value}, {metric: baseline})
    return row


def test_every_metric_of_two_runs_is_compared():
    value, baseline = metrics.summary(run()), metrics.summary(run(policy="sarathi"))
    rows = differences(value, baseline)
    assert [row.metric for row in rows] == list(METRICS)
    for row in rows:
        assert row.verdict in VERDICTS
        if not math.isnan(row.delta):
            assert row.baseline + row.delta == pytest.approx(row.value)
            better = METRICS[row.metric].better
            sign = {"higher": 1, "lower": -1, "": 0}[better] * row.delta
            expected = "better" if sign > 0 else "worse" if sign < 0 else "neutral"
            assert row.verdict == expected


def test_the_same_run_differs_in_nothing():
    numbers = metrics.summary(run())
    for row in differences(numbers, numbers):
        assert row.verdict == "neutral"
        assert row.delta == 0 or math.isnan(row.delta)


@pytest.mark.parametrize(
    ("metric", "value", "baseline", "verdict"),
    [
        ("ttft_p99_s", 1.0, 2.0, "better"),
        ("ttft_p99_s", 2.0, 1.0, "worse"),
        ("slo_attainment_share", 0.9, 0.8, "better"),
        ("preemptions", 3, 0, "worse"),
        ("iterations", 3, 5, "neutral"),  # neither way is better
        ("mfu_share", math.nan, 0.3, "neutral"),
        ("tpot_mean_s", 0.1 + 0.2, 0.3, "neutral"),  # the same number, rounded another way
    ],
)
def test_verdicts(metric, value, baseline, verdict):
    assert one(metric, value, baseline).verdict == verdict


def test_chosen_metrics_come_in_the_chosen_order():
    numbers = metrics.summary(run())
    wanted = ("tpot_p50_s", "preemptions", "ttft_p50_s")
    assert [row.metric for row in differences(numbers, numbers, wanted)] == list(wanted)
    assert not differences(numbers, {})


def test_words_have_units_signs_and_shares():
    words = in_words(one("ttft_p99_s", 0.15, 0.2), T)
    assert words == {
        "name": "TTFT P99",
        "value": "150 ms",
        "baseline": "200 ms",
        "delta": "−50.0 ms (−25.0 %)",
        "verdict": "better",
    }
    assert in_words(one("slo_attainment_share", 0.9, 0.8), T)["delta"] == "+10.0 points"
    assert in_words(one("preemptions", 3, 0), T)["delta"] == "+3 times"
    assert in_words(one("mfu_share", math.nan, 0.3), T)["delta"] == "–"
    assert in_words(one("fairness_jain", 0.5, 0.5), T)["delta"] == "±0"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_has_words_in_every_language(language):
    t = translator(language)
    value, baseline = metrics.summary(run()), metrics.summary(run(policy="static"))
    for row in differences(value, baseline):
        words = in_words(row, t)
        assert all(words.values())
        assert "nan" not in " ".join(words.values())


def test_numbers_are_read_in_units_that_fit():
    assert shown("ttft_p50_s", 0.0665, T) == "66.5 ms"
    assert shown("ttft_p50_s", 8.1825, T) == "8.18 s"
    assert shown("mfu_share", 0.2163, T) == "21.6 %"
    assert shown("recomputed_tokens", 79077, T) == "79,077 tokens"
    assert shown("fairness_jain", 0.51234, T) == "0.512"
    assert shown("throughput_output_tokens_per_s", 1188.2, T) == "1,188 tokens/s"
    assert shown("itl_max_s", math.nan, T) == "–"
    assert scale_of("ttft_p50_s", 0.0, T) == (1.0, "s")
    assert significant(0.00012345) == "0.000123"


def test_the_numbers_read_as_on_the_page():
    from ui import units

    for value in (0.0, 0.000123, 0.5, 12.345, 1188.2, 79077.0, math.nan):
        assert significant(value) == units.significant(value)
