"""Preemption: recompute or swap, whom, how often, and what fits into ten milliseconds."""

from collections.abc import Sequence

import streamlit as st

from formulas import get
from model import catalogue
from model.errors import LabError
from ui import preemption as lesson_of
from ui import preemption_pictures as pictures
from ui import preemption_tables as tables
from ui.choose import choose
from ui.claim import claim_card
from ui.language import error_markdown, t
from ui.lesson import Figure, figures, limits, number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.preemption import PAGE, SHARED, WAYS, says, seconds, tokens, viewer
from ui.preemption_checkpoint import checkpoint
from ui.prose import prose
from ui.scenario import current_scenario
from ui.units import significant
from validation.preemption import Costs, borders, ratio, riding, values
from validation.preemption_victims import EXAMPLES, Running, bill, cheapest, decode_s
from validation.throughput import Engine, engine_of

GUESSES = ("recompute", "swap_short", "swap_long", "never")


# -- cost ------------------------------------------------------------------------------------------


def cost(engine: Engine) -> None:
    asks = says("ask", engine=lesson_of.engine_name(engine))
    guesses = [(name, t(f"pre.guess.{name}")) for name in GUESSES]
    if predict("preemption", asks, guesses) is None:
        return
    costs = lesson_of.costs_now(engine)
    given, found = values(costs), borders(costs)
    lengths = [tokens(length) for length in found.lengths]
    figures(
        (
            Figure(t("pre.figure.recompute"), seconds(given["t_rec"]), more="F23a"),
            Figure(t("pre.figure.swap"), seconds(given["t_swap"]), more="F24a"),
            Figure(t("pre.figure.ratio"), significant(given["R_hat"]), more=t(
                "pre.figure.slopes", ratio=significant(found.slopes))),
            Figure(t("pre.figure.border"), " · ".join(lengths) or t("pre.figure.none"),
                   more=t("pre.figure.border.more")),
        )
    )  # fmt: skip
    simulated, refused = lesson_of.simulated_evictions(costs)
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        lines = choose("lines", ("full", "printed", "blocks"), "pre.lines", t("pre.lines"))
        pictures.costs_picture(costs, lines, simulated)
    with words:
        reveal(
            says(
                f"truth-{found.kind.replace('_', '-')}",
                n=f"{costs.context_tokens:,}",
                winner=t(f"pre.winner.{found.winner(costs.context_tokens)}"),
                low=lengths[0] if lengths else "",
                high=lengths[-1] if lengths else "",
            )
        )
        st.markdown(says(lines, n=f"{costs.context_tokens:,}"))
        st.markdown(tables.cases_table(found))
        st.caption(says("cases", ratio=significant(found.slopes)))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        claim_card("B19")
    with right:
        claim_card("B18")
    if refused is not None:
        st.warning(error_markdown(refused), icon=":material/tune:")
    else:
        st.markdown(says("eviction", n=f"{simulated[0].context_tokens + 1:,}"))
        st.markdown(tables.evictions_table(*simulated))
    free = riding(costs)
    st.markdown(
        says(
            "ride" if free.tokens else "ride-none",
            batch=free.batch,
            context=f"{free.context_tokens:,}",
            free=f"{free.tokens:,}",
            n=f"{costs.context_tokens:,}",
            iterations=f"{free.iterations:,}",
            iteration=seconds(free.iteration_s),
            wait=seconds(free.wait_s),
        )
    )
    limits(says("limits-cost"))
    viewer("cost", costs, t_c=free.compute_s, t_m=free.memory_s)


# -- which models ----------------------------------------------------------------------------------


def which(engine: Engine) -> None:
    st.markdown(says("which"))
    columns = st.columns([5, 4, 4, 4], gap="medium", vertical_alignment="bottom")
    names = {device.name: device.id for device in catalogue.devices().values()}
    panel = t("pre.device.panel", device=catalogue.device(engine.hardware).name)
    chosen = columns[0].selectbox(
        t("pre.device"),
        ("", *names),
        format_func=lambda name: name or panel,
        key="on",
        bind="query-params",
    )
    device = names.get(chosen, engine.hardware)
    there = Engine(engine.model, device, 1, engine.clock, engine.memory)
    link = lesson_of.link_now(there, columns[1])
    with columns[2]:
        ways = choose("ways", WAYS, "pre.ways", t("pre.ways"))
    with columns[3]:
        shared = choose("shared", SHARED, "pre.shared", t("pre.shared"))
    pictures.ratios_picture(there, link, int(ways), int(shared))
    costs = Costs(there, link_share=link, copies=int(ways), gpus_per_link=int(shared))
    above = sum(
        ratio(Engine(model, device, 1, engine.clock, engine.memory), copies=int(ways),
              gpus_per_link=int(shared), link_share=link) > 1
        for model in catalogue.models()
    )  # fmt: skip
    even = get("F25e").evaluate(values(costs)) / 1e9
    st.markdown(
        says(
            "which-says",
            device=catalogue.device(device).name,
            above=above,
            models=len(catalogue.models()),
            model=catalogue.model(engine.model).name,
            ratio=significant(values(costs)["R_hat"]),
            even=significant(even),
            width=f"{round(get('F25f').evaluate(values(costs))):,}",
        )
    )
    limits(says("limits-which"))
    viewer("which", costs)


# -- expected cost ---------------------------------------------------------------------------------


def expected(engine: Engine) -> None:
    found, source = lesson_of.observed(current_scenario())
    st.markdown(says(f"observed-{source}"))
    figures(
        (
            Figure(t("pre.figure.hit"), f"{found.hit:,} / {found.requests:,}",
                   more=t("pre.figure.hit.more", n=found.preemptions)),
            Figure(t("pre.figure.once"), significant(100 * found.once), "%",
                   t("pre.figure.once.more")),
            Figure(t("pre.figure.again"), significant(100 * found.again), "%",
                   t("pre.figure.again.more")),
            Figure(t("pre.figure.work"), significant(found.measured_flop / 1e12), "TFLOP",
                   t("pre.figure.work.more", once=significant(found.once_flop / 1e12),
                     again=significant(found.again_flop / 1e12))),
        )
    )  # fmt: skip
    if found.swaps:
        st.caption(t("pre.swaps", n=f"{found.swaps:,}"))
    percent = st.slider(
        t("pre.slider.chance"), 1, 90, 30, 1, key="chance", format="%d %%", bind="query-params"
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        pictures.expected_picture(percent / 100, found)
    with right:
        pictures.chances_picture(found)
    once, again = (
        get(name).evaluate({"p": percent / 100, "C_rec": 1.0}) for name in ("F23b", "F23c")
    )
    st.markdown(
        says(
            "expected",
            p=percent,
            once=significant(once),
            again=significant(again),
            repeat=round(100 * found.repeated),
            short=_apart(found.once_flop / found.measured_flop - 1),
            close=_apart(found.again_flop / found.measured_flop - 1),
            mean=f"{round(found.context_tokens):,}",
        )
    )
    even = abs(found.once - found.again) < 0.02
    shares = {"first": found.once, "equal": found.again}
    shown = {name: significant(100 * share) for name, share in shares.items()}
    st.markdown(says("even" if even else "uneven", **shown))
    left, right = st.columns(2, gap="large")
    with left:
        claim_card("B10")
    with right:
        claim_card("B11")
    limits(says("limits-expected"))
    costs = Costs(engine, context_tokens=round(found.context_tokens))
    viewer("expected", costs, p=percent / 100)


def _apart(difference: float) -> str:
    """How far something lies above or below, in words; ``difference`` is a share of 1."""
    direction = "below" if difference < 0 else "above"
    return t(f"pre.expected.{direction}", share=f"{significant(abs(difference) * 100, 2)}\u00a0%")


# -- whom ------------------------------------------------------------------------------------------


def victim(engine: Engine) -> None:
    costs = Costs(engine)
    left, right = st.columns([2, 3], gap="large")
    with left:
        example = choose("running", ("1", "2"), "pre.example", t("pre.example"))
    with right:
        need = st.slider(t("pre.slider.need"), 1, 240, 40, 1, key="need", bind="query-params")
    running = EXAMPLES[int(example) - 1]
    iteration_s = decode_s(engine, running)
    st.markdown(tables.running_table(running, costs, iteration_s))
    st.caption(t("pre.running.more", iteration=seconds(iteration_s)))
    names = [request.name for request in running]
    picked = st.pills(
        says("whom", need=need), names, selection_mode="multi", key="pick", bind="query-params"
    )
    chosen = [request for request in running if request.name in picked]
    if chosen:
        billed(running, chosen, need, costs, iteration_s)
    left, right = st.columns(2, gap="large", vertical_alignment="center")
    with left:
        pictures.freed_picture(costs)
    with right:
        st.markdown(says("freed", flop=significant(get("F25g").evaluate(
            {**values(costs), "n": 1.0}) / 1e3)))  # fmt: skip
    claim_card("B12")
    limits(says("limits-victim"))
    one = (chosen or running)[0]
    given = values(Costs(engine, context_tokens=one.context_tokens))
    viewer(
        "victim", costs, n=given["n"], C_rec=given["C_rec"], n_left=one.left_tokens, t_d=iteration_s
    )


def billed(
    running: Sequence[Running],
    chosen: Sequence[Running],
    need: int,
    costs: Costs,
    iteration_s: float,
) -> None:
    """The learner's choice beside those of the engines."""
    mine = bill(chosen, need, costs, iteration_s)
    least = cheapest(running, need, costs)
    enough = mine.spare_blocks >= 0
    stays = len(chosen) < len(running)
    reveal(
        says(
            "verdict-fine" if enough and stays else "verdict-few" if stays else "verdict-all",
            freed=mine.freed_blocks,
            need=need,
            spare=max(mine.spare_blocks, 0),
            mine=seconds(mine.recompute_s),
            names=" + ".join(request.name for request in least),
            cheapest=seconds(bill(least, need, costs, iteration_s).recompute_s),
        )
    )
    st.markdown(tables.rules_table(running, chosen, need, costs, iteration_s))


# -- exercise --------------------------------------------------------------------------------------

EXERCISES = ((12, 2, 100, 25), (9, 1, 90, 5), (20, 5, 110, 30), (6, 2, 120, 10))
"""F_s and F_r in ms, recompute and one-way copy in µs a token."""


def exercise(engine: Engine) -> None:
    variant = st.session_state.setdefault("pre.variant", 0) % len(EXERCISES)
    swap_ms, recompute_ms, recompute_us, one_way_us = EXERCISES[variant]

    gap, slope = swap_ms - recompute_ms, recompute_us - 2 * one_way_us
    seconds_of = {
        "F_s": swap_ms / 1e3, "F_r": recompute_ms / 1e3,
        "r_tok": recompute_us / 1e6, "s_tok": 2 * one_way_us / 1e6,
    }  # fmt: skip
    answer = round(get("F25c").evaluate(seconds_of))

    def mistaken(fixed_ms: float, slope_us: float) -> int:
        return round(1e3 * fixed_ms / slope_us)

    st.subheader(prose(PAGE, "exercise").title, anchor=False)
    given = {"fs": swap_ms, "fr": recompute_ms, "r": recompute_us, "s": one_way_us}
    st.markdown(says("exercise", **given))
    worked = {**given, "gap": gap, "both": 2 * one_way_us, "slope": slope, "answer": answer}
    number_exercise(
        f"preemption.{variant}",
        answer,
        (
            (mistaken(gap, recompute_us - one_way_us), says("hint-one-way")),
            (mistaken(swap_ms, slope), says("hint-fixed")),
            (mistaken(gap, recompute_us), says("hint-slope")),
            (mistaken(gap, recompute_us + 2 * one_way_us), says("hint-sum")),
        ),
        says("solved", **worked),
    )
    with st.expander(t("lesson.solution")):
        st.markdown(says("solution", **worked))

    def other_numbers() -> None:
        st.session_state["pre.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)
    st.markdown(says("next"))
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


SHOWN = {
    "cost": cost,
    "which": which,
    "expected": expected,
    "victim": victim,
    "checkpoint": checkpoint,
    "exercise": exercise,
}


@st.fragment
def lesson(engine: Engine) -> None:
    part = choose("part", tuple(SHOWN), "pre.part", t("pre.part"), label_visibility="collapsed")
    try:
        SHOWN[part](engine)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(PAGE)
lesson_of.apply_style()
lesson(engine_of(current_scenario()))
