"""Scenarios with requests that no link holds: brought by a file, kept for this session, by hash.

The name is a hash of what the file says, not of its bytes, so that the same scenario and requests
have one name on every machine. It is also what results are kept under for all sessions: a file that
claims to be another one cannot stand in for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.requests import Requests
from model.scenario import Scenario, TraceReference
from model.workload import Workload
from ui.panel.choices import Base

__all__ = ["Held", "digest_of", "held", "hold", "name_of", "requests_of"]

KEPT = 3
"""Files of one session; a trace of a day has some hundred megabytes."""

_STATE_KEY = "panel.uploads"
_COLUMNS = (
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "priority",
    "cancel_s",
    "prefix_group",
    "shared_prefix_tokens",
    "request_class",
)
_LATER_COLUMNS = ("follows", "patience_s", "retries", "retry_after_s", "retry_factor")
"""Where there are any; a file without them keeps the hash that links know."""


@dataclass(frozen=True, eq=False, slots=True)
class Held:
    """A scenario of a file, and its requests if its workload is a trace."""

    name: str
    title: str
    base: Base
    requests: Requests | None
    digest: str


def held(name: str) -> Held | None:
    """The file of this name, if this session has it."""
    return st.session_state.get(_STATE_KEY, {}).get(name)


def hold(scenario: Scenario, requests: Requests | None, title: str) -> Held:
    """Keep a scenario for this session; its name goes into links."""
    digest = digest_of(requests)
    name = name_of(scenario, digest)
    means = None
    if requests is not None:
        means = float(requests.prompt_tokens.mean()), float(requests.output_tokens.mean())
    new = Held(name, title, Base(scenario, means), requests, digest)
    others = dict(st.session_state.get(_STATE_KEY, {}))
    others.pop(name, None)
    kept = list(others.items())[-(KEPT - 1) :]
    st.session_state[_STATE_KEY] = {**dict(kept), name: new}
    return new


def requests_of(workload: Workload | TraceReference) -> Held | None:
    """The file of this session that has the requests of a trace, the newest first."""
    if isinstance(workload, Workload):
        return None
    files = reversed(st.session_state.get(_STATE_KEY, {}).values())
    return next((file for file in files if file.base.scenario.workload == workload), None)


def name_of(scenario: Scenario, digest: str) -> str:
    """The name of a scenario with the requests of this digest (\"\" for none)."""
    text = f"{scenario.to_json()}\n{digest}"
    return f"bundle-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def digest_of(requests: Requests | None) -> str:
    """A hash of all that decides how requests are served; "" for none."""
    if requests is None:
        return ""
    hasher = hashlib.sha256()
    for name in _COLUMNS:
        column = getattr(requests, name)
        kind = "<f8" if column.dtype.kind == "f" else "<i8"
        hasher.update(np.ascontiguousarray(column, dtype=kind).tobytes())
    for name in ("class_names", "request_id", "hash_ids", "hash_block_tokens", "users"):
        hasher.update(f"\n{name}={getattr(requests, name)!r}".encode())
    if requests.think_s is not None:
        hasher.update(np.ascontiguousarray(requests.think_s, dtype="<f8").tobytes())
    for name in _LATER_COLUMNS:
        if (column := getattr(requests, name)) is not None:
            hasher.update(f"\n{name}=".encode())
            hasher.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return hasher.hexdigest()
