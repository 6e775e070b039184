"""The plan: its figures, a row for each answer, its command, and the way into the panel."""

from __future__ import annotations

import streamlit as st

from model.errors import LabError
from model.scenario import Scenario
from model.steady_load import steady
from model.vllm_export import to_command
from ui.language import error_markdown, t
from ui.lesson import Figure, figures
from ui.pages import file_of
from ui.panel import link, session
from ui.panel.choices import Choices, choices_for
from ui.panel.uploads import hold
from ui.planner.asks import Asked
from ui.planner.words import bound, promised, significant, time
from ui.scenario import current_scenario
from ui.units import share
from validation.planner import Plan, Refusal, deployment, price_of_a_million
from validation.planner_check import Found, requests_for

__all__ = ["figures_of", "refused", "result", "steps_table"]

_MOST_ADOPTED = 3000
"""Requests of an adopted scenario: the simulator draws them all."""


def price(asked: Asked, gpus: int, tokens_per_s: float) -> float:
    """Of a million output tokens."""
    return price_of_a_million(gpus, asked.price, tokens_per_s)


def figures_of(asked: Asked, plan: Plan) -> None:
    """The plan in five numbers."""
    cost = price(asked, plan.gpus, plan.tokens_per_s)
    each = t("plan.figure.gpus.more", engines=plan.engines, gpus=plan.gpus_per_engine)
    figures(
        (
            Figure("GPU", f"{plan.gpus:,}", t("plan.unit.gpus"), each),
            Figure("max_num_batched_tokens", f"{plan.max_num_batched_tokens:,}", t("unit.tokens")),
            Figure("max_num_seqs", f"{plan.max_num_seqs:,}", t("unit.requests")),
            Figure(
                t("plan.figure.load"),
                significant(plan.beside.load),
                "ρ",
                t("plan.figure.load.more", most=significant(plan.beside.load_max)),
            ),
            Figure(
                t("plan.figure.price"),
                significant(cost),
                "$",
                t("plan.figure.price.more", price=f"{asked.price:g}"),
            ),
        )
    )


def steps_table(asked: Asked, plan: Plan, found: Found | None) -> str:
    """A row an answer: value, where it comes from, formulas, and what the simulation says."""
    heads = [t(f"plan.table.{name}") for name in ("step", "value", "how", "formula", "simulated")]
    rows = [heads, ["---", "---:", "---", "---", "---"]]
    for step, formulas in (
        ("chunk", "F19, F19a"),
        ("batch", "F9a, F5a"),
        ("prefill", "F19b, F28a"),
        ("bound", "F28, F28b"),
        ("engines", "F29, F28c, F32a"),
        ("price", "F31b"),
    ):
        value, numbers = _row(step, asked, plan)
        how = t(f"plan.how.{step}", **numbers)
        rows.append([t(f"plan.step.{step}"), f"**{value}**", how, formulas,
                     _simulated(step, asked, plan, found)])  # fmt: skip
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(step: str, asked: Asked, plan: Plan) -> tuple[str, dict[str, object]]:
    load, one, slo = plan.load, plan.beside, asked.scenario.slo
    if step == "chunk":
        return f"{plan.max_num_batched_tokens:,}", {
            "chunk": f"{one.chunk_tokens:,}",
            "decodes": f"{one.decodes:,}",
            "took": time(one.iteration_s),
            "bound": bound(slo.tpot_s),
        }
    if step == "batch":
        return f"{plan.max_num_seqs:,}", {
            "memory": f"{plan.batch_memory:,}",
            "context": f"{load.context_tokens:,.0f}",
            "tpot": f"{plan.batch_tpot:,}",
            "budget": f"{plan.max_num_batched_tokens:,}",
        }
    if step == "prefill":
        return f"{one.prefill_tokens_per_s:,.0f} {t('unit.tokens_per_s')}", {
            "first": time(one.prefill_s),
            "rate": significant(load.rate_per_s / plan.engines),
            "prompt": f"{load.prompt_tokens:,.0f}",
            "load": significant(one.load),
        }
    if step == "bound":
        return significant(one.load_max), {
            "x": significant(one.x),
            "mean": significant(one.load_mean),
            "share": promised(plan.promise),
            "most": significant(one.load_max),
        }
    if step == "engines":
        return f"{plan.engines:,}", {
            "prefill": f"{plan.engines_prefill:,}",
            "batch": f"{plan.engines_batch:,}",
            "ttft": significant(plan.carried.ttft_per_s),
            "room": significant(plan.carried.room_per_s),
            "pace": time(plan.tpot_s),
            "there": significant(plan.decodes),
            "most": f"{plan.batch_max:,}",
            "binds": t(f"plan.binds.{plan.binding}"),
        }
    return f"{significant(price(asked, plan.gpus, plan.tokens_per_s))} $", {
        "gpus": f"{plan.gpus:,}",
        "price": f"{asked.price:g}",
        "rate": significant(plan.tokens_per_s),
    }


def _simulated(step: str, asked: Asked, plan: Plan, found: Found | None) -> str:
    outcome = None if found is None else found.outcome
    if outcome is None or outcome.error is not None:
        return "–"
    if step == "chunk":
        return t("plan.found.chunk", typical=time(outcome.mean("mixed_p50_s")),
                 longest=time(outcome.mean("mixed_max_s")))  # fmt: skip
    if step == "batch":
        return t("plan.found.batch", mean=significant(outcome.mean("decodes_mean")))
    if step == "prefill":
        return t("plan.found.prefill", typical=time(outcome.mean("ttft_p50_s")))
    if step == "bound":
        return t("plan.found.bound", p99=time(outcome.mean("ttft_p99_s")))
    if step == "engines":
        stem = "engines" if found.needed is None else "needed"
        kept = share(outcome.attainment)
        return t(f"plan.found.{stem}", share=kept, needed=found.needed)
    if found.needed is None:
        return "–"
    cost = price(asked, found.needed * plan.gpus_per_engine, plan.tokens_per_s)
    return t("plan.found.price", engines=found.needed, price=significant(cost))


def refused(refusal: Refusal, pool: str = "") -> None:
    """Why there is no plan, or there are no pools (``pool`` is "pool_")."""
    stem = "" if refusal.reason == "engines" else pool
    st.warning(
        t(
            f"plan.refused.{stem}{refusal.reason}",
            needs=time(refusal.needs_s),
            bound=time(refusal.bound_s) if pool else bound(refusal.bound_s),
        ),
        icon=":material/block:",
    )


def result(asked: Asked, plan: Plan) -> None:
    """The command of the plan, and a button that takes the plan over into the panel."""
    try:
        planned = deployment(asked.scenario, plan)
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")
        return
    if planned.model is not None:
        st.code(to_command(planned), language="bash", wrap_lines=True)
        st.caption(t("plan.command.about", engines=planned.n_engines))
    requests = min(requests_for(planned, plan.stay_s), _MOST_ADOPTED)
    adopted = steady(planned, requests)
    row = st.container(horizontal=True, vertical_alignment="center")
    if current_scenario() == adopted:
        row.markdown(f":material/check: {t('plan.adopted')}")
        row.page_link(file_of("simulator"), label=t("plan.look"), icon=":material/play_circle:")
        return
    if row.button(t("plan.adopt"), key="plan.adopt", type="primary", icon=":material/input:"):
        _adopt(adopted)
        st.rerun(scope="app")  # the panel stands outside of the lesson's fragment
    row.caption(t("plan.adopt.about", n=f"{requests:,}"))


def _adopt(scenario: Scenario) -> None:
    """Make this the panel's scenario: as differences from its base where a link can hold them."""
    start = Choices(session.current_choices().base)
    base = session.base_of(start)
    choices = None if base is None or base.has_trace else choices_for(scenario, start, base)
    if choices is None or not link.holds(choices):
        choices = Choices(hold(scenario, None, t("page.planner")).name)
    session.adopt(choices)
