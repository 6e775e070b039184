"""The formula sheet: formulas as cards, and one formula with its derivation."""

from __future__ import annotations

import re
from functools import cache

import streamlit as st

import formulas
from formulas import entries
from ui import derivation
from ui.language import current_language, t
from ui.reference import marks
from ui.reference.finding import STATUSES, formulas_found, known
from ui.reference.navigation import go, links, page_of

__all__ = ["formula_sheet", "full_size"]

PAGE = 20
EVERYTHING = 10_000
_PIECES = re.compile(r"[_^]\{|\\[a-zA-Z]+|\\.|.", re.DOTALL)


def formula_sheet(wanted: str) -> None:
    """The formula that is asked for, or all that fit a search."""
    name = known("formulas", wanted)
    if name:
        _one(name)
        return
    if wanted:
        st.info(t("ref.unknown.formula", name=marks.plain(wanted[:20])), icon=":material/search:")
    _all()


def _all() -> None:
    statuses = marks.words("ref.verdict", STATUSES, "ref.all")
    topics = marks.words("ref.topic", (row.topic for row in entries().values()), "ref.all")
    with st.container(key="tools"):
        search, status_at, topic_at, all_at = st.columns([4, 2, 3, 2], vertical_alignment="bottom")
        query = search.text_input(
            t("ref.search.formulas"),
            placeholder=t("ref.search.formulas.example"),
            key="ref.formulas.query",
            persist_state="page",
        )
        status = status_at.selectbox(
            t("ref.status"),
            statuses,
            format_func=statuses.get,
            key="ref.formulas.status",
            persist_state="page",
        )
        topic = topic_at.selectbox(
            t("ref.topic"),
            topics,
            format_func=topics.get,
            key="ref.formulas.topic",
            persist_state="page",
        )
        whole = all_at.toggle(
            t("ref.whole"), key="ref.formulas.whole", help=t("ref.whole.help"), persist_state="page"
        )
    found = formulas_found(query, status, topic)
    if not found:
        st.info(t("ref.nothing"), icon=":material/search_off:")
        return
    st.caption(t("ref.found.formulas", n=len(found)))
    size = EVERYTHING if whole else PAGE
    page_of("formulas", found, size, (query, status, topic, whole), _card)


def _one(name: str) -> None:
    """A formula, its derivation and the ways on."""
    ids = list(entries())
    place = ids.index(name)
    with st.container(key="tools", horizontal=True):
        st.button(t("ref.back.formulas"), icon=":material/list:", on_click=go, args=("formulas",))
        for step, icon, key in ((-1, "arrow_back", "before"), (1, "arrow_forward", "after")):
            to = ids[(place + step) % len(ids)]
            st.button(
                to, icon=f":material/{icon}:", key=f"ref.{key}", on_click=go, args=("formulas", to)
            )
    _card(name, alone=True)
    st.subheader(t("ref.derivation"), anchor=False)
    derivation.show(name, key="ref.viewer")


def _card(name: str, *, alone: bool = False) -> None:
    entry = entries()[name]
    language = current_language()
    with st.container(border=True, key=f"card-{name}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(_head(name, language), width="stretch")
            if not alone:
                st.button(
                    f":primary[{t('ref.derivation')}]",
                    key=f"ref.open.{name}",
                    type="tertiary",
                    icon=":material/arrow_forward:",
                    icon_position="right",
                    on_click=go,
                    args=("formulas", name),
                )
        st.latex(_latex(name))
        left, right = st.columns(2, gap="medium")
        left.markdown(_symbols(name, language))
        right.markdown(_notes(name, language, with_claims=not alone))
        ways = {
            "corrected_by": ("formulas", entry.corrected_by),
            "corrects": ("formulas", _corrects().get(name, ())),
            "claims": ("claims", entry.claims if alone else ()),
        }
        if any(names for _, names in ways.values()):
            with st.container(horizontal=True, vertical_alignment="center", key=f"links-{name}"):
                for words, (section, names) in ways.items():
                    links(t(f"ref.{words}"), section, names, f"{name}.{words}")


@cache
def _corrects() -> dict[str, tuple[str, ...]]:
    """Formula → the printed ones that it corrects."""
    found: dict[str, tuple[str, ...]] = {}
    for name, row in entries().items():
        for other in row.corrected_by:
            found[other] = (*found.get(other, ()), name)
    return found


@cache
def _latex(name: str) -> str:
    return full_size(formulas.get(name).latex())


def full_size(latex: str) -> str:
    """Fractions within fractions as large as others; those in exponents and bounds stay small.

    So do those in ⌈ ⌉ within ⌊ ⌋: KaTeX draws brackets of that height wrongly.
    """
    parts, depth, small, rounded = [], 0, None, 0
    for part in _PIECES.findall(latex):
        if part in ("{", "_{", "^{"):
            depth += 1
            small = depth if small is None and part != "{" else small
        elif part == "}":
            small = None if small == depth else small
            depth -= 1
        rounded += (part in (r"\lfloor", r"\lceil")) - (part in (r"\rfloor", r"\rceil"))
        grows = part == r"\frac" and small is None and rounded < 2
        parts.append(r"\dfrac" if grows else part)
    return "".join(parts)


def _head(name: str, language: str) -> str:
    entry = entries()[name]
    badges = marks.verdict(entry.status)
    if entry.verdict:
        badges += f" {marks.verdict(entry.verdict)}"
    return f"**{name}** &nbsp; **{marks.plain(entry.name(language))}** &nbsp; {badges}"


@cache
def _symbols(name: str, language: str) -> str:
    """A table of the symbols: how each is written, its unit, what it means."""
    rows = [
        (
            f"${q.latex}$",
            t("ref.no_unit") if str(q.unit) == "1" else marks.plain(str(q.unit)),
            marks.plain(q.meaning(language)),
        )
        for q in formulas.get(name).symbols
    ]
    return marks.table((t("ref.symbol"), t("ref.unit"), t("ref.meaning")), rows)


@cache
def _notes(name: str, language: str, *, with_claims: bool) -> str:
    """Reason of the verdict, assumptions, sources; claims where no button opens them."""
    formula = formulas.get(name)
    parts = []
    if reason := formula.reason(language):
        parts.append(marks.plain(reason))
    if texts := formula.assumption_texts(language):
        lines = "\n".join(f"- {marks.plain(text)}" for text in texts)
        parts.append(f":gray[{t('ref.assumptions')}]\n{lines}")
    sources = "; ".join(map(marks.plain, formula.entry.source_texts(language)))
    parts.append(f":gray[{t('ref.source')}] {sources}")
    if with_claims and formula.entry.claims:
        parts.append(f":gray[{t('ref.claims')}] {', '.join(formula.entry.claims)}")
    return "\n\n".join(parts)
