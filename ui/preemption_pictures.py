"""The pictures of the lesson on preemption, kept for all sessions by what they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import preemption as charts
from charts.preemption import Border, Line, Mark, Ratio
from formulas import get
from model import catalogue
from ui.language import current_language, t, translator
from ui.pictures import Picture, draw
from ui.preemption import seconds, tokens
from ui.preemption_tables import LINKS, link_bytes_per_s, link_name
from ui.theme import current_theme
from ui.units import significant
from validation.preemption import Costs, borders, curves, ratio, values
from validation.preemption_runs import Chances, Eviction
from validation.throughput import Engine

__all__ = [
    "bound_picture",
    "chances_picture",
    "checkpoint_picture",
    "costs_picture",
    "expected_picture",
    "freed_picture",
    "ratios_picture",
]

_CONTEXT = np.unique(np.rint(np.geomspace(16, 262_144, 65)))


def _draw(figure: go.Figure, key: str, alt: str) -> None:
    draw(Picture(figure, alt), key)


def _words(stem: str, t, x: str, at: str, unit: str) -> dict[str, str]:
    words = {name: t(f"{stem}.{name}") for name in ("title", "more", "y")}
    return {**words, "x": t(x), "at": t(at), "unit": unit}


def _context_words(stem: str, t, unit: str) -> dict[str, str]:
    return _words(stem, t, "pre.axis.context", "pre.axis.at", unit)


# -- costs over the length -------------------------------------------------------------------------


def costs_picture(costs: Costs, lines: str, simulated: tuple[Eviction, ...]) -> None:
    """Recompute and swap over the context ("full", "printed") or over the size of a block."""
    given = values(costs)
    alt = t(
        "pre.blocks.alt" if lines == "blocks" else "pre.costs.alt",
        n=f"{costs.context_tokens:,}",
        recompute=seconds(given["t_rec"]),
        swap=seconds(given["t_swap"]),
    )
    look = current_language(), current_theme()
    if lines == "blocks":
        _draw(_blocks(costs, *look), "pre.blocks", alt)
    else:
        _draw(_costs(costs, lines, simulated, *look), "pre.costs", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _costs(
    costs: Costs, lines: str, simulated: tuple[Eviction, ...], language: str, theme: str
) -> go.Figure:
    t = translator(language)
    found = curves(costs)
    rows = [
        Line(t("pre.costs.recompute"), found.recompute_s, "recompute"),
        Line(t("pre.costs.swap"), found.swap_s, "swap", "dashdot"),
    ]
    if simulated:  # the marks lie here: the simulator knows no fixed cost and no small copies
        bare = replace(costs, swap_fixed_s=0.0, copy_s=0.0, link_share=None, gpus_per_link=1)
        rows.append(
            Line(t("pre.costs.bare_swap"), curves(bare).swap_s, "swap", "longdash", width=1.2)
        )
    if lines == "printed":
        rows += [
            Line(t("pre.costs.printed_recompute"), found.printed_recompute_s, "recompute", "dot",
                 width=1.6),
            Line(t("pre.costs.printed_swap"), found.printed_swap_s, "swap", "dot", width=1.6),
        ]  # fmt: skip
    ends = float(found.context[0]), float(found.context[-1])
    shown = [length for length in borders(costs).lengths if ends[0] <= length <= ends[1]]
    lines_at = [
        Border(length, t("pre.costs.border", n=tokens(length)), row=place)
        for place, length in enumerate(shown)
    ]
    most = catalogue.model(costs.engine.model).max_context_tokens
    lines_at.append(
        Border(float(most), t("pre.costs.limit"), "longdash", row=2)
        if most <= ends[1] / 3
        else Border(float(costs.context_tokens), f"n = {costs.context_tokens:,}", "dot", row=2)
    )
    looks = {"recompute": "circle", "swap": "square"}
    marks = [
        Mark(t(f"pre.costs.run.{one.mode}"), one.context_tokens, one.iterations_s, one.mode,
             looks[one.mode])
        for one in simulated
    ]  # fmt: skip
    words = _context_words("pre.costs", t, t("unit.s"))
    named = -(-(len(rows) + len(marks)) // 2)  # lines of the legend
    return charts.curves(
        found.context, rows, words, theme, marks=marks, borders=lines_at,
        height=382 + 24 * named, legend_lines=named,
    )  # fmt: skip


@st.cache_resource(max_entries=64, show_spinner=False)
def _blocks(costs: Costs, language: str, theme: str) -> go.Figure:
    t = translator(language)
    found, given = curves(costs), values(costs)
    recompute = np.full(len(found.block_size), given["t_rec"])
    rows = (
        Line(t("pre.costs.recompute"), recompute, "recompute"),
        Line(t("pre.costs.swap"), found.swap_over_blocks_s, "swap", "dashdot"),
    )
    words = _words("pre.blocks", t, "pre.block", "pre.blocks.at", t("unit.s"))
    return charts.curves(
        found.block_size, rows, words, theme, height=430, legend_lines=2,
        borders=(Border(float(costs.block_size), f"bs = {costs.block_size}", "dot"),),
    )  # fmt: skip


# -- R̂ of every model ------------------------------------------------------------------------------


def ratios_picture(engine: Engine, link_share: float | None, copies: int, shared: int) -> None:
    """R̂ of all models on a device, beside all other devices."""
    device = catalogue.device(engine.hardware).name
    figure = _ratios(engine, link_share, copies, shared, current_language(), current_theme())
    _draw(figure, "pre.ratios", t("pre.ratios.alt", device=device))


@st.cache_resource(max_entries=128, show_spinner=False)
def _ratios(
    engine: Engine, link_share: float | None, copies: int, shared: int, language: str, theme: str
) -> go.Figure:
    t = translator(language)

    def at(model_id: str, device_id: str) -> float:
        there = Engine(model_id, device_id, 1, engine.clock, engine.memory)
        return ratio(there, copies=copies, gpus_per_link=shared, link_share=link_share)

    rows = []
    for model in catalogue.models().values():
        value = at(model.id, engine.hardware)
        others = tuple(
            (device.name, at(model.id, device.id))
            for device in catalogue.devices().values()
            if device.id != engine.hardware
        )
        more = ""
        if value > 1:
            given = {"R_hat": value, "Psi_a": float(model.active_parameters),
                     "n_L": float(model.layers), "d_a": float(model.attention_width)}  # fmt: skip
            more = f"n* = {round(get('F25').evaluate(given)):,}"
        rows.append(Ratio(model.name, value, others, more))
    rows.sort(key=lambda row: -row.value)
    device = catalogue.device(engine.hardware).name
    words = {name: t(f"pre.ratios.{name}") for name in ("more", "x", "swap", "recompute", "others")}
    words["title"] = t("pre.ratios.title", device=device)
    return charts.ratios(rows, words, theme)


# -- chances ---------------------------------------------------------------------------------------


def expected_picture(chance: float, found: Chances) -> None:
    """Expected recomputations over the chance, once and again and again."""
    alt = t("pre.expected.alt", p=significant(100 * chance))
    _draw(_expected(chance, found, current_language(), current_theme()), "pre.expected", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _expected(chance: float, found: Chances, language: str, theme: str) -> go.Figure:
    t = translator(language)
    p = np.linspace(0.01, 0.9, 90)
    once, again = (
        np.array([get(name).evaluate({"p": float(x), "C_rec": 1.0}) for x in p])
        for name in ("F23b", "F23c")
    )
    rows = (
        Line(t("pre.expected.once"), once, "muted", "dash"),
        Line(t("pre.expected.again"), again, "recompute"),
    )
    measured = found.measured_flop / found.one_flop
    marks = (
        Mark(t("pre.expected.run.once"), 100 * found.once, measured, "muted", "square"),
        Mark(t("pre.expected.run.again"), 100 * found.again, measured, "recompute"),
    )
    words = _words("pre.expected", t, "pre.expected.x", "pre.expected.at", "")
    most = max(3.0, 1.3 * measured)
    return charts.curves(
        100 * p, rows, words, theme, marks=marks, log=(False, False), y_range=(0.0, most),
        borders=(Border(100 * chance, f"p = {significant(100 * chance)} %", "dot"),),
        height=400, legend_lines=2,
    )  # fmt: skip


def chances_picture(found: Chances) -> None:
    """How often requests were preempted, beside equal chances."""
    _draw(_chances(found, current_language(), current_theme()), "pre.chances", t("pre.chances.alt"))


@st.cache_resource(max_entries=64, show_spinner=False)
def _chances(found: Chances, language: str, theme: str) -> go.Figure:
    t = translator(language)
    names = ("title", "more", "x", "y", "measured", "formula")
    words = {name: t(f"pre.chances.{name}") for name in names}
    return charts.chances(found.at_least[:12], found.again, words, theme)


# -- what a byte costs -----------------------------------------------------------------------------


def freed_picture(costs: Costs) -> None:
    """Recompute work per freed byte over the length (F25g), beside 2Ψ/κ."""
    alt = t("pre.freed.alt")
    _draw(_freed(costs.engine, current_language(), current_theme()), "pre.freed", alt)


@st.cache_resource(max_entries=64, show_spinner=False)
def _freed(engine: Engine, language: str, theme: str) -> go.Figure:
    t = translator(language)
    given = values(Costs(engine))
    work = np.array([get("F25g").evaluate({**given, "n": float(n)}) for n in _CONTEXT])
    short = np.full(len(work), 2 * given["Psi_a"] / given["kappa"])
    rows = (
        Line(t("pre.freed.all"), work, "recompute"),
        Line(t("pre.freed.short"), short, "muted", "dash", width=1.8),
    )
    words = _context_words("pre.freed", t, "FLOP/byte")
    return charts.curves(
        _CONTEXT, rows, words, theme, log=(True, False), height=340,
        y_range=(0.0, float(work[_CONTEXT <= 65_536].max()) * 1.1),
    )  # fmt: skip


# -- checkpoint ------------------------------------------------------------------------------------


def checkpoint_picture(engine: Engine, block_size: int, deadline_s: float) -> None:
    """A whole KV copy over each link, and the tail of one block, against the deadline."""
    figure = _checkpoint(engine, block_size, deadline_s, current_language(), current_theme())
    _draw(figure, "pre.checkpoint", t("pre.checkpoint.alt", deadline=seconds(deadline_s)))


@st.cache_resource(max_entries=64, show_spinner=False)
def _checkpoint(
    engine: Engine, block_size: int, deadline_s: float, language: str, theme: str
) -> go.Figure:
    t = translator(language)
    kappa = catalogue.model(engine.model).kv_bytes_per_token(engine.memory.kv_dtype)
    given = {"kappa": kappa, "g": float(engine.tensor_parallel), "bs": float(block_size)}
    dashes = ("solid", "dashdot", "dot", "longdash")
    rows = []
    for place, (link, dash) in enumerate(zip(LINKS, dashes, strict=True)):
        there = {**given, "beta_link": link_bytes_per_s(*link)}
        full = np.array([get("F40a").evaluate({**there, "n": float(n)}) for n in _CONTEXT])
        rows.append(Line(link_name(*link), full * 1e3, place, dash))
    tail = get("F40b").evaluate({**given, "beta_link": link_bytes_per_s(*LINKS[0])})
    rows.append(
        Line(t("pre.checkpoint.tail"), np.full(len(_CONTEXT), tail * 1e3), "decode", width=3.0)
    )
    words = _context_words("pre.checkpoint", t, t("unit.ms"))
    return charts.curves(
        _CONTEXT, rows, words, theme, height=450, legend_lines=3,
        across=(deadline_s * 1e3, t("pre.checkpoint.deadline")),
    )  # fmt: skip


def bound_picture(trials: int, significance: float, rate: float) -> None:
    """The bound on a failure rate when nothing failed (F33e)."""
    figure = _bound(trials, significance, rate, current_language(), current_theme())
    _draw(figure, "pre.bound", t("pre.bound.alt"))


@st.cache_resource(max_entries=64, show_spinner=False)
def _bound(trials: int, significance: float, rate: float, language: str, theme: str) -> go.Figure:
    t = translator(language)
    n = np.unique(np.rint(np.geomspace(32, 131_072, 40)))
    bound = np.array(
        [get("F33e").evaluate({"alpha_sig": significance, "n_smp": float(k)}) for k in n]
    )
    here = get("F33e").evaluate({"alpha_sig": significance, "n_smp": float(trials)})
    words = _words("pre.bound", t, "pre.bound.x", "pre.bound.at", "%")
    return charts.curves(
        n, (Line(t("pre.bound.line"), 100 * bound, "decode"),), words, theme, height=340,
        marks=(Mark(t("pre.bound.here"), trials, 100 * here, "decode"),),
        across=(100 * rate, t("pre.bound.claimed")),
    )  # fmt: skip
