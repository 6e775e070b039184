"""Simulator: a workload goes through a scheduler; what came out, and what happened meanwhile."""

import streamlit as st

from charts.figure import CONFIG
from charts.timeline import description
from model.errors import LabError
from ui.engine import simulated, summary, timeline_figure
from ui.figures import key_figures, rejections
from ui.language import current_language, error_sentence, t
from ui.prose import prose
from ui.scenario import current_scenario, scenario_line
from ui.theme import current_theme

st.title(t("page.simulator"), anchor=False)
st.markdown(prose("simulator", "lead").text)

scenario = current_scenario()
try:
    result, numbers = simulated(scenario), summary(scenario)
except LabError as error:
    st.error(error_sentence(error))
    st.stop()

st.caption(scenario_line(result, numbers))

key_figures(result, numbers)
if refused := rejections(result):
    st.warning(refused, icon=":material/block:")

st.plotly_chart(
    timeline_figure(scenario, current_language(), current_theme()),
    theme=None,
    config=CONFIG,
    key="timeline",
    alt=description(result, numbers, t),
)

with st.expander(prose("simulator", "reading").title):
    st.markdown(prose("simulator", "reading").text)
