"""A page with nothing but the player; `?case=` names what is shown."""

from __future__ import annotations

import streamlit as st

from model.film import WINDOW_BYTES
from tests.player.recordings import film_result
from ui.player import compare, show

st.set_page_config(layout="wide")
asked = st.query_params
case = asked.get("case", "v1_thrash")
language = asked.get("lang", "en")
st.html("<style>.stMainBlockContainer { padding: 4rem 1rem 2rem }</style>")

if case.startswith("compare:"):
    _, left, right = case.split(":")
    view = compare(
        [film_result(left), film_result(right)],
        key="compare",
        titles=[left, right],
        language=language,
        at_s=float(asked.get("at", 0)),
    )
elif case == "start":
    view = compare(
        [film_result("start_static"), film_result("start_continuous")],
        key="compare",
        titles=["Static batching", "Continuous batching"],
        subtitles=["joins only when the whole batch has ended", "joins as soon as a slot is free"],
        short_titles=["Static", "Continuous"],
        language=language,
        autoplay="play" in asked,
        at_s=float(asked["at"]) if "at" in asked else None,
    )
    st.write(f"at {view.at_s:.3f}")
else:
    ttft_ms = st.slider("TTFT bound, ms", 100, 2000, 400) if "slider" in asked else 400
    view = show(
        film_result(case, ttft_ms=ttft_ms),
        key="film",
        language=language,
        iteration=int(asked["iteration"]) if "iteration" in asked else None,
        speed=float(asked.get("speed", 1)),
        request=asked.get("request"),
        title="film",
        window_bytes=int(asked.get("window_bytes", WINDOW_BYTES)),
    )
    st.write(f"iteration {view.iteration}, speed {view.speed}, request {view.request}")
