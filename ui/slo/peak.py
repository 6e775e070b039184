"""Part 6: an interview question on the morning peak, with five knobs to turn."""

from __future__ import annotations

import math

import streamlit as st

from formulas import get
from model.scenario import Scenario
from ui.cards import Door, open_button
from ui.engine import summary
from ui.language import t
from ui.lesson import Figure, figures
from ui.prose import prose
from ui.slo import knobs
from ui.slo.frame import BESIDE, closing
from ui.slo.words import PAGE, says, time
from ui.units import percent
from validation import slo_lesson as lesson_of

__all__ = ["morning_peak"]


def morning_peak(_panel: Scenario) -> None:
    """Turn the knobs, see both promises, and what each knob did and costs.

    The peak is a preset of its own; the panel's scenario plays no part in it.
    """
    st.markdown(says("peak"))
    settings = knobs.knobs()
    chosen = knobs.scenario_of(settings)
    numbers, before = summary(chosen), summary(knobs.scenario_of(knobs.start_settings()))
    figures(
        (
            *(
                Figure(
                    t(f"measure.{name}_attainment_share"),
                    *percent(numbers[f"{name}_attainment_share"]),
                    t("slo.figure.start", n=" ".join(percent(before[f"{name}_attainment_share"]))),
                )
                for name in ("ttft", "tpot", "slo")
            ),
            Figure(
                t("measure.rejected_requests"),
                f"{numbers['rejected_requests']:,.0f}",
                "",
                t("slo.figure.of", n=f"{numbers['requests']:,.0f}"),
            ),
            Figure(t("slo.figure.gpus"), f"{settings.engines}", "", t("slo.figure.cost")),
        )
    )
    st.markdown(knobs.classes_line(chosen))
    st.markdown(knobs.alone_table(settings))
    if numbers["slo_attainment_share"] >= 0.9:
        st.success(says("peak-kept", gpus=settings.engines), icon=":material/check:")
    _hints(chosen)
    st.subheader(prose(PAGE, "missing").title, anchor=False)
    st.markdown(says("missing"))
    work = lesson_of.decode_work(chosen, *BESIDE)
    closing("exercise", chosen, "limits-peak", F_dec=work)
    st.markdown(says("next"))
    open_button(
        Door("simulator", preset=knobs.PRESET), t("page.simulator"), key="slo.peak.simulator"
    )


def _hints(scenario: Scenario) -> None:
    """One for each knob, with this engine's numbers."""
    (decodes, context), tpot_s = BESIDE, scenario.slo.tpot_s
    chunk = lesson_of.chunk_budget(scenario, decodes, context, tpot_s)
    iterations, long = (math.ceil(tokens / chunk) for tokens in (1500, 32768))
    prompt = max(round(lesson_of.mean_lengths(scenario)[0]), 1)
    cap = get("F28d").evaluate(
        {"D_ttft": scenario.slo.ttft_s, "C_p": lesson_of.prefill_rate(scenario, prompt)}
    )
    numbers = {
        "decodes": decodes,
        "context": f"{context:,}",
        "chunk": f"{chunk:,}",
        "iterations": iterations,
        "prompt": time(iterations * tpot_s),
        "long_iterations": long,
        "long": time(long * tpot_s),
        "cap": f"{cap:,.0f}",
    }
    for name in ("budget", "seqs", "priority", "cap", "engines"):
        with st.expander(prose(PAGE, f"hint-{name}").title, icon=":material/lightbulb:"):
            st.markdown(says(f"hint-{name}", **numbers))
