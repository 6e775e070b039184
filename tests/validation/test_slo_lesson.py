"""The lesson on SLOs: its simulations against the formulas, and against numbers done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from model import catalogue
from model.parameters import RATE, replace_at
from model.simulator import simulate
from validation import slo_lesson as lesson
from validation.lindley import waits_s

PLAIN = catalogue.presets()["customer-service"].scenario


@pytest.mark.parametrize(("prompts", "tokens"), [(8, 2048), (4, 512), (5, 4000), (16, 1024)])
def test_whole_prompts_stall_decodes_as_f22_says(prompts, tokens):
    """k·S tokens at ⌊8192/S⌋ prompts an iteration, then the decode that ends the gap."""
    found = lesson.stall(PLAIN, prompts, tokens)
    each = 8192 // tokens
    if prompts % each == 0 or prompts < each:
        assert found.whole_s == pytest.approx(found.expected_s, rel=1e-9)
    else:  # the last iteration is not full, F22 counts it as if it were
        assert found.whole_s < found.expected_s
    assert found.chunked_s < found.whole_s
    assert found.whole_ttft_s < found.chunked_ttft_s


def test_the_largest_chunks_are_those_of_the_dossier():
    """Llama-3-8B on an A100, 32 decodes of 1,500 tokens: 224, 416, 896, 1824 (grid of 16)."""
    chunks = [lesson.chunk_budget(PLAIN, 32, 1500, bound) for bound in (0.03, 0.05, 0.1, 0.2)]
    assert chunks == [224, 416, 896, 1824]
    assert lesson.chunk_budget(PLAIN, 32, 1500, 0.001) == 0


def test_littles_law_holds_to_the_last_bit_over_a_whole_run():
    for preset in ("customer-service", "preemption-storm", "interactive-offline"):
        run = simulate(catalogue.presets()[preset].scenario)
        assert lesson.little(run, whole=True).difference == pytest.approx(0, abs=1e-12)


def test_littles_law_holds_in_the_window_of_a_long_run():
    scenario = replace_at(PLAIN, "workload.streams.0.n_requests", 6000)
    run = simulate(scenario)
    found = lesson.little(run, whole=False)
    assert found.rate_per_s == pytest.approx(6.0, rel=0.03)
    assert abs(found.difference) < 0.005
    # The mean context counts long answers for longer: geometric answers of 200 make it 712.
    assert lesson.mean_context(scenario) == pytest.approx(712, rel=0.02)
    held = lesson.kv_tokens(run) / found.number
    assert held == pytest.approx(lesson.mean_context(scenario), rel=0.03)


def test_the_number_in_the_system_is_counted():
    """Two requests whose stays overlap: 1, 2, 1, 0."""
    scenario = replace_at(PLAIN, "workload.streams.0.n_requests", 2)
    scenario = replace_at(scenario, RATE, 1.0)
    run = simulate(scenario)
    came, left = run.requests["arrival_s"], run.requests["end_s"]
    time_s, number = lesson.in_system(run)
    assert time_s.tolist() == sorted([*came, *left])
    overlap = left.min() > came.max()
    assert number.tolist() == ([1, 2, 1, 0] if overlap else [1, 0, 1, 0])


@pytest.mark.parametrize("load", lesson.LOADS)
def test_the_prefill_server_is_the_queue_of_lindley(load):
    """TTFT = W + D of the engine, for the very arrivals that it met."""
    found = lesson.waits(PLAIN, 512, load)
    d = found.service_s
    expected = d + waits_s(np.diff(found.arrival_s), d)
    np.testing.assert_allclose(found.ttft_s, expected, rtol=1e-9)


def test_long_runs_agree_with_mean_and_p99_of_the_formulas():
    """F26: 3.0 and 10.5 services at 0.8 and 0.95; P99 11.36 and 45.9."""
    for load, mean, p99 in ((0.8, 3.0, 11.36), (0.95, 10.5, 45.9)):
        found = lesson.waits(PLAIN, 512, load)
        assert (found.formula_mean, found.formula_p99) == pytest.approx((mean, p99), rel=2e-3)
        assert found.mean == pytest.approx(mean, rel=0.02)
        assert found.p99 == pytest.approx(p99, rel=0.07)
    assert lesson.waits(PLAIN, 512, 1.1).mean == float("inf")


def test_the_line_of_the_overload():
    """At load 1.1 an arrival after 100 D waits for 10 D of backlog, and its own D."""
    found = lesson.waits(PLAIN, 512, 1.1)
    d = found.service_s
    assert found.growth_s(np.array([0.0, 100 * d])) / d == pytest.approx([1.0, 11.0])


def test_loads_that_a_bound_allows():
    """x = 2 and 5: .667 and .889 for the mean, .135 and .561 for P99."""
    found = lesson.loads_allowed((2.0, 5.0))
    assert found.mean == pytest.approx([0.667, 0.889], abs=5e-4)
    assert found.p99 == pytest.approx([0.135, 0.561], abs=5e-4)
    assert (found.p99 < found.p90).all()
    assert (found.p90 < found.mean).all()


def test_the_values_are_those_of_one_engine():
    two = lesson.values(replace(PLAIN, n_engines=2), 6.0)
    assert two["lambda"] == 3.0
    assert two["C_p"] == lesson.values(PLAIN, 6.0)["C_p"]
    assert two["D"] == pytest.approx(512 / two["C_p"])
