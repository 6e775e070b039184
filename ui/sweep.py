"""Sweep: one parameter of the scenario against any metric, over seeds, with bar and cancel.

All metrics are gathered at once, so that another one is only another look at the same runs.
"""

from __future__ import annotations

import csv
import io
import math
import zlib
from functools import partial

import streamlit as st

from charts.sweep import Pinned, description, sweep_chart
from model.errors import LabError
from model.experiment import Parameter, Sweep, sweepable, value_at
from model.metrics import METRICS
from model.parameters import RATE
from model.scenario import Scenario, TraceReference
from ui.background import Job, bar
from ui.baseline import baseline_for
from ui.engine import summary
from ui.language import current_language, error_markdown, error_sentence, t, translator
from ui.panel.uploads import requests_of
from ui.parameter_words import parameter_name, parameter_unit, value_word
from ui.pictures import Picture, draw
from ui.sweep_job import Plan, start
from ui.theme import current_theme

__all__ = ["sweep_view"]

MOST_VALUES = 24
MOST_SEEDS = 5
_JOB = "sweep.job"
_POLL_S = 0.4
_FIRST = (
    *(RATE, "policy", "policy.max_num_seqs", "policy.max_num_batched_tokens", "policy.chunk_size"),
    *("hardware", "model", "tensor_parallel", "n_engines"),
)
"""Parameters that most people look for; the others follow in the order of the scenario."""
_METRICS = ("slo_attainment_share", "ttft_p99_s", "tpot_p99_s", "throughput_output_tokens_per_s")


def sweep_view(scenario: Scenario) -> None:
    """The form, the bar while it runs, the chart of what was found."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None and job.running and job.plan.scenario != scenario:
        job.cancel()  # nobody looks at it any more
    plan = _form(scenario)
    running = job is not None and job.running
    _buttons(plan, running)
    if job is None:
        st.caption(t("sweep.about"))
        return
    if running:
        st.fragment(_progress, run_every=_POLL_S)(job)
    elif job.plan.scenario != scenario:
        st.info(t("sweep.other_scenario"), icon=":material/history:")
    else:
        _outcome(job)


def _progress(job: Job) -> None:
    bar(job, t("sweep.bar", done=job.done, n=job.planned), "sweep")


# -- the form --------------------------------------------------------------------------------------


@st.cache_resource(max_entries=64, show_spinner=False)
def _parameters(scenario: Scenario) -> dict[str, Parameter]:
    found = {parameter.path: parameter for parameter in sweepable(scenario)}
    first = [path for path in _FIRST if path in found]
    return {path: found[path] for path in (*first, *(p for p in found if p not in first))}


def _form(scenario: Scenario) -> Plan | None:
    """What the learner asks for; None where that cannot be, which is said."""
    parameters = _parameters(scenario)
    names = {path: parameter_name(path, scenario) for path in parameters}
    if st.session_state.get("sweep.parameter") not in parameters:
        st.session_state.pop("sweep.parameter", None)  # of another policy or workload
    left, middle, right = st.columns([3, 5, 2], vertical_alignment="top")
    path = left.selectbox(
        t("sweep.parameter"),
        parameters,
        format_func=names.get,
        key="sweep.parameter",
        persist_state="session",
    )
    parameter = parameters[path]
    with middle:
        values = _values(parameter)
    seeds = 1
    if isinstance(scenario.workload, TraceReference):
        right.caption(t("sweep.no_luck"))
    else:
        seeds = right.select_slider(
            t("sweep.seeds.label"),
            range(1, MOST_SEEDS + 1),
            value=3,
            key="sweep.seeds",
            persist_state="session",
            help=t("sweep.seeds.help"),
        )
    if values is None:
        return None
    return Plan(scenario, path, values, tuple(range(scenario.seed, scenario.seed + seeds)))


def _values(parameter: Parameter) -> tuple | None:
    unit = parameter_unit(parameter.path)
    label = t("sweep.values.unit", unit=unit) if unit else t("sweep.values")
    # Other suggestions are another field: values for one scenario say nothing about the next.
    key = f"sweep.values.{parameter.path}.{zlib.crc32(repr(parameter.suggested).encode()):08x}"
    if parameter.kind in ("choice", "flag"):
        options = parameter.choices or (False, True)
        words = {value: value_word(parameter.path, value) for value in options}
        chosen = st.multiselect(
            label,
            options,
            default=list(parameter.suggested[:MOST_VALUES]),
            format_func=words.get,
            key=key,
            persist_state="session",
            max_selections=MOST_VALUES,
            wrap=True,
        )
        return tuple(chosen) or None
    text = st.text_input(
        label,
        value=", ".join(_plain(value) for value in parameter.suggested),
        key=key,
        persist_state="session",
        help=t("sweep.values.help"),
        max_chars=400,
    )
    values, wrong = _numbers(text, parameter)
    if wrong:
        st.error(wrong)
        return None
    return values


def _plain(value: float) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _numbers(text: str, parameter: Parameter) -> tuple[tuple, str]:
    """The numbers of a text, or what is wrong with it."""
    values: list[float] = []
    for part in text.replace(";", ",").replace("，", ",").split(","):
        part = part.strip()
        if not part:
            continue
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            return (), t("sweep.values.not_a_number", value=part[:20].replace("`", ""))
        whole = parameter.kind == "whole"
        if whole and not value.is_integer():
            return (), t("sweep.values.not_whole", value=part[:20].replace("`", ""))
        values.append(int(value) if whole else value)
    values = list(dict.fromkeys(values))
    if not values:
        return (), t("sweep.values.none")
    if len(values) > MOST_VALUES:
        return (), t("sweep.values.many", limit=MOST_VALUES)
    return tuple(values), ""


def _buttons(plan: Plan | None, running: bool) -> None:
    if running:
        return  # the bar has the button that ends it

    def begin() -> None:
        file = requests_of(plan.scenario.workload)
        st.session_state[_JOB] = start(plan, None if file is None else file.requests)

    runs = len(plan.values) * len(plan.seeds) if plan else 0
    st.button(
        t("sweep.start", n=runs) if plan else t("sweep.start.none"),
        key="sweep.start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=plan is None,
        on_click=begin,
    )


# -- what was found --------------------------------------------------------------------------------


def _outcome(job: Job) -> None:
    if job.error is not None:
        st.error(error_markdown(job.error), icon=":material/error:")
        return
    if job.failed:
        st.error(t("sweep.failed"), icon=":material/error:")
        return
    found = job.found
    if found is None or found.cancelled:
        runs = 0 if found is None else found.runs
        st.info(t("sweep.cancelled", done=runs, n=job.planned), icon=":material/stop_circle:")
    if found is None:
        return
    metric, second = _metrics()
    draw(_picture(found, metric, second), "sweep.chart")
    refused = _impossible(found)
    if refused:
        with st.expander(t("sweep.refused", n=len(refused)), icon=":material/block:"):
            for sentence in refused:
                st.markdown(f"- {sentence}")
    st.download_button(
        t("sweep.download"),
        data=partial(_csv, found),
        file_name=f"sweep-{found.parameter}.csv",
        mime="text/csv",
        key="sweep.download",
        on_click="ignore",
        icon=":material/download:",
    )


def _metrics() -> tuple[str, str | None]:
    left, right = st.columns(2)
    names = (*_METRICS, *(name for name in METRICS if name not in _METRICS))
    word = {name: t(f"measure.{name}") for name in names}
    metric = left.selectbox(
        t("sweep.metric"), names, format_func=word.get, key="sweep.metric", persist_state="session"
    )
    second = right.selectbox(
        t("sweep.second"),
        names,
        index=None,
        format_func=word.get,
        key="sweep.second",
        persist_state="session",
        placeholder=t("sweep.second.none"),
    )
    return metric, None if second == metric else second


def _picture(found: Sweep, metric: str, second: str | None) -> Picture:
    words = translator(current_language())
    name = parameter_name(found.parameter, found.scenario)
    if unit := parameter_unit(found.parameter):
        name = t("chart.axis", name=name, unit=unit)
    figure = sweep_chart(
        found,
        metric,
        words,
        current_theme(),
        second=second,
        pinned=_pinned(found),
        parameter=name,
        sentence=error_sentence,
        word=partial(value_word, found.parameter),
    )
    return Picture(figure, description(found, metric, words, parameter=name))


def _pinned(found: Sweep) -> Pinned | None:
    baseline = baseline_for(found.scenario)
    if baseline is None:
        return None
    try:
        value = value_at(baseline, found.parameter)
    except LabError:
        value = None  # another policy or workload has no such parameter
    return Pinned(value, summary(baseline))


def _impossible(found: Sweep) -> list[str]:
    words = partial(value_word, found.parameter)
    pairs = {(words(one.value), error_sentence(one.error)) for one in found.impossible}
    return [f"**{value}** – {sentence}" for value, sentence in sorted(pairs)]


def _csv(found: Sweep) -> bytes:
    """One row a run: the value, the seed, every metric under its key."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((found.parameter, "seed", *found.metrics))
    columns = (found.columns[name].tolist() for name in ("value", "seed", *found.metrics))
    for row in zip(*columns, strict=True):
        writer.writerow("" if isinstance(v, float) and math.isnan(v) else v for v in row)
    return text.getvalue().encode()
