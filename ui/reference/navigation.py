"""Where the reader is on the Reference page: section and entry, both in the address.

``?section=formulas&id=F14`` opens that formula. Callbacks of buttons use :func:`go`; a list is cut
into pages by :func:`page_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ui.choose import code_field
from ui.language import t

__all__ = ["choose_section", "entry_id", "go", "links", "page_of", "scroll_up"]

_MOVES = "ref.moves"
"""Counts jumps, so that each sends the page to its top once."""


def choose_section(sections: Sequence[str], of_entry: str = "") -> str:
    """A row of the sections; the address keeps the code of the chosen one.

    The section ``of_entry`` goes first: a jump to an entry changes the entry alone.
    """
    code = code_field("section")
    code = of_entry or code
    chosen, widget = code if code in sections else sections[0], "choice.section"
    words = {section: t(f"ref.section.{section}") for section in sections}
    st.session_state[widget] = chosen

    def take() -> None:
        st.session_state["section"] = st.session_state[widget]
        st.session_state["id"] = ""

    st.segmented_control(
        t("ref.section"),
        sections,
        required=True,
        format_func=words.get,
        key=widget,
        on_change=take,
        label_visibility="collapsed",
    )
    return chosen


def entry_id() -> str:
    """The entry that the address names, as written there."""
    return code_field("id")


def go(section: str, name: str = "") -> None:
    """Open a section, or one of its entries; a callback.

    An entry says its section itself: one parameter changes, so that one step back undoes it.
    """
    st.session_state["id"] = name
    if not name:
        st.session_state["section"] = section
    _moved()


def links(words: str, section: str, names: Sequence[str], place: str) -> None:
    """Words and buttons that open entries, in a row; ``place`` tells equal buttons apart."""
    if not names:
        return
    st.markdown(f":gray[{words}]", width="content")
    for name in names:
        st.button(
            f":primary[{name}]",
            key=f"ref.open.{place}.{name}",
            type="tertiary",
            on_click=go,
            args=(section, name),
        )


def page_of(
    list_name: str, found: Sequence[str], size: int, search: object, show: Callable[[str], None]
) -> None:
    """Show a page of what was found, with a way to the others; a new search starts at the first."""
    kept = f"ref.page.{list_name}"
    before = st.session_state.get(kept)
    page = before[1] if before and before[0] == search else 0
    last = max(0, (len(found) - 1) // size)
    page = min(page, last)
    st.session_state[kept] = search, page

    def turn(to: int) -> None:
        st.session_state[kept] = search, to
        _moved()

    for name in found[page * size : (page + 1) * size]:
        show(name)
    if last == 0:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"pager-{list_name}"):
        for to, words, icon, dead in (
            (page - 1, "previous", "arrow_back", page == 0),
            (page + 1, "next", "arrow_forward", page == last),
        ):
            st.button(
                t(f"ref.page.{words}"),
                key=f"ref.turn.{list_name}.{words}",
                icon=f":material/{icon}:",
                disabled=dead,
                on_click=turn,
                args=(to,),
            )
        first = page * size + 1
        until = min(len(found), first + size - 1)
        st.markdown(
            f":gray[{t('ref.page.of', first=first, last=until, total=len(found))}]",
            width="content",
        )


def _moved() -> None:
    st.session_state[_MOVES] = st.session_state.get(_MOVES, 0) + 1


def scroll_up() -> None:
    """After a jump the new entry is read from its top."""
    moves = st.session_state.get(_MOVES, 0)
    if moves:
        st.html(
            "<script>document.querySelector('[data-testid=\"stMain\"]')"
            f".scrollTo(0, 0) /* jump {moves} */</script>",
            unsafe_allow_javascript=True,
        )
