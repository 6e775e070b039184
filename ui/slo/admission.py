"""The admission part: one rule of the lab's scheduler beside open doors, over offered load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import streamlit as st

from charts import slo as charts
from charts.slo import Curve, Level, Place, Row
from model.errors import LabError
from model.parameters import replace_at, with_policy
from model.running import answers
from model.scenario import Scenario
from model.steady_load import Run, affordable, gpus, load_run, saturation
from model.workers import shared
from ui.choose import choose
from ui.language import t
from ui.lesson import Figure, figures, reveal
from ui.pictures import Picture, draw
from ui.slo.frame import closing, guess, has_rate
from ui.slo.words import says, time
from ui.theme import current_theme
from ui.units import duration, percent, significant
from validation import slo_lesson as lesson

__all__ = ["LOADS", "RULES", "Choice", "Outcome", "admission", "measured"]

LOADS = (0.6, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
"""Offered load, as a share of what the saturated engine finishes."""
RULES = ("little", "token_cap", "vllm", "queue_cap", "deadline", "loss")
"""Those of the lab's scheduler, and vLLM V1's own."""
_ASKED = 1.5
_REQUESTS = 500
_SATURATED = 1500
_ESTIMATES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A rule and its number; ``retries`` is how often a refused client comes again."""

    rule: str
    number: float = 0.0
    retries: int = 0


class _Cap(NamedTuple):
    """Of a rule: its parameter, and the least, most and step of its slider."""

    parameter: str
    least: int
    most: int
    step: int


_CAPS = {
    "token_cap": _Cap("queue_cap_tokens", 1000, 60_000, 500),
    "vllm": _Cap("max_num_queued_tokens", 1000, 60_000, 500),
    "queue_cap": _Cap("queue_cap_requests", 1, 200, 1),
    "little": _Cap("system_cap_requests", 4, 400, 2),
}


def cap_control(rule: str, scenario: Scenario, limit_per_s: float) -> float:
    """The slider of a rule's number; it begins where the formula puts it."""
    if rule in _CAPS:
        cap = _CAPS[rule]
        start = _by_formula(rule, scenario, limit_per_s)
        near = cap.least + round((start - cap.least) / cap.step) * cap.step
        return st.slider(
            t(f"slo.cap.{rule}"),
            cap.least,
            cap.most,
            int(min(max(near, cap.least), cap.most)),
            cap.step,
            key=f"{rule}_at",
            bind="query-params",
        )
    if rule == "deadline":
        return st.select_slider(
            t("slo.cap.deadline"),
            _ESTIMATES,
            1.0,
            key="deadline_at",
            bind="query-params",
        )
    return 0.0


def _by_formula(rule: str, scenario: Scenario, limit_per_s: float) -> float:
    prompt, output = lesson.mean_lengths(scenario)
    slo, tokens = scenario.slo, max(round(prompt), 1)
    queued = slo.ttft_s * lesson.prefill_rate(scenario, tokens)  # F28d
    stay_s = slo.ttft_s + output * slo.tpot_s  # F29a
    rate = limit_per_s * gpus(scenario) / scenario.n_engines
    numbers = {"queue_cap": queued / prompt, "little": rate * stay_s}
    return numbers.get(rule, queued)


def under(scenario: Scenario, choice: Choice) -> Scenario:
    """The scenario under the scheduler that has this rule; "open" refuses nobody."""
    if choice.rule == "vllm":
        found = with_policy(scenario, "vllm-v1")
    else:
        found = replace_at(with_policy(scenario, "lab"), "policy.admission", choice.rule)
    for place in range(len(scenario.workload.streams)):
        found = replace_at(found, f"workload.streams.{place}.retries", choice.retries)
    if choice.rule in _CAPS:
        path = f"policy.{_CAPS[choice.rule].parameter}"
        found = replace_at(found, path, int(choice.number))
    if choice.rule == "deadline":
        tokens = max(round(lesson.mean_lengths(scenario)[0]), 1)
        rate = choice.number * lesson.prefill_rate(scenario, tokens)
        found = replace_at(found, "policy.prefill_rate_tokens_per_s", rate)
        found = replace_at(found, "policy.ttft_bound_s", scenario.slo.ttft_s)
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """Runs at LOADS of a limit (requests/s per GPU)."""

    limit_per_s: float
    runs: tuple[Run, ...]

    def at(self, load: float) -> Run:
        return self.runs[LOADS.index(load)]

    def column(self, name: str) -> np.ndarray:
        return np.array([getattr(run, name) for run in self.runs])

    @property
    def rates(self) -> np.ndarray:
        return self.limit_per_s * np.array(LOADS)


def served_well(run: Run) -> float:
    """Attainment of those who were not refused."""
    served = 1 - run.refused_share
    return run.slo_attainment_share / served if served > 0 else float("nan")


@st.cache_resource(max_entries=128, show_spinner=False)
def limit_of(scenario: Scenario) -> float:
    """What the engine finishes when saturated, per second and GPU; inf where it never is.

    Raises LabError where the scenario cannot run.
    """
    n = affordable(scenario, _SATURATED)
    found = saturation(with_policy(scenario, "lab"), scenario.seed, n)
    if isinstance(found, LabError):
        raise found
    return found


@st.cache_resource(max_entries=128, show_spinner=False)
def measured(scenario: Scenario, choice: Choice) -> Outcome:
    """Up to 500 requests at each load, on the server's workers."""
    limit, chosen = limit_of(scenario), under(scenario, choice)
    seed, n = scenario.seed, affordable(scenario, _REQUESTS)
    calls = ((load, (load_run, chosen, limit * load, seed, n)) for load in LOADS)
    runs = dict(answers(calls, shared()))
    for run in runs.values():
        if isinstance(run, LabError):
            raise run
    return Outcome(limit, tuple(runs[load] for load in LOADS))


def overload_picture(outcomes: Mapping[str, Outcome], load: float) -> None:
    """What is served in time, and who is refused, over offered load."""
    limit = next(iter(outcomes.values())).limit_per_s
    looks: Sequence[tuple[int | str, str]] = (("violated", "dash"), (0, "solid"))
    pairs = [
        (t(f"slo.rule.{rule}"), outcome, *look)
        for (rule, outcome), look in zip(outcomes.items(), looks, strict=False)
    ]
    good = [
        Curve(name, one.rates, one.column("slo_throughput_requests_per_s"), color, dash)
        for name, one, color, dash in pairs
    ]
    kept = [
        Curve(name, one.rates, 100 * np.array([served_well(run) for run in one.runs]), color, dash)
        for name, one, color, dash in pairs
    ]
    unit = t("unit.requests_per_s")
    figure = charts.rows(
        (
            Row(t("slo.overload.good"), unit, f" {unit}", good),
            Row(t("slo.overload.kept"), "%", " %", kept, (Level(90, "90 %"),), top=108),
        ),
        t("slo.frontier.x"),
        t("slo.frontier.at"),
        current_theme(),
        height=500,
        at=(
            Place(limit, t("slo.overload.limit")),
            Place(limit * load, t("slo.overload.offered"), row=1),
        ),
        x_range=(0, limit * LOADS[-1] * 1.12),
    )
    said = "; ".join(
        t("slo.overload.one", rule=name, rate=significant(rate))
        for name, one, _, _ in pairs
        for rate in (one.at(load).slo_throughput_requests_per_s,)
    )
    draw(Picture(figure, t("slo.overload.alt", said=said)), "slo.overload")


# -- the part itself -------------------------------------------------------------------------------


def admission(scenario: Scenario) -> None:
    """Choose a rule, a load and how patient the refused are; see what is still in time."""
    if not has_rate(scenario):
        closing("admission", scenario, "limits-admission")
        return
    limit = limit_of(scenario)
    if not np.isfinite(limit):
        st.info(t("slo.no_limit"), icon=":material/tune:")
        return
    st.markdown(says("admission", limit=significant(limit)))
    asks = says("ask-admission", times=f"{_ASKED:g}")
    if not guess("admission", asks, ("most", "third", "few")):
        return
    kept = measured(scenario, Choice("open")).at(_ASKED)
    share = "\u00a0".join(percent(kept.slo_attainment_share))
    late = kept.slo_attainment_share < 1 / _ASKED  # fewer than the engine finishes
    said = "admission-answer" if late else "admission-loose"
    reveal(says(said, share=share, requests=kept.requests))
    rule = choose("rule", RULES, "slo.rule", t("slo.rule"))
    left, middle, right = st.columns(3, gap="medium")
    with left:
        number = cap_control(rule, scenario, limit)
    with right:
        retries = st.slider(t("slo.retries"), 0, 6, 0, key="retries", bind="query-params")
    with middle:
        load = st.select_slider(
            t("slo.offered"), LOADS, 1.25, key="offered", bind="query-params"
        )
    outcomes = {
        "open": measured(scenario, Choice("open")),
        rule: measured(scenario, Choice(rule, number, retries)),
    }
    before, after = (outcome.at(load) for outcome in outcomes.values())
    unit = t("unit.requests_per_s")
    figures(
        (
            Figure(t("slo.figure.good"), significant(after.slo_throughput_requests_per_s), unit,
                   t("slo.figure.open", n=significant(before.slo_throughput_requests_per_s))),
            Figure(t("slo.figure.refused"), *percent(after.refused_share),
                   t("slo.figure.tries", n=significant(after.attempts_mean))),
            Figure(t("slo.figure.kept"), *percent(served_well(after)),
                   t("slo.figure.open", n=" ".join(percent(served_well(before))))),
            Figure(t("measure.ttft_p99_s"), *duration(after.ttft_p99_s),
                   t("slo.figure.open", n=time(before.ttft_p99_s))),
            Figure(t("measure.tpot_p90_s"), *duration(after.tpot_p90_s),
                   t("slo.figure.open", n=time(before.tpot_p90_s))),
        )
    )  # fmt: skip
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        overload_picture(outcomes, load)
    with words:
        st.markdown(says(f"rule-{rule.replace('_', '-')}"))
        st.markdown(says("retries") if retries else says("admission-read"))
    closing("admission", scenario, "limits-admission")
