"""The lab's free composition: against the slow reference, and against the engines that it contains.

The rules themselves have schedules by hand in test_lab_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from model import catalogue
from model.errors import LabError
from model.experiment import replace_at, with_policy
from model.schedulers import Lab
from model.schedulers.admission import RULES
from model.schedulers.lab import IMPOSSIBLE, PREFILL
from model.schedulers.lab_order import RANKS
from model.schedulers.lab_victims import SWAPS, VICTIMS
from model.simulator import simulate
from tests import reference
from tests.adapter import run_model
from tests.cases import Case, cases, profile
from tests.lab_cases import PLAIN_V1, lab_cases
from tests.model.test_against_reference import assert_bit_equal, check
from tests.reference.common import difference, golden_names, read_inputs, read_recording

EXAMPLES = 60

VARIANTS = {
    "anything": {},
    "chunks": {"prefill": "chunks", "quantum_s": 0.0},
    "apart": {"prefill": "apart", "quantum_s": 0.0, "admission": "open"},
    "whole, on ticks": {"prefill": "whole", "quantum_s": 0.01},
    "slo": {"prefill": "slo", "admission": "open"},
    "swap, priority": {
        "preemption_mode": "swap",
        "queue_order": "priority",
        "evict_for_waiting": True,
        "admission": "open",
    },
    "swap, shortest, patience": {
        "preemption_mode": "swap",
        "queue_order": "sjf",
        "fcfs_after_s": 2.0**-4,
        "admission": "open",
    },
    "cheaper": {"preemption_mode": "cheaper", "admission": "open"},
    "reserving": {"preemption_mode": "never"},
    **{f"victim {name}": {"victim": name, "admission": "open"} for name in VICTIMS},
    **{f"admission {name}": {"admission": name} for name in RULES if name != "open"},
}
"""Name -> settings that are not drawn; each table's rows are all among them."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_decisions_as_the_reference(variant):
    @profile(EXAMPLES)
    @given(lab_cases(VARIANTS[variant]))
    def same(case: Case) -> None:
        check(case)

    same()


def test_same_decisions_with_room():
    @profile(EXAMPLES)
    @given(lab_cases(tight=False))
    def same(case: Case) -> None:
        check(case)

    same()


# ------------------------------------------------------------------ what it contains


def as_lab(config: dict, **settings) -> dict:
    """The lab under the limits of another engine's configuration."""
    kept = ("block_size", "kv_blocks", "max_num_seqs", "max_num_batched_tokens", "watermark")
    scheduler = {key: config["scheduler"][key] for key in kept if key in config["scheduler"]}
    return config | {"policy": "lab", "scheduler": scheduler | settings}


def v1_as_lab(config: dict) -> dict:
    scheduler = config["scheduler"]
    chunked = scheduler.get("enable_chunked_prefill", True)
    settings = {"prefill": "chunks" if chunked else "whole"}
    if scheduler.get("queue_order") == "priority":
        settings |= {"queue_order": "priority", "victim": "lowest_priority"}
    return as_lab(config, **settings)


def recorded_v1() -> list[str]:
    """Recordings without the parameters that the lab has not."""
    names = []
    for name in golden_names():
        config, _ = read_inputs(name)
        scheduler = config["scheduler"]
        plain = not any(
            (
                scheduler.get("enable_prefix_caching"),
                scheduler.get("long_prefill_token_threshold"),
                not scheduler.get("scheduler_reserve_full_isl", True),
            )
        )
        if config["policy"] == "vllm-v1" and plain:
            names.append(name)
    return names


@pytest.mark.parametrize("name", recorded_v1())
def test_the_defaults_take_the_recorded_decisions_of_vllm_v1(name):
    config, requests = read_inputs(name)
    recorded, _ = read_recording(name)
    assert difference(run_model(v1_as_lab(config), requests), recorded) is None


def test_many_recordings_can_be_expressed():
    assert len(recorded_v1()) >= 9


@pytest.mark.parametrize("queue_order", ["fcfs", "priority"])
def test_the_rules_of_v1_give_v1(queue_order):
    @profile(EXAMPLES)
    @given(cases("vllm-v1", PLAIN_V1 | {"queue_order": queue_order}, rejects=False))
    def same(case: Case) -> None:
        expected = reference.run(case.config, case.requests).iterations
        assert difference(run_model(v1_as_lab(case.config), case.requests), expected) is None

    same()


def test_prompts_apart_are_v0_while_memory_lasts():
    """V0 wants a block to spare, so only with room do the two agree."""
    fixed = {
        "enable_chunked_prefill": False,
        "preemption_mode": "recompute",
        "queue_order": "fcfs",
        "watermark": 0.0,
    }

    @profile(EXAMPLES)
    @given(cases("vllm-v0", fixed, tight=False, rejects=False))
    def same(case: Case) -> None:
        expected = reference.run(case.config, case.requests).iterations
        found = run_model(as_lab(case.config, prefill="apart"), case.requests)
        assert difference(found, expected) is None

    same()


def test_whole_prompts_with_reservation_are_orca():
    """Its oracle's, who knows how long an answer gets."""

    @profile(EXAMPLES)
    @given(cases("orca", {"reserve": "oracle"}, rejects=False))
    def same(case: Case) -> None:
        expected = reference.run(case.config, case.requests).iterations
        config = as_lab(case.config, prefill="whole", preemption_mode="never")
        config["scheduler"]["max_num_batched_tokens"] = 10_000
        assert difference(run_model(config, case.requests), expected) is None

    same()


# ------------------------------------------------------------------ on real hardware


def scenario(preset: str, **settings):
    lab = with_policy(catalogue.presets()[preset].scenario, "lab")
    return replace(lab, policy=replace(lab.policy, **settings))


def few(preset: str, n: int, **settings):
    return replace_at(scenario(preset, **settings), "workload.streams.0.n_requests", n)


@pytest.mark.parametrize("preset", ["conversation", "preemption-storm", "law"])
@pytest.mark.parametrize("quantum_s", [0.0, 0.01])
def test_a_time_bound_joins_iterations_without_changing_a_bit(preset, quantum_s):
    """The largest chunk shrinks as contexts grow, and a stretch must not outlive that."""
    n = 8 if preset == "law" else 60
    given = few(preset, n, prefill="slo", target_itl_s=0.03, quantum_s=quantum_s)
    fast = simulate(given)
    assert_bit_equal(fast, simulate(given, fast_forward=False))
    assert fast.stats["decisions"] < len(fast.iterations["start_s"])


@pytest.mark.parametrize(
    "settings", [{"prefill": "slo"}, {"prefill": "whole"}, {"quantum_s": 0.01}]
)
def test_stretches_of_decodes_are_joined(settings):
    result = simulate(few("customer-service", 100, **settings))
    alone = (result.iterations["prefill_requests"] == 0) & (result.iterations["tokens"] > 0)
    assert result.stats["decisions"] < alone.sum() / 2


# ------------------------------------------------------------------ the table of combinations


def every_choice() -> Iterator[dict]:
    for prefill in PREFILL:
        for queue_order in RANKS:
            for preemption_mode in SWAPS:
                for evict_for_waiting in (False, True):
                    yield {
                        "prefill": prefill,
                        "queue_order": queue_order,
                        "preemption_mode": preemption_mode,
                        "evict_for_waiting": evict_for_waiting,
                    }


@pytest.mark.parametrize("choice", [*every_choice()], ids=lambda c: "-".join(map(str, c.values())))
def test_a_combination_is_possible_or_has_a_sentence(choice):
    refused = [c for row, c in IMPOSSIBLE if all(choice[key] == v for key, v in row.items())]
    if refused:
        with pytest.raises(LabError) as error:
            Lab(**choice)
        assert error.value.code in refused
        assert "evict_for_waiting to false" in str(error.value)
    else:
        assert Lab(**choice).prefill == choice["prefill"]


def test_two_engines_have_their_own_queues():
    result = simulate(replace(few("customer-service", 40, queue_order="sjf"), n_engines=2))
    assert np.isin([0, 1], result.requests["engine_id"]).all()
    assert (result.requests["emitted_tokens"] == result.requests["output_tokens"]).all()
