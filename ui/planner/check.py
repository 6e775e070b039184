"""The check: the bar while deployments are simulated, promised beside simulated, and the gap."""

from __future__ import annotations

import math

import streamlit as st

from model.goodput import SHARE
from ui.background import bar
from ui.language import error_markdown, t
from ui.planner.asks import Asked
from ui.planner.study import Study, start
from ui.planner.words import bound, promised, says, significant, time
from ui.units import share
from validation.planner import Plan
from validation.planner_check import SEEDS, Found, Outcome, requests_for
from validation.planner_engine import GRID
from validation.planner_split import Split, split

__all__ = ["check_view", "found_for"]

_STUDY = "plan.study"
_POLL_S = 0.5


def found_for(asked: Asked, plan: Plan) -> Found | None:
    """What has been simulated of this very plan."""
    study: Study | None = st.session_state.get(_STUDY)
    return study.found if study is not None and study.is_of(asked.scenario, plan) else None


def check_view(asked: Asked, plan: Plan) -> None:
    """Start a check, watch it, read it."""
    study: Study | None = st.session_state.get(_STUDY)
    mine = study is not None and study.is_of(asked.scenario, plan)
    if study is not None and study.running and not mine:
        study.cancel()  # nobody looks at it any more
    if mine and study.running:
        st.fragment(_progress, run_every=_POLL_S)(study, asked)
        return
    pools = split(asked.scenario, asked.promise)

    def begin() -> None:
        pair = pools if isinstance(pools, Split) else None
        st.session_state[_STUDY] = start(asked.scenario, plan, pair)

    st.button(
        t("plan.check.start"),
        key="plan.check",
        type="primary",
        icon=":material/play_arrow:",
        on_click=begin,
    )
    if mine:
        _outcome(study, asked)
        return
    requests = requests_for(asked.scenario, plan.stay_s)
    about = t("plan.check.about", n=f"{requests:,}", seeds=len(SEEDS))
    st.caption(about if study is None else f"{t('plan.check.other')} {about}")


def _progress(study: Study, asked: Asked) -> None:
    """Drawn anew by itself; when the check has ended, the whole page is."""
    found = study.found
    runs = 0 if found is None else found.runs
    tried = 0 if found is None else len(found.tried)
    bar(study.job, t("plan.check.bar", runs=runs, tried=tried), "plan")
    if found is not None:
        st.markdown(_table(found, asked, study.plan))


def _outcome(study: Study, asked: Asked) -> None:
    found = study.found
    if study.failed:
        st.error(t("slo.failed"), icon=":material/error:")
    if found is None:
        return
    if found.cancelled:
        st.info(t("plan.check.cancelled", runs=found.runs), icon=":material/stop_circle:")
    outcome = found.outcome
    if outcome is not None and outcome.error is not None:
        st.warning(error_markdown(outcome.error), icon=":material/tune:")
        return
    st.markdown(_table(found, asked, study.plan))
    if study.split_error is not None:
        st.caption(error_markdown(study.split_error))
    if found.finished and not found.cancelled:
        _verdict(found, asked, study.plan)


def _table(found: Found, asked: Asked, plan: Plan) -> str:
    names = ("deployment", "both", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "batch", "ok")
    heads = [t(f"plan.check.{name}") for name in names]
    slo = asked.scenario.slo
    limit = f"≤ {bound(slo.ttft_s)}"
    rows = [
        heads,
        ["---", *(["---:"] * 6), "---"],
        [
            t("plan.check.promised", share=promised(plan.promise)),
            f"≥ {100 * SHARE:g} %",
            t("plan.check.mean", bound=limit) if plan.promise is None else "",
            _of_share(plan.promise, limit),
            f"≈ {time(plan.tpot_s)}",
            f"≤ {bound(slo.tpot_s)}",
            f"≈ {significant(plan.decodes)}",
            "",
        ],
    ]
    for outcome in found.tried:
        own = outcome.engines == found.planned
        name = t("plan.check.engines", n=outcome.engines)
        rows.append(_line(f"**{name}** {t('plan.check.own')}" if own else name, outcome))
    if found.split is not None:
        pools = found.split
        name = t(
            "plan.check.pools",
            prefill=pools.prefill_engines,
            decode=pools.engines - pools.prefill_engines,
        )
        rows.append(_line(name, pools))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _of_share(promise: float | None, limit: str) -> str:
    """The bound below "TTFT P99": another share is said, the mean stands elsewhere."""
    if promise is None:
        return ""
    return limit if promise == 0.99 else f"P{100 * promise:g} {limit}"


def _line(name: str, outcome: Outcome) -> list[str]:
    if outcome.error is not None:
        return [name, *(["–"] * 6), t("plan.check.error")]
    verdict = "yes" if outcome.good else "sinks" if outcome.sinks else "no"
    return [
        name,
        share(outcome.attainment),
        *(time(outcome.mean(f"{key}_s")) for key in ("ttft_p50", "ttft_p99")),
        *(time(outcome.mean(f"{key}_s")) for key in ("tpot_p50", "tpot_p99")),
        significant(outcome.mean("decodes_mean")),
        t(f"plan.check.ok.{verdict}"),
    ]


def _verdict(found: Found, asked: Asked, plan: Plan) -> None:
    """What the simulation says of the number of engines, and where the gap comes from."""
    planned = f"{found.planned:,}"
    if found.needed is None and not found.bounded:
        fault = next(outcome.error for outcome in found.tried if outcome.error is not None)
        st.warning(error_markdown(fault), icon=":material/tune:")
    elif found.needed is None:
        most = max(outcome.engines for outcome in found.tried)
        st.markdown(says("verdict-none", planned=planned, tried=most))
        st.markdown(says("gap-more", **_gap(asked, plan)))
    elif found.needed > found.planned:
        st.markdown(says("verdict-more", planned=planned, needed=f"{found.needed:,}"))
        st.markdown(says("gap-more", **_gap(asked, plan)))
    elif found.needed < found.planned:
        st.markdown(says("verdict-fewer", planned=planned, needed=f"{found.needed:,}"))
        st.markdown(says("gap-fewer", share=promised(plan.promise), **_gap(asked, plan)))
    elif found.planned == 1:
        st.markdown(says("verdict-one"))
    else:
        st.markdown(says("verdict-same", planned=planned))


def _gap(asked: Asked, plan: Plan) -> dict[str, object]:
    streams = asked.scenario.workload.streams
    bursts = max(s.arrivals.cv if s.arrivals.kind == "gamma" else 1.0 for s in streams)
    cv = plan.load.prompt_cv
    return {
        "bursts": f"{bursts:.2g}",
        "cv": f"{cv:.2f}",
        "factor": f"{1 + cv**2:.2f}",
        "decodes": f"{plan.beside.decodes:,}",
        "grid": GRID,
        "load": significant(plan.beside.load) if math.isfinite(plan.beside.load) else "–",
    }
