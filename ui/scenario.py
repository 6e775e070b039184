"""The scenario panel: what is simulated, chosen in the sidebar and carried by the address."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import streamlit as st

from model import catalogue
from model.errors import LabError
from model.kv_cache import TENSOR_PARALLEL_SIZES
from model.result import SimulationResult
from model.scenario import Scenario
from model.schedulers import POLICIES, Scheduler
from ui.address import choice
from ui.language import current_language, error_sentence, t, translator
from ui.units import duration

__all__ = ["CHOICES", "current_scenario", "scenario_line", "scenario_panel", "with_choices"]

CHOICES = ("preset", "policy", "hardware", "gpus", "model")
"""The address parameters of the panel."""

_STATE_KEY = "scenario"


def scenario_panel() -> None:
    """Draw the panel and note the scenario it describes for :func:`current_scenario`."""
    presets = catalogue.presets()
    words = translator(current_language())
    st.subheader(t("panel.title"))
    preset_id = choice(
        "preset",
        t("panel.preset"),
        tuple(presets),
        next(iter(presets)),
        lambda name: words(f"preset.{name}"),
        resets=CHOICES[1:],
    )
    preset = presets[preset_id].scenario
    st.caption(t(f"preset.{preset_id}.about"))
    policy = choice(
        "policy",
        t("panel.policy"),
        tuple(POLICIES),
        preset.policy.name,
        lambda name: words(f"policy.{name}"),
        help=t("panel.policy.help"),
    )
    devices, models = catalogue.devices(), catalogue.models()
    hardware = choice(
        "hardware",
        t("panel.hardware"),
        tuple(devices),
        preset.hardware,
        lambda name: devices[name].name,
    )
    gpus = choice(
        "gpus",
        t("panel.gpus"),
        tuple(map(str, TENSOR_PARALLEL_SIZES)),
        str(preset.tensor_parallel),
        str,
        help=t("panel.gpus.help"),
    )
    model = choice(
        "model", t("panel.model"), tuple(models), preset.model, lambda name: models[name].name
    )
    try:
        scenario = with_choices(preset, policy, hardware, int(gpus), model)
    except LabError as error:
        st.error(error_sentence(error))
        scenario = None
    st.session_state[_STATE_KEY] = scenario


def current_scenario() -> Scenario:
    """The scenario of the panel; the page ends here where it cannot run."""
    scenario = st.session_state.get(_STATE_KEY)
    if scenario is None:
        st.info(t("panel.invalid"))
        st.stop()
    return scenario


def scenario_line(result: SimulationResult, numbers: Mapping[str, float]) -> str:
    """What was simulated, in one line."""
    return " · ".join(
        (
            t(f"policy.{result.scenario.policy.name}"),
            t("summary.kv", n=result.kv_blocks),
            t("summary.requests", n=numbers["requests"]),
            t("summary.iterations", n=numbers["iterations"]),
            t("summary.span", span=" ".join(duration(numbers["duration_s"]))),
        )
    )


def with_choices(
    preset: Scenario, policy: str, hardware: str, gpus: int, model: str
) -> Scenario:
    """The preset with these choices; LabError where they do not go together."""
    scenario = dataclasses.replace(
        preset, hardware=hardware, tensor_parallel=gpus, model=model
    )
    if policy == preset.policy.name:
        return scenario
    return dataclasses.replace(scenario, policy=_comparable(policy, scenario))


# The same limit under the name it has in each engine.
_LIMITS = (("max_num_seqs",), ("max_num_batched_tokens", "chunk_size"), ("queue_order",))


def _comparable(policy: str, scenario: Scenario) -> Scheduler:
    """Another policy with the limits of the scenario's own, so that only the rules differ."""
    kind, old = POLICIES[policy], scenario.policy
    known = {field.name for field in dataclasses.fields(kind)}
    kept = {
        new_name: getattr(old, old_name)
        for names in _LIMITS
        for new_name in names
        for old_name in names
        if new_name in known and hasattr(old, old_name)
    }
    new = kind(**kept)
    # Without chunks a prompt must fit into the budget whole; vLLM V0 then takes the context limit.
    if not getattr(new, "enable_chunked_prefill", True):
        budget = max(new.max_num_batched_tokens, scenario.max_model_len() or 0)
        new = dataclasses.replace(new, max_num_batched_tokens=budget)
    return new
