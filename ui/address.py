"""Choices that live in the address bar as language-neutral codes.

Streamlit's ``bind="query-params"`` keeps an address over reloads, back, forward and page changes,
but a bound select box writes its *label* there, so a link made in Chinese would not open in
English. Here an unseen text field per choice is bound and carries the code; the select box that
people use shows the label and writes the code into the field. A field is empty where the choice is
the default: links hold differences only, and a version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

__all__ = ["VERSION", "choice", "chosen", "open_address"]

VERSION = "1"
_VERSION_FIELD = "v"


def open_address(names: Sequence[str]) -> None:
    """Read these choices from the address; call it in every run before :func:`chosen`."""
    with st.container(key="address"):
        st.html("<style>.st-key-address {display: none}</style>")
        for name in names:
            st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
        st.session_state[_VERSION_FIELD] = VERSION if any(map(_carried, names)) else ""
        st.text_input(_VERSION_FIELD, key=_VERSION_FIELD, bind="query-params")


def _carried(name: str) -> str:
    return st.session_state[name] or ""


def chosen(name: str, codes: Sequence[str], default: str) -> str:
    """The code in force: what was chosen, or the default where nothing valid was."""
    code = _carried(name)
    return code if code in codes else default


def choice(
    name: str,
    label: str,
    codes: Sequence[str],
    default: str,
    words: Callable[[str], str],
    *,
    resets: Sequence[str] = (),
    help: str | None = None,
) -> str:
    """A select box over codes; ``words`` gives a code's label, ``resets`` the choices it undoes."""
    code = chosen(name, codes, default)
    widget = f"choice.{name}"
    # Said anew in every run, because the browser knows only the label, in the language before.
    st.session_state[widget] = code

    def take() -> None:
        picked = st.session_state[widget]
        st.session_state[name] = "" if picked == default else picked
        for other in resets:
            st.session_state[other] = ""

    st.selectbox(label, codes, format_func=words, key=widget, on_change=take, help=help)
    return code
