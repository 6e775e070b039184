"""One view of a page at a time, chosen in a row of segments and named in the address.

Only the chosen view is drawn: what is hidden costs nothing, neither here nor in the browser.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.language import t

__all__ = ["view_choice"]


def view_choice(name: str, views: Sequence[str], row: DeltaGenerator) -> str:
    """The chosen view; the first one unless the address or the learner says otherwise.

    ``name`` is the parameter in the address and the prefix of the messages that name the views;
    the segments stand in ``row``.
    """
    # The unseen field is at the end of the sidebar, where it takes no room on the page.
    with st.sidebar.container(key=f"address-{name}"):
        st.html(f"<style>.st-key-address-{name} {{display: none}}</style>")
        code = st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
    chosen = code if code in views else views[0]
    words = {view: t(f"{name}.{view}") for view in views}
    widget = f"choice.{name}"
    st.session_state[widget] = chosen

    def take() -> None:
        picked = st.session_state[widget] or views[0]
        st.session_state[name] = "" if picked == views[0] else picked

    row.segmented_control(
        t(f"{name}.label"),
        views,
        format_func=words.get,
        key=widget,
        on_change=take,
        required=True,
        label_visibility="collapsed",
    )
    return chosen
