"""The section Published: results of papers, and what comes out here."""

from __future__ import annotations

import streamlit as st

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
    """All results in one table, and one of them with its text and its rows."""
    st.markdown(prose("published", "lead").text)
    with st.spinner(t("pub.computing")):
        found = {name: finding(name) for name in PUBLISHED}
    st.markdown(_overview(found))
    name = choose("result", tuple(PUBLISHED), "pub.name", t("pub.result"))
    section = prose("published", name.lower())
    st.subheader(section.title, anchor=False)
    words, numbers = st.columns([2, 3], gap="large")
    words.markdown(section.text)
    with numbers.container(key="published"):
        st.html(_STYLE)
        st.markdown(_rows(found[name]))


def _overview(found: dict[str, Finding]) -> str:
    head = (t("pub.result"), t("pub.title"), t("pub.kind"), t("pub.agreeing"))
    rows = (
        (
            name,
            prose("published", name.lower()).title,
            t(f"pub.kind.{one.kind}"),
            t("pub.count", n=one.agreeing, m=len(one.compared)),
        )
        for name, one in found.items()
    )
    return _table(head, rows)


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
