"""One request through the engine: prefill, decode, iteration, KV block; with 1, 2, 8 requests."""

import streamlit as st

from ui import first_lesson as first
from ui import glossary
from ui.few_requests import ENGINES, both, end_ms, film, iterations, run
from ui.language import current_language, t, translator
from ui.lesson import Figure, figures, formula, number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.prose import prose
from ui.stepper import go_to, stepper
from ui.units import significant

TERMS = ("iteration", "prefill", "decode", "kv_block", "batch", "slot", "ttft", "tpot", "e2e")


def says(section: str, **values: object) -> str:
    return prose(first.PAGE, section).text.format(**values)


def more(how_many: str) -> None:
    st.session_state["requests"] = how_many


def one(top) -> None:
    result, (_, prompt, output) = run(first.ONE, "continuous"), first.ONE.rows[0]
    last = iterations(result)
    guess = predict(
        "first.iterations",
        says("ask-1", prompt=prompt, output=output),
        (
            (prompt + output, t("first.all_tokens", n=prompt + output)),
            (1 + output, t("first.prompt_apart", n=1 + output, output=output)),
            (output, t("first.answer_tokens", n=output)),
        ),
        then=lambda: go_to("one", 1),
    )
    if guess is None:
        first.tokens_picture(first.ONE, 0)
        return
    with top:
        now = stepper("one", last, 0, t("first.second"), lambda: more("2"))
    if now == last:
        reveal(says("reveal-1", iterations=last))
    first.picture(first.ONE, now, ("continuous",))
    if now == last:
        ttft, e2e = (float(result.requests[at][0]) * 1e3 for at in ("first_token_s", "end_s"))
        formula(
            r"\text{E2E} = \text{TTFT} + (L-1)\cdot\text{TPOT} = "
            rf"{ttft:.2f} + {output - 1} \cdot {(e2e - ttft) / (output - 1):.2f} "
            rf"= {e2e:.1f}\ \text{{ms}}",
            says("formula-1", gaps=output - 1),
            says("limits-1"),
        )


def two(top) -> None:
    last, joins = iterations(run(first.TWO, "continuous")), 2  # r2 arrives in the second one
    guess = predict(
        "first.both",
        says("ask-2"),
        [(name, t(f"first.{name}")) for name in ("twice", "half", "hardly")],
        then=lambda: go_to("two", joins + 1),
    )
    if guess is None:
        first.tokens_picture(first.TWO, joins)
        return
    with top:
        now = stepper("two", last, joins, t("first.eight"), lambda: more("8"))
    parts = first.parts_of(first.TWO)
    ms = {name: f"{value:.1f}" for name, value in parts.items()}
    if now == last:
        arrival_s = first.TWO.rows[1][0]
        waits = {
            engine: f"{(run(first.TWO, engine).requests['first_token_s'][1] - arrival_s) * 1e3:.1f}"
            for engine in ENGINES
        }
        exact = {name: significant(parts[name], 5) for name in ("both", "alone")}
        reveal(says("reveal-2", **(ms | waits | exact | {"tokens": parts["tokens"]})))
    first.picture(first.TWO, now, ("continuous", "static"))
    if now == last:
        formula(
            r"t = t_0 + \max(t_\text{compute},\ t_\text{read}) = "
            rf"{ms['fixed']} + \max({ms['compute']},\ {ms['read']}) = {ms['both']}\ \text{{ms}}",
            says("formula-2"),
            says("limits-2", ridge=round(parts["ridge"]), long=round(parts["long"])),
        )


def eight(top) -> None:
    guesses = (("both", 0), ("sooner", 15), ("sooner", 40), ("sooner", 75))
    guess = predict(
        "first.eight",
        says("ask-8"),
        [(one, t(f"first.{one[0]}", percent=one[1])) for one in guesses],
    )
    if guess is None:
        first.jobs_picture(first.eight("mixed"))
        return
    speak = translator(current_language())
    with top:
        lengths = st.segmented_control(
            t("first.lengths"),
            tuple(first.LENGTHS),
            default="mixed",
            required=True,
            format_func=lambda name: speak(f"first.{name}"),
            key="first.lengths",
        )
    few = first.eight(lengths)
    static_ms, continuous_ms = map(end_ms, both(few))
    taken = [t("first.figure.iterations", n=iterations(result)) for result in both(few)]
    if lengths == "mixed":
        reveal(says("reveal-8", percent=round(first.saved(few) * 100)))
    film(few, "first.film", film_s=12)
    figures(
        (
            Figure(t("engine.static"), f"{static_ms:.0f}", t("unit.ms"), taken[0]),
            Figure(t("engine.continuous"), f"{continuous_ms:.0f}", t("unit.ms"), taken[1]),
            Figure(t("first.figure.saved"), f"{first.saved(few) * 100:.0f}", t("unit.percent")),
        )
    )
    each_ms = continuous_ms / iterations(run(few, "continuous"))
    longest, least = " + ".join(map(str, first.batches(few))), first.bound(few)
    formula(
        r"\begin{aligned} T_\text{static} &= t\sum_\text{batches}\max L_i = "
        rf"{each_ms:.2f}\,({longest}) = {static_ms:.0f}\ \text{{ms}} \\"
        r"T_\text{continuous} &\ge t\,\max\bigl(\max L_i,\ \tfrac{1}{\text{slots}}\sum L_i\bigr)"
        rf" = {each_ms:.2f}\cdot {least} = {each_ms * least:.0f}\ \text{{ms}} \end{{aligned}}",
        says("formula-8", continuous=f"{continuous_ms:.0f}"),
        says("limits-8", iteration=f"{each_ms:.1f}"),
    )
    your_turn()
    st.markdown(prose(first.PAGE, "next").text)
    st.page_link(
        file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:"
    )


def your_turn() -> None:
    variant = st.session_state.setdefault("first.variant", 1)
    few = first.exercise(variant)
    static, continuous = map(iterations, both(few))
    st.subheader(prose(first.PAGE, "exercise").title, anchor=False)
    lengths = t("list.comma").join(str(tokens) for _, _, tokens in few.rows)
    st.markdown(says("exercise", n=len(few.rows), slots=few.slots, lengths=lengths))
    right = number_exercise(
        f"first.{variant}",
        static - continuous,
        (
            (static, says("hint-static")),
            (continuous, says("hint-continuous")),
            (static - first.bound(few), says("hint-bound")),
        ),
        says("solved", static=static, continuous=continuous),
    )

    def other_numbers() -> None:
        st.session_state["first.variant"] += 1

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)
        shown = st.toggle(t("lesson.solution"), key=f"first.solution.{variant}")
    if right or shown:
        first.schedule_picture(few, static, ENGINES)


@st.fragment
def lesson() -> None:
    top = st.container(horizontal=True, vertical_alignment="bottom")
    with top:
        requests = st.segmented_control(
            t("first.requests"),
            ("1", "2", "8"),
            default=None if "requests" in st.session_state else "1",
            required=True,
            key="requests",
            bind="query-params",
        )
    {"1": one, "2": two, "8": eight}[requests](top)


question(first.PAGE)
lesson()
with st.expander(prose(first.PAGE, "words").title):
    st.markdown(prose(first.PAGE, "words").text)
    st.table(glossary.table(*TERMS))
