"""Two of the policies: the first decision at which they part, explained, and their films."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from model.parting import first_other_memory
from model.scenario import Scenario
from ui.choose import choose
from ui.language import as_text, current_language, t
from ui.player import compare
from ui.policies.choice import codes
from ui.policies.comparison import of_panel, parted
from ui.policies.contestants import Run
from ui.policies.parting_words import fate, headline, never, side_sentences
from ui.theme import current_theme

__all__ = ["pair"]


def pair(runs: Sequence[Run], panel: Scenario) -> None:
    """Any two of the runs, where they part, and their films; ``panel`` is the panel's scenario."""
    by_id = {one.id: one for one in runs}
    here = [name for name in codes("pair") or () if name in by_id]
    here = here if len(here) == 2 else _interesting(runs, panel)
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
    at_s = _where_they_part(sides)
    _film(sides, at_s)


def _interesting(runs: Sequence[Run], panel: Scenario) -> list[str]:
    """The panel's policy and the one that decides like it for longest, but not to the end."""
    mine = of_panel(runs, panel)
    others = [one for one in runs if one is not mine]
    at = [(found.iteration if (found := parted(mine, one)) else -1) for one in others]
    other = others[at.index(max(at))]
    return [one.id for one in runs if one in (mine, other)]


def _where_they_part(sides: Sequence[Run]) -> float | None:
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


def _film(sides: Sequence[Run], at_s: float | None) -> None:
    if at_s is not None:
        start = choose("from", ("there", "begin"), "pol.from", t("pol.from"))
        at_s = at_s if start == "there" else None
    key = "-".join(("pol.film", *(one.id for one in sides), "begin" if at_s is None else "there"))
    compare(
        [one.result for one in sides],
        key=key,
        titles=[one.name for one in sides],
        subtitles=[one.variant for one in sides],
        short_titles=_shorts(sides),
        language=current_language(),
        theme=current_theme(),
        at_s=at_s,
        title=f"iteration-lab-{'-'.join(one.id for one in sides)}",
    )


def _shorts(sides: Sequence[Run]) -> list[str]:
    """Names for a narrow place: the policy's, or the variant's where both are of one policy."""
    same = len({one.name for one in sides}) == 1
    return [(one.variant if same else "") or one.name for one in sides]
