"""Part 4: a stable queue is not a kept promise, for the mean and less so for the P99."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from formulas import get
from model.scenario import Scenario
from ui.language import t
from ui.lesson import Figure, figures, predict
from ui.prose import prose
from ui.slo.frame import closing
from ui.slo.pictures import allowed_picture, waits_picture
from ui.slo.words import PAGE, formula_values, mean_prompt, says, time
from ui.units import significant
from validation import slo_lesson as lesson_of

__all__ = ["stability"]


def stability(scenario: Scenario) -> None:
    """Predict, see waits at three loads, the loads that a bound allows, and the scenario's own."""
    tokens = max(round(mean_prompt(scenario)), 1)
    asks = says("ask-stability", x=2)
    guesses = ("0.9", "0.67", "0.4", "0.14")
    if predict("slo.stability", asks, [(name, name) for name in guesses]) is None:
        return
    x = st.slider(t("slo.x"), 1.2, 12.0, 2.0, 0.1, key="bound", bind="query-params")
    runs = [lesson_of.waits(scenario, tokens, load) for load in lesson_of.LOADS]
    mean = get("F28").evaluate({"x_ttft": x})
    p90, p99 = (get("F28b").evaluate({"x_ttft": x, "q_share": q}) for q in (0.9, 0.99))
    worst = runs[-1]
    break_at = (x - 1) / (worst.load - 1)
    figures(
        (
            Figure(t("slo.figure.stable"), "1", "ρ", t("slo.figure.stable.more")),
            Figure(t("slo.figure.mean"), significant(mean), "ρ", "F28"),
            Figure(t("slo.figure.p90"), significant(p90), "ρ", "F28b"),
            Figure(t("slo.figure.p99"), significant(p99), "ρ", "F28b"),
        )
    )
    left, right = st.columns(2, gap="large")
    with left:
        waits_picture(runs, x, break_at)
    with right:
        allowed_picture(x)
    st.markdown(
        says(
            "stability",
            d=time(worst.service_s),
            tokens=f"{tokens:,}",
            broken=time(break_at * worst.service_s),
            x=f"{x:g}",
            mean=significant(mean),
            p99=significant(p99),
        )
    )
    st.markdown(_waits_table(runs))
    share = _colocated(scenario)
    numbers = {"x_ttft": x, "rho": lesson_of.LOADS[0], "rho_max": share}
    closing("stability", scenario, "limits-stability", **numbers)


def _waits_table(runs: Sequence[lesson_of.Waits]) -> str:
    """Formulas beside long runs of the same queue, in prefill times."""
    heads = [t(f"slo.waits.table.{name}") for name in ("load", "mean", "f26", "p99", "f26e")]
    lines = [heads, ["---", *(["---:"] * 4)]]
    for run in runs:
        numbers = (run.mean, run.formula_mean, run.p99, run.formula_p99)
        shown = ["∞" if math.isinf(n) else significant(n) for n in numbers]
        lines.append([f"ρ = {run.load:g}", *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _colocated(scenario: Scenario) -> float:
    """The scenario's own load on prefill, where decodes take their share; returns prefill's."""
    numbers = formula_values(scenario)
    if not numbers:
        return 1.0
    st.subheader(prose(PAGE, "colocated").title, anchor=False)
    share = st.slider(t("slo.rho_max"), 10, 100, 70, 5, format="%d %%", key="share",
                      bind="query-params") / 100  # fmt: skip
    load = get("F28a").evaluate({**numbers, "rho_max": share})
    brought = numbers["lambda"] * numbers["s_mean"]
    figures(
        (
            Figure("λ·s̄p", significant(brought), t("unit.tokens_per_s"), t("slo.figure.brought")),
            Figure("Cp·ρmax", significant(numbers["C_p"] * share), t("unit.tokens_per_s"),
                   t("slo.figure.served")),
            Figure(t("slo.figure.load"), significant(load), "ρ", "F28a"),
        )
    )  # fmt: skip
    st.markdown(says("colocated", verdict=says("verdict-above" if load >= 1 else "verdict-below")))
    return share
