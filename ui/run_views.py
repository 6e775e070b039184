"""The views of a run on the Simulator page: film, charts, tables, sweep, files. One at a time."""

from __future__ import annotations

import streamlit as st

from model.errors import LabError
from model.events import EVENTS
from model.experiment import with_policy
from model.scenario import Scenario
from model.schedulers import POLICIES
from ui.choose import code_field
from ui.downloads import download_row
from ui.engine import simulated
from ui.language import current_language, error_markdown, t
from ui.panel.session import current_choices
from ui.panel.share import link_to
from ui.pictures import Rows, draw, latencies, lives, over_time, utilizations
from ui.player import View, compare, show
from ui.prose import prose
from ui.sweep import sweep_view
from ui.tables import events_table, requests_table
from ui.theme import current_theme
from ui.trace_upload import trace_upload

__all__ = ["VIEWS", "show_view"]

VIEWS = ("time", "film", "latency", "requests", "utilization", "decisions", "sweep", "files")

MOST_SHOWN = (15, 30, 60)
AT_FIRST = ("reject", "resume", "refuse", "preempt", "swap_out", "swap_in", "cancel")
"""Events that the table shows at first: what does not happen to everybody."""


def show_view(view: str, scenario: Scenario, baseline: Scenario | None) -> None:
    """Draw one of VIEWS; those that can show the ghost of a baseline do."""
    if view == "film":
        _film(scenario)
    elif view == "time":
        draw(over_time(scenario, baseline), "timeline")
        _reading("reading")
    elif view == "latency":
        draw(latencies(scenario, baseline), "latencies")
        _reading("latencies")
    elif view == "requests":
        _requests(scenario)
    elif view == "utilization":
        draw(utilizations(scenario), "utilization")
        _reading("utilization")
    elif view == "decisions":
        _decisions(scenario)
    elif view == "sweep":
        sweep_view(scenario)
    else:
        _files(scenario)


def _reading(section: str) -> None:
    with st.expander(prose("simulator", section).title):
        st.markdown(prose("simulator", section).text)


@st.fragment
def _film(scenario: Scenario) -> None:
    words = {name: t(f"policy.{name}") for name in POLICIES if name != scenario.policy.name}
    code, widget = code_field("beside"), "film.compare"
    other = code if code in words else None
    st.session_state[widget] = other

    def take() -> None:
        st.session_state["beside"] = st.session_state[widget] or ""

    st.selectbox(
        t("film.compare"),
        tuple(words),
        index=None,
        format_func=words.get,
        placeholder=t("film.compare.nobody"),
        key=widget,
        on_change=take,
        width=320,
    )
    try:
        if other:
            _compared_films(scenario, other)
        else:
            _one_film(scenario)
    except LabError as error:
        st.error(error_markdown(error))


def _compared_films(scenario: Scenario, policy: str) -> None:
    """The same arrivals under another policy with the same limits, on one clock."""
    sides = [scenario, with_policy(scenario, policy)]
    results = [simulated(side) for side in sides]
    compare(
        results,
        key="film.compared",
        titles=[t(f"policy.{side.policy.name}") for side in sides],
        language=current_language(),
        theme=current_theme(),
        title=f"iteration-lab-{scenario.policy.name}-{policy}",
    )


def _one_film(scenario: Scenario) -> None:
    engine_id = 0
    if scenario.n_engines > 1:
        engine_id = st.select_slider(
            t("film.engine"),
            range(scenario.n_engines),
            format_func=lambda number: _engine_word(scenario, number),
            key="film.engine",
        )
    view = show(
        simulated(scenario),
        key="film",
        language=current_language(),
        theme=current_theme(),
        engine_id=engine_id,
        iteration=_from_link("at", int),
        speed=_from_link("speed", float),
        request=st.query_params.get("follow"),
        title=f"iteration-lab-{scenario.policy.name}",
    )
    with st.popover(t("film.link"), icon=":material/link:"):
        st.code(_link(view), language=None, wrap_lines=True)


def _engine_word(scenario: Scenario, number: int) -> str:
    """An engine by the number that tables give it, and what it does where that differs."""
    prefill = scenario.cluster.prefill_engines
    if not prefill:
        return str(number)
    return t("film.engine.prefill" if number < prefill else "film.engine.decode", n=number)


def _link(view: View) -> str:
    """The address of the moment at which the film was paused."""
    moment = {"view": "film", "at": view.iteration, "speed": view.speed, "follow": view.request}
    return link_to(current_choices(), {name: str(code or "") for name, code in moment.items()})


def _from_link(name: str, kind: type) -> int | float | None:
    """A number that stands in the address beside the scenario."""
    try:
        return kind(st.query_params.get(name, ""))
    except ValueError:
        return None


def _requests(scenario: Scenario) -> None:
    words = {name: t(f"rows.{name}") for name in ("interesting", "window")}
    how, many, begin = st.columns([2, 1, 3], vertical_alignment="bottom")
    chosen = how.segmented_control(
        t("rows.label"),
        tuple(words),
        format_func=words.get,
        default="interesting",
        required=True,
        key="rows.how",
        persist_state="session",
        help=t("rows.help"),
    )
    n = many.selectbox(t("rows.n"), MOST_SHOWN, index=1, key="rows.n", persist_state="session")
    share = begin.slider(
        t("rows.from"),
        0,
        99,
        0,
        format="%d %%",
        key="rows.from",
        disabled=chosen == "interesting",
        persist_state="session",
    )
    draw(lives(scenario, Rows(chosen, n, share / 100 if chosen == "window" else 0.0)), "lives")
    st.subheader(t("table.requests"), anchor=False)
    requests_table(scenario)


def _decisions(scenario: Scenario) -> None:
    words = {name: t(f"event.{name}") for name in EVENTS}
    chosen = st.pills(
        t("events.kinds"),
        EVENTS,
        selection_mode="multi",
        default=AT_FIRST,
        format_func=words.get,
        key="events.kinds",
        persist_state="session",
    )
    who = st.text_input(
        t("events.request"),
        key="events.request",
        max_chars=64,
        width=260,
        help=t("events.request.help"),
    )
    events_table(scenario, chosen, who.strip())


def _files(scenario: Scenario) -> None:
    st.subheader(t("trace.title"), anchor=False)
    trace_upload(scenario.workload)
    st.subheader(t("download.title"), anchor=False)
    download_row(scenario)
