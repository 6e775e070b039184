"""The section Published: results of papers, and what comes out here."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.numbers import significant
from ui.choose import choose
from ui.language import t
from ui.prose import prose
from validation.published import PUBLISHED, Finding, Row, finding

__all__ = ["published"]

_STYLE = "<style>.st-key-published td:not(:first-child) { white-space: nowrap }</style>"
_NO_UNIT = "1"
_VERDICTS = {True: ("green", "✓", "pub.agrees"), False: ("orange", "≠", "pub.differs")}


def published() -> None:
    """One result with its text and its rows, and all of them in a table."""
    st.markdown(prose("published", "lead").text)
    name = choose("result", tuple(PUBLISHED), "pub.name", t("pub.result"))
    section = prose("published", name.lower())
    st.subheader(section.title, anchor=False)
    words, numbers = st.columns([2, 3], gap="large")
    words.markdown(section.text)
    with numbers.container(key="published"):
        st.html(_STYLE)
        with st.spinner(t("pub.computing")):
            st.markdown(_rows(_found(name)))
    st.subheader(t("pub.all"), anchor=False)
    overview = st.container()
    if _missing():
        place = st.empty()
        if place.button(t("pub.compute", n=len(_missing())), key="pub.compute"):
            _compute_all(place)
    overview.markdown(_overview())


@st.cache_resource(show_spinner=False)
def _kept() -> dict[str, Finding]:
    return {}


def _missing() -> list[str]:
    return [name for name in PUBLISHED if name not in _kept()]


def _found(name: str) -> Finding:
    """What comes out for a result; simulated where nobody has asked for it before."""
    kept = _kept()
    if name not in kept:
        kept[name] = finding(name)
    return kept[name]


def _compute_all(place: DeltaGenerator) -> None:
    """Whatever is missing, with a bar at this place."""
    missing = _missing()
    for done, name in enumerate(missing):
        said = t("val.computing", name=_title(name), n=done + 1, m=len(missing))
        place.progress(done / len(missing), said)
        _found(name)
    place.empty()


def _overview() -> str:
    head = (t("pub.result"), t("pub.title"), t("pub.kind"), t("pub.agreeing"))
    return _table(head, (_line(name, _kept().get(name)) for name in PUBLISHED))


def _line(name: str, one: Finding | None) -> tuple[str, ...]:
    if one is None:
        return name, _title(name), "", f":gray[{t('pub.not_yet')}]"
    agreeing = t("pub.count", n=one.agreeing, m=len(one.compared))
    return name, _title(name), t(f"pub.kind.{one.kind}"), agreeing


def _title(name: str) -> str:
    return prose("published", name.lower()).title


def _rows(found: Finding) -> str:
    head = (t("pub.quantity"), t("pub.printed"), t("pub.ours"), t("pub.verdict"))
    return _table(
        head,
        (
            (
                t(f"pub.{row.key}"),
                "" if row.printed is None else _number(row.printed, row.unit),
                _number(row.ours, row.unit),
                _verdict(row),
            )
            for row in found.rows
        ),
    )


def _verdict(row: Row) -> str:
    if not row.compared:
        return "–"
    color, sign, word = _VERDICTS[row.agrees]
    return f":{color}[{sign}\u00a0{t(word)}]"


def _number(value: float, unit: str) -> str:
    words = "" if unit == _NO_UNIT else t(f"pub.unit.{unit}")
    return f"{significant(value, 4)} {words}".strip().replace(" ", "\u00a0")


def _table(head: tuple[str, ...], rows) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
