"""The morning peak: five knobs, what each of them does alone, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from model import catalogue
from model.metrics import class_summary
from model.parameters import replace_at, with_policy
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import t
from ui.units import percent

__all__ = ["Settings", "alone_table", "classes_line", "knobs", "scenario_of", "start_settings"]

PRESET = "morning-peak"
BUDGETS = (128, 256, 416, 512, 1024, 2048, 4096)
SEQS = (16, 32, 64, 128, 256)
CAPS = (0, 2048, 4096, 8192, 16384, 32768)
MOST_ENGINES = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """The five knobs; ``cap`` 0 refuses nobody."""

    budget: int = 2048
    seqs: int = 256
    priority: bool = False
    cap: int = 0
    engines: int = 1


def start_settings() -> Settings:
    """As the preset has them."""
    return Settings()


def knobs() -> Settings:
    """The controls, and what they are set to."""
    first, second, fifth = st.columns(3, gap="medium", vertical_alignment="bottom")
    fourth, third, sixth = st.columns(3, gap="medium", vertical_alignment="bottom")
    budget = first.select_slider(
        t("slo.knob.budget"), BUDGETS, 2048, key="budget", bind="query-params"
    )
    seqs = second.select_slider(t("slo.knob.seqs"), SEQS, 256, key="seqs", bind="query-params")
    engines = third.slider(
        t("slo.knob.engines"), 1, MOST_ENGINES, 1, key="engines", bind="query-params"
    )
    # Options in words would be words in the address, in one language.
    cap = fourth.select_slider(t("slo.knob.cap.zero"), CAPS, 0, key="cap", bind="query-params")
    priority = fifth.toggle(t("slo.knob.priority"), key="calm", bind="query-params")
    sixth.button(t("slo.knob.reset"), on_click=_reset, key="slo.reset", icon=":material/undo:")
    return Settings(budget, seqs, priority, cap, engines)


def _reset() -> None:
    for name, value in (("budget", 2048), ("seqs", 256), ("engines", 1), ("cap", 0)):
        st.session_state[name] = value
    st.session_state["calm"] = False


def scenario_of(settings: Settings) -> Scenario:
    """The morning peak with these settings, under the lab's scheduler.

    With everything else at its default that takes vLLM V1's decisions.
    """
    scenario = with_policy(catalogue.presets()[PRESET].scenario, "lab")
    scenario = replace_at(scenario, "policy.max_num_batched_tokens", settings.budget)
    scenario = replace_at(scenario, "policy.max_num_seqs", settings.seqs)
    if settings.cap:
        scenario = replace_at(scenario, "policy.admission", "token_cap")
        scenario = replace_at(scenario, "policy.queue_cap_tokens", settings.cap)
    if settings.priority:
        scenario = replace_at(scenario, "policy.queue_order", "priority")
        scenario = replace_at(scenario, "policy.evict_for_waiting", True)
        scenario = replace_at(scenario, "workload.streams.1.priority", 10)
    return replace_at(scenario, "n_engines", settings.engines)


def alone_table(settings: Settings) -> str:
    """Each knob that was moved, alone, beside the run in which none is: what it did and costs."""
    start = Settings()
    heads = [t(f"slo.alone.{name}") for name in ("knob", "ttft", "tpot", "both", "cost")]
    lines = [heads, ["---", "---:", "---:", "---:", "---"]]
    lines.append(_row(t("slo.alone.start"), summary(scenario_of(start)), "–"))
    for name in ("budget", "seqs", "priority", "cap", "engines"):
        value = getattr(settings, name)
        if value == getattr(start, name):
            continue
        numbers = summary(scenario_of(replace(start, **{name: value})))
        shown = f"{value:,}" if not isinstance(value, bool) else ""
        cost = t(f"slo.cost.{name}", n=int(numbers["rejected_requests"]), engines=int(value))
        lines.append(_row(f"{t(f'slo.knob.{name}')} {shown}".strip(), numbers, cost))
    if len(lines) > 4:
        lines.append(_row(f"**{t('slo.alone.all')}**", summary(scenario_of(settings)), ""))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(name: str, numbers: Mapping[str, float], cost: str) -> list[str]:
    found = (numbers[f"{key}_attainment_share"] for key in ("ttft", "tpot", "slo"))
    return [name, *("\u00a0".join(percent(share)) for share in found), cost]


def classes_line(scenario: Scenario) -> str:
    """How many of the calm and of the peak requests kept both SLOs."""
    found = class_summary(simulated(scenario))
    return t(
        "slo.classes",
        **{
            name: "\u00a0".join(percent(numbers["slo_attainment_share"]))
            for name, numbers in found.items()
        },
    )
