"""Part 1: TTFT and TPOT pull apart over the token budget, and whole prompts stall decodes."""

from __future__ import annotations

import streamlit as st

from model import catalogue
from model.errors import LabError
from model.scenario import Scenario
from ui.language import error_markdown, t
from ui.lesson import reveal
from ui.prose import prose
from ui.scenario import choose_preset
from ui.slo.frame import BESIDE, closing, guess
from ui.slo.pictures import BUDGETS, over_budgets, stall_picture, tension_picture
from ui.slo.words import PAGE, engine_name, says, time
from validation import slo_lesson as lesson_of

__all__ = ["tension"]


def tension(scenario: Scenario) -> None:
    """Predict, see both curves, then the stall."""
    low, high = BUDGETS[0], BUDGETS[-1]
    asks = says("ask", engine=engine_name(scenario), low=low, high=f"{high:,}")
    if not guess("tension", asks, ("both", "trade", "reverse", "neither")):
        return
    found = over_budgets(scenario)
    first, last, slo = found[0], found[-1], scenario.slo
    keeps = [
        budget
        for budget, numbers in zip(BUDGETS, found, strict=True)
        if numbers["ttft_p90_s"] <= slo.ttft_s and numbers["tpot_p90_s"] <= slo.tpot_s
    ]
    picture, words = st.columns([3, 2], gap="large")
    with words:
        reveal(
            says(
                "tension",
                low=low,
                high=f"{high:,}",
                ttft_low=time(first["ttft_p90_s"]),
                ttft_high=time(last["ttft_p90_s"]),
                tpot_low=time(first["tpot_p90_s"]),
                tpot_high=time(last["tpot_p90_s"]),
                longest=time(last["itl_max_s"]),
            )
        )
        kept = says("kept-some", budgets=", ".join(f"{n:,}" for n in keeps))
        st.markdown(kept if keeps else says("kept-none"))
        if scenario != catalogue.presets()["conversation"].scenario:
            st.button(
                t("slo.take_conversation"),
                type="tertiary",
                icon=":material/forum:",
                on_click=choose_preset,
                args=("conversation",),
            )
    with picture:
        tension_picture(scenario, found)
    stalled = {}
    try:
        stalled = stall(scenario)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")
    work = lesson_of.decode_work(scenario, *BESIDE)
    closing("tension", scenario, "limits-tension", **stalled, F_dec=work)


def stall(scenario: Scenario) -> dict[str, float]:
    """The burst of prompts; returns what F22 says of it by symbol."""
    st.subheader(prose(PAGE, "stall").title, anchor=False)
    picture, words = st.columns([3, 2], gap="large", vertical_alignment="center")
    with words:
        prompts = st.slider(t("slo.stall.prompts"), 1, 16, 8, key="prompts", bind="query-params")
        tokens = st.select_slider(
            t("slo.stall.tokens"),
            lesson_of.STALL_PROMPTS,
            2048,
            key="tokens",
            bind="query-params",
        )
        found = lesson_of.stall(scenario, prompts, tokens)
        st.markdown(
            says(
                "stall",
                decodes=lesson_of.STALL_DECODES,
                formula=time(found.formula_s),
                decode=time(found.decode_s),
                whole=time(found.whole_s),
                chunked=time(found.chunked_s),
                whole_ttft=time(found.whole_ttft_s),
                chunked_ttft=time(found.chunked_ttft_s),
            )
        )
        if prompts % found.together:
            st.caption(says("stall-partial"))
    with picture:
        stall_picture(found, scenario.slo.tpot_s)
    budget = found.together * tokens
    return {"k_wait": prompts, "n": tokens, "b_tok": budget, "t_b": found.iteration_s}
