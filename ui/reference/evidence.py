"""How the simulator was checked, and what the lab rests on: engines, papers, software."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path

import streamlit as st

from formulas.texts import table, text
from model.schedulers import POLICIES
from ui.language import current_language, t
from ui.lesson import Figure, figures
from ui.prose import prose
from ui.reference import marks
from ui.reference.recordings import evidence

__all__ = ["source_list", "validation"]

_ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("text-a", "text-b")
NO_SOURCE = (*TEXTS, "own")
_RECORDED = {
    "Sarathi-Serve reference schedulers": "sarathi",
    "vLLM 0.6.3.post1 (V0 scheduler)": "vllm-v0",
    "vLLM 0.33.0 (V1 scheduler)": "vllm-v1",
}


def validation() -> None:
    """Recordings that the simulator repeats, what no recording covers, and the other checks."""
    rows = evidence()
    st.markdown(prose("reference", "validation").text)
    total = {name: sum(getattr(row, name) for row in rows) for name in rows[0]._fields[2:]}
    figures(
        [
            Figure(t(f"ref.evidence.{name}"), f"{total[name]:,}")
            for name in ("recordings", "requests", "iterations", "grants", "changes")
        ]
    )
    by_policy = {policy: [row for row in rows if row.policy == policy] for policy in POLICIES}
    lines = [
        (
            f"**{t(f'policy.{policy}')}**",
            _recorded(row.recorded_from) if row else t("ref.evidence.none"),
            *(f"{value:,}" for value in (row[2:] if row else (0,) * 5)),
            _modelled(policy) if place == 0 else "",
        )
        for policy, own in by_policy.items()
        for place, row in enumerate(own or [None])
    ]
    heads = ("policy", "engine", *rows[0]._fields[2:], "modelled")
    with st.container(key="wide-evidence"):
        st.markdown(
            marks.table([t(f"ref.evidence.{name}") for name in heads], lines, numbers=range(2, 7))
        )
    for section in ("modelled", "checks"):
        part = prose("reference", section)
        st.subheader(part.title, anchor=False)
        st.markdown(part.text)


def _recorded(engine: str) -> str:
    """The engine that was recorded, in words; as the recording names it where there are none."""
    key = _RECORDED.get(engine)
    return marks.plain(t(f"ref.recorded.{key}") if key else engine)


def _modelled(policy: str) -> str:
    """What of a policy no recording covers."""
    return marks.word(f"ref.modelled.{policy}", marks.plain(POLICIES[policy].source))


def source_list() -> None:
    """The texts that are examined, the sources of the formulas, data and software."""
    language = current_language()
    st.markdown(prose("reference", "sources").text)
    texts = "\n".join(f"- {marks.plain(text('sources', key, language))}" for key in TEXTS)
    st.subheader(t("ref.sources.texts"), anchor=False)
    st.markdown(texts)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(t("ref.sources.literature"), anchor=False)
        keys = [key for key in table("sources") if key not in NO_SOURCE]
        st.markdown("\n".join(f"- {marks.plain(text('sources', key, language))}" for key in keys))
    with right:
        data = prose("reference", "data")
        st.subheader(data.title, anchor=False)
        st.markdown(data.text)
        st.subheader(t("ref.sources.software"), anchor=False)
        heads = [t(f"ref.software.{name}") for name in ("library", "version", "license")]
        with st.container(key="wide-software"):
            st.markdown(marks.table(heads, _software()))


@cache
def _software() -> tuple[tuple[str, str, str], ...]:
    """Name, installed version and license of the libraries that the lab asks for."""
    lines = (_ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split(">")[0].strip() for line in lines if line and not line.startswith("#")]
    return tuple((marks.plain(name), *_about(name)) for name in names)


def _about(name: str) -> tuple[str, str]:
    """Version and license, as the library itself says."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "–", "–"
    license_name = found.get("License-Expression") or (found.get("License") or "–").splitlines()[0]
    return found["Version"], marks.plain(license_name)
