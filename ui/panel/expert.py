"""The expert part of the panel: every other setting, in groups, found by a search."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.language import current_language, t, translator
from ui.panel.choices import Draft
from ui.panel.controls import emphasize, setting_control
from ui.panel.notes import Notes
from ui.panel.settings import GROUPS, Setting
from ui.panel.words import matches

__all__ = ["expert_panel"]

MOST_FOUND = 15
"""Settings that a search shows; more would say that it is no search yet."""
CHANGED = "changed"


def expert_panel(found: Draft, notes: Notes) -> None:
    """Draw one group, or what is searched for: only what is seen costs time."""
    # The label stays as it is: another one would close the part.
    part = st.expander(
        t("panel.expert"), key="panel.expert", on_change="rerun", icon=":material/tune:"
    )
    if not part.open:
        return
    with part:
        text = st.text_input(
            t("panel.search"),
            key="panel.search",
            placeholder=t("panel.search"),
            label_visibility="collapsed",
            icon=":material/search:",
            max_chars=80,
        )
        text = (text or "").strip()
        listed = _searched(found, text) if text else _grouped(found)
        names = _stream_names(found)
        emphasize(
            *(f"setting.{setting.code}" for setting in listed if setting.code in found.defaults)
        )
        for setting in listed:
            several = setting.stream is not None and len(names) > 1
            mark = names[setting.stream] if several and (text or _group() == CHANGED) else ""
            setting_control(setting, found, of_stream=mark)
            notes.under(setting.code)


def _searched(found: Draft, text: str) -> Sequence[Setting]:
    hits = [setting for setting in found.settings if matches(setting, text)]
    st.caption(t("panel.search.found", n=len(hits)))
    return hits[:MOST_FOUND]


def _group() -> str:
    return st.session_state.get("panel.group") or GROUPS[0]


def _grouped(found: Draft) -> Sequence[Setting]:
    words = translator(current_language())
    groups = (*GROUPS, CHANGED) if found.defaults else GROUPS
    if st.session_state.get("panel.group") not in groups:
        st.session_state["panel.group"] = GROUPS[0]
    group = st.pills(
        t("panel.group"),
        groups,
        format_func=lambda name: words(f"panel.group.{name}", n=len(found.defaults)),
        key="panel.group",
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )
    if group == CHANGED:
        return [setting for setting in found.settings if setting.code in found.defaults]
    if group == "workload" and found.base.has_trace:
        st.caption(t("panel.trace", name=found.base.scenario.workload.name))
        return ()
    listed = [setting for setting in found.settings if setting.group == group]
    names = _stream_names(found)
    if group != "workload" or len(names) < 2:
        return listed
    if st.session_state.get("panel.stream") not in range(len(names)):
        st.session_state["panel.stream"] = 0
    stream = st.segmented_control(
        t("panel.stream"),
        range(len(names)),
        format_func=names.__getitem__,
        key="panel.stream",
        required=True,
    )
    return [setting for setting in listed if setting.stream == stream]


def _stream_names(found: Draft) -> tuple[str, ...]:
    return tuple(s.name for s in getattr(found.base.scenario.workload, "streams", ()))
