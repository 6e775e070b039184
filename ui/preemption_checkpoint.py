"""The part of the lesson on preemption about a checkpoint in 10 ms, and what a drop rate takes."""

from __future__ import annotations

import streamlit as st

from formulas import get
from model import catalogue
from ui import preemption_pictures as pictures
from ui import preemption_tables as tables
from ui.choose import choose
from ui.claim import claim_card
from ui.language import t
from ui.lesson import Figure, figures, limits
from ui.preemption import BLOCKS, CONTEXTS, PAGE, says, seconds, viewer
from ui.prose import prose
from ui.units import significant
from validation.preemption import Costs, values
from validation.preemption_victims import Running, decode_s
from validation.throughput import Engine

__all__ = ["checkpoint"]

TRIALS = (30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
DROP_RATE = 0.001


def checkpoint(engine: Engine) -> None:
    """A whole context against the tail of one block, over several links."""
    st.markdown(says("checkpoint"))
    columns = st.columns([4, 4, 6], gap="medium")
    deadline_ms = columns[0].slider(
        t("pre.slider.deadline"), 1, 100, 10, 1, key="deadline", format="%d ms", bind="query-params"
    )
    context = columns[1].select_slider(
        t("pre.slider.context"), CONTEXTS, 32_000, key="ckpt", bind="query-params"
    )
    with columns[2]:
        block = choose("pblock", BLOCKS, "pre.block", t("pre.block"))
    costs = Costs(engine, context_tokens=int(context), block_size=int(block))
    given = {**values(costs), "t_dead": deadline_ms / 1e3}
    given["beta_link"] = given["beta_h"]
    # One copy is enough where tensor parallelism keeps several; the links share the work.
    given["kappa"] = catalogue.model(engine.model).kv_bytes_per_token(engine.memory.kv_dtype)
    given["m_kv"] = given["kappa"] * given["n"]
    given["X"] = 32 / decode_s(engine, (Running("", int(context), 0, 0, 1, 1),) * 32)
    fits, full, tail, rate = (
        get(name).evaluate(given) for name in ("F40", "F40a", "F40b", "F40c")
    )
    host = catalogue.device(engine.hardware)
    shown = significant(host.host_link_effective_bytes_per_s / 1e9)
    memory = significant(given["m_kv"] / 1e9)
    figures(
        (
            Figure(t("pre.figure.fits", ms=deadline_ms), f"{int(fits):,}",
                   more=t("pre.figure.fits.more", link=shown)),
            Figure(t("pre.figure.full"), seconds(full), more=f"{memory} GB"),
            Figure(t("pre.figure.tail"), seconds(tail), more=t("pre.figure.tail.more")),
            Figure(t("pre.figure.rate"), significant(rate / 1e6), "MB/s",
                   t("pre.figure.rate.more", x=f"{round(given['X']):,}")),
        )
    )  # fmt: skip
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        pictures.checkpoint_picture(engine, int(block), deadline_ms / 1e3)
    with right:
        st.markdown(
            says(
                "incremental",
                n=f"{context:,}",
                ms=deadline_ms,
                share=significant(100 * min(fits / context, 1)),
                tail=seconds(tail),
                memory=memory,
            )
        )
    st.markdown(says("links", ms=deadline_ms))
    st.markdown(tables.tokens_table(deadline_ms / 1e3))
    numbers = _statistics()
    for column, name in zip(st.columns(3, gap="medium"), ("A16", "A17", "A18"), strict=True):
        with column:
            claim_card(name)
    limits(says("limits-checkpoint"))
    own = {name: given[name] for name in ("kappa", "t_dead", "beta_link", "X")}
    viewer("checkpoint", costs, **own, **numbers)


def _statistics() -> dict[str, float]:
    """How many interruptions without a failure it takes; returns the values of F33e."""
    st.subheader(prose(PAGE, "statistics").title, anchor=False)
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with right:
        trials = st.select_slider(
            t("pre.slider.trials"), TRIALS, 1000, key="trials", bind="query-params"
        )
        confidence = choose("sure", ("95", "99"), "pre.sure", t("pre.sure"))
        given = {"alpha_sig": 1 - int(confidence) / 100, "n_smp": float(trials)}
        bound = get("F33e").evaluate(given)
        needed = get("F33e").solve_for("n_smp", {**given, "p_up": DROP_RATE}).value
        st.markdown(
            says(
                "statistics",
                trials=f"{trials:,}",
                sure=confidence,
                bound=significant(100 * bound),
                needed=f"{round(needed):,}",
            )
        )
    with left:
        pictures.bound_picture(int(trials), given["alpha_sig"], DROP_RATE)
    return given
