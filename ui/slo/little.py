"""Part 3: Little's law counted on a run, as a condition on memory, and as an exercise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import streamlit as st

from model.parameters import RATE, replace_at
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import t
from ui.lesson import Figure, figures, reveal
from ui.slo.frame import closing, guess
from ui.slo.pictures import number_picture
from ui.slo.words import formula_values, rate_or_none, says, time
from ui.units import duration, significant
from validation import slo_lesson as lesson_of

__all__ = ["little"]


def little(scenario: Scenario) -> None:
    """N(t), λ and W of a run of the scenario, at a rate to choose."""
    rate = rate_or_none(scenario)
    if rate is not None:
        if not guess("little", says("ask-little"), ("double", "more", "less")):
            return
        _doubled(scenario, rate)
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
            Figure("W", *duration(here.stay_s), t("slo.little.stay")),
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
    means = summary(scenario)
    given = {"TTFT": means["ttft_mean_s"], "TPOT": means["tpot_mean_s"], "W": here.stay_s}
    closing("little", scenario, "limits-little", **given, **{"lambda": here.rate_per_s})


def _doubled(scenario: Scenario, rate_per_s: float) -> None:
    """What twice the rate really does to the number of requests."""
    once, twice = (
        lesson_of.little(simulated(replace_at(scenario, RATE, rate)), whole=False)
        for rate in (rate_per_s, 2 * rate_per_s)
    )
    reveal(
        says(
            "little-answer",
            number=significant(once.number),
            double=significant(twice.number),
            stay=time(once.stay_s),
            stay_double=time(twice.stay_s),
        )
    )


def _most_requests(scenario: Scenario, numbers: Mapping[str, float]) -> float:
    """B_max of F28c: requests of the mean context that fit, of all engines together."""
    if not numbers:
        return math.nan
    each = math.floor(numbers["M_kv"] / (numbers["kappa"] * numbers["ctx"]))
    return float(each * scenario.n_engines)
