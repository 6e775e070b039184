"""Prefix caching: what of a prompt need not be computed again, and when it is still there."""

import numpy as np
import streamlit as st

from formulas import get
from model.errors import LabError
from ui import prefix_caching as lesson_of
from ui import prefix_caching_pictures as pictures
from ui import prefix_caching_tables as tables
from ui.choose import choose
from ui.engine import simulated, summary
from ui.language import error_markdown, t
from ui.lesson import Figure, figures, limits, number_exercise, predict, question, reveal
from ui.pages import file_of
from ui.prefix_caching import Kind, says, viewer
from ui.prose import prose
from ui.scenario import current_scenario
from ui.throughput import apply_style
from ui.units import share, time
from validation.prefix_caching import (
    CROWDED_BLOCKS,
    STEADY_PER_S,
    Talk,
    admissions,
    cached_or_not,
    crowded,
    refusals,
    simulated_turns,
    turns,
)
from validation.throughput import Engine, engine_of

PARTS = ("turns", "effect", "memory", "admission", "replicas", "trace", "exercise")
ASKED = Talk()
ASKED_TURN = 5
GUESSES = ("all", "answer", "message", "rest")


# -- one conversation ------------------------------------------------------------------------------


def conversation(engine: Engine) -> None:
    asked = turns(ASKED)
    numbers = {
        "first": ASKED.first_tokens,
        "answer": ASKED.answer_tokens,
        "message": ASKED.message_tokens,
        "size": ASKED.block_size,
        "turn": ASKED_TURN,
        "prompt": f"{asked.prompt[ASKED_TURN - 1]:,}",
    }
    computed = int(asked.computed[ASKED_TURN - 1])
    both = ASKED.answer_tokens + ASKED.message_tokens
    rest = f"{ASKED.message_tokens + 1}–{ASKED.message_tokens + ASKED.block_size}"
    values = (numbers["prompt"], both, ASKED.message_tokens, rest)
    guesses = [
        (name, t(f"pfx.guess.{name}", n=value))
        for name, value in zip(GUESSES, values, strict=True)
    ]
    if predict("prefix_caching", says("ask", **numbers), guesses) is None:
        return
    reveal(
        says(
            "truth",
            computed=computed,
            found=f"{asked.found[ASKED_TURN - 1]:,}",
            spare=computed - ASKED.message_tokens - 1,
            **numbers,
        )
    )
    talk = lesson_of.talk_now()
    by_formula, found = turns(talk), simulated_turns(talk)
    figures(
        (
            Figure(t("pfx.figure.last"), f"{found.prompt[-1]:,}", t("unit.tokens")),
            Figure(t("pfx.figure.computed"), f"{found.computed[-1]:,}", t("unit.tokens")),
            Figure(t("pfx.figure.hit"), share(found.found[-1] / found.prompt[-1]), more="F10d"),
            Figure(
                t("pfx.figure.all"),
                f"{found.computed.sum():,} / {found.prompt.sum():,}",
                more=t("pfx.figure.all.more"),
            ),
        )
    )
    picture, words = st.columns([4, 3], gap="medium")
    with picture:
        pictures.turns_picture(talk)
    with words:
        st.markdown(tables.turns_table(talk, found))
        agree = bool((by_formula.found == found.found).all())
        st.caption(t("pfx.turns.agree" if agree else "pfx.turns.differ"))
    st.markdown(says("turns", size=talk.block_size))
    limits(says("limits-turns"))
    viewer(
        "turns",
        engine,
        bs=float(talk.block_size),
        n=float(found.prompt[-1]),
        n_old=float(found.prompt[-1] - talk.message_tokens - 1),
        n_hit=float(found.found[-1]),
    )


# -- off and on ------------------------------------------------------------------------------------


def effect(engine: Engine) -> None:
    scenario, source = lesson_of.studied()
    st.markdown(says(f"studied-{source}", most=f"{lesson_of.MOST_SIMULATED:,}"))
    found = lesson_of.kinds(scenario)
    st.markdown(tables.kinds_table(found))
    st.caption(t("pfx.table.counted"))
    off, on = found[:2]
    st.markdown(
        says(
            "effect",
            hit=share(on.numbers["prefix_hit_share"]),
            before=time(off.numbers["ttft_p50_s"]),
            after=time(on.numbers["ttft_p50_s"]),
            radix=share(found[3].numbers["prefix_hit_share"]),
        )
    )
    tight = lesson_of.kinds(crowded())
    off, on = (kind.numbers for kind in tight[:2])
    st.markdown(says("crowded", blocks=f"{CROWDED_BLOCKS:,}"))
    st.markdown(tables.kinds_table(tight))
    back = on["cached_again_tokens"] + on["recomputed_tokens"]
    st.markdown(
        says(
            "survive",
            off=f"{off['recomputed_tokens'] / max(off['preemptions'], 1):,.0f}",
            on=f"{on['recomputed_tokens'] / max(on['preemptions'], 1):,.0f}",
            share=share(on["cached_again_tokens"] / back) if back else "–",
        )
    )
    limits(says("limits-effect"))
    times = max(on["preemptions"], 1)
    viewer("effect", engine, n=float(back / times), n_hit=float(on["cached_again_tokens"] / times))


# -- memory ----------------------------------------------------------------------------------------


def memory(engine: Engine) -> None:
    st.markdown(says("memory", rate=f"{STEADY_PER_S:g}"))
    with st.spinner(t("pfx.memory.runs")):
        found = pictures.swept()
    pictures.memory_picture(found)
    st.markdown(tables.memory_table(found))
    st.markdown(says("memory-says", most=share(max(one.shares[-1] for one in found))))
    limits(says("limits-memory"))
    size = float(crowded().memory.block_size)
    blocks = float(pictures.MEMORIES[0])
    viewer("memory", engine, bs=size, N_kv=blocks * size, n=1640.0)


# -- admission -------------------------------------------------------------------------------------


def admission(engine: Engine) -> None:
    st.markdown(says("admission", blocks=f"{CROWDED_BLOCKS:,}"))
    off, on = (cached_or_not(crowded(), "vllm-v1", cached) for cached in (False, True))
    listed = admissions(simulated(on))
    telling = next(
        (k for k, one in enumerate(listed) if one.idle_blocks > 9 and one.found_tokens > 999), 0
    )
    place = st.slider(
        t("pfx.slider.admission", n=len(listed)), 1, len(listed), telling + 1, key="adm",
        bind="query-params",
    )  # fmt: skip
    one = listed[place - 1]
    st.markdown(f"**{t('pfx.admit.title', request=one.request, n=f'{one.prompt_tokens:,}')}**")
    st.markdown(tables.admission_table(one))
    held = one.found_blocks - one.idle_blocks
    st.markdown(says("admit", found=one.found_blocks, idle=one.idle_blocks, held=held))
    rows = [
        (setting, refusals(simulated(run)), Kind("vllm-v1", setting, run, summary(run)))
        for setting, run in (("off", off), ("on", on))
    ]
    st.markdown(tables.refusals_table(rows))
    queue_orders()
    limits(says("limits-admission"))
    size = float(on.memory.block_size)
    viewer(
        "admission",
        engine,
        bs=size,
        n=float(one.prompt_tokens),
        n_old=float(one.found_tokens),
    )


def queue_orders() -> None:
    st.markdown(says("orders"))
    found = lesson_of.orders()
    st.markdown(tables.orders_table(found))
    first, longest = (kind.numbers for kind in found)
    st.markdown(
        says(
            "orders-says",
            low=time(longest["ttft_p50_s"]),
            before=time(first["ttft_p50_s"]),
            high=time(longest["ttft_p99_s"]),
            usual=time(first["ttft_p99_s"]),
        )
    )


# -- several engines -------------------------------------------------------------------------------


def replicas(engine: Engine) -> None:
    st.markdown(says("replicas", rate=f"{lesson_of.RATE_PER_S:g}", blocks=f"{CROWDED_BLOCKS:,}"))
    guard = choose("guard", lesson_of.GUARDS, "pfx.guard", t("pfx.guard"))
    with st.spinner(t("pfx.memory.runs")):
        found = pictures.engines_picture(int(guard))
    busiest = []
    for kind in found:
        counts = np.bincount(simulated(kind.scenario).requests["engine_id"])
        busiest.append(float(counts.max() / counts.sum()))
    st.markdown(tables.routers_table(found, busiest))
    turn, _, aware = (kind.numbers for kind in found)
    st.markdown(
        says(
            "replicas-says",
            turn=share(turn["prefix_hit_share"]),
            aware=share(aware["prefix_hit_share"]),
            busiest=share(busiest[2]),
        )
    )
    limits(says("limits-replicas"))
    viewer("replicas", engine, bs=16.0, n=1640.0, n_old=1579.0, n_hit=1568.0)


# -- a trace ---------------------------------------------------------------------------------------


def trace(engine: Engine) -> None:
    scenario = current_scenario()
    with st.spinner(t("pfx.memory.runs")):
        found = lesson_of.replay(scenario)
    st.markdown(says("trace"))
    st.page_link(file_of("simulator"), label=t("pfx.trace.link"), icon=":material/upload_file:")
    if found.source == "own":
        st.success(t("pfx.trace.own", name=found.name), icon=":material/description:")
    else:
        st.info(t(f"pfx.trace.{found.source}"), icon=":material/science:")
    reuse = found.reuse
    figures(
        (
            Figure(t("pfx.figure.requests"), f"{reuse.requests:,}"),
            Figure(
                t("pfx.figure.prompt"), f"{reuse.mean_prompt_tokens:,.0f}", t("unit.tokens")
            ),
            Figure(
                t("pfx.figure.blocks"),
                f"{reuse.blocks:,}",
                more=t("pfx.figure.once", share=share(reuse.once / max(reuse.blocks, 1))),
            ),
            Figure(t("pfx.figure.most"), share(float(found.shares[-1]))),
        )
    )
    capacity = scenario.kv_capacity().blocks * scenario.memory.block_size
    pictures.replay_picture(found, capacity / found.block_tokens)
    st.markdown(says("trace-says", block=found.block_tokens))
    limits(says("limits-trace"))
    n = float(round(reuse.mean_prompt_tokens))
    viewer("trace", engine, bs=float(found.block_tokens), n=n, n_old=n)


# -- your turn -------------------------------------------------------------------------------------

# Tokens of first prompt, message and answer, the block, and the turn that is asked for.
EXERCISES = (
    (500, 50, 150, 16, 4),
    (300, 40, 120, 16, 3),
    (1000, 30, 250, 32, 4),
    (777, 25, 99, 16, 5),
)


def exercise(engine: Engine) -> None:
    variant = st.session_state.setdefault("pfx.variant", 0) % len(EXERCISES)
    first, message, answer, size, turn = EXERCISES[variant]
    found = turns(Talk(first, message, answer, turn, size))
    prompt, right = int(found.prompt[-1]), int(found.computed[-1])
    rule = get("F10c")
    whole = prompt - int(
        rule.evaluate({"bs": float(size), "n": float(prompt), "n_old": float(prompt - message)})
    )
    before = prompt - int(found.prompt[-2]) // size * size
    words = {"first": first, "message": message, "answer": answer, "size": size, "turn": turn}
    st.subheader(prose(lesson_of.PAGE, "exercise").title, anchor=False)
    st.markdown(says("exercise", **words))
    stored = prompt - message - 1
    mistakes = (
        (message, says("hint-message")),
        (message + 1, says("hint-blocks")),
        (prompt, says("hint-all")),
        (before, says("hint-answer")),
        (message + answer, says("hint-answer")),
        *(((whole, says("hint-last")),) if whole != right else ()),
    )
    number_exercise(
        f"prefix_caching.{variant}",
        right,
        tuple((wrong, hint) for wrong, hint in mistakes if wrong != right),
        says("solved", right=right),
    )

    def other_numbers() -> None:
        st.session_state["pfx.variant"] += 1

    st.button(t("lesson.again"), icon=":material/casino:", on_click=other_numbers)
    with st.expander(t("lesson.solution")):
        st.markdown(
            says(
                "solution",
                prompt=f"{prompt:,}",
                stored=f"{stored:,}",
                blocks=stored // size,
                found=f"{stored // size * size:,}",
                right=right,
                **words,
            )
        )
    st.markdown(says("next"))
    st.page_link(file_of("simulator"), label=t("page.simulator"), icon=":material/arrow_forward:")


SHOWN = {
    "turns": conversation,
    "effect": effect,
    "memory": memory,
    "admission": admission,
    "replicas": replicas,
    "trace": trace,
    "exercise": exercise,
}


@st.fragment
def lesson() -> None:
    part = choose("part", PARTS, "pfx.part", t("pfx.part"), label_visibility="collapsed")
    try:
        SHOWN[part](engine_of(current_scenario()))
    except LabError as error:
        st.warning(error_markdown(error), icon=":material/tune:")


question(lesson_of.PAGE)
apply_style()
lesson()
