"""Every field is a setting, every setting has a code that lasts, a name and a help text."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from model import checks
from model.iteration_time import CLOCKS
from model.schedulers import POLICIES
from model.schedulers.base import Scheduler
from model.workload import ARRIVAL_KINDS
from ui.language import LANGUAGES, catalogue
from ui.panel import link, settings
from ui.panel.settings import GROUPS, Shape, setting_of, settings_for

# The codes that links may hold. A line may be added, but none may change or go.
PUBLISHED = {
    "act": "memory.activation_bytes_per_gpu",
    "admission": "policy.admission",
    "aging": "policy.aging_tokens_per_s",
    "arr": "stream.arrivals.kind",
    "arrcv": "stream.arrivals.cv",
    "balabs": "cluster.balance_abs",
    "balrel": "cluster.balance_rel",
    "base": "clock.base_s",
    "beside": "policy.prefill",
    "block": "memory.block_size",
    "budget": "policy.chunk_size",
    "capreqs": "policy.queue_cap_requests",
    "capsystem": "policy.system_cap_requests",
    "captokens": "policy.queue_cap_tokens",
    "chunked": "policy.enable_chunked_prefill",
    "clock": "clock",
    "comm": "clock.communication",
    "conservative": "policy.schedule_conservativeness",
    "cpublocks": "memory.num_cpu_blocks",
    "ctx": "memory.max_model_len",
    "dispatch": "cluster.dispatch",
    "effc": "clock.compute_efficiency",
    "effm": "clock.memory_efficiency",
    "engines": "run.n_engines",
    "evict": "policy.evict_for_waiting",
    "fcfsafter": "policy.fcfs_after_s",
    "fixed": "clock.fixed_s",
    "forward": "clock.forward_s",
    "fullisl": "policy.scheduler_reserve_full_isl",
    "groups": "stream.prefix_groups",
    "in": "stream.prompt.kind",
    "incv": "stream.prompt.cv",
    "inhigh": "stream.prompt.high_tokens",
    "inlow": "stream.prompt.low_tokens",
    "inmax": "stream.prompt.max_tokens",
    "inmean": "stream.prompt.mean_tokens",
    "kv": "memory.kv_dtype",
    "kvblocks": "memory.kv_blocks",
    "kvgib": "memory.kv_gib",
    "latency": "clock.link_latency_s",
    "link": "cluster.link_bytes_per_s",
    "linklatency": "cluster.link_latency_s",
    "longprefill": "policy.long_prefill_token_threshold",
    "match": "cluster.match_threshold",
    "maxnew": "policy.max_new_tokens",
    "maxprefill": "policy.max_prefill_tokens",
    "mixed": "policy.enable_mixed_chunk",
    "msg": "stream.turns.message_tokens",
    "msgkind": "stream.turns.message_kind",
    "n": "stream.n_requests",
    "noradix": "policy.disable_radix_cache",
    "order": "policy.queue_order",
    "out": "stream.output.kind",
    "outcv": "stream.output.cv",
    "outhigh": "stream.output.high_tokens",
    "outlow": "stream.output.low_tokens",
    "outmax": "stream.output.max_tokens",
    "outmean": "stream.output.mean_tokens",
    "patience": "stream.patience_s",
    "patiencekind": "stream.patience_kind",
    "perswap": "clock.per_swapped_block_s",
    "pertoken": "clock.per_scheduled_token_s",
    "predsigma": "policy.prediction_sigma",
    "preempt": "policy.preemption_mode",
    "prefill": "clock.prefill_accounting",
    "prefillers": "cluster.prefill_engines",
    "prefillrate": "policy.prefill_rate_tokens_per_s",
    "prefixcache": "policy.enable_prefix_caching",
    "prio": "stream.priority",
    "prioritized": "policy.enable_priority_scheduling",
    "quantum": "policy.quantum_s",
    "queuedreqs": "policy.max_num_queued_reqs",
    "queuedtokens": "policy.max_num_queued_tokens",
    "rate": "stream.arrivals.rate_per_s",
    "reserve": "policy.reserve",
    "retract": "policy.retraction_policy",
    "retries": "stream.retries",
    "retryafter": "stream.retry_after_s",
    "retryfactor": "stream.retry_factor",
    "router": "cluster.router",
    "rows": "policy.finished_rows",
    "schedule": "policy.schedule_policy",
    "seed": "run.seed",
    "shared": "stream.shared_prefix_tokens",
    "snapshot": "cluster.snapshot_s",
    "start": "stream.start_s",
    "swap": "memory.swap_space_gib",
    "targetitl": "policy.target_itl_s",
    "think": "stream.arrivals.think_s",
    "thinkkind": "stream.arrivals.think_kind",
    "tpot": "slo.tpot_s",
    "transfer": "cluster.transfer",
    "ttft": "slo.ttft_s",
    "ttftbound": "policy.ttft_bound_s",
    "turns": "stream.turns.mean_turns",
    "turnskind": "stream.turns.kind",
    "turnsmax": "stream.turns.most_turns",
    "turnthink": "stream.turns.think_s",
    "turnthinkkind": "stream.turns.think_kind",
    "users": "stream.arrivals.users",
    "util": "memory.gpu_memory_utilization",
    "victim": "policy.victim",
    "watermark": "policy.watermark",
    "weights": "memory.weight_dtype",
    "whole": "policy.max_num_batched_tokens",
}


@pytest.mark.parametrize(("code", "word"), PUBLISHED.items())
def test_a_published_code_keeps_its_meaning(code, word):
    found = setting_of(code)
    assert found is not None
    if code in ("budget", "whole"):  # one limit under each engine's name
        names = ("max_num_batched_tokens", "chunk_size", "chunked_prefill_size")
        assert found.word in {f"policy.{name}" for name in names}
    else:
        assert found.word == word


def test_every_code_is_published():
    """A new setting works at once under its own name; publish a short code before links use it."""
    own = set(settings._by_code())
    assert {code for code in own if "." not in code} == set(PUBLISHED)


def test_codes_can_stand_in_a_link():
    for code in settings._by_code():
        assert link._NAME.fullmatch(code)
        assert code not in (*link.PLAIN, link.MEASURED)


def shapes():
    for policy in POLICIES:
        for chunked in (True, False):
            yield Shape(policy, chunked, "roofline", (("poisson", "fixed", "lognormal"),))
    for clock in CLOCKS:
        yield Shape("vllm-v1", True, clock, ())
    for kind in ARRIVAL_KINDS:
        yield Shape("vllm-v1", True, "roofline", ((kind, "uniform", "quantiles"),) * 3)


@pytest.mark.parametrize("shape", list(shapes()))
def test_a_code_of_the_panel_is_read_from_a_link(shape):
    found = settings_for(shape)
    assert len({s.code for s in found}) == len(found) == len({s.path for s in found})
    for setting in found:
        assert setting.group in GROUPS
        read = setting_of(setting.code)
        assert (read.kind, read.group, read.stream) == (setting.kind, setting.group, setting.stream)
        assert set(setting.choices) - {"quantiles"} <= set(read.choices)
        assert read.low == setting.low or read.low <= setting.low


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_has_a_name_a_help_text_and_words_for_its_choices(language):
    words = catalogue(language)
    plain = {"bf16", "fp8", "int4"}
    for shape in shapes():
        for setting in settings_for(shape):
            assert words.get(f"setting.{setting.word}"), setting.word
            assert words.get(f"setting.{setting.word}.help"), setting.word
            for choice in set(setting.choices) - plain:
                assert words.get(f"choice.{choice}"), (setting.word, choice)


def test_a_new_policy_parameter_appears_by_itself(monkeypatch):
    @dataclass(frozen=True)
    class Late(Scheduler):
        name: ClassVar[str] = "late"
        source: ClassVar[str] = "a test"
        new_limit: int = 7

        def __post_init__(self) -> None:
            super().__post_init__()
            checks.whole_number("new_limit", self.new_limit, 1, 99)

    monkeypatch.setitem(POLICIES, "late", Late)
    caches = (settings.setting_of, settings._by_code, settings._policy_settings)
    for cache in caches:
        cache.cache_clear()
    try:
        [found] = [s for s in settings_for(Shape("late", True, "linear", ())) if "new" in s.path]
        assert (found.path, found.code) == ("policy.new_limit", "policy.new.limit")
        assert (found.kind, found.low, found.high) == ("whole", 1, 99)
        assert link.read("policy-late~policy.new.limit-9")[0].expert == (("policy.new.limit", 9),)
    finally:
        for cache in (*caches, settings_for, link._read_text):
            cache.cache_clear()


def test_streams_have_codes_of_their_own():
    shape = Shape("vllm-v1", True, "roofline", (("poisson", "fixed", "fixed"),) * 2)
    codes = {s.code: s.path for s in settings_for(shape)}
    assert codes["rate"] == "workload.streams.0.arrivals.rate_per_s"
    assert codes["rate.1"] == "workload.streams.1.arrivals.rate_per_s"
    assert codes["inmean"] == "workload.streams.0.prompt.mean_tokens"
    assert setting_of("util.1") is None
    assert setting_of("rate.0") is None


def test_one_stream_has_its_means_as_lin_and_l():
    shape = Shape("vllm-v1", True, "roofline", (("poisson", "fixed", "fixed"),))
    assert not {"inmean", "outmean"} & {s.code for s in settings_for(shape)}
