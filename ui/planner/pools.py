"""Prefill and decode on engines of their own: the ratio, the transfer, and what it costs."""

from __future__ import annotations

import streamlit as st

from ui.language import t
from ui.lesson import Figure, figures
from ui.planner.asks import Asked
from ui.planner.steps import price
from ui.planner.words import promised, says, significant, time
from ui.units import percent
from validation.planner import Plan, Refusal
from validation.planner_load import Load
from validation.planner_split import Split

__all__ = ["pools_view"]


def pools_view(asked: Asked, load: Load, plan: Plan | Refusal, found: Split) -> None:
    """The two pools beside the plan of engines that do both."""
    tokens_per_s = load.rate_per_s * load.output_tokens
    figures(
        (
            Figure(
                "P : D",
                f"{found.prefill_engines} : {found.decode_engines}",
                t("plan.unit.engines"),
                t("plan.pools.ratio", ratio=significant(found.ratio)),
            ),
            Figure("GPU", f"{found.gpus:,}", t("plan.unit.gpus"), _beside(plan)),
            Figure(
                t("plan.pools.kv"),
                *time(found.transfer_s).split("\u00a0"),
                t("plan.pools.transfer"),
            ),
            Figure(
                t("plan.pools.link"),
                *percent(found.link_load),
                t("plan.pools.link.more", seen=time(found.seen_s)),
            ),
            Figure(
                t("plan.figure.price"),
                significant(price(asked, found.gpus, tokens_per_s)),
                "$",
                t("plan.figure.price.more", price=f"{asked.price:g}"),
            ),
        )
    )
    st.markdown(_table(asked, load, found))
    st.markdown(says("pools-read"))


def _beside(plan: Plan | Refusal) -> str:
    if isinstance(plan, Refusal):
        return t("plan.pools.no_plan")
    return t("plan.pools.beside", n=f"{plan.gpus:,}")


def _table(asked: Asked, load: Load, found: Split) -> str:
    heads = [t(f"plan.table.{name}") for name in ("step", "value", "how", "formula")]
    per_s = t("unit.requests_per_s")
    lines = (
        ("mu_p", f"{significant(found.prefill_rate)} {per_s}", "F32c, F28b",
         {"took": time(found.prefill_s), "load": significant(found.prefill_load),
          "share": promised(asked.promise)}),
        ("mu_d", f"{significant(found.decode_rate)} {per_s}", "F32d, F5a, F9a",
         {"batch": f"{found.batch:,}", "took": time(found.decode_s),
          "output": f"{load.output_tokens:,.0f}"}),
        ("ratio", significant(found.ratio), "F32", {}),
        ("pools", f"{found.prefill_engines} + {found.decode_engines}", "F32a",
         {"rate": significant(load.rate_per_s)}),
        ("each", f"{significant(found.rate_per_engine)} {per_s}", "F32b", {}),
        ("transfer", time(found.transfer_s), "F32e, F32f",
         {"prompt": f"{load.prompt_tokens:,.0f}", "seen": time(found.seen_s)}),
    )  # fmt: skip
    rows = [heads, ["---", "---:", "---", "---"]]
    for name, value, formulas, numbers in lines:
        how = t(f"plan.pools.how.{name}", **numbers)
        rows.append([t(f"plan.pools.step.{name}"), f"**{value}**", how, formulas])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
