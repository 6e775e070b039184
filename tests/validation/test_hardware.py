"""Roofs, critical batches and device factors: check values of the domain, and runs beside them."""

from dataclasses import replace

import numpy as np
import pytest

from model import catalogue
from model.iteration_time import Roofline
from model.simulator import simulate
from validation.hardware import cost_of, critical, elsewhere, kv_border, on, roof, spots, tile
from validation.hardware_causes import CAUSES, causes
from validation.hardware_factor import mixture, ratio_at, ratios, share_for
from validation.throughput import Case, Engine

CASE = Case(16, 37, 512, 200)


def at(device, case=CASE):
    return replace(case, engine=on(case.engine, device))


@pytest.mark.parametrize(
    ("device", "ridge", "achieved"),
    [("a100-80g-sxm", 153, 96), ("h100-sxm", 295, 185), ("910b2", 235, 147), ("h20", 37, 23)],
)
def test_ridges_and_critical_batches(device, ridge, achieved):
    found = critical(at(device))
    assert found.ridge == pytest.approx(ridge, abs=0.5)
    assert found.peak == pytest.approx(ridge, abs=0.5)
    assert found.achieved == pytest.approx(achieved, abs=0.5)
    assert found.run == pytest.approx(found.achieved, rel=0.03, abs=1)


def test_context_moves_the_critical_batch_or_takes_it_away():
    found = critical(at("a100-80g-sxm"))
    assert found.in_context > found.achieved
    assert found.run_in_context == pytest.approx(found.in_context, rel=0.01)
    heavy = critical(Case(16, 37, 2048, 200, engine=Engine(model="llama-2-13b")))
    assert heavy.in_context is None  # each request reads 819,200 bytes for every token


def test_experts_move_the_border():
    """A large batch reads all 30.53 billion parameters and computes with 3.35 billion."""
    engine = Engine(model="qwen3-30b-a3b", tensor_parallel=2)
    found = critical(Case(16, 37, 512, 200, engine=engine))
    assert found.run == pytest.approx(found.achieved * 30.53 / 3.35, rel=0.02)


def test_a_model_that_does_not_fit_has_no_run():
    found = critical(Case(engine=Engine(model="llama-3-70b")))
    assert (found.run, found.run_in_context, found.memory_holds) == (None, None, None)
    assert all(spot.run_seconds is None for spot in spots(Case(engine=Engine("llama-3-70b"))))


@pytest.mark.parametrize(
    ("model", "tokens"), [("llama-3-8b", 122.5e3), ("llama-2-7b", 25.7e3), ("llama-3-70b", 430.6e3)]
)
def test_border_of_kv(model, tokens):
    assert kv_border(Case(engine=Engine(model=model))) == pytest.approx(tokens, rel=2e-3)


@pytest.mark.parametrize(
    ("device", "prefill_ms", "single_ms"),
    [("a100-80g-sxm", 55.2, 11.9), ("h100-sxm", 18.8, 8.0), ("910b2", 46.1, 14.6)],
)
def test_iterations_take_what_the_table_says(device, prefill_ms, single_ms):
    prefill, single, *_ = spots(at(device))
    assert prefill.seconds * 1e3 == pytest.approx(prefill_ms, abs=0.06)
    assert single.seconds * 1e3 == pytest.approx(single_ms, abs=0.06)


@pytest.mark.parametrize("model", ["llama-3-8b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("device", ["a100-80g-sxm", "h20"])
def test_runs_are_where_the_formulas_are(device, model):
    case = at(device, replace(CASE, engine=Engine(model=model)))
    for spot in spots(case):
        assert spot.run_intensity == pytest.approx(spot.intensity, rel=1e-6)
        assert spot.run_seconds == pytest.approx(spot.seconds, rel=1e-6)
        assert spot.run_flop_per_s == pytest.approx(spot.flop_per_s, rel=1e-6)


def test_no_iteration_lies_above_its_roof():
    for device in catalogue.devices():
        top = roof(on(CASE.engine, device))
        for spot in spots(at(device)):
            below = min(top.achieved_flop_per_s, spot.intensity * top.achieved_bytes_per_s)
            assert spot.flop_per_s <= below * (1 + 1e-9)


def test_intensity_of_a_decode_by_hand():
    """One token of Llama-3-8B reads 16.06 GB of weights for 2 · 8.03 GFLOP: about 1."""
    assert spots(CASE)[1].intensity == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("device", "needed"), [("a100-80g-sxm", 230), ("910b2", 353), ("910b3", 293)]
)
def test_blocks_that_reach_a_ridge(device, needed):
    found = tile(device, 64)
    assert found.needed == pytest.approx(needed, abs=0.6)
    assert found.share * found.ridge == pytest.approx(42.7, abs=0.04)


@pytest.mark.parametrize(("device", "share"), [("910b2", 0.780), ("910b3", 0.647)])
def test_shares_that_give_the_printed_factor(device, share):
    found = share_for(device, 0.85)
    assert found == pytest.approx(share, abs=5e-4)
    assert ratio_at(device, found) == pytest.approx(0.85)


def test_ratios_of_the_910b():
    assert ratios("910b2")["r_beta"] == pytest.approx(0.785, abs=5e-4)
    assert ratios("910b2")["r_P"] == pytest.approx(1.205, abs=5e-4)
    assert ratios("910b3")["r_P"] == pytest.approx(1.003, abs=5e-4)


def test_no_share_gives_a_factor_between_neither_ratio():
    assert share_for("h100-sxm", 0.85) is None
    assert share_for("a100-80g-sxm", 0.85) is None


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_without_fixed_time_runs_agree_with_the_mixture(batch):
    """Decodes stay memory-bound on both devices and prefills compute-bound: F39's assumptions."""
    engine = Engine(clock=Roofline(fixed_s=0.0, communication=False))
    found = mixture(at("910b2", Case(16, batch, 512, 200, engine=engine)))
    assert 0 < found.measured_f < 1
    assert found.simulated == pytest.approx(found.formula, rel=2e-3)


@pytest.mark.parametrize("device", ["a100-80g-sxm", "h100-sxm", "h20", "910b2", "910b3"])
def test_delta_by_formula_and_simulation(device):
    found = elsewhere(at(device))
    assert found.simulated == pytest.approx(found.formula, abs=6e-3)


def test_a_device_of_equal_proportions_keeps_delta():
    """B200 and H100 have nearly one ridge: without fixed time Δ is the same on both."""
    engine = Engine(clock=Roofline(fixed_s=0.0, communication=False))
    case = replace(CASE, engine=engine)
    first, second = (elsewhere(at(name, case)) for name in ("h100-sxm", "b200-sxm"))
    assert second.static.simulated / first.static.simulated > 2.2
    assert second.formula == pytest.approx(first.formula, rel=0.02)
    assert second.simulated == pytest.approx(first.simulated, rel=0.02)


def test_delta_on_the_910b2_is_not_085_of_that_on_the_a100():
    here, there = elsewhere(at("a100-80g-sxm")), elsewhere(at("910b2"))
    assert here.formula == pytest.approx(0.64, abs=5e-3)  # the domain's table
    assert there.formula > here.formula > 0.85 * here.formula


# -- what seconds went into ------------------------------------------------------------------------


def run_of(device):
    scenario = replace(catalogue.presets()["customer-service"].scenario, hardware=device)
    cost = scenario.clock.cost(
        scenario.model_entry, scenario.device, scenario.memory, scenario.tensor_parallel
    )
    return simulate(scenario), cost


@pytest.mark.parametrize("device", ["a100-80g-sxm", "h20"])
def test_causes_add_up_to_the_run(device):
    run, cost = run_of(device)
    found = causes(run, cost)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.strip.sum(axis=0) == pytest.approx(1)
    assert sum(found.iterations.values()) == len(run.iterations["start_s"])
    assert tuple(found.shares) == CAUSES


def test_causes_by_hand():
    """Row by row in plain Python, of every iteration of a run."""
    run, cost = run_of("a100-80g-sxm")
    columns = run.iterations
    seconds = dict.fromkeys(CAUSES, 0.0)
    for row in range(len(columns["start_s"])):
        tokens = int(columns["tokens"][row])
        compute_s = (
            cost.compute_token_s * tokens
            + cost.compute_pair_s * columns["attention_pairs"][row]
        )
        kv_s = cost.kv_token_read_s * columns["kv_tokens_read"][row]
        if compute_s > cost.weights_read_s + kv_s:
            seconds["compute"] += compute_s
        else:
            seconds["weights"] += cost.weights_read_s
            seconds["kv"] += kv_s
        seconds["fixed"] += cost.fixed_s
    length_s = columns["end_s"].max()
    seconds["idle"] = length_s - sum(seconds.values())
    found = causes(run, cost).shares
    for name, value in seconds.items():
        assert found[name] == pytest.approx(value / length_s, abs=1e-9), name


def test_a_run_that_served_nobody_has_no_causes():
    run, cost = run_of("a100-80g-sxm")
    columns = {name: column[:0] for name, column in run.iterations.items()}
    assert causes(replace(run, iterations=columns), cost) is None


def test_more_prompt_tokens_than_an_iteration_may_have_leave_the_formulas():
    """256 prompts of 100,000 tokens: no run, but F5 and Δ."""
    engine = Engine("llama-3.1-8b", "b200-sxm", 8)
    case = Case(4, 256, 100_000, 200, engine=engine)
    assert spots(case)[-1].run_seconds is None
    assert spots(case)[-1].seconds > 0
    assert elsewhere(case).formula > 0


def test_two_engines_share_the_time():
    scenario = replace(catalogue.presets()["customer-service"].scenario, n_engines=2)
    cost = cost_of(Engine())
    found = causes(simulate(scenario), cost, 2)
    assert found.shares["idle"] > 0.001
    assert np.all(found.strip[:-1].sum(axis=0) <= 1 + 1e-9)
