"""A run pinned as baseline: the next change is seen beside it, on every page.

The session keeps the scenario, not its result: that is found again like any other run. A page draws
:func:`pin_button` and :func:`baseline_note`, and gives what :func:`baseline_for` returns to the
charts that can show a ghost.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from charts.differences import Difference, differences, in_words
from model.errors import LabError
from model.scenario import Scenario
from ui.engine import summary
from ui.language import error_markdown, t
from ui.parameter_words import changed
from ui.pictures import Key, key_of
from ui.scenario import preset_name

__all__ = ["baseline_for", "baseline_note", "pin", "pin_button", "pinned", "unpin"]

_STATE_KEY = "baseline"
_MOST_NAMED = 4

MAIN = (
    "throughput_output_tokens_per_s",
    "throughput_requests_per_s",
    "ttft_p50_s",
    "ttft_p99_s",
    "tpot_p50_s",
    "tpot_p99_s",
    "e2e_p50_s",
    "slo_attainment_share",
    "kv_use_mean_share",
    "preemptions",
)
"""What the table of differences shows at first."""


class Pinned(NamedTuple):
    """The pinned run and what it is called."""

    key: Key
    title: str


def pin(scenario: Scenario, title: str) -> None:
    """Make this run the baseline; for ``on_click``."""
    st.session_state[_STATE_KEY] = Pinned(key_of(scenario), title)


def unpin() -> None:
    """Forget the baseline; for ``on_click``."""
    st.session_state.pop(_STATE_KEY, None)


def pinned() -> Pinned | None:
    """The pinned run, if there is one."""
    return st.session_state.get(_STATE_KEY)


def baseline_for(scenario: Scenario) -> Scenario | None:
    """The baseline to draw beside a scenario: none where it is the same run, or cannot be run."""
    found = pinned()
    if found is None or found.key == key_of(scenario) or key_of(found.key.scenario) != found.key:
        return None
    try:
        summary(found.key.scenario)
    except LabError:
        return None
    return found.key.scenario


def pin_button(scenario: Scenario) -> None:
    """A button that pins this run, unless it is pinned already."""
    found = pinned()
    st.button(
        t("baseline.pin") if found is None else t("baseline.pin_this"),
        key="baseline.pin",
        icon=":material/keep:",
        help=t("baseline.pin.help"),
        disabled=found is not None and found.key == key_of(scenario),
        on_click=pin,
        args=(scenario, _title(scenario)),
    )


def baseline_note(scenario: Scenario) -> None:
    """Once a run is pinned: its name, what has changed since, and the table of differences."""
    found = pinned()
    if found is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_about(found, scenario), width="stretch")
        st.button(
            t("baseline.unpin"),
            key="baseline.unpin",
            type="tertiary",
            icon=":material/keep_off:",
            on_click=unpin,
        )
    if baseline := baseline_for(scenario):
        _table(scenario, baseline)


def _title(scenario: Scenario) -> str:
    """What a run is called: its preset where nothing of it is changed, and its policy."""
    return " · ".join(filter(None, (preset_name(), t(f"policy.{scenario.policy.name}"))))


def _about(found: Pinned, scenario: Scenario) -> str:
    """What is pinned, and in what the present scenario differs from it."""
    name = t("baseline.is", title=found.title)
    if found.key == key_of(scenario):
        return f"{name} :gray[{t('baseline.same')}]"
    if key_of(found.key.scenario) != found.key:
        return f"{name} :gray[{t('baseline.gone')}]"
    try:
        summary(found.key.scenario)
    except LabError as error:
        return f"{name} :gray[{error_markdown(error)}]"
    names = changed(found.key.scenario, scenario)
    listed = t("list.comma").join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        listed = t("baseline.more", listed=listed, n=len(names) - _MOST_NAMED)
    return f"{name} :gray[{t('baseline.changed', listed=listed)}]"


def _table(scenario: Scenario, baseline: Scenario) -> None:
    rows = differences(summary(scenario), summary(baseline))
    counts = {verdict: sum(r.verdict == verdict for r in rows) for verdict in ("better", "worse")}
    with st.expander(t("baseline.differences", **counts), icon=":material/compare_arrows:"):
        everything = st.toggle(t("baseline.all"), key="baseline.all")
        shown = [row for row in rows if everything or row.metric in MAIN]
        st.markdown(_markdown(shown))


def _markdown(rows: list[Difference]) -> str:
    """The table as text: quick, readable aloud, and every number with its unit."""
    heads = (t(f"baseline.column.{name}") for name in ("measure", "now", "baseline", "difference"))
    lines = [f"| {' | '.join(heads)} |", "|:--|--:|--:|:--|"]
    for row in rows:
        words = in_words(row, t)
        delta = words["delta"]
        if row.verdict != "neutral":
            color = "green" if row.verdict == "better" else "red"
            delta = f"{delta} :{color}[{words['verdict']}]"
        cells = words["name"], words["value"], words["baseline"], delta
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
