"""Lengths stretched to another mean keep their shape."""

import numpy as np
import pytest

from model.workload import LENGTH_KINDS, Lengths
from ui.panel.lengths import mean_of, mean_tokens, stretched, with_kind

TABLE = ((0.0, 1.0), (0.5, 101.0), (1.0, 401.0))
EXAMPLES = {
    "fixed": Lengths("fixed", 512),
    "uniform": Lengths("uniform", low_tokens=100, high_tokens=300),
    "exponential": Lengths("exponential", 200),
    "geometric": Lengths("geometric", 200, max_tokens=2048),
    "lognormal": Lengths("lognormal", 400, cv=0.8, max_tokens=4096),
    "quantiles": Lengths("quantiles", quantiles=TABLE),
}


def sampled(lengths):
    return lengths.sample(np.random.default_rng(1), 20_000)


def test_there_is_an_example_of_every_kind():
    assert tuple(EXAMPLES) == LENGTH_KINDS


def test_the_mean_of_a_table_is_that_between_its_points():
    assert mean_tokens(EXAMPLES["quantiles"]) == 0.5 * 51 + 0.5 * 251
    assert mean_tokens(EXAMPLES["uniform"]) == 200


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("factor", [0.25, 1, 3])
def test_stretching_scales_the_samples(kind, factor):
    lengths = EXAMPLES[kind]
    longer = stretched(lengths, factor)
    assert longer.kind == kind
    assert mean_tokens(longer) == pytest.approx(mean_tokens(lengths) * factor, rel=5e-3)
    ratio = sampled(longer).mean() / sampled(lengths).mean()
    assert ratio == pytest.approx(factor, rel=0.02)


def test_the_cut_moves_with_the_mean():
    assert stretched(EXAMPLES["geometric"], 2).max_tokens == 4096
    assert stretched(EXAMPLES["geometric"], 0.25).max_tokens == 512


def test_nothing_leaves_the_limits_of_a_length():
    for lengths in EXAMPLES.values():
        for factor in (1e-9, 1e9):
            assert (sampled(stretched(lengths, factor)) >= 1).all()


@pytest.mark.parametrize("old", EXAMPLES)
@pytest.mark.parametrize("kind", [kind for kind in LENGTH_KINDS if kind != "quantiles"])
def test_another_kind_keeps_the_mean_and_the_cut(old, kind):
    lengths = EXAMPLES[old]
    other = with_kind(lengths, kind)
    assert other.kind == kind
    assert mean_tokens(other) == pytest.approx(mean_tokens(lengths), rel=0.01)
    assert other.max_tokens == lengths.max_tokens


def test_no_kind_becomes_a_table():
    assert with_kind(EXAMPLES["fixed"], "quantiles") == EXAMPLES["fixed"]


def test_the_mean_of_streams_counts_requests():
    assert mean_of([Lengths("fixed", 100), Lengths("fixed", 400)], [300, 100]) == 175
