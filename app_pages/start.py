"""Start: why continuous batching, in a film; three ways into the lab; scenarios to open."""

import streamlit as st

from model import catalogue
from ui.cards import STYLE, Door, course, open_button, preset_card, way
from ui.few_requests import Few, film
from ui.language import t
from ui.pages import CORE, ELECTIVES
from ui.prose import prose

EIGHT = Few(
    rows=(  # arrival in seconds, prompt and output tokens
        *((0.0, 420, 80), (0.0, 260, 22), (0.0, 520, 150), (0.0, 380, 38)),
        *((0.2, 480, 35), (0.35, 560, 110), (0.5, 300, 20), (0.7, 420, 90)),
    ),
    slots=3,
)
WAYS = {
    "lecture": (Door("one_request"), Door("simulator", preset="preemption-storm")),
    "study": (Door("one_request", requests="1"), Door("one_request", requests="8")),
    "interview": (
        Door("one_request", requests="8"),
        Door("simulator", preset="preemption-storm"),
        Door("simulator", preset="morning-peak"),
    ),
}

lead = prose("start", "lead")
st.title(lead.title, anchor=False)
with st.container(horizontal=True, vertical_alignment="center"):
    st.markdown(lead.text, width="stretch")
    open_button(Door("one_request", requests="8"), t("start.guess"), key="start.guess")
    open_button(Door("simulator"), t("start.try"), key="start.try")
film(EIGHT, "start.film")
st.html(STYLE)

st.header(t("start.ways"), anchor=False)
for column, (name, doors) in zip(st.columns(len(WAYS)), WAYS.items(), strict=True):
    with column:
        way(name, doors)

st.header(t("start.course"), anchor=False)
core, electives = st.columns(2, gap="large")
with core:
    course("core", t("start.core", n=sum(lesson.minutes for lesson in CORE)), CORE)
with electives:
    course("electives", t("start.electives"), ELECTIVES)

st.header(t("start.presets"), anchor=False)
st.markdown(prose("start", "presets").text)
presets = list(catalogue.presets().values())
for first in range(0, len(presets), 4):
    for column, preset in zip(st.columns(4), presets[first : first + 4], strict=False):
        with column:
            preset_card(preset)
