"""The same comparison over several seeds: how much of a lead is the luck of one draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.numbers import scale_of, significant
from charts.policy_table import marks
from model.experiment import Sweep, sweep
from model.metrics import METRICS
from model.scenario import Scenario, TraceReference
from ui.language import as_text, current_language, t, translator
from ui.policies.contestants import Run

__all__ = ["SEEDS", "luck", "won"]

SEEDS = 5
SHOWN = (
    *("slo_attainment_share", "ttft_p99_s", "tpot_p99_s"),
    *("throughput_output_tokens_per_s", "wasted_tokens_share"),
)
_STATE = "pol.luck"


def luck(scenario: Scenario, runs: Sequence[Run]) -> None:
    """A button, and then the table of means and ranges; scenario is that of the panel."""
    if isinstance(scenario.workload, TraceReference):
        st.info(t("pol.luck.trace"), icon=":material/history:")
        return
    wanted = (scenario, tuple(run.scenario.policy for run in runs))
    kept = st.session_state.get(_STATE)
    if kept is None or kept[0] != wanted:
        n, place = len(dict.fromkeys(wanted[1])) * SEEDS, st.empty()
        words = t("pol.luck.start", seeds=SEEDS, n=n)
        if not place.button(words, key="pol.luck.start", type="primary"):
            return
        kept = wanted, _run(*wanted, place)
        st.session_state[_STATE] = kept
    _show(kept[1], runs)


def _run(scenario: Scenario, policies: tuple, place: DeltaGenerator) -> Sweep:
    """All runs, here and now, with a bar at this place; a click anywhere ends it."""

    def report(done: int, planned: int) -> None:
        place.progress(done / planned, text=t("sweep.bar", done=done, n=planned))

    seeds = range(scenario.seed, scenario.seed + SEEDS)
    found = sweep(scenario, "policy", policies, SHOWN, seeds, on_progress=report)
    place.empty()
    return found


def won(found: Sweep, metric: str) -> dict[object, int]:
    """In how many seeds each policy is alone the best in a metric."""
    wins: dict[object, int] = dict.fromkeys(found.values, 0)
    columns = found.columns
    for seed in found.seeds:
        here = columns["seed"] == seed
        best = marks(columns[metric][here].tolist(), METRICS[metric].better)
        for policy, mark in zip(columns["value"][here], best, strict=True):
            wins[policy] += mark == "best"
    return wins


def _show(found: Sweep, runs: Sequence[Run]) -> None:
    speak = translator(current_language())
    heads = [t("pol.luck.policy"), *(t(f"measure.{metric}") for metric in SHOWN)]
    lines = [f"| {' | '.join(heads)} |", f"|:--|{'--:|' * len(SHOWN)}"]
    wins = {metric: won(found, metric) for metric in SHOWN}
    scales = {metric: scale_of(metric, _highest(found, metric), speak) for metric in SHOWN}
    for run in runs:
        policy = run.scenario.policy
        mine = np.array([value == policy for value in found.columns["value"]], dtype=bool)
        cells = [as_text(run.label)]
        for metric in SHOWN:
            values = found.columns[metric][mine] * scales[metric].factor
            values = values[~np.isnan(values)]
            if not len(values):
                cells.append("–")
                continue
            text = t(
                "pol.luck.cell",
                mean=significant(float(values.mean())),
                low=significant(float(values.min())),
                high=significant(float(values.max())),
                unit=scales[metric].unit,
            )
            if wins[metric][policy]:
                text += f"<br>▲ {t('pol.luck.won', n=wins[metric][policy], seeds=SEEDS)}"
            cells.append(text)
        lines.append(f"| {' | '.join(cells)} |")
    st.markdown("\n".join(lines), unsafe_allow_html=True)
    st.caption(t("pol.luck.about", seeds=SEEDS))
    for one in found.impossible:
        st.warning(as_text(one.sentence), icon=":material/block:")


def _highest(found: Sweep, metric: str) -> float:
    values = found.columns[metric]
    return float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
