"""Requests and decisions of a run as tables: units in the heads, sortable, reasons in words.

A browser gets at most MOST_ROWS rows; the files hold all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from model import metrics
from model.events import EVENT, EVENTS, REASONS
from model.result import SimulationResult
from model.scenario import Scenario
from model.state import STATUS
from ui.engine import simulated
from ui.language import current_language, definition, t, translate
from ui.parameter_words import class_word
from ui.pictures import Key, key_of

__all__ = ["MOST_ROWS", "events_table", "requests_table"]

MOST_ROWS = 2_000
_FORMATS = {"_s": "%.3f", "_ms": "%.2f"}
_DEFINED = {"ttft_s": "ttft", "tpot_ms": "tpot", "e2e_s": "e2e", "queue_s": "queue"}


def requests_table(scenario: Scenario) -> None:
    """One row a request."""
    frame = _requests(key_of(scenario), current_language())
    _show(frame.head(MOST_ROWS), "table.requests")
    _of_how_many(len(frame))


def events_table(scenario: Scenario, kinds: Sequence[str], request: str = "") -> None:
    """One row an event of these kinds, of one request where it is named."""
    result = simulated(scenario)
    columns = result.events
    chosen = np.isin(columns["event"], [EVENT[kind] for kind in kinds])
    if request:
        row = _row_of(result, request)
        chosen &= (columns["request"] == row) | (columns["other"] == row)
    rows = np.flatnonzero(chosen)
    if not len(rows):
        st.info(t("table.no_events"), icon=":material/info:")
        return
    _show(_events(result, rows[:MOST_ROWS]), "table.events")
    _of_how_many(len(rows))


def _row_of(result: SimulationResult, name: str) -> int:
    """The row of a request by its name, also as the film writes it; -2 for nobody."""
    ids = result.inputs.request_id
    return next((ids.index(one) for one in (name, name.removeprefix("r")) if one in ids), -2)


def _of_how_many(n: int) -> None:
    if n > MOST_ROWS:
        st.caption(t("table.first", shown=MOST_ROWS, n=n))


def _show(frame, key: str) -> None:
    config = {}
    for name in frame.columns:
        label = t(f"table.{name}")
        if name == "met":
            config[name] = st.column_config.CheckboxColumn(label, help=definition("attainment"))
        elif frame[name].dtype.kind in "fiu":
            ending = next((end for end in _FORMATS if name.endswith(end)), None)
            help = definition(_DEFINED[name]) if name in _DEFINED else None
            config[name] = st.column_config.NumberColumn(
                label, format=_FORMATS.get(ending, "localized"), help=help
            )
        else:
            config[name] = st.column_config.TextColumn(label)
    st.dataframe(frame, hide_index=True, column_config=config, key=key, height=460)


@st.cache_resource(max_entries=32, show_spinner=False)
def _requests(run: Key, language: str):
    import pandas as pd

    result = simulated(run.scenario)
    table, names = result.requests, result.inputs.class_names
    words = [translate(language, f"status.{name}") for name in STATUS]
    columns: dict[str, object] = {"request_id": table["request_id"]}
    if len(names) > 1:
        shown = [class_word(name, language) for name in names]
        columns["class"] = [shown[index] for index in table["request_class"].tolist()]
    if run.scenario.n_engines > 1:
        columns["engine"] = table["engine_id"]
    if run.scenario.cluster.prefill_engines:
        decodes = table["decode_engine_id"]
        columns["decode_engine"] = np.where(decodes < 0, np.nan, decodes)
        columns["transfer_s"] = table["transfer_s"]
    if (table["attempts"] > 1).any():
        columns["attempts"] = table["attempts"]
    columns |= {
        "status": [words[code] for code in table["status"].tolist()],
        "arrival_s": table["arrival_s"],
        "prompt_tokens": table["prompt_tokens"],
        "output_tokens": table["emitted_tokens"],
        "queue_s": metrics.queue_s(table),
        "ttft_s": metrics.ttft_s(table),
        "tpot_ms": 1e3 * metrics.tpot_s(table),
        "e2e_s": metrics.e2e_s(table),
        "met": metrics.meets_slo(table, run.scenario.slo),
        "preemptions": table["preemptions"],
    }
    for name in ("recomputed_tokens", "cached_tokens", "cached_again_tokens", "swapped_blocks"):
        if table[name].any():
            columns[name] = table[name]
    return pd.DataFrame(columns)


def _events(result: SimulationResult, rows: np.ndarray):
    import pandas as pd

    language, ids = current_language(), result.inputs.request_id
    events = [translate(language, f"event.{name}") for name in EVENTS]
    reasons = ["", *(translate(language, f"reason.{name}") for name in REASONS[1:])]
    table = {name: column[rows] for name, column in result.events.items()}
    columns: dict[str, object] = {"iteration": table["iteration"], "time_s": table["time_s"]}
    if result.scenario.n_engines > 1:
        columns["engine"] = table["engine_id"]
    columns |= {
        "event": [events[code] for code in table["event"].tolist()],
        "request": [ids[row] for row in table["request"].tolist()],
        "reason": [reasons[code] for code in table["reason"].tolist()],
        "other": [ids[row] if row >= 0 else "" for row in table["other"].tolist()],
        "blocks_needed": table["blocks_needed"],
        "blocks_free": table["blocks_free"],
        "tokens": table["tokens"],
        "tokens_free": np.where(table["tokens_free"] < 0, np.nan, table["tokens_free"]),
    }
    return pd.DataFrame(columns)
