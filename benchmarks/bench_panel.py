"""How much Python a rerun of the scenario panel costs: no page, no simulation.

``python -m benchmarks.bench_panel`` prints one line for the panel as it opens and one for each
group of its expert part. Every run has another arrival rate, so that nothing about the scenario is
remembered; the times are those inside the script, without garbage collection, as in the app.
"""

from __future__ import annotations

import gc
import itertools
import statistics

from streamlit.testing.v1 import AppTest

from ui.panel.settings import GROUPS

RUNS = 30
_COUNTER = itertools.count()
WIDGETS = ("button", "number_input", "select_slider", "selectbox", "text_input", "toggle")


def _script() -> None:
    import time

    import streamlit as st

    from ui.language import set_language
    from ui.scenario import open_panel, scenario_panel

    started = time.perf_counter()
    with st.sidebar:
        open_panel()
        set_language("en")
        scenario_panel()
    st.session_state["seconds"] = time.perf_counter() - started


def measured(base: str, **state: object) -> tuple[float, float, int]:
    """(median ms, worst ms, controls) of runs with these keys in the session."""
    app = AppTest.from_function(_script, default_timeout=60)
    times = []
    for number in range(RUNS + 3):
        for key, value in state.items():
            app.session_state[key] = value
        text = f"preset-{base}~rate-{5 + next(_COUNTER) / 1000}~tpot-0.06"
        app.session_state["address"] = {"lang": "", "s": text}
        gc.disable()
        app.run()
        gc.enable()
        if app.exception:
            raise RuntimeError(app.exception[0].message)
        if number > 2:
            times.append(app.session_state["seconds"] * 1e3)
    controls = sum(len(app.get(kind)) for kind in WIDGETS)
    return statistics.median(times), max(times), controls


def main() -> None:
    """Print the table."""
    print(f"{'panel':<34}{'median':>9}{'worst':>9}{'controls':>10}")
    one = "customer-service"
    cases = [("collapsed", one, {})]
    for group in (*GROUPS, "changed"):
        state = {"panel.expert": True, "panel.group": group}
        cases.append((f"expert, {group}", one, state))
    two = {"panel.expert": True, "panel.group": "workload"}
    cases.append(("expert, workload of two streams", "interactive-offline", two))
    cases.append(("expert, search of all", one, {"panel.expert": True, "panel.search": "e"}))
    for name, base, state in cases:
        median_ms, worst_ms, controls = measured(base, **state)
        print(f"{name:<34}{median_ms:>6.1f} ms{worst_ms:>6.1f} ms{controls:>10}")


if __name__ == "__main__":
    main()
