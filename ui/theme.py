"""The theme of this session and the few rules of style that Streamlit's settings cannot say."""

from __future__ import annotations

import streamlit as st

__all__ = ["apply_style", "current_theme"]

_STYLE = """
<style>
/* one screen is for one thought: less air around the page, none between its parts */
[data-testid="stMainBlockContainer"] { padding: 3rem 3rem; max-width: 1500px }
[data-testid="stSidebarHeader"] { height: 2.5rem; margin: 0 }
[data-testid="stSidebarUserContent"] { padding-top: 0 }
[data-testid="stSidebar"] [data-testid="stVerticalBlock"] { gap: .75rem }
/* the panel shows its sliders close together, without the ends of their scales */
[data-testid="stSidebar"] [data-testid="stSliderTickBar"] { display: none }
[data-testid="stSidebar"] [data-testid="stSlider"] > div > div { padding-bottom: .25rem }
[data-testid="stSidebar"] [data-testid="stSlider"] > label { margin-bottom: .7rem }
[data-testid="stSidebar"] h1 { padding: .25rem 0; font-size: 1.25rem; white-space: nowrap }
/* formulas: KaTeX cuts the feet of fractions off without this */
.katex-display { padding: .5em 0 !important }
/* key figures: the unit is quieter than the number, what belongs to it quieter still; uncut */
[data-testid="stMetricValue"] { font-variant-numeric: tabular-nums; line-height: 1.3 }
[data-testid="stMetric"] :is(.stMarkdownEllipsis, .stMarkdownEllipsis p) {
  overflow: visible; text-overflow: clip; white-space: normal }
[data-testid="stMetricValue"] .stMarkdownColoredText { font-weight: 400 }
[data-testid="stMetricDelta"] {
  background: none !important; padding: 0; font-size: .8rem; line-height: 1.35; height: auto }
/* carriers of settings take no room on the page */
.st-key-style { display: none }
</style>
"""


def apply_style() -> None:
    """Send the rules; the entry script calls this once in every run."""
    with st.container(key="style"):
        st.html(_STYLE)


def current_theme() -> str:
    """ "light" or "dark", as the browser shows the page now."""
    return "dark" if st.context.theme.type == "dark" else "light"
