"""Published results: what agrees, what does not, and numbers computed by other ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

from model.experiment import replace_at
from model.kv_cache import GIB
from model.simulator import simulate
from ui.language import catalogue
from ui.prose import sections
from validation.published import CONSISTENCY, PARTLY, PUBLISHED, REPRODUCTION, finding
from validation.published.eviction import COPY_S, by_block_size
from validation.published.lengths import CUTS, tokens_per_s
from validation.published.record import Row

OUT_OF_REACH = {  # rows that do not agree; the prose of each says why
    "P5": {"P5.medium_64", "P5.never"},
    "P7": {"P7.static", "P7.orca_ratio", "P7.vllm_ratio"},
    "P9": {"P9.saturates"},
    "P11": {"P11.rate_size"},
    "P20": {"P20.throughput"},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_agrees_and_what_does_not(name):
    found = finding(name)
    assert found.id == name
    assert {row.key for row in found.rows if not row.agrees} == OUT_OF_REACH.get(name, set())
    assert all(math.isfinite(row.ours) for row in found.rows)
    if found.kind == REPRODUCTION:
        assert found.agreeing == len(found.rows) == len(found.compared)
    assert found.kind in (REPRODUCTION, CONSISTENCY, PARTLY)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_result_has_its_words(language):
    words, prose = catalogue(language), sections(language, "published")
    for name in PUBLISHED:
        found = finding(name)
        assert prose[name.lower()].title
        assert prose[name.lower()].text
        for row in found.rows:
            assert words[f"pub.{row.key}"], row.key
        assert words[f"pub.kind.{found.kind}"]


def test_kv_slots_by_hand():
    rows = {row.key: row.ours for row in finding("P6").rows}
    token = 2 * 40 * 5120 * 2  # keys and values, layers, hidden, bytes
    assert rows["P6.token"] == token / 1024 == 800
    assert rows["P6.slots_13b"] == 12 * GIB // token == 15_728
    assert rows["P6.slots_175b"] == 264 * GIB // (2 * 96 * 12_288 * 2)


def test_swap_by_block_size_against_the_dossier():
    """µs a token: recompute 165; swap 865, 165.5, 115 and 78 with blocks of 1, 8, 16 and 64."""
    rows = by_block_size()
    per_token_us = {size: row["swap_s"] / 512 * 1e6 for size, row in rows.items()}
    for size, printed in {1: 865.5, 8: 165.5, 16: 115.5, 64: 78.0}.items():
        assert per_token_us[size] == pytest.approx(printed, rel=0.006)
        bare = 65.536 + 2 * 2 * 40 * COPY_S / size * 1e6
        assert per_token_us[size] == pytest.approx(bare, rel=1e-9)
    assert rows[8]["recompute_s"] / 512 * 1e6 == pytest.approx(165, rel=0.02)


def test_spread_of_lengths_is_what_static_batching_pays_for():
    """With memory for 7 whole contexts, a batch of 7 waits for E[max] = H₇ mean outputs."""
    harmonic = sum(1 / k for k in range(1, 8))
    wide, narrow = tokens_per_s(CUTS[-1]), tokens_per_s(CUTS[0])
    assert wide["static"] < narrow["static"] / harmonic
    assert wide["vllm"] / wide["static"] > harmonic


def test_row_bounds():
    assert Row.within("k", "1", 10.0, 10.4, 0.05).agrees
    assert not Row.within("k", "1", 10.0, 10.6, 0.05).agrees
    assert Row.by_factor("k", "1", 8.0, 12.0, 1.5).agrees
    assert not Row.by_factor("k", "1", 8.0, 5.0, 1.5).agrees
    assert not Row("k", "1", None, float("nan"), 0.0).agrees


def test_budget_trend_is_that_of_single_runs():
    """P20 on one seed, without the sweep."""
    from model import catalogue as presets
    from model import metrics

    base = presets.presets()["conversation"].scenario
    runs = [
        metrics.summary(simulate(replace_at(base, "policy.max_num_batched_tokens", budget)))
        for budget in (256, 2048)
    ]
    assert runs[0]["itl_p99_s"] < runs[1]["itl_p99_s"]
    assert runs[0]["ttft_mean_s"] > runs[1]["ttft_mean_s"]
    assert np.isfinite(runs[0]["ttft_mean_s"])
