"""Part 3: Little's law counted on a run, as a condition on memory, and as an exercise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import streamlit as st

from formulas import get
from model.parameters import RATE, replace_at
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import t
from ui.lesson import Figure, figures, number_exercise
from ui.prose import prose
from ui.slo.frame import limits, viewer
from ui.slo.pictures import number_picture
from ui.slo.words import PAGE, formula_values, rate_or_none, says, time
from ui.units import significant
from validation import slo_lesson as lesson_of

__all__ = ["little"]


def little(scenario: Scenario) -> None:
    """N(t), λ and W of a run of the scenario, at a rate to choose."""
    rate = rate_or_none(scenario)
    if rate is not None:
        factor = st.slider(
            t("slo.load"), 25, 250, 100, 25, format="%d %%", key="load", bind="query-params"
        )
        scenario = replace_at(scenario, RATE, rate * factor / 100)
    run = simulated(scenario)
    here, all_of_it = (lesson_of.little(run, whole=whole) for whole in (False, True))
    numbers = formula_values(scenario)
    most = _most_requests(scenario, numbers)
    unit = t("unit.requests")
    figures(
        (
            Figure("λ", significant(here.rate_per_s), t("unit.requests_per_s")),
            Figure("W", *time(here.stay_s).split("\u00a0"), t("slo.little.stay")),
            Figure("λ·W", significant(here.product), unit, t("slo.little.product")),
            Figure(t("slo.little.number"), significant(here.number), unit, t("slo.little.mean")),
            Figure("Bmax", significant(most), unit, t("slo.little.most")),
        )
    )
    number_picture(scenario, here, most)
    steady = "little-steady" if abs(here.difference) < 0.1 else "little-unsteady"
    st.markdown(
        says(
            steady,
            product=significant(here.product),
            number=significant(here.number),
            gap=significant(100 * abs(here.difference)),
            whole=significant(all_of_it.number, 5),
            whole_product=significant(all_of_it.product, 5),
        )
    )
    held = lesson_of.kv_tokens(run)
    if numbers:
        expected = here.number * numbers["ctx"]
        fits = "little-fits" if here.product <= most else "little-full"
        st.markdown(
            says(
                fits,
                most=significant(most),
                product=significant(here.product),
                expected=f"{expected:,.0f}",
                held=f"{held:,.0f}",
                seqs=f"{scenario.policy.max_num_seqs:,}",
            )
        )
    limits("limits-little")
    _your_turn()
    viewer("little", scenario, W=here.stay_s, TTFT=summary(scenario)["ttft_mean_s"],
           TPOT=summary(scenario)["tpot_mean_s"], **{"lambda": here.rate_per_s})  # fmt: skip


def _most_requests(scenario: Scenario, numbers: Mapping[str, float]) -> float:
    """B_max of F28c: requests of the mean context that fit, of all engines together."""
    if not numbers:
        return math.nan
    each = math.floor(numbers["M_kv"] / (numbers["kappa"] * numbers["ctx"]))
    return float(each * scenario.n_engines)


EXERCISES = ((5, 400, 30, 200), (8, 500, 25, 300), (10, 1000, 40, 100), (4, 500, 50, 150))


def _your_turn() -> None:
    variant = st.session_state.setdefault("slo.variant", 0) % len(EXERCISES)
    rate, ttft_ms, tpot_ms, output = EXERCISES[variant]
    stay_s = (ttft_ms + tpot_ms * output) / 1000
    answer = round(get("F29").evaluate({"lambda": rate, "W": stay_s}))
    st.subheader(prose(PAGE, "exercise").title, anchor=False)
    st.markdown(says("exercise", rate=rate, ttft=ttft_ms, tpot=tpot_ms, output=output))
    number_exercise(
        f"slo.{variant}",
        answer,
        (
            (round(rate * ttft_ms / 1000), says("hint-first")),
            (round(rate * tpot_ms * output / 1000), says("hint-rest")),
            (round(stay_s), says("hint-stay")),
            (round(stay_s / rate), says("hint-over")),
        ),
        says("solved", rate=rate, stay=significant(stay_s), answer=answer),
    )

    def other_numbers() -> None:
        st.session_state["slo.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)
