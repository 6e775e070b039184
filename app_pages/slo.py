"""SLO and admission: two promises that pull apart, how much load keeps both, whom to refuse."""

import math

import streamlit as st

from formulas import get
from model import catalogue
from model.errors import LabError
from model.parameters import RATE, replace_at
from model.scenario import Scenario
from ui.choose import choose, formula_viewer
from ui.engine import simulated, summary
from ui.language import error_markdown, t
from ui.lesson import Figure, figures, number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.prose import prose
from ui.scenario import choose_preset, current_scenario
from ui.slo import knobs as peak
from ui.slo import pictures
from ui.slo.admission import (
    LOADS,
    RULES,
    Choice,
    cap_control,
    limit_of,
    measured,
    overload_picture,
    served_well,
)
from ui.slo.goodput import goodput_view
from ui.slo.words import (
    PAGE,
    bound,
    engine_name,
    formula_values,
    rate_or_none,
    says,
    time,
    where,
)
from ui.units import percent, significant
from validation import slo_lesson as lesson_of

PARTS = ("tension", "goodput", "little", "stability", "admission", "exercise")
FORMULAS = {
    "tension": ("F22", "F30", "F30a", "F19"),
    "goodput": ("F31", "F31a"),
    "little": ("F29", "F29a", "F29b", "F28c"),
    "stability": ("F28p", "F28a", "F28", "F28b", "F28e", "F26"),
    "admission": ("F28d", "F29", "F28e"),
    "exercise": ("F28d", "F19"),
}

BESIDE = (32, 1500)
"""Decodes, and the context of each, beside which a chunk must fit (F19)."""


def viewer(part: str, scenario: Scenario, **more: float) -> None:
    numbers = {**formula_values(scenario), **more}
    formula_viewer("slo", part, FORMULAS[part], numbers, where(scenario))


def limits(section: str) -> None:
    st.markdown(f":gray[**{t('lesson.limits')}**] {says(section)}")


# -- 1: two promises -------------------------------------------------------------------------------


def tension(scenario: Scenario) -> None:
    low, high = pictures.BUDGETS[0], pictures.BUDGETS[-1]
    guesses = ("both", "trade", "reverse", "neither")
    asks = says("ask", engine=engine_name(scenario), low=low, high=f"{high:,}")
    if predict("slo", asks, [(name, t(f"slo.guess.{name}")) for name in guesses]) is None:
        return
    found = pictures.over_budgets(scenario)
    first, last, slo = found[0], found[-1], scenario.slo
    keeps = [
        budget
        for budget, numbers in zip(pictures.BUDGETS, found, strict=True)
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
        pictures.tension_picture(scenario)
    stalled = stall(scenario)
    limits("limits-tension")
    viewer("tension", scenario, **stalled, F_dec=lesson_of.decode_work(scenario, *BESIDE))


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
    with picture:
        pictures.stall_picture(found, scenario.slo.tpot_s)
    budget = found.together * tokens
    return {"k_wait": prompts, "n": tokens, "b_tok": budget, "t_b": found.iteration_s}


# -- 2: goodput ------------------------------------------------------------------------------------


def goodput(scenario: Scenario) -> None:
    st.markdown(says("goodput", ttft=bound(scenario.slo.ttft_s), tpot=bound(scenario.slo.tpot_s)))
    goodput_view(scenario)
    limits("limits-goodput")
    viewer("goodput", scenario)


# -- 3: Little's law -------------------------------------------------------------------------------


def little(scenario: Scenario) -> None:
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
    pictures.number_picture(scenario, here, most)
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
    your_turn()
    viewer("little", scenario, W=here.stay_s, TTFT=summary(scenario)["ttft_mean_s"],
           TPOT=summary(scenario)["tpot_mean_s"], **{"lambda": here.rate_per_s})  # fmt: skip


def _most_requests(scenario: Scenario, numbers) -> float:
    """B_max of F28c: requests of the mean context that fit, of all engines together."""
    if not numbers:
        return math.nan
    each = math.floor(numbers["M_kv"] / (numbers["kappa"] * numbers["ctx"]))
    return float(each * scenario.n_engines)


EXERCISES = ((5, 400, 30, 200), (8, 500, 25, 300), (10, 1000, 40, 100), (4, 500, 50, 150))


def your_turn() -> None:
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


# -- 4: stability ----------------------------------------------------------------------------------


def stability(scenario: Scenario) -> None:
    prompt, _ = lesson_of.mean_lengths(scenario)
    tokens = max(round(prompt), 1)
    asks = says("ask-stability", x=2)
    guesses = ("0.9", "0.67", "0.4", "0.14")
    if predict("slo.stability", asks, [(name, name) for name in guesses]) is None:
        return
    x = st.slider(t("slo.x"), 1.2, 12.0, 5.0, 0.1, key="bound", bind="query-params")
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
        pictures.waits_picture(runs, x, break_at)
    with right:
        pictures.allowed_picture(x)
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
    st.markdown(waits_table(runs))
    colocated(scenario)
    limits("limits-stability")
    viewer("stability", scenario, x_ttft=x, rho=lesson_of.LOADS[0])


def waits_table(runs) -> str:
    """Formulas beside long runs of the same queue, in prefill times."""
    heads = [t(f"slo.waits.table.{name}") for name in ("load", "mean", "f26", "p99", "f26e")]
    lines = [heads, ["---", *(["---:"] * 4)]]
    for run in runs:
        numbers = (run.mean, run.formula_mean, run.p99, run.formula_p99)
        shown = ["∞" if math.isinf(n) else significant(n) for n in numbers]
        lines.append([f"ρ = {run.load:g}", *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def colocated(scenario: Scenario) -> None:
    """The scenario's own load on prefill, where decodes take their share of the engine."""
    numbers = formula_values(scenario)
    if not numbers:
        return
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


# -- 5: admission ----------------------------------------------------------------------------------


def admission(scenario: Scenario) -> None:
    limit = limit_of(scenario)
    st.markdown(says("admission", limit=significant(limit)))
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
            Figure(t("measure.ttft_p99_s"), *time(after.ttft_p99_s).split("\u00a0"),
                   t("slo.figure.open", n=time(before.ttft_p99_s))),
            Figure(t("measure.tpot_p90_s"), *time(after.tpot_p90_s).split("\u00a0"),
                   t("slo.figure.open", n=time(before.tpot_p90_s))),
        )
    )  # fmt: skip
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        overload_picture(outcomes, load)
    with words:
        st.markdown(says(f"rule-{rule.replace('_', '-')}"))
        st.markdown(says("retries") if retries else says("admission-read"))
    limits("limits-admission")
    viewer("admission", scenario)


# -- 6: the morning peak ---------------------------------------------------------------------------


def exercise(scenario: Scenario) -> None:
    st.markdown(says("peak"))
    settings = peak.knobs()
    chosen = peak.scenario_of(settings)
    numbers, before = summary(chosen), summary(peak.scenario_of(peak.start_settings()))
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
    st.markdown(peak.classes_line(chosen))
    st.markdown(peak.alone_table(settings))
    if numbers["slo_attainment_share"] >= 0.9:
        st.success(says("peak-kept", gpus=settings.engines), icon=":material/check:")
    hints(chosen)
    st.subheader(prose(PAGE, "missing").title, anchor=False)
    st.markdown(says("missing"))
    limits("limits-peak")
    viewer("exercise", chosen, F_dec=lesson_of.decode_work(chosen, *BESIDE))
    st.markdown(says("next"))
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


def hints(scenario: Scenario) -> None:
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


@st.fragment
def lesson(scenario: Scenario) -> None:
    part = choose("part", PARTS, "slo.part", t("slo.part"), label_visibility="collapsed")
    parts = {
        "tension": tension,
        "goodput": goodput,
        "little": little,
        "stability": stability,
        "admission": admission,
        "exercise": exercise,
    }
    try:
        parts[part](scenario)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(PAGE)
lesson(current_scenario())
