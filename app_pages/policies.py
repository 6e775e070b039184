"""Policies: one workload under several schedulers, the same arrivals, and what differs."""

import math
from collections.abc import Sequence
from functools import partial

import streamlit as st

from model.parting import first_other_memory
from model.scenario import Scenario
from ui.choose import choose
from ui.engine import summary
from ui.language import as_text, current_language, t
from ui.lesson import number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.player import compare
from ui.policies.comparison import (
    alike,
    best_of,
    csv_of,
    curves_picture,
    parted,
    rows,
    show_table,
)
from ui.policies.contestants import FEWEST, FIRST, MOST, Run, contestants, known, label, run
from ui.policies.exercise import task
from ui.policies.luck import luck
from ui.policies.parting_words import fate, headline, never, side_sentences
from ui.prose import prose
from ui.scenario import choose_preset, current_scenario
from ui.theme import current_theme
from ui.units import percent, setting, significant

PAGE = "policies"
LOOKS = ("table", "curves", "pair", "luck")
HARDER = ("conversation", "preemption-storm")
EASY = 0.9
NOBODY = "-"


def says(section: str, **values: object) -> str:
    return prose(PAGE, section).text.format(**values)


def share(one: Run) -> str:
    return " ".join(percent(summary(one.scenario)["slo_attainment_share"]))


# -- who takes part --------------------------------------------------------------------------------


def codes(name: str) -> tuple[str, ...] | None:
    """Contestants that the address names under a parameter; None where it names none."""
    with st.container(key=f"code-{name}"):
        st.html(f"<style>.st-key-code-{name} {{display: none}}</style>")
        text = st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
    return () if text == NOBODY else known((text or "").split(",")) or None


def first(panel: str) -> tuple[str, ...]:
    return known((*FIRST, panel))


def choice_of_policies(ids: tuple[str, ...], panel: str) -> None:
    everybody = {one.id: run(one, to_the_end=False) for one in contestants().values()}
    st.session_state["choice.policies"] = list(ids)

    def take() -> None:
        picked = known(st.session_state["choice.policies"])
        text = ",".join(picked) or NOBODY
        st.session_state["policies"] = "" if picked == first(panel) else text

    st.multiselect(
        t("pol.who"),
        [name for name, one in everybody.items() if one.scenario is not None or name in ids],
        format_func=lambda name: everybody[name].label,
        key="choice.policies",
        on_change=take,
        max_selections=MOST,
        help=t("pol.who.help", fewest=FEWEST, most=MOST),
        wrap=True,
    )
    if out := [one for name, one in everybody.items() if one.scenario is None and name not in ids]:
        with st.expander(t("pol.cannot", n=len(out)), icon=":material/block:"):
            for one in out:
                st.markdown(f"- **{as_text(one.label)}**: {one.sentence}")


def taking_part(ids: tuple[str, ...]) -> list[Run]:
    """The runs of these contestants; what cannot run is said."""
    with st.spinner(t("run.simulating")):
        runs = [run(contestants()[name]) for name in ids]
    for one in runs:
        if one.scenario is None:
            st.warning(f"**{as_text(one.label)}**: {one.sentence}", icon=":material/block:")
    return [one for one in runs if one.scenario is not None]


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
    counted(panels(runs, panel))


def panels(runs: Sequence[Run], panel: Scenario) -> Run:
    """The run of the panel's policy, or the first where that takes no part."""
    return next((one for one in runs if one.scenario == panel), runs[0])


def counted(one: Run) -> None:
    """What attainment, waste and fairness are, with the numbers of one policy."""
    numbers = summary(one.scenario)
    if math.isnan(numbers["slo_attainment_share"]):
        return  # nobody arrived
    kept = round(numbers["slo_attainment_share"] * numbers["requests"])
    wasted = numbers["recomputed_tokens"] + numbers["padded_tokens"]
    computed = int(one.result.iterations["tokens"].sum())
    st.latex(
        rf"A = \frac{{{kept}}}{{{numbers['requests']}}} = {tex(numbers['slo_attainment_share'])}"
        rf"\qquad w = \frac{{{wasted}}}{{{computed}}} = {tex(numbers['wasted_tokens_share'])}"
        r"\qquad J = \frac{\left(\sum x\right)^2}{n \sum x^2} = "
        rf"{significant(numbers['fairness_jain'])}"
    )
    st.markdown(says("formula", name=as_text(one.label)))


def tex(share: float) -> str:
    return rf"{significant(share * 100)}\,\%"


def curves(runs: Sequence[Run], panel: Scenario) -> None:
    curves_picture(runs)
    st.markdown(says("curves"))


def pair(runs: Sequence[Run], panel: Scenario) -> None:
    by_id = {one.id: one for one in runs}
    here = [name for name in codes("pair") or () if name in by_id]
    here = here if len(here) == 2 else interesting(runs, panel)
    for place, name in enumerate(here):
        st.session_state[f"choice.pair.{place}"] = name

    def take(place: int) -> None:
        names = [st.session_state[f"choice.pair.{i}"] for i in range(2)]
        if names[0] == names[1]:  # who is chosen twice changes places
            names[1 - place] = here[place]
        st.session_state["pair"] = ",".join(names)

    for place, column in enumerate(st.columns(2)):
        column.selectbox(
            t(f"pol.pair.{place}"),
            list(by_id),
            format_func=lambda name: by_id[name].label,
            key=f"choice.pair.{place}",
            on_change=take,
            args=(place,),
        )
    sides = [by_id[name] for name in here]
    at_s = where_they_part(sides)
    film(sides, at_s)


def interesting(runs: Sequence[Run], panel: Scenario) -> list[str]:
    """The panel's policy and the first that decides anything otherwise."""
    mine = panels(runs, panel)
    others = [one for one in runs if one is not mine]
    other = next((one for one in others if parted(mine, one)), others[0])
    return [one.id for one in runs if one in (mine, other)]


def where_they_part(sides: Sequence[Run]) -> float | None:
    """The first decision that differs, explained; the moment for the film, None without any."""
    results = [one.result for one in sides]
    names = [f"**{as_text(one.label)}**" for one in sides]
    found = parted(*sides)
    if found is None:
        st.info(never(names, first_other_memory(*results)), icon=":material/equal:")
        return None
    st.markdown(headline(found, names, sides[0].scenario.n_engines))
    halves = (found.one, found.other)
    for column, name, side, result in zip(st.columns(2), names, halves, results, strict=True):
        with column.container(border=True, height="stretch"):
            said = side_sentences(side, result, found.kind)
            st.markdown("\n".join((name, "", *(f"- {sentence}" for sentence in said))))
    if said := fate(found, names, results):
        st.markdown(said)
    ends = [side.end_s for side in halves if side.end_s > found.time_s]
    return found.time_s + (min(ends) - found.time_s) / 4 if ends else found.time_s


def film(sides: Sequence[Run], at_s: float | None) -> None:
    if at_s is not None:
        start = choose("from", ("there", "begin"), "pol.from", t("pol.from"))
        at_s = at_s if start == "there" else None
    key = "-".join(("pol.film", *(one.id for one in sides), "begin" if at_s is None else "there"))
    compare(
        [one.result for one in sides],
        key=key,
        titles=[one.name for one in sides],
        subtitles=[one.variant for one in sides],
        short_titles=shorts(sides),
        language=current_language(),
        theme=current_theme(),
        at_s=at_s,
        title=f"iteration-lab-{'-'.join(one.id for one in sides)}",
    )


def shorts(sides: Sequence[Run]) -> list[str]:
    """Names for a narrow place: the policy's, or the variant's where both are of one policy."""
    same = len({one.name for one in sides}) == 1
    return [(one.variant if same else "") or one.name for one in sides]


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
    asked = ids if len(ids) >= FEWEST else first(panel.policy.name)
    if f"prediction.{PAGE}" in st.session_state:
        asked = tuple(contestants())  # who was guessed may no longer take part
    guess = predict(
        PAGE,
        says("ask", ttft=" ".join(setting(slo.ttft_s)), tpot=" ".join(setting(slo.tpot_s))),
        [(name, label(contestants()[name])) for name in asked],
    )
    if guess is None:
        return
    choice_of_policies(ids, panel.policy.name)
    runs = taking_part(ids)
    if len(runs) < FEWEST:
        st.info(t("pol.too_few", n=FEWEST), icon=":material/group_add:")
        return
    answer(guess, runs)
    harder(runs)
    look = choose("look", LOOKS, "pol.look", t("pol.look"), label_visibility="collapsed")
    {"table": table, "curves": curves, "pair": pair, "luck": draws}[look](runs, panel)
    st.markdown(f":gray[**{t('lesson.limits')}**] {says('limits')}")
    your_turn()
    st.markdown(prose(PAGE, "next").text)
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


question(PAGE)
lesson(current_scenario())
