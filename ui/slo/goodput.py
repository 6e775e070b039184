"""The goodput part: who is measured, the bar while it runs, the curves, the table."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import streamlit as st

from charts import slo as charts
from charts.slo import Curve as Line
from charts.slo import Level, Place, Row
from model.errors import LabError
from model.goodput import FULL, SHARE, Curve, Frontier, Point
from model.parameters import with_policy
from model.scenario import Scenario
from model.schedulers import POLICIES
from ui.background import Job, bar
from ui.choose import choose, code_field
from ui.language import error_markdown, error_sentence, t
from ui.pictures import Picture, draw
from ui.slo.frame import closing, guess, has_rate
from ui.slo.study import start
from ui.slo.words import bound, says
from ui.theme import current_theme
from ui.units import significant

__all__ = ["goodput"]

MOST = 4
_FIRST = ("vllm-v1", "vllm-v0", "orca", "static")
_STUDY = "slo.study"
_POLL_S = 0.5
SECOND = ("slo_throughput", "ttft", "tpot")
_FIELDS = {  # of the second row: field of a run, factor
    "slo_throughput": ("slo_throughput_requests_per_s", 1.0),
    "ttft": ("ttft_p90_s", 1.0),
    "tpot": ("tpot_p90_s", 1e3),
}
_DASHES = ("solid", "dashdot", "dot", "longdash")


def goodput(scenario: Scenario) -> None:
    """Choose policies, measure them, see the curves as they come."""
    st.markdown(says("goodput", ttft=bound(scenario.slo.ttft_s), tpot=bound(scenario.slo.tpot_s)))
    if has_rate(scenario):
        if not guess("goodput", says("ask-goodput"), ("falls", "rises", "stays")):
            return
        _measuring(scenario)
    closing("goodput", scenario, "limits-goodput", **_largest_rate(scenario))


def _largest_rate(scenario: Scenario) -> dict[str, float]:
    """R_max of F31, of one engine, once the scenario's own policy has been measured."""
    study: Job | None = st.session_state.get(_STUDY)
    curves = study.found.curves if study is not None and study.found is not None else ()
    own = [curve for curve in curves if curve.scenario == scenario and not curve.rough]
    rates = [curve.goodput.low * scenario.tensor_parallel for curve in own]
    return {"R_max": rates[0]} if rates and rates[0] > 0 else {}


def _measuring(scenario: Scenario) -> None:
    study: Job | None = st.session_state.get(_STUDY)
    scenarios = _scenarios(scenario)
    if study is not None and study.running and study.plan != scenarios:
        study.cancel()  # nobody looks at it any more
    second = choose("curve", SECOND, "slo.curve", t("slo.curve"))
    if study is not None and study.running:
        st.fragment(_progress, run_every=_POLL_S)(study, second)
        return

    def begin() -> None:
        st.session_state[_STUDY] = start(scenarios)

    st.button(
        t("slo.start", n=len(scenarios)),
        key="slo.start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=not scenarios,
        on_click=begin,
    )
    if study is None:
        st.caption(t("slo.start.about", n=FULL.requests, seeds=FULL.seeds))
    elif study.plan != scenarios:
        st.info(t("slo.other_scenario"), icon=":material/history:")
    else:
        _outcome(study, second)


def _scenarios(scenario: Scenario) -> Mapping[str, Scenario]:
    names = [name for name in POLICIES if _under(scenario, name) is not None]
    first = [name for name in dict.fromkeys((scenario.policy.name, *_FIRST)) if name in names]
    code = code_field("who")
    chosen = [name for name in (code or "").split(",") if name in names] or first
    st.session_state["slo.policies"] = chosen[:MOST]

    def take() -> None:
        picked = st.session_state["slo.policies"]
        st.session_state["who"] = "" if picked == first[:MOST] else ",".join(picked)

    st.multiselect(
        t("slo.policies"),
        names,
        format_func=lambda name: t(f"policy.{name}"),
        key="slo.policies",
        on_change=take,
        max_selections=MOST,
        wrap=True,
    )
    return {name: _under(scenario, name) for name in chosen[:MOST]}


def _under(scenario: Scenario, name: str) -> Scenario | None:
    try:
        return with_policy(scenario, name)
    except LabError:
        return None


def _progress(study: Job, second: str) -> None:
    found = study.found
    begun = t("slo.bar", done=study.done, n=study.planned)
    bar(study, begun if study.done else t("slo.bar.begins"), "slo")
    if found is not None and any(curve.points for curve in found.curves):
        _show(found, second)


def _outcome(study: Job, second: str) -> None:
    if study.error is not None:
        st.warning(error_markdown(study.error), icon=":material/tune:")
        return
    if study.failed:
        st.error(t("slo.failed"), icon=":material/error:")
        return
    found = study.found
    if found is None or found.cancelled:
        st.info(t("slo.cancelled", done=found.done if found else 0), icon=":material/stop_circle:")
    if found is not None and any(curve.points for curve in found.curves):
        _show(found, second)


def _show(found: Frontier, second: str) -> None:
    draw(_picture(found, second), "slo.frontier")
    st.markdown(_table(found))
    st.markdown(says("goodput-read"))


def _picture(found: Frontier, second: str) -> Picture:
    name, factor = _FIELDS[second]
    upper, lower, levels = [], [], []
    for place, curve in enumerate(c for c in found.curves if c.points):
        upper.append(_line(curve, place, "slo_attainment_share", 100.0))
        lower.append(_line(curve, place, name, factor))
    scenario = found.curves[0].scenario
    if second != "slo_throughput":
        limit = scenario.slo.ttft_s if second == "ttft" else scenario.slo.tpot_s
        said = f"{limit * factor:g} {t(f'slo.curve.{second}.unit')}"
        levels = [Level(limit * factor, t("slo.level.bound", bound=said))]
    share = f"{100 * SHARE:g} %"
    unit = t(f"slo.curve.{second}.unit")
    rows = (
        Row(
            t("slo.frontier.title"), t("slo.frontier.more", share=share), " %", upper,
            (Level(100 * SHARE, share),), top=108,
        ),
        Row(t(f"slo.curve.{second}"), unit, f" {unit}", lower, levels, log=bool(levels)),
    )  # fmt: skip
    at = [
        Place(curve.goodput.low, color=place)
        for place, curve in enumerate(c for c in found.curves if c.points)
        if curve.goodput.low > 0 and not curve.rough
    ]
    figure = charts.rows(
        rows, t("slo.frontier.x"), t("slo.frontier.at"), current_theme(), height=560, at=at
    )
    return Picture(figure, t("slo.frontier.alt", said=_said(found)))


def _line(curve: Curve, place: int, field: str, factor: float) -> Line:
    points = [point for point in curve.points if point.runs]
    spreads = np.array([point.spread(field) for point in points]).reshape(-1, 3) * factor
    return Line(
        t(f"policy.{curve.name}"),
        np.array([point.rate_per_s for point in points]),
        spreads[:, 0],
        place,
        _DASHES[place],
        band=(spreads[:, 1], spreads[:, 2]),
        hollow=np.array([_unstable(point) for point in points], dtype=bool),
    )


def _unstable(point: Point) -> bool:
    """A rough run is too short to say that its backlog grows; the limit holds all the same."""
    return not point.below_limit or (point.settled and point.growing)


def _said(found: Frontier) -> str:
    return "; ".join(
        t("slo.frontier.one", policy=t(f"policy.{curve.name}"), rate=_bracket(curve))
        for curve in found.curves
    )


def _bracket(curve: Curve) -> str:
    low, high, _ = curve.goodput
    if not any(point.runs for point in curve.points):
        return "–"
    if low == 0:
        return t("slo.bracket.none", rate=significant(curve.points[0].rate_per_s))
    if math.isinf(high):
        return t("slo.bracket.at_least", rate=significant(low))
    return f"{significant(low)} – {significant(high)}"


def _table(found: Frontier) -> str:
    names = ("policy", "goodput", "limit", "good", "most", "state")
    lines = [[t(f"slo.table.{name}") for name in names], ["---", *(["---:"] * 4), "---"]]
    for curve in found.curves:
        low, _, monotone = curve.goodput
        at_low = [point for point in curve.points if point.rate_per_s == low]
        good = at_low[0].spread("slo_throughput_requests_per_s").mean if at_low else math.nan
        limit = curve.limit_per_s
        state = "rough" if curve.rough else "done" if monotone else "uneven"
        fault = next((point.error for point in curve.points if point.error), None)
        lines.append(
            [
                t(f"policy.{curve.name}"),
                f"**{_bracket(curve)}**",
                significant(limit),
                significant(good),
                _most(curve),
                error_sentence(fault) if fault else t(f"slo.state.{state}"),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _most(curve: Curve) -> str:
    """The largest SLO throughput that was measured, and the arrival rate at which it was."""
    found = [
        (point.spread("slo_throughput_requests_per_s").mean, point.rate_per_s)
        for point in curve.points
        if point.runs
    ]
    if not found:
        return "–"
    most, rate = max(found)
    return t("slo.table.most.at", n=significant(most), rate=significant(rate))
