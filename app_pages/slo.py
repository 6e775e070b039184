"""SLO and admission: two promises that pull apart, how much load keeps both, whom to refuse."""

from concurrent.futures import BrokenExecutor

import streamlit as st

from model.errors import LabError
from model.scenario import Scenario
from ui.choose import choose
from ui.language import error_markdown, t
from ui.lesson import question
from ui.scenario import current_scenario
from ui.slo.admission import admission
from ui.slo.goodput import goodput
from ui.slo.little import little
from ui.slo.peak import morning_peak
from ui.slo.stability import stability
from ui.slo.tension import tension
from ui.slo.words import PAGE

PARTS = {
    "tension": tension,
    "goodput": goodput,
    "little": little,
    "stability": stability,
    "admission": admission,
    "exercise": morning_peak,
}


@st.fragment
def lesson(scenario: Scenario) -> None:
    part = choose("part", tuple(PARTS), "slo.part", t("slo.part"), label_visibility="collapsed")
    try:
        PARTS[part](scenario)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")
    except BrokenExecutor:
        st.error(t("slo.failed"), icon=":material/error:")


question(PAGE)
lesson(current_scenario())
