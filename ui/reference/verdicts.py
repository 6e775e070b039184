"""What the two source texts claim: verdict, what may be said instead, and why."""

from __future__ import annotations

import streamlit as st

from formulas import claims
from ui.language import current_language, t
from ui.prose import prose
from ui.reference import marks
from ui.reference.finding import VERDICTS, claims_found, known
from ui.reference.navigation import go, links, page_of

__all__ = ["claim_list"]

PAGE = 15
TEXTS = ("A", "B")
NO_QUERY = ""


def claim_list(wanted: str) -> None:
    """The claim that is asked for, or all that fit a search."""
    name = known("claims", wanted)
    if name:
        with st.container(key="tools"):
            st.button(t("ref.back.claims"), icon=":material/list:", on_click=go, args=("claims",))
        _card(name)
        return
    if wanted:
        st.info(t("ref.unknown.claim", name=marks.plain(wanted[:20])), icon=":material/search:")
    st.markdown(prose("reference", "claims").text)
    texts = marks.words("ref.text", TEXTS, "ref.text.both")
    with st.container(key="tools"):
        search, text_at = st.columns([3, 2], vertical_alignment="bottom")
        query = search.text_input(
            t("ref.search.claims"),
            placeholder=t("ref.search.claims.example"),
            key="ref.claims.query",
            persist_state="page",
        )
        text = text_at.selectbox(
            t("ref.text"),
            texts,
            format_func=texts.get,
            key="ref.claims.text",
            persist_state="page",
        )
        verdicts = {
            code: f"{marks.icon(code)} {word} · {len(claims_found(NO_QUERY, code))}"
            for code, word in marks.words("ref.verdict", VERDICTS).items()
        }
        verdict = st.segmented_control(
            t("ref.verdict"),
            VERDICTS,
            format_func=verdicts.get,
            key="ref.claims.verdict",
            persist_state="page",
        )
    found = claims_found(query, verdict or "", text)
    if not found:
        st.info(t("ref.nothing"), icon=":material/search_off:")
        return
    st.caption(t("ref.found.claims", n=len(found)))
    page_of("claims", found, PAGE, (query, text, verdict), _card)


def _card(name: str) -> None:
    claim, language = claims()[name], current_language()
    badges = " ".join(map(marks.verdict, claim.verdicts))
    heads = [t(f"ref.{words}") for words in ("claim", "instead", "why")]
    texts = (claim.claim(language), claim.corrected(language), claim.reason(language))
    table = marks.table(heads, [[marks.plain(text) for text in texts]])
    head = f"**{name}** &nbsp; :gray[{t(f'ref.text.{claim.source}')}] &nbsp; {badges}"
    with st.container(border=True, key=f"card-{name}"):
        st.markdown(f"{head}\n\n{table}")
        if claim.formulas:
            with st.container(horizontal=True, vertical_alignment="center", key=f"links-{name}"):
                links(t("ref.formulas"), "formulas", claim.formulas, f"{name}.formulas")
