"""What is chosen, as language-neutral codes that live in the session and in the address bar.

The session has the last word, so that two quick changes cannot undo each other; the address has it
where a person used it: on the first run, and after back or forward. Each code has an unseen text
field bound to the address. A bound select box would write its *label* there, so that a link made
in Chinese would not open in English. Codes are empty where the choice is the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

__all__ = ["choice", "codes", "open_address", "put", "rewrite"]

_STATE_KEY = "address"


def open_address(names: Sequence[str]) -> bool:
    """Bring session and address together; call it once in every run, before anything is chosen.

    Returns whether the address had the last word, so that :func:`codes` are news.
    """
    wanted: Mapping[str, str] | None = st.session_state.get(_STATE_KEY)
    for name in names if wanted else ():
        if st.session_state.get(name) != wanted[name]:
            st.session_state[name] = wanted[name]
    with st.container(key="address"):
        st.html("<style>.st-key-address {display: none}</style>")
        seen = {name: _bound_field(name) for name in names}
    st.session_state[_STATE_KEY] = seen
    return seen != wanted


def _bound_field(name: str) -> str:
    field = st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
    return field or ""


def rewrite(changes: Mapping[str, str], drop: Sequence[str], names: Sequence[str]) -> None:
    """On the first run, before :func:`open_address`: put other parameters into the address.

    All else that stands there stays, and so does what it says of ``names``.
    """
    kept = {name: st.query_params.get_all(name) for name in st.query_params if name not in drop}
    st.session_state[_STATE_KEY] = {
        name: changes.get(name, st.query_params.get(name, "")) for name in names
    }
    written = {name: text for name, text in changes.items() if text}
    st.query_params.from_dict({**kept, **written})


def is_first_run() -> bool:
    """Whether nothing has been read from the address yet."""
    return _STATE_KEY not in st.session_state


def codes() -> Mapping[str, str]:
    """All codes by name."""
    return st.session_state[_STATE_KEY]


def put(name: str, code: str) -> None:
    """Change a code; the address follows in the next run."""
    st.session_state[_STATE_KEY] = {**codes(), name: code}


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
    code = codes()[name]
    code = code if code in known else default
    widget = f"choice.{name}"
    # Said anew in every run, because the browser knows only the label, in the language before.
    st.session_state[widget] = code

    def take() -> None:
        picked = st.session_state[widget]
        put(name, "" if picked == default else picked)

    st.selectbox(
        label,
        known,
        format_func=words,
        key=widget,
        on_change=take,
        label_visibility=label_visibility,
    )
    return code
