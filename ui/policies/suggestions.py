"""Questions worth a comparison: each a preset, those who take part, and what to look for.

A row of ``suggestions.json`` names them by id; its question and what to look for are the section
``try-ID`` of the page's prose.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from ui.language import t
from ui.policies.choice import take_part
from ui.prose import Section, prose
from ui.scenario import choose_preset, preset_name

__all__ = ["Suggestion", "asked", "suggest", "suggestions", "words"]

_TABLE = Path(__file__).with_name("suggestions.json")
_TAKEN = "pol.try.taken"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A comparison under a preset; ``pair`` are the two that the view of where they part shows."""

    id: str
    preset: str
    policies: tuple[str, ...]
    pair: tuple[str, str]


@cache
def suggestions() -> tuple[Suggestion, ...]:
    """All rows of the table."""
    rows = json.loads(_TABLE.read_text(encoding="utf-8"))
    return tuple(
        Suggestion(row["id"], row["preset"], tuple(row["policies"]), tuple(row["pair"]))
        for row in rows
    )


def words(one: Suggestion) -> Section:
    """Its question, and what to look for."""
    return prose("policies", f"try-{one.id}")


def asked(ids: Sequence[str]) -> Suggestion | None:
    """The suggestion that is being looked at: its preset, unchanged, and those who take part."""
    preset = preset_name()
    rows = (one for one in suggestions() if t(f"preset.{one.preset}") == preset)
    return next((one for one in rows if set(one.policies) == set(ids)), None)


def suggest() -> None:
    """A list of the questions that opens over the page; a click on one compares at once."""

    taken = st.session_state.setdefault(_TAKEN, 0)

    def take(one: Suggestion) -> None:
        choose_preset(one.preset)
        take_part(one.policies, one.pair)
        st.session_state[_TAKEN] += 1

    # A new key closes the list after a click.
    with st.popover(t("pol.try"), icon=":material/lightbulb:", key=f"pol.try.{taken}"):
        for one in suggestions():
            if st.button(
                words(one).title,
                key=f"pol.try.{one.id}",
                on_click=take,
                args=(one,),
                type="tertiary",
            ):
                st.rerun()  # the panel, too
