"""The scenario panel, and what pages ask of it: the scenario, its requests, Bs and Bd.

The panel stands in the sidebar of every page. Its choices are codes in the address
(:mod:`ui.address`, :mod:`ui.panel.link`), so that a link reproduces a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model import catalogue
from model.errors import LabError
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Scenario, TraceReference
from model.traces import Trace
from ui.engine import summary
from ui.language import error_markdown, t
from ui.panel import session
from ui.panel.basic import basic_panel, preset_row, preset_select
from ui.panel.choices import draft, is_static, with_basic
from ui.panel.command import command_dialog
from ui.panel.controls import toggle
from ui.panel.expert import expert_panel
from ui.panel.notes import Notes
from ui.panel.session import open_panel
from ui.panel.share import bundle_upload, rebased, share_dialog
from ui.panel.uploads import hold
from ui.units import duration, significant

__all__ = [
    "MOST_MEASURED",
    "choose_preset",
    "current_requests",
    "current_scenario",
    "dynamic_batch",
    "finish_panel",
    "input_tokens",
    "measured_batch",
    "open_panel",
    "output_tokens",
    "preset_name",
    "scenario_line",
    "scenario_panel",
    "scenario_title",
    "scenario_under",
    "static_batch",
    "use_trace",
]

MOST_MEASURED = 5_000
"""Requests up to which the panel simulates for a page that does not."""


# -- what pages ask --------------------------------------------------------------------------------


def current_scenario() -> Scenario:
    """The scenario of the panel; the page ends here where it cannot run."""
    found = session.current_draft()
    if found is None:
        st.info(t("panel.missing"), icon=":material/folder_zip:")
        st.stop()
    if found.scenario is None:
        reason = error_markdown(found.error)
        st.warning(t("panel.invalid", reason=reason), icon=":material/arrow_back:")
        st.stop()
    return found.scenario


def current_requests() -> Requests | None:
    """The requests of the scenario where they come from a file; None where it generates them."""
    file = session.held_now()
    return None if file is None else file.requests


def static_batch() -> int:
    """Bs: the batch of static batching, whichever policy runs."""
    return _basic()["bs"]


def dynamic_batch() -> float:
    """Bd: the cap of the dynamic batch, or the simulated mean where that is asked for."""
    if session.current_choices().measured and (mean := measured_batch()) is not None:
        return mean
    return float(_basic()["bd"])


def input_tokens() -> int:
    """Lin: mean prompt tokens of a request."""
    return _basic()["lin"]


def output_tokens() -> int:
    """L: mean output tokens of a request."""
    return _basic()["l"]


def measured_batch() -> float | None:
    """The simulated mean batch of the dynamic policy; None where a static one runs, or nothing."""
    found = session.current_draft()
    if found is None or found.scenario is None or is_static(found.basic["policy"]):
        return None
    try:
        return _mean_batch(summary(found.scenario))
    except LabError:
        return None


def preset_name() -> str | None:
    """The preset in the reader's language while nothing of it is changed, otherwise None."""
    found = session.current_draft()
    if found is None or not found.is_unchanged or found.choices.base not in catalogue.presets():
        return None
    return t(f"preset.{found.choices.base}")


def scenario_under(policy: str) -> Scenario:
    """The scenario of the panel under another policy: as if it were chosen there.

    A static policy takes Bs, any other Bd. Raises LabError where it cannot run.
    """
    current_scenario()
    choices = session.current_choices()
    base = session.base_of(choices)
    found = draft(with_basic(choices, base, "policy", policy), base)
    if found.error is not None:
        raise found.error
    return found.scenario


def choose_preset(name: str) -> None:
    """Start from this preset; for ``on_click`` of a button."""
    session.choose_base(name)


def use_trace(trace: Trace) -> None:
    """Let the scenario serve these requests instead of generated ones; for ``on_click``.

    Everything else stays. A link then names the scenario by its hash, and its file travels beside.
    """
    choices = session.current_choices()
    found = session.current_draft()
    if found is None or found.scenario is None:
        return
    reference = TraceReference(trace.name[:200] or "trace", trace.sha256, trace.kept)
    scenario = replace(found.scenario, workload=reference)
    file = hold(scenario, trace.requests, trace.name)
    session.adopt(rebased(choices, found, file.name, file.base))


def scenario_title(scenario: Scenario) -> str:
    """A short name for the scenario of the panel: where it starts from, and its policy."""
    choices, file = session.current_choices(), session.held_now()
    presets = catalogue.presets()
    start = t(f"preset.{choices.base}") if choices.base in presets else file and file.title
    changed = preset_name() is None and choices.base in presets
    name = t("panel.changed", name=start) if changed else start or ""
    return " · ".join(filter(None, (name, t(f"policy.{scenario.policy.name}"))))


def scenario_line(result: SimulationResult, numbers: Mapping[str, float]) -> str:
    """What was simulated, in one line."""
    name = preset_name()
    return " · ".join(
        (
            *((name,) if name else ()),
            t(f"policy.{result.scenario.policy.name}"),
            t("summary.kv", n=result.kv_blocks),
            t("summary.requests", n=numbers["requests"]),
            t("summary.iterations", n=numbers["iterations"]),
            t("summary.span", span=" ".join(duration(numbers["duration_s"]))),
        )
    )


def _basic() -> Mapping:
    found = session.current_draft()
    if found is None:
        st.info(t("panel.missing"), icon=":material/folder_zip:")
        st.stop()
    return found.basic


def _mean_batch(numbers: Mapping[str, float]) -> float:
    return numbers["mean_batch_decode_requests"] + numbers["mean_batch_prefill_requests"]


# -- the panel itself, for the entry script --------------------------------------------------------


def scenario_panel() -> DeltaGenerator | None:
    """Draw the panel; returns the place that :func:`finish_panel` fills, if there is one."""
    preset_select()
    if names := session.left_out():
        listed = t("list.separator").join(f"`{name}`" for name in names)
        st.warning(t("panel.left_out", names=listed), icon=":material/link_off:")
    found = session.current_draft()
    if found is None:
        name = session.current_choices().base.removeprefix("bundle-")
        st.warning(t("panel.missing.about", hash=name), icon=":material/folder_zip:")
        bundle_upload("panel.upload")
        return None
    preset_row(found)
    notes = Notes(found)
    place = basic_panel(found, notes)
    expert_panel(found, notes)
    notes.rest()
    share, command = st.columns(2)
    if share.button(t("share.open"), key="share.open", icon=":material/share:", width="stretch"):
        share_dialog()
    if command.button(
        t("command.open"), key="command.open", icon=":material/terminal:", width="stretch"
    ):
        command_dialog()
    return place


def finish_panel(place: DeltaGenerator | None) -> None:
    """After the page: the mean batch that its simulation has measured, as an outcome beside Bd."""
    found = session.current_draft()
    if place is None or found is None or found.scenario is None:
        return
    if found.scenario.workload.n_requests > MOST_MEASURED:
        return
    try:
        mean = _mean_batch(summary(found.scenario))
    except LabError:
        return
    if not mean > 0:
        return
    seqs = found.scenario.policy.max_num_seqs
    with place.container():
        if is_static(found.basic["policy"]):
            st.caption(t("panel.measured.static", mean=significant(mean), n=seqs))
        else:
            label = t("panel.measured", mean=significant(mean))
            toggle("panel.measured", label, found.choices.measured, session.set_measured)
