"""A claim of a source text as a card: its words, its verdict, and what may be said instead."""

from __future__ import annotations

import streamlit as st

from formulas import claims
from ui.language import current_language, t
from ui.reference import marks

__all__ = ["claim_card"]


def claim_card(name: str) -> None:
    """What a source text claims, its verdict, and what may be said instead."""
    claim, language = claims()[name], current_language()
    badges = " ".join(map(marks.verdict, claim.verdicts))
    lines = (
        f"**{name}** &nbsp; :gray[{t(f'ref.text.{claim.source}')}] &nbsp; {badges}",
        f"“{marks.plain(claim.claim(language))}”",
        f"**{t('ref.instead')}** &nbsp; {marks.plain(claim.corrected(language))}",
        f":gray[{marks.plain(claim.reason(language))}]",
    )
    with st.container(border=True, key=f"claim-{name}"):
        st.markdown("\n\n".join(lines))
