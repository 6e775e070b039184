"""Each preset shows what its note promises."""

import numpy as np
import pytest

from model import catalogue
from model.metrics import summary
from model.parameters import replace_at
from model.simulator import simulate


def run(preset: str):
    """The scenario, its request columns and their TTFT and TPOT in seconds."""
    scenario = catalogue.presets()[preset].scenario
    result = simulate(scenario)
    requests = result.requests
    ttft_s = requests["first_token_s"] - requests["arrival_s"]
    gaps = np.maximum(requests["output_tokens"] - 1, 1)
    tpot_s = (requests["last_token_s"] - requests["first_token_s"]) / gaps
    return scenario, result, ttft_s, tpot_s


@pytest.mark.parametrize("preset", list(catalogue.presets()))
def test_everybody_gets_an_answer(preset):
    _, result, _, _ = run(preset)
    requests = result.requests
    np.testing.assert_array_equal(requests["emitted_tokens"], requests["output_tokens"])


def test_customer_service_meets_its_promises():
    scenario, _, ttft_s, tpot_s = run("customer-service")
    good = (ttft_s <= scenario.slo.ttft_s) & (tpot_s <= scenario.slo.tpot_s)
    assert good.mean() > 0.9


def test_law_runs_out_of_blocks():
    _, result, _, _ = run("law")
    assert result.requests["preemptions"].sum() > 0
    assert result.iterations["prefill_tokens"].max() <= 2048


def test_preemption_storm_preempts_more_than_it_serves():
    _, result, _, _ = run("preemption-storm")
    assert result.kv_blocks == 1687
    assert result.requests["preemptions"].sum() > len(result.requests["preemptions"])


def test_offline_requests_are_the_victims_and_chats_wait_less():
    _, result, ttft_s, _ = run("interactive-offline")
    offline = result.requests["request_class"] == 1
    assert result.requests["preemptions"][offline].sum() > 0
    assert result.requests["preemptions"][~offline].sum() == 0
    assert 20 * np.median(ttft_s[~offline]) < np.median(ttft_s[offline])


def test_the_morning_peak_breaks_tpot_and_passes():
    scenario, result, _, tpot_s = run("morning-peak")
    late = tpot_s > scenario.slo.tpot_s
    arrival_s = result.requests["arrival_s"]
    assert late[arrival_s < 30].mean() == 0
    assert late[(arrival_s >= 40) & (arrival_s < 60)].mean() > 0.5
    assert late[arrival_s > 90].mean() == 0


def test_conversations_live_on_what_they_have_said_before():
    scenario, result, ttft_s, _ = run("conversation-turns")
    later = result.inputs.follows >= 0
    assert later.mean() > 0.7
    found = result.requests["cached_tokens"] / result.requests["prompt_tokens"]
    assert found[later].min() > 0.5
    assert summary(result)["prefix_hit_share"] > 0.85
    forgetful = replace_at(scenario, "policy.enable_prefix_caching", False)
    without = simulate(forgetful).requests
    slower_s = without["first_token_s"] - without["arrival_s"]
    assert np.median(slower_s) > 5 * np.median(ttft_s)
