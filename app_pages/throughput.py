"""Throughput: where +719 % comes from, what of it is true, and what the simulator says."""

import streamlit as st

from formulas import get
from model.errors import LabError
from ui import throughput as lesson_of
from ui.choose import choose, formula_viewer
from ui.language import error_markdown, t
from ui.lesson import Figure, figures, number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.prose import prose
from ui.scenario import current_scenario
from ui.throughput import says
from ui.units import significant
from validation.throughput import (
    ACCOUNTINGS,
    LENGTHS,
    Engine,
    compare,
    engine_of,
    improvements,
    kv_batch,
    textbook_improvement,
    values,
)

PARTS = ("claim", "checks", "model", "runs")
FORMULAS = {
    "claim": ("F14", "F12", "F13"),
    "checks": ("F38", "F38b", "F5a", "F38c", "F38d"),
    "model": ("F17a", "F15", "F17", "F18", "F16", "F16c"),
}


def percent(share: float) -> str:
    return f"{'+' if share >= 0 else '−'}{significant(abs(share) * 100)}"


def viewer(part: str, case) -> None:
    formula_viewer(
        "thr", part, FORMULAS[part], lesson_of.formula_values(case), lesson_of.where(case)
    )


def verdict(guess: str, engine: Engine) -> None:
    """The vote beside the corrected model, for the numbers of the question."""
    corrected = improvements(lesson_of.text_case(engine)).corrected
    # Each request has its prefill and longer iterations: the gain stays below the batch's.
    key = "right" if guess == "below" else "wrong"
    reveal(says("verdict", verdict=t(f"thr.vote.{key}"), corrected=percent(corrected)))


def claim(engine: Engine) -> None:
    guesses = ("printed", "alike", "below", "above")
    asks = says("ask", engine=lesson_of.engine_name(engine), **lesson_of.TEXT)
    guess = predict("throughput", asks, [(name, t(f"thr.guess.{name}")) for name in guesses])
    if guess is None:
        return
    verdict(guess, engine)
    case = lesson_of.case_now(engine)
    found = improvements(case)
    accounting = choose("accounting", ACCOUNTINGS, "thr.accounting", t("thr.accounting"))
    picture, words = st.columns([3, 2], gap="large", vertical_alignment="center")
    with words:  # numbers first: they come sooner than the picture
        shown = {"printed": found.printed, "alike": found.alike, "same": found.same_batch}
        simulated = textbook_improvement(case, accounting)
        figures(
            (
                Figure(t("thr.figure.formula"), percent(shown[accounting]), "%"),
                Figure(t("thr.figure.run"), percent(simulated), "%", t("thr.figure.run.more")),
            )
        )
        reveal(
            says(
                f"area-{accounting}",
                printed=percent(found.printed),
                alike=percent(found.alike),
                same=percent(found.same_batch),
                batch=significant(case.dynamic_batch / case.static_batch),
                lengths=significant(1 + case.prompt_tokens / case.output_tokens),
                product=significant(1 + found.printed),
                prompt=case.prompt_tokens,
            )
        )
    with picture:
        lesson_of.factors_picture(case, accounting)
    viewer("claim", case)


def checks(engine: Engine) -> None:
    case = lesson_of.case_now(engine)
    found = improvements(case)
    numbers = lesson_of.formula_values(case)
    left, right = st.columns(2, gap="large")
    with left:
        lesson_of.bounds_picture(case)
        busy = lesson_of.BUSY["u_new"] / lesson_of.BUSY["u_old"]
        st.markdown(
            says(
                "bound",
                old=round(lesson_of.BUSY["u_old"] * 100),
                new=round(lesson_of.BUSY["u_new"] * 100),
                factor=significant(busy),
                gain=percent(busy - 1),
                same=percent(found.same_batch),
                rest=significant((1 + found.printed) / busy),
            )
        )
    with right:
        lesson_of.decode_picture(case)
        st.markdown(
            says(
                "flat",
                static=case.static_batch,
                dynamic=case.dynamic_batch,
                before=significant(numbers["T_s"] * 1e3),
                after=significant(numbers["t_d"] * 1e3),
                growth=percent(numbers["t_d"] / numbers["T_s"] - 1),
            )
        )
    left, right = st.columns(2, gap="large", vertical_alignment="center")
    with left:
        lesson_of.utilization_picture(case)
    with right:
        st.markdown(says("utilization"))
    viewer("checks", case)


def better(engine: Engine) -> None:
    lengths = choose("lengths", LENGTHS, "thr.lengths", t("thr.lengths"))
    case = lesson_of.case_now(engine, lengths)
    found, numbers = improvements(case), values(case)
    static, continuous = compare(case)[2:4]
    simulated = continuous.simulated / static.simulated - 1
    spread = t("thr.figure.range", low=percent(found.lowest), high=percent(found.highest))
    waste = 1 - numbers["L"] / numbers["L_max"]
    figures(
        (
            Figure(t("thr.figure.printed"), percent(found.printed), "%"),
            Figure(t("thr.figure.corrected"), percent(found.corrected), "%", spread),
            Figure(t("thr.figure.simulated"), percent(simulated), "%", t("thr.figure.roofline")),
            Figure(t("thr.figure.bound"), percent(found.bound), "%", t("thr.figure.hybrid")),
            Figure(t("thr.figure.waste"), significant(100 * waste), "%", t("thr.figure.rows")),
        )
    )
    fits = kv_batch(case)
    if case.dynamic_batch > fits:
        st.warning(t("thr.too_many", n=fits, batch=case.dynamic_batch), icon=":material/memory:")
    left, right = st.columns([3, 2], gap="large")
    with left:
        lesson_of.throughput_picture(case)
    with right:
        lesson_of.padding_picture(case)
    st.markdown(
        says(
            f"model-{lengths}",
            corrected=percent(found.corrected),
            longest=significant(numbers["L_max"] / numbers["L"]),
            static=case.static_batch,
        )
    )
    st.markdown(f":gray[**{t('lesson.limits')}**] {says('limits')}")
    viewer("model", case)


def runs(engine: Engine) -> None:
    lengths = choose("lengths", LENGTHS, "thr.lengths", t("thr.lengths"))
    case = lesson_of.case_now(engine, lengths)
    st.markdown(says("runs"))
    st.markdown(lesson_of.pairs_table(case))
    pairs = compare(case)
    found = improvements(case)
    figures(
        (
            Figure(t("thr.figure.printed"), percent(found.printed), "%", t("thr.figure.f14")),
            Figure(
                t("thr.figure.simulated"),
                percent(pairs[1].simulated / pairs[0].simulated - 1),
                "%",
                t("thr.figure.textbook"),
            ),
            Figure(t("thr.figure.corrected"), percent(found.corrected), "%", t("thr.figure.f17a")),
            Figure(
                t("thr.figure.simulated"),
                percent(pairs[3].simulated / pairs[2].simulated - 1),
                "%",
                t("thr.figure.roofline"),
            ),
        )
    )
    your_turn()
    st.markdown(prose(lesson_of.PAGE, "next").text)
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


EXERCISES = ((8, 20, 1000, 250), (16, 40, 900, 300), (10, 25, 1200, 400), (12, 30, 2000, 500))


def your_turn() -> None:
    variant = st.session_state.setdefault("thr.variant", 0) % len(EXERCISES)
    static, dynamic, prompt, output = EXERCISES[variant]
    numbers = {"B_s": static, "B_d": dynamic, "L_in": prompt, "L": output}
    printed = round(get("F14").evaluate(numbers) * 100)
    alike = round((dynamic / static - 1) * 100)
    st.subheader(prose(lesson_of.PAGE, "exercise").title, anchor=False)
    st.markdown(
        says(
            "exercise", static=static, dynamic=dynamic, prompt=prompt, output=output, claim=printed
        )
    )
    number_exercise(
        f"throughput.{variant}",
        alike,
        (
            (printed, says("hint-printed")),
            (alike + 100, says("hint-ratio")),
            (round(100 * prompt / output), says("hint-lengths")),
        ),
        says("solved", alike=alike, batch=significant(dynamic / static), claim=printed),
    )

    def other_numbers() -> None:
        st.session_state["thr.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)


@st.fragment
def lesson(engine: Engine) -> None:
    part = choose("part", PARTS, "thr.part", t("thr.part"), label_visibility="collapsed")
    try:
        {"claim": claim, "checks": checks, "model": better, "runs": runs}[part](engine)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(lesson_of.PAGE)
lesson_of.apply_style()
lesson(engine_of(current_scenario()))
