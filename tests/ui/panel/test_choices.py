"""Choices on a preset: the scenario they make, and the way back from a scenario to choices."""

from dataclasses import replace

import pytest

from model import catalogue
from model.iteration_time import Linear
from model.parameters import replace_at, with_policy
from model.scenario import TraceReference
from model.schedulers import POLICIES
from model.workload import Lengths
from ui.panel import link
from ui.panel.choices import (
    Base,
    Choices,
    choices_for,
    draft,
    is_static,
    with_basic,
    with_setting,
)

PRESETS = catalogue.presets()
BASES = {name: Base(preset.scenario) for name, preset in PRESETS.items()}


def made(name="customer-service", **fields):
    return draft(Choices(name, **fields), BASES[name])


def expert(name="customer-service", **codes):
    choices = Choices(name)
    for code, value in codes.items():
        choices = with_setting(choices, BASES[name], code.replace("_", "."), value)
    return draft(choices, BASES[name])


@pytest.mark.parametrize("name", PRESETS)
def test_no_choices_make_the_preset_itself(name):
    found = made(name)
    assert found.scenario == PRESETS[name].scenario
    assert found.is_unchanged
    assert not found.defaults


# -- Bs and Bd -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_static_policy_takes_bs_and_every_other_bd(policy):
    found = made(policy=policy, bs=24, bd=96)
    assert found.scenario.policy.max_num_seqs == (24 if is_static(policy) else 96)
    assert (found.basic["bs"], found.basic["bd"]) == (24, 96)


def test_bs_is_what_memory_can_reserve_sixteen_at_most():
    assert made("customer-service").basic["bs"] == 16
    assert made("law").basic["bs"] == 6  # of 65,536 tokens each
    assert made("law").basic["bd"] == 64


def test_another_bs_alone_is_a_change_for_the_formulas():
    found = made(bs=24)
    assert found.scenario == PRESETS["customer-service"].scenario
    assert not found.is_unchanged
    assert not made(measured=True).is_unchanged


# -- policies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("policy", POLICIES)
def test_another_policy_keeps_the_limits_of_the_preset(name, policy):
    found = made(name, policy=policy)
    expected = with_policy(PRESETS[name].scenario, policy).policy
    if is_static(policy):
        expected = replace(expected, max_num_seqs=found.basic["bs"])
    assert found.scenario.policy == expected


def test_the_token_budget_follows_under_each_engine_s_name():
    choices = with_setting(Choices("law"), BASES["law"], "budget", 4096)
    budgets = {}
    for policy in ("vllm-v1", "sarathi"):
        policy = draft(replace(choices, policy=policy), BASES["law"]).scenario.policy
        budgets[policy.name] = policy.tokens_per_iteration
    assert budgets == {"vllm-v1": 4096, "sarathi": 4096}


def test_whole_prompts_need_a_budget_of_the_context():
    found = expert(budget=4096, chunked=False)
    assert found.scenario.policy.max_num_batched_tokens == 8192
    assert found.values["whole"] == 8192
    assert (
        expert(budget=4096, chunked=False, whole=9000).scenario.policy.tokens_per_iteration == 9000
    )
    low = expert(chunked=False, whole=4096)
    assert low.scenario is None
    assert low.error.code == "vllm_tokens_below_context"


def test_a_budget_below_the_batch_is_refused_as_vllm_refuses_it():
    found = expert(budget=128)
    assert found.error.code == "vllm_tokens_below_seqs"


def test_settings_of_another_policy_wait_for_it():
    choices = with_setting(Choices("law", policy="vllm-v0"), BASES["law"], "preempt", "swap")
    away = replace(choices, policy="orca")
    assert draft(away, BASES["law"]).error is None
    back = draft(with_basic(away, BASES["law"], "policy", "vllm-v0"), BASES["law"])
    assert back.scenario.policy.preemption_mode == "swap"


# -- lengths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_lin_and_l_are_the_means_of_all_requests(name):
    found = made(name, lin=1000, l=77)
    assert (found.basic["lin"], found.basic["l"]) == (1000, 77)
    requests = found.scenario.requests()
    prompts = requests.prompt_tokens
    if requests.follows is not None:  # the prompts that open a conversation
        prompts = prompts[requests.follows < 0]
    assert prompts.mean() == pytest.approx(1000, rel=0.3)
    assert requests.output_tokens.mean() == pytest.approx(77, rel=0.3)


def test_two_streams_keep_their_proportion():
    found = made("interactive-offline", lin=2600)
    own = PRESETS["interactive-offline"].scenario.workload.streams
    for stream, before in zip(found.scenario.workload.streams, own, strict=True):
        assert stream.prompt.mean_tokens == pytest.approx(2 * before.prompt.mean_tokens)
        assert stream.prompt.max_tokens == 2 * before.prompt.max_tokens


def test_lin_holds_when_a_stream_gets_more_requests():
    name = "interactive-offline"
    choices = with_setting(Choices(name, lin=2000), BASES[name], "n.1", 600)
    assert draft(choices, BASES[name]).basic["lin"] == 2000


def test_a_number_of_a_single_stream_wins_until_lin_is_set_again():
    name, base = "interactive-offline", BASES["interactive-offline"]
    choices = with_setting(Choices(name, lin=1000), base, "inmean.1", 5000.0)
    found = draft(choices, base)
    assert found.scenario.workload.streams[1].prompt.mean_tokens == 5000
    assert found.basic["lin"] == round((200 * 400 * 1000 / 1300 + 150 * 5000) / 350)
    again = with_basic(choices, base, "lin", 1300)
    assert again == Choices(name)


def test_another_kind_of_lengths_keeps_the_mean():
    name = "conversation"
    found = draft(with_setting(Choices(name), BASES[name], "in", "lognormal"), BASES[name])
    own = made(name).basic["lin"]
    assert found.scenario.workload.streams[0].prompt.kind == "lognormal"
    assert abs(found.basic["lin"] - own) <= 1


def test_a_trace_keeps_its_lengths():
    scenario = PRESETS["law"].scenario
    base = Base(replace(scenario, workload=TraceReference("t", "0" * 64, 9)), (120.4, 30.0))
    found = draft(Choices("bundle-0123456789abcdef", lin=5, bd=3), base)
    assert found.error is None
    assert (found.basic["lin"], found.basic["l"]) == (120, 30)
    assert found.scenario.policy.max_num_seqs == 3
    assert not [s for s in found.settings if s.group == "workload"]


# -- single settings -------------------------------------------------------------------------------


def test_a_setting_at_its_default_leaves_the_choices():
    choices = with_setting(Choices("code"), BASES["code"], "ctx", 8192)
    assert choices.expert == (("ctx", 8192),)
    assert with_setting(choices, BASES["code"], "ctx", 16384) == Choices("code")


def test_a_setting_can_be_left_open_where_the_preset_sets_it():
    found = expert("code", ctx=None)
    assert found.choices.expert == (("ctx", None),)
    assert found.scenario.max_model_len() == 131_072
    assert found.defaults == {"ctx": 16384}


def test_the_size_of_the_cache_is_given_once():
    found = expert(kvblocks=2000, kvgib=8.0)
    assert found.choices.expert == (("kvgib", 8.0),)
    assert found.scenario.memory.kv_blocks is None


def test_another_clock_has_settings_of_its_own():
    found = expert(clock="textbook", forward=0.02)
    assert found.scenario.clock.forward_s == 0.02
    assert found.setting("effc") is None
    assert found.setting("forward").path == "clock.forward_s"
    back = with_setting(found.choices, found.base, "clock", "roofline")
    assert draft(back, found.base).scenario == PRESETS["customer-service"].scenario


def test_a_combination_that_cannot_run_keeps_what_was_chosen():
    found = made(model="llama-3-70b", bd=32, lin=100)
    assert found.scenario is None
    assert found.error.code == "model_does_not_fit"
    assert (found.basic["model"], found.basic["bd"]) == ("llama-3-70b", 32)
    assert found.values["rate"] == 6.0


def test_more_requests_than_the_app_simulates():
    name = "interactive-offline"
    choices = with_setting(Choices(name), BASES[name], "n", 15_000)
    found = draft(with_setting(choices, BASES[name], "n.1", 15_000), BASES[name])
    assert found.error.code == "too_many_requests"


# -- the way back ----------------------------------------------------------------------------------

CHANGES = [
    {"policy": "static", "seed": 5},
    {"policy": "sarathi", "policy.chunk_size": 1024},
    {"policy": "vllm-v0", "policy.preemption_mode": "swap", "memory.swap_space_gib": 8.0},
    {"tensor_parallel": 2, "model": "llama-2-13b", "hardware": "h100-sxm"},
    {"clock": "linear", "clock.base_s": 0.01, "n_engines": 2},
    {"memory.max_model_len": 4096, "memory.kv_dtype": "fp8", "slo.ttft_s": 2.0},
    {"policy.max_num_seqs": 1000, "policy.enable_prefix_caching": True},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda c: ",".join(c))
@pytest.mark.parametrize("name", ["customer-service", "preemption-storm", "interactive-offline"])
def test_choices_are_found_for_a_scenario(name, changes):
    scenario = PRESETS[name].scenario
    for path, value in changes.items():
        scenario = replace_at(scenario, path, value)
    choices = choices_for(scenario, Choices(name), BASES[name])
    assert draft(choices, BASES[name]).scenario == scenario
    assert link.holds(choices)
    assert link.read(link.spelled(choices)) == (choices, ())


def test_other_choices_give_way_to_the_scenario():
    name = "customer-service"
    start = draft(Choices(name, lin=1024, bd=8, expert=(("seed", 7),)), BASES[name])
    wanted = replace_at(start.scenario, "policy.max_num_seqs", 64)
    choices = choices_for(wanted, start.choices, BASES[name])
    assert choices == Choices(name, lin=1024, bd=64, expert=(("seed", 7),))


def test_a_scenario_that_no_choices_make():
    scenario = PRESETS["law"].scenario
    stream = replace(scenario.workload.streams[0], name="another")
    renamed = replace(scenario, workload=replace(scenario.workload, streams=(stream,)))
    assert choices_for(renamed, Choices("law"), BASES["law"]) is None
    table = Lengths("quantiles", quantiles=((0, 1), (1, 9)))
    stream = replace(scenario.workload.streams[0], prompt=table)
    other = replace(scenario, workload=replace(scenario.workload, streams=(stream,)))
    assert choices_for(other, Choices("law"), BASES["law"]) is None
    bare = replace(
        scenario,
        clock=Linear(),
        model=None,
        hardware=None,
        memory=replace(scenario.memory, kv_blocks=5000),
    )
    assert choices_for(bare, Choices("law"), BASES["law"]) is None
