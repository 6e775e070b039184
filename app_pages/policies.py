"""Policies: one workload under several schedulers, the same arrivals, and what differs."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from model.scenario import Scenario
from ui.choose import choose
from ui.engine import summary
from ui.language import as_text, t
from ui.lesson import number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.policies.choice import choice_of_policies, codes, first, taking_part
from ui.policies.comparison import (
    alike,
    best_of,
    csv_of,
    curves_picture,
    of_panel,
    rows,
    show_table,
)
from ui.policies.contestants import FEWEST, Run, contestants, label
from ui.policies.exercise import task
from ui.policies.luck import luck
from ui.policies.pair import pair
from ui.policies.suggestions import asked, suggest, words
from ui.prose import prose
from ui.scenario import choose_preset, current_scenario
from ui.units import percent, setting, significant

PAGE = "policies"
LOOKS = ("table", "curves", "pair", "luck")
HARDER = ("conversation", "preemption-storm")
EASY = 0.9


def says(section: str, **values: object) -> str:
    return prose(PAGE, section).text.format(**values)


def share(one: Run) -> str:
    return " ".join(percent(summary(one.scenario)["slo_attainment_share"]))


# -- what is looked at -----------------------------------------------------------------------------


def table(runs: Sequence[Run], panel: Scenario) -> None:
    show_table(runs, panel.policy)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(t("pol.marks"), width="stretch")
        st.download_button(
            t("pol.download"),
            data=partial(csv_of, runs),
            file_name="policies.csv",
            mime="text/csv",
            key="pol.download",
            on_click="ignore",
            icon=":material/download:",
        )
    if same := [group for group in alike(runs) if len(group) > 1]:
        names = [" = ".join(as_text(one.label) for one in group) for group in same]
        st.info(t("pol.same", groups=t("list.separator").join(names)), icon=":material/equal:")
    with st.expander(t("pol.rows")):
        meanings = dict.fromkeys((row.metric, row.help) for row in rows(runs))
        st.markdown("\n".join(f"- **{t(f'measure.{name}')}**: {help}" for name, help in meanings))
    counted(of_panel(runs, panel))


def counted(one: Run) -> None:
    """What attainment, waste and fairness are, with the numbers of one policy."""
    numbers = summary(one.scenario)
    computed = int(one.result.iterations["tokens"].sum())
    if not computed:
        return  # all were refused
    kept = round(numbers["slo_attainment_share"] * numbers["requests"])
    wasted = numbers["recomputed_tokens"] + numbers["padded_tokens"]
    st.latex(
        rf"A = \frac{{{kept}}}{{{numbers['requests']}}} = {tex(numbers['slo_attainment_share'])}"
        rf"\qquad w = \frac{{{wasted}}}{{{computed}}} = {tex(numbers['wasted_tokens_share'])}"
        r"\qquad J = \frac{\left(\sum x\right)^2}{n \sum x^2} = "
        rf"{significant(numbers['fairness_jain'])}"
    )
    st.markdown(says("formula", name=as_text(one.label)))


def tex(part: float) -> str:
    return rf"{significant(part * 100)}\,\%"


def curves(runs: Sequence[Run], panel: Scenario) -> None:
    curves_picture(runs)
    st.markdown(says("curves"))


def draws(runs: Sequence[Run], panel: Scenario) -> None:
    st.markdown(says("luck"))
    luck(panel, runs)


# -- the lesson ------------------------------------------------------------------------------------


def answer(guess: str, runs: Sequence[Run]) -> None:
    """What really happened, beside what was predicted."""
    best = best_of(runs)
    names = t("list.comma").join(as_text(one.label) for one in best)
    said = says(
        "best-one" if len(best) == 1 else "best-many", names=names, share=share(best[0])
    )
    mine = next((one for one in runs if one.id == guess), None)
    if mine is not None:
        key = "right" if mine in best else "wrong"
        said = f"{t(f'pol.guess.{key}', name=as_text(mine.label), share=share(mine))} {said}"
    reveal(said)


def harder(runs: Sequence[Run]) -> None:
    """Where several keep nearly all promises: scenarios that tell policies apart."""
    best = best_of(runs)
    if len(best) == 1 or summary(best[0].scenario)["slo_attainment_share"] < EASY:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(t("pol.easy"), width="stretch")
        for name in HARDER:
            if st.button(t(f"preset.{name}"), key=f"pol.preset.{name}"):
                choose_preset(name)
                st.rerun()  # the panel, too


def your_turn() -> None:
    variant = st.session_state.setdefault("pol.variant", 1)
    now = task(variant)
    st.subheader(prose(PAGE, "exercise").title, anchor=False)
    listed = t("list.separator").join(
        t("pol.task.request", name=name, prompt=prompt, output=output)
        for name, prompt, output in now.rows
    )
    st.markdown(says("exercise", rows=listed))
    heads = [t(f"pol.task.{name}") for name in ("iteration", "scheduled", "preempted")]
    lines = [f"| {' | '.join(heads)} |", "|--:|:--|:--|"]
    lines += [f"| {i} | {done} | {out or '–'} |" for i, (done, out) in enumerate(now.schedule)]
    st.markdown("\n".join(lines))
    number_exercise(
        f"policies.{variant}",
        now.answer,
        (
            (now.again, says("hint-again")),
            (now.total, says("hint-total", least=now.least)),
            (now.least, says("hint-least", total=now.total)),
            (now.other, says("hint-other")),
            (now.victims, says("hint-victims")),
        ),
        says("solved", total=now.total, least=now.least, answer=now.answer, other=now.other),
    )

    def other_numbers() -> None:
        st.session_state["pol.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)


@st.fragment
def lesson(panel: Scenario) -> None:
    named, slo = codes("policies"), panel.slo
    ids = first(panel.policy.name) if named is None else named
    answers = ids if len(ids) >= FEWEST else first(panel.policy.name)
    if f"prediction.{PAGE}" in st.session_state:
        answers = tuple(contestants())  # who was guessed may no longer take part
    guess = predict(
        PAGE,
        says("ask", ttft=" ".join(setting(slo.ttft_s)), tpot=" ".join(setting(slo.tpot_s))),
        [(name, label(contestants()[name])) for name in answers],
    )
    if guess is None:
        return
    choice_of_policies(ids, panel.policy.name)
    suggest()
    runs = taking_part(ids)
    if len(runs) < FEWEST:
        st.info(t("pol.too_few", n=FEWEST), icon=":material/group_add:")
        return
    answer(guess, runs)
    if one := asked(ids):
        st.info("**{}**\n\n{}".format(*words(one)), icon=":material/lightbulb:")
    harder(runs)
    look = choose("look", LOOKS, "pol.look", t("pol.look"), label_visibility="collapsed")
    {"table": table, "curves": curves, "pair": pair, "luck": draws}[look](runs, panel)
    st.markdown(f":gray[**{t('lesson.limits')}**] {says('limits')}")
    your_turn()
    st.markdown(prose(PAGE, "next").text)
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


question(PAGE)
lesson(current_scenario())
