"""Choices of the panel as a scenario: another policy keeps the limits, so only its rules differ."""

import pytest

from model import catalogue
from model.errors import LabError
from model.schedulers import POLICIES
from ui.scenario import with_choices


def chosen(preset="law", policy=None, **choices):
    base = catalogue.presets()[preset].scenario
    values = {
        "policy": policy or base.policy.name,
        "hardware": base.hardware,
        "gpus": base.tensor_parallel,
        "model": base.model,
    }
    return base, with_choices(base, **(values | choices))


@pytest.mark.parametrize("preset", catalogue.presets())
def test_the_preset_s_own_choices_change_nothing(preset):
    base, scenario = chosen(preset)
    assert scenario == base


@pytest.mark.parametrize("policy", POLICIES)
def test_the_batch_limit_is_kept(policy):
    base, scenario = chosen(policy=policy)
    assert scenario.policy.name == policy
    assert scenario.policy.max_num_seqs == base.policy.max_num_seqs


def test_the_token_budget_is_kept_under_the_engine_s_own_name():
    base, scenario = chosen(policy="sarathi")
    assert scenario.policy.chunk_size == base.policy.max_num_batched_tokens


def test_whole_prompts_fit_the_budget_where_they_are_not_chunked():
    _, scenario = chosen(policy="vllm-v0")
    assert not scenario.policy.enable_chunked_prefill
    assert scenario.policy.max_num_batched_tokens == scenario.max_model_len()


def test_the_queue_order_is_kept():
    base, scenario = chosen("interactive-offline", "vllm-v0")
    assert scenario.policy.queue_order == base.policy.queue_order


def test_what_does_not_go_together_is_an_error_with_advice():
    with pytest.raises(LabError, match="use 4 GPUs"):
        chosen("customer-service", model="llama-3-70b")
