"""The records of comparisons, kept for all sessions, and how they are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from charts.numbers import significant
from ui.language import t
from validation.comparison import Comparison, Curve, Record, curve, record
from validation.table import COMPARISONS, TOPICS

__all__ = ["CASES", "Case", "curve_of", "gap", "how", "number", "records_of"]

Case = tuple[str, str]
"""Name of a comparison, and what is broken in it ("" for nothing)."""

CASES: tuple[Case, ...] = tuple(
    (comparison.name, broken)
    for comparison in COMPARISONS.values()
    for broken in ("", *comparison.broken)
)

_HOW = {  # how a topic is simulated, and what in it is done otherwise
    "throughput": "batches",
    "padding": "rows",
    "chunking": "chunks",
    "eviction": "evicted",
    "queues": "recursion",
    "slo": "recursion",
    "stall": "first",
    "little": "users",
    **dict.fromkeys(("recursion", "ttft_mean", "wait_mean", "queue_cap", "overload"), "server"),
    **dict.fromkeys(("time_sjf", "wait_by_size", "time_srpt"), "jobs"),
    **dict.fromkeys(("tpot", "e2e"), "own"),
}


@st.cache_resource(show_spinner=False)
def _kept() -> dict[Case, Record]:
    return {}


def records_of(cases: Sequence[Case]) -> Mapping[Case, Record]:
    """The records of these cases; the first who asks for one sees what is being simulated."""
    kept = _kept()
    missing = [case for case in cases if case not in kept]
    if missing:
        bar = st.progress(0.0)
        for place, (name, broken) in enumerate(missing):
            said = t("val.computing", name=t(f"val.name.{name}"), n=place + 1, m=len(missing))
            bar.progress(place / len(missing), said)
            kept[name, broken] = record(COMPARISONS[name], broken)
        bar.empty()
    return {case: kept[case] for case in cases}


@st.cache_resource(max_entries=256, show_spinner=False)
def curve_of(case: Case) -> Curve:
    """The curve of a case along its axis."""
    return curve(COMPARISONS[case[0]], case[1])


def how(name: str) -> str:
    """Key of the words that say how a comparison is simulated."""
    topic = next(topic for topic, group in TOPICS.items() if COMPARISONS[name] in group)
    return f"val.how.{_HOW.get(name, _HOW[topic])}"


# -- words -----------------------------------------------------------------------------------------


def number(value: float, comparison: Comparison | Record) -> str:
    """A value with its unit, on one line."""
    unit = t(f"val.unit.{comparison.unit}")
    return f"{significant(value, 4)} {unit}".strip().replace(" ", "\u00a0")


def gap(found: Record) -> str:
    """How far the simulation lies from the formula, in percent or as a factor."""
    share = found.difference
    if abs(share) < 5e-6:
        return "0\u00a0%"
    if share > 1:
        return f"{significant(1 + share)}\u00a0×"
    size = abs(share) * 100
    digits = 1 if size >= 1 else 2 if size >= 0.01 else 4
    return f"{'+' if share > 0 else '−'}{size:.{digits}f}\u00a0%"
