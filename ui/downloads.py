"""A run as files. Each is written when somebody clicks, not in every rerun."""

from __future__ import annotations

import csv
import io
from functools import partial

import streamlit as st

from model import export
from model.bundle import write_bundle
from model.result import SimulationResult
from model.scenario import Scenario
from ui.engine import simulated
from ui.language import t
from ui.panel.uploads import requests_of

__all__ = ["download_row"]

TABLES = ("requests.csv", "iterations.csv", "events.csv")
SUMMARY, BUNDLE = "summary.json", "scenario.zip"
_TYPES = {"csv": "text/csv", "json": "application/json", "zip": "application/zip"}


def download_row(scenario: Scenario) -> None:
    """A button a file, with what it holds beside it."""
    result, file = simulated(scenario), requests_of(scenario.workload)
    makers = {name: partial(_table, result, name) for name in TABLES}
    makers[SUMMARY] = partial(export.summary_json, result)
    makers[BUNDLE] = partial(write_bundle, scenario, None if file is None else file.requests)
    for name, make in makers.items():
        left, right = st.columns([1, 3], vertical_alignment="center")
        left.download_button(
            name,
            data=make,
            file_name=name,
            mime=_TYPES[name.rpartition(".")[2]],
            key=f"download.{name}",
            on_click="ignore",
            icon=":material/download:",
            width="stretch",
        )
        right.markdown(t(f"download.{name.replace('.', '_')}"))


def _table(result: SimulationResult, name: str) -> bytes:
    columns, rows = export.tables(result)[name]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
