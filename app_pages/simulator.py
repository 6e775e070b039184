"""Simulator: a workload goes through a scheduler; what came out, and what happened meanwhile."""

import streamlit as st

from model.errors import LabError
from ui.baseline import baseline_for, baseline_note, pin_button
from ui.engine import simulated, summary
from ui.figures import key_figures, rejections
from ui.language import error_markdown, t
from ui.prose import prose
from ui.run_views import VIEWS, show_view
from ui.scenario import current_scenario, scenario_line
from ui.views import view_choice

st.title(t("page.simulator"), anchor=False)
st.markdown(prose("simulator", "lead").text)

scenario = current_scenario()
try:
    with st.spinner(t("run.simulating")):
        result, numbers = simulated(scenario), summary(scenario)
except LabError as error:
    st.error(error_markdown(error))
    st.stop()

st.caption(scenario_line(result, numbers))
key_figures(result, numbers)
if refused := rejections(result):
    st.warning(refused, icon=":material/block:")

row = st.container(horizontal=True, horizontal_alignment="distribute")
view = view_choice("view", VIEWS, row)
with row:
    pin_button(scenario)
baseline_note(scenario)
show_view(view, scenario, baseline_for(scenario))
