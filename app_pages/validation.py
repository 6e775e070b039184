"""Validation: formulas beside simulations, published results, and recorded schedules repeated."""

import streamlit as st

from ui.choose import choose
from ui.evidence.published import published
from ui.evidence.theory import theory
from ui.language import t
from ui.lesson import question
from ui.reference.evidence import validation as recorded
from ui.reference.style import STYLE

SECTIONS = {"theory": theory, "published": published, "recorded": recorded}


@st.fragment
def sections() -> None:
    codes = tuple(SECTIONS)
    SECTIONS[choose("part", codes, "val.section", t("val.section"), label_visibility="collapsed")]()


st.html(STYLE)
question("validation")
sections()
