"""Who takes part in the comparison: the choice, its codes in the address, and who cannot run."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.choose import code_field
from ui.language import as_text, t
from ui.policies.contestants import FEWEST, FIRST, MOST, Run, contestants, known, run

__all__ = ["choice_of_policies", "codes", "first", "take_part", "taking_part"]

NOBODY = "-"


def codes(name: str) -> tuple[str, ...] | None:
    """Contestants that the address names under a parameter; None where it names none."""
    text = code_field(name)
    return () if text == NOBODY else known((text or "").split(",")) or None


def take_part(ids: Sequence[str], pair: Sequence[str]) -> None:
    """Let these take part, and two of them in the view of where they part; for ``on_click``."""
    st.session_state["policies"], st.session_state["pair"] = ",".join(ids), ",".join(pair)


def first(panel: str) -> tuple[str, ...]:
    """Who takes part at first: some policies, and the one that the panel has chosen."""
    return known((*FIRST, panel))


def choice_of_policies(ids: tuple[str, ...], panel: str) -> None:
    """The box in which contestants are chosen, and below it those that cannot run here."""
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
