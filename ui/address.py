"""What is chosen, as language-neutral codes that live in the session and in the address bar.

The session has the last word, so that two quick changes cannot undo each other; the address has it
where a person used it: on the first run, and after back or forward. Each code has an unseen text
field bound to the address. A bound select box would write its *label* there, so that a link made
in Chinese would not open in English. Codes are empty where the choice is the default: links hold
differences only, and a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

__all__ = ["VERSION", "VERSION_FIELD", "choice", "chosen", "codes", "open_address", "put"]

VERSION = "2"
"""Of links; what each version means is said in :mod:`ui.panel.link`."""
VERSION_FIELD = "v"
_STATE_KEY = "address"


def open_address(names: Sequence[str]) -> bool:
    """Bring session and address together; call it once in every run, before anything is chosen.

    Returns whether the address had the last word, so that :func:`codes` are news.
    """
    names = (*names, VERSION_FIELD)
    wanted: Mapping[str, str] | None = st.session_state.get(_STATE_KEY)
    for name in names if wanted else ():
        if st.session_state.get(name) != wanted[name]:
            st.session_state[name] = wanted[name]
    with st.container(key="address"):
        st.html("<style>.st-key-address {display: none}</style>")
        seen = {
            name: st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
            or ""
            for name in names
        }
    st.session_state[_STATE_KEY] = seen
    return seen != wanted


def codes() -> Mapping[str, str]:
    """All codes by name; the version under "v"."""
    return st.session_state[_STATE_KEY]


def put(changes: Mapping[str, str]) -> None:
    """Change some codes; the address follows in the next run, with its version."""
    changed = {**codes(), **changes, VERSION_FIELD: ""}
    if any(changed.values()):
        changed[VERSION_FIELD] = VERSION
    st.session_state[_STATE_KEY] = changed


def chosen(name: str, known: Sequence[str], default: str) -> str:
    """The code in force: what was chosen, or the default where nothing valid was."""
    code = codes().get(name, "")
    return code if code in known else default


def choice(
    name: str,
    label: str,
    known: Sequence[str],
    default: str,
    words: Callable[[str], str],
    *,
    label_visibility: str = "visible",
) -> str:
    """A select box over codes; ``words`` gives the label of a code."""
    code = chosen(name, known, default)
    widget = f"choice.{name}"
    # Said anew in every run, because the browser knows only the label, in the language before.
    st.session_state[widget] = code

    def take() -> None:
        picked = st.session_state[widget]
        put({name: "" if picked == default else picked})

    st.selectbox(
        label,
        known,
        format_func=words,
        key=widget,
        on_change=take,
        label_visibility=label_visibility,
    )
    return code
