"""Reference: every formula, claim, word, device and model, and how the simulator was checked."""

import streamlit as st

from ui.prose import prose
from ui.reference.catalogues import device_table, glossary_table, model_table
from ui.reference.evidence import source_list, validation
from ui.reference.finding import section_of
from ui.reference.navigation import choose_section, entry_id, scroll_up
from ui.reference.sheet import formula_sheet
from ui.reference.style import STYLE
from ui.reference.verdicts import claim_list

SECTIONS = ("formulas", "claims", "glossary", "devices", "models", "validation", "sources")


@st.fragment
def reference() -> None:
    entry = entry_id()
    section = choose_section(SECTIONS, section_of(entry))
    if section == "formulas":
        formula_sheet(entry)
    elif section == "claims":
        claim_list(entry)
    elif section == "glossary":
        glossary_table()
    elif section == "devices":
        device_table()
    elif section == "models":
        model_table()
    elif section == "validation":
        validation()
    else:
        source_list()
    scroll_up()


st.html(STYLE)
st.title(prose("reference", "lead").title, anchor=False)
reference()
