"""The pictures of the lesson on prefix caching, kept for all sessions by what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import slo as curves
from charts.prefix_caching import Part, stacked
from charts.slo import Curve, Place, Row
from model import metrics
from model.simulator import simulate
from ui.engine import simulated
from ui.language import current_language, t, translator
from ui.pictures import Picture, draw
from ui.prefix_caching import Kind, Replay, engines_of
from ui.theme import current_theme
from ui.units import share
from validation.prefix_caching import (
    STEADY_PER_S,
    Histories,
    Talk,
    open_histories,
    simulated_turns,
    steady,
    turns,
)

__all__ = [
    "MEMORIES",
    "PAUSES_S",
    "Swept",
    "engines_picture",
    "memory_picture",
    "replay_picture",
    "swept",
    "turns_picture",
]

MEMORIES = (1000, 1500, 2000, 3000, 4500, 7000)
PAUSES_S = (2.0, 8.0, 32.0)


# -- a conversation --------------------------------------------------------------------------------


def turns_picture(talk: Talk) -> None:
    """Found, computed and generated tokens of every turn, from a run; the formula as diamonds."""
    found = simulated_turns(talk)
    alt = t(
        "pfx.turns.alt",
        turns=talk.turns,
        prompt=f"{found.prompt[-1]:,}",
        found=f"{found.found[-1]:,}",
        computed=f"{found.computed[-1]:,}",
    )
    draw(Picture(_turns(talk, current_language(), current_theme()), alt), "pfx.turns")


@st.cache_resource(max_entries=128, show_spinner=False)
def _turns(talk: Talk, language: str, theme: str) -> go.Figure:
    t = translator(language)
    found = simulated_turns(talk)
    parts = (
        Part(t("pfx.part.found"), found.found.tolist(), "free"),
        Part(t("pfx.part.computed"), found.computed.tolist(), "prefill"),
        Part(t("pfx.part.answer"), found.answer.tolist(), "decode"),
    )
    words = {name: t(f"pfx.turns.{name}") for name in ("title", "more", "x", "y", "formula")}
    labels = [str(k + 1) for k in range(talk.turns)]
    return stacked(
        labels,
        parts,
        {**words, "unit": t("unit.tokens")},
        theme,
        formula=turns(talk).found.tolist(),
        height=400,
        legend_lines=2,
    )


# -- memory and pauses -----------------------------------------------------------------------------


class Swept(NamedTuple):
    """Of one pause: hit rate and 99 % TTFT for each of MEMORIES, and what stays open."""

    pause_s: float
    shares: tuple[float, ...]
    ttft_s: tuple[float, ...]
    histories: Histories


@st.cache_resource(show_spinner=False)
def swept() -> tuple[Swept, ...]:
    """The sweep over memory and pauses, the same for everybody."""
    return tuple(_over_memory(pause_s) for pause_s in PAUSES_S)


def _over_memory(pause_s: float) -> Swept:
    runs = [simulate(steady(blocks, pause_s)) for blocks in MEMORIES]
    found = [metrics.summary(run, window=metrics.measuring_window(run.requests)) for run in runs]
    return Swept(
        pause_s,
        tuple(numbers["prefix_hit_share"] for numbers in found),
        tuple(numbers["ttft_p99_s"] for numbers in found),
        open_histories(runs[-1]),
    )


def memory_picture(found: Sequence[Swept]) -> None:
    """Hit rate and TTFT over the KV memory, a line for each pause."""
    alt = t(
        "pfx.memory.alt",
        few=f"{MEMORIES[0]:,}",
        many=f"{MEMORIES[-1]:,}",
        low=share(min(one.shares[0] for one in found)),
        high=share(max(one.shares[-1] for one in found)),
    )
    draw(Picture(_memory(current_language(), current_theme(), found), alt), "pfx.memory")


@st.cache_resource(max_entries=8, show_spinner=False)
def _memory(language: str, theme: str, _found: Sequence[Swept]) -> go.Figure:
    t = translator(language)
    x = np.array(MEMORIES, dtype=float)
    looks = ("solid", "dashdot", "dot")
    names = [t("pfx.memory.line", s=f"{one.pause_s:g}") for one in _found]
    shares = [
        Curve(name, x, 100 * np.array(one.shares), place, looks[place])
        for place, (name, one) in enumerate(zip(names, _found, strict=True))
    ]
    waits = [
        Curve(name, x, np.array(one.ttft_s), place, looks[place])
        for place, (name, one) in enumerate(zip(names, _found, strict=True))
    ]
    more = t("pfx.memory.more", rate=f"{STEADY_PER_S:g}")
    return curves.rows(
        (
            Row(t("pfx.memory.title"), more, " %", shares, top=100),
            Row(t("pfx.memory.ttft"), t("unit.s"), f" {t('unit.s')}", waits, log=True),
        ),
        t("pfx.memory.x"),
        t("pfx.memory.at"),
        theme,
        height=544,
        log_x=MEMORIES,
        legend_lines=2,
    )


# -- several engines -------------------------------------------------------------------------------


def engines_picture(guard: int) -> list[Kind]:
    """Prompt tokens of each engine under each router; the runs, for the words below."""
    found = engines_of(guard)
    alt = t(
        "pfx.engines.alt",
        said=t("list.separator").join(
            f"{t(f'choice.{kind.setting}')}: {share(kind.numbers['prefix_hit_share'])}"
            for kind in found
        ),
    )
    draw(Picture(_engines(guard, current_language(), current_theme(), found), alt), "pfx.engines")
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def _engines(guard: int, language: str, theme: str, _found: list[Kind]) -> go.Figure:
    t = translator(language)
    groups, labels, hits, rest = [], [], [], []
    for kind in _found:
        requests = simulated(kind.scenario).requests
        for engine in range(kind.scenario.n_engines):
            own = requests["engine_id"] == engine
            cached = int(requests["cached_tokens"][own].sum())
            groups.append(t(f"choice.{kind.setting}"))
            labels.append(str(engine + 1))
            hits.append(cached)
            rest.append(int(requests["prompt_tokens"][own].sum()) - cached)
    parts = (
        Part(t("pfx.part.found"), hits, "free"),
        Part(t("pfx.part.computed"), rest, "prefill"),
    )
    words = {name: t(f"pfx.engines.{name}") for name in ("title", "more", "x", "y")}
    return stacked((groups, labels), parts, {**words, "unit": t("unit.tokens")}, theme)


# -- a trace ---------------------------------------------------------------------------------------


def replay_picture(found: Replay, own_blocks: float) -> None:
    """Hit rate over the size of the cache; ``own_blocks`` is what the scenario's engine has."""
    alt = t(
        "pfx.replay.alt",
        few=f"{found.blocks[0]:,}",
        low=share(float(found.shares[0])),
        many=f"{found.blocks[-1]:,}",
        high=share(float(found.shares[-1])),
    )
    look = current_language(), current_theme()
    figure = _replay(
        tuple(found.blocks.tolist()), tuple(found.shares.tolist()), own_blocks, *look
    )
    draw(Picture(figure, alt), "pfx.replay")
    inside = found.blocks[0] <= own_blocks <= found.blocks[-1]
    st.caption(t("pfx.replay.own" if inside else "pfx.replay.own_outside", n=f"{own_blocks:,.0f}"))


@st.cache_resource(max_entries=32, show_spinner=False)
def _replay(
    blocks: tuple[int, ...], shares: tuple[float, ...], own_blocks: float, language: str, theme: str
) -> go.Figure:
    t = translator(language)
    x = np.array(blocks, dtype=float)
    line = Curve(t("pfx.replay.line"), x, 100 * np.array(shares), 0)
    inside = blocks[0] <= own_blocks <= blocks[-1]
    return curves.rows(
        (Row(t("pfx.replay.title"), t("pfx.replay.more"), " %", (line,)),),
        t("pfx.replay.x"),
        t("pfx.replay.at"),
        theme,
        height=380,
        log_x=blocks,
        at=(Place(own_blocks),) if inside else (),
    )
