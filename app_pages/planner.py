"""Planner: from a load and two promises to knobs and GPUs, by formula, checked by simulation."""

import streamlit as st

from model.errors import LabError
from ui.choose import choose, formula_viewer
from ui.language import error_markdown, t
from ui.lesson import limits, number_exercise, predict, question, reveal
from ui.planner.asks import Asked, asks
from ui.planner.check import check_view, found_for
from ui.planner.load import load_picture
from ui.planner.pools import pools_view
from ui.planner.steps import figures_of, price, refused, result, steps_table
from ui.planner.words import (
    PAGE,
    bound,
    engine_name,
    lengths,
    pool_values,
    promised,
    says,
    significant,
    step_values,
    where,
)
from ui.prose import prose
from ui.scenario import current_scenario
from ui.throughput import apply_style
from validation.planner import Plan, Refusal, plan, price_of_a_million
from validation.planner_load import SAMPLE, load_of
from validation.planner_split import Split, split

PARTS = ("plan", "check", "pools", "load")
FORMULAS = {
    "chunk": ("F19", "F19a"),
    "batch": ("F9a", "F5a"),
    "prefill": ("F19b", "F28a", "F28", "F28b"),
    "engines": ("F32a", "F29", "F29a", "F28c"),
    "price": ("F31b",),
}
OF_POOLS = ("F32", "F32a", "F32b", "F32c", "F32d", "F32e", "F32f")
GUESSES = ("1", "2–4", "5–9", "10–19", "≥ 20")


def planned(asked: Asked, found: Plan | Refusal) -> None:
    if isinstance(found, Refusal):
        refused(found)
        st.markdown(says("refused"))
        return
    slo, load = asked.scenario.slo, found.load
    asking = says(
        "ask",
        engine=engine_name(asked.scenario),
        rate=f"{load.rate_per_s:,g}",
        lengths=lengths(load),
        ttft=bound(slo.ttft_s),
        tpot=bound(slo.tpot_s),
    )
    if predict("planner", asking, [(guess, guess) for guess in GUESSES]) is None:
        return
    reveal(
        says(
            f"answer-{found.binding}",
            gpus=f"{found.gpus:,}",
            engines=f"{found.engines:,}",
            for_ttft=f"{found.engines_prefill:,}",
            for_room=f"{found.engines_batch:,}",
            ttft=significant(found.carried.ttft_per_s),
            room=significant(found.carried.room_per_s),
            share=promised(found.promise),
        )
    )
    figures_of(asked, found)
    st.markdown(steps_table(asked, found, found_for(asked, found)))
    st.markdown(says("read"))
    st.subheader(prose(PAGE, "command").title, anchor=False)
    result(asked, found)
    limits(says("limits-plan"))
    step = choose("step", tuple(FORMULAS), "plan.step", t("plan.step"))
    formula_viewer("plan", step, FORMULAS[step], step_values(step, asked, found), where(asked))


def checked(asked: Asked, found: Plan | Refusal) -> None:
    if isinstance(found, Refusal):
        refused(found)
        return
    st.markdown(says("check", engines=f"{found.engines:,}"))
    check_view(asked, found)
    limits(says("limits-check"))


def pools(asked: Asked, found: Plan | Refusal) -> None:
    pair = split(asked.scenario, asked.promise)
    st.markdown(says("pools"))
    if isinstance(pair, Refusal):
        refused(pair, "pool_")
        return
    load = load_of(asked.scenario)
    pools_view(asked, load, found, pair)
    limits(says("limits-pools"))
    values = pool_values(asked, load, pair)
    formula_viewer("plan", "pools", OF_POOLS, values, where(asked))


def over_load(asked: Asked, found: Plan | Refusal) -> None:
    st.markdown(says("load"))
    pair = split(asked.scenario, asked.promise)
    if isinstance(found, Refusal):
        refused(found)
    if isinstance(found, Plan) or isinstance(pair, Split):
        load_picture(asked)
    if isinstance(found, Plan):
        cost = price(asked, found.gpus, found.tokens_per_s)
        st.markdown(says("load-read", price=significant(cost), gpus=f"{found.gpus:,}"))
    limits(says("limits-load"))
    your_turn()
    if isinstance(found, Plan):
        formula_viewer("plan", "load", ("F31b",), step_values("price", asked, found), where(asked))


# GPUs, price of a GPU-hour, requests/s, output tokens of a request.
EXERCISES = ((8, 2.0, 40, 250), (16, 2.5, 100, 200), (4, 3.0, 20, 300), (12, 1.5, 30, 400))


def your_turn() -> None:
    variant = st.session_state.setdefault("plan.variant", 0) % len(EXERCISES)
    gpus, hour, rate, output = EXERCISES[variant]
    exact = price_of_a_million(gpus, hour, rate * output)
    answer = round(100 * exact)
    words = {"gpus": gpus, "hour": f"{hour:g}", "rate": rate, "output": output}
    st.subheader(prose(PAGE, "exercise").title, anchor=False)
    st.markdown(says("exercise", **words))
    number_exercise(
        f"planner.{variant}",
        answer,
        (
            (round(100 * exact * output), says("hint-requests")),
            (round(100 * exact / gpus), says("hint-one")),
            (round(100 * exact * 3600), says("hint-hour")),
        ),
        says("solved", tokens=f"{rate * output * 3600 / 1e6:g}", all=f"{gpus * hour:g}",
             answer=answer, **words),
    )  # fmt: skip

    def other_numbers() -> None:
        st.session_state["plan.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)


@st.fragment
def lesson() -> None:
    scenario = current_scenario()
    if scenario.model is None:
        st.info(t("plan.no_model"), icon=":material/tune:")
        return
    part = choose("part", PARTS, "plan.part", t("plan.part"), label_visibility="collapsed")
    shown = {"plan": planned, "check": checked, "pools": pools, "load": over_load}
    try:
        asked = asks(scenario)
        load = load_of(asked.scenario)
        st.caption(
            t("plan.case", engine=engine_name(asked.scenario), lengths=lengths(load),
              n=f"{SAMPLE:,}", context=f"{load.context_tokens:,.0f}")
        )  # fmt: skip
        shown[part](asked, plan(asked.scenario, asked.promise))
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(PAGE)
apply_style()
lesson()
