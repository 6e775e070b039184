"""Recorded arrivals: upload a trace, look at what was understood, serve it instead of the workload.

Whatever a file holds, it costs a sentence and never the page: :mod:`model.traces` refuses line by
line, and names from a file are shown as text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from charts.figure import CONFIG
from charts.palette import DASHES, SERIES
from charts.sheet import Sheet
from model.errors import LabError
from model.scenario import TraceReference
from model.traces import Fault, Trace, TraceError, read_trace
from model.workload import Workload
from ui.language import error_markdown, error_sentence, t
from ui.scenario import use_trace
from ui.theme import current_theme
from ui.units import duration, significant

__all__ = ["LARGEST_MB", "MOST_REQUESTS", "trace_upload"]

LARGEST_MB = 20
MOST_REQUESTS = 20_000
"""Requests of a trace that a page simulates; of a longer one the first so many."""

_STATE_KEY = "trace.read"
_SHOWN_FAULTS = 12
_FIRST_ROWS = 5


class _Read(NamedTuple):
    """The file read last in this session, so that a rerun does not read it again."""

    file_id: str
    trace: Trace | None
    error: LabError | None
    faults: tuple[Fault, ...]


def trace_upload(workload: Workload | TraceReference) -> None:
    """The place for a file, and below it what is in it; ``workload`` is what is served now."""
    file = st.file_uploader(
        t("trace.upload"),
        type=["csv", "tsv", "txt", "jsonl", "json"],
        key="trace.upload",
        max_upload_size=LARGEST_MB,
        help=t("trace.formats"),
    )
    if file is None:
        st.session_state.pop(_STATE_KEY, None)
        st.caption(t("trace.formats"))
        return
    read = _read(file.file_id, file.getvalue(), file.name)
    if read.error is not None:
        st.error(error_markdown(read.error), icon=":material/error:")
    else:
        _preview(read.trace, workload)
    _faults(read)


def _read(file_id: str, data: bytes, name: str) -> _Read:
    kept: _Read | None = st.session_state.get(_STATE_KEY)
    if kept is not None and kept.file_id == file_id:
        return kept
    try:
        trace = read_trace(data, name, max_requests=MOST_REQUESTS)
        read = _Read(file_id, trace, None, trace.faults)
    except TraceError as error:
        read = _Read(file_id, None, error, error.faults)
    except LabError as error:
        read = _Read(file_id, None, error, ())
    st.session_state[_STATE_KEY] = read
    return read


def _preview(trace: Trace, workload: Workload | TraceReference) -> None:
    requests = trace.requests
    span_s = float(np.nanmax(requests.arrival_s) - np.nanmin(requests.arrival_s))
    about, button = st.columns([4, 1], vertical_alignment="center")
    about.markdown(
        t(
            "trace.found",
            format=t(f"trace.format.{trace.format}"),
            kept=trace.kept,
            refused=trace.refused,
            span=" ".join(duration(span_s)),
            rate=significant(len(requests) / span_s) if span_s > 0 else "–",
        )
    )
    in_use = isinstance(workload, TraceReference) and workload.sha256 == trace.sha256
    button.button(
        t("trace.in_use") if in_use else t("trace.use"),
        key="trace.use",
        disabled=in_use,
        type="primary",
        icon=":material/play_arrow:",
        on_click=use_trace,
        args=(trace,),
        width="stretch",
    )
    if "trace_too_many" in trace.fault_counts:
        st.info(t("trace.limited", limit=MOST_REQUESTS), icon=":material/content_cut:")
    table, chart = st.columns([2, 3])
    with table:
        st.markdown(f"**{t('trace.first')}**")
        st.dataframe(
            {
                t("table.request_id"): list(requests.request_id[:_FIRST_ROWS]),
                t("table.arrival_s"): requests.arrival_s[:_FIRST_ROWS],
                t("table.prompt_tokens"): requests.prompt_tokens[:_FIRST_ROWS],
                t("table.output_tokens"): requests.output_tokens[:_FIRST_ROWS],
            },
            hide_index=True,
            column_config={t("table.arrival_s"): st.column_config.NumberColumn(format="%.3f")},
            key="trace.rows",
        )
    with chart:
        st.plotly_chart(
            _lengths(trace),
            theme=None,
            config=CONFIG,
            key="trace.lengths",
            alt=t(
                "trace.lengths.alt",
                prompt=significant(float(np.median(requests.prompt_tokens))),
                output=significant(float(np.median(requests.output_tokens))),
            ),
        )


def _lengths(trace: Trace):
    """How long prompts and answers are, in bins of a logarithmic axis."""
    theme = current_theme()
    sheet = Sheet(theme, 260)
    lengths = {"prompt": trace.requests.prompt_tokens, "output": trace.requests.output_tokens}
    longest = max(int(values.max()) for values in lengths.values())
    edges = np.unique(np.geomspace(1, longest + 1, 41).round())
    edges = np.append(edges, edges[-1] + 1) if len(edges) < 2 else edges
    for (name, values), color, dash in zip(lengths.items(), SERIES[theme], DASHES, strict=False):
        counts = np.histogram(values, edges)[0]
        sheet.traces.append(
            {
                "type": "scatter",
                "x": np.repeat(edges, 2)[1:-1],
                "y": np.repeat(counts, 2),
                "name": t(f"trace.lengths.{name}"),
                "mode": "lines",
                "line": {"color": color, "width": 2, "dash": dash},
                "hovertemplate": "%{x:,.0f}: <b>%{y:,}</b>",
            }
        )
    sheet.heading(t("trace.lengths"), t("unit.requests"), 0, 1)
    sheet.legend(0, 1.0)
    axis = t("chart.axis", name=t("trace.lengths.axis"), unit=t("unit.tokens"))
    sheet.layout |= {
        "xaxis": {
            **sheet.bottom_axis(axis),
            "type": "log",
            "dtick": 1,
            "fixedrange": True,
        },
        "yaxis": sheet.axis(rangemode="tozero", fixedrange=True, nticks=5),
    }
    return sheet.figure()


def _faults(read: _Read) -> None:
    """What was wrong, line by line, in the reader's language."""
    if not read.faults:
        return
    total = sum(read.trace.fault_counts.values()) if read.trace else len(read.faults)
    with st.expander(t("trace.faults", n=total), expanded=True, icon=":material/rule:"):
        for fault in read.faults[:_SHOWN_FAULTS]:
            # A file's words are no Markdown: backslashes, dollars and brackets stay what they are.
            st.text(_sentence(fault))
        if total > _SHOWN_FAULTS:
            st.caption(t("trace.faults.more", shown=_SHOWN_FAULTS, n=total))


def _sentence(fault: Fault) -> str:
    return error_sentence(LabError(fault.code, line=fault.line, **fault.values))
