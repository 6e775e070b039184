"""What the lesson on throughput shows: its sliders, pictures, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import throughput as charts
from charts.throughput import Bar, Line, Mark
from formulas import get
from model import catalogue
from ui.language import current_language, t, translator
from ui.pictures import Picture, draw
from ui.prose import prose
from ui.scenario import dynamic_batch, input_tokens, output_tokens, static_batch
from ui.theme import current_theme
from ui.units import signed, significant
from validation.throughput import (
    Case,
    Engine,
    compare,
    curves,
    improvements,
    longest,
    utilizations,
    values,
)

__all__ = [
    "BUSY",
    "PAGE",
    "TEXT",
    "apply_style",
    "bounds_picture",
    "case_now",
    "decode_picture",
    "engine_name",
    "factors_picture",
    "formula_values",
    "padding_picture",
    "pairs_table",
    "says",
    "text_case",
    "throughput_picture",
    "utilization_picture",
    "where",
]

PAGE = "throughput"
TEXT = {"static": 10, "dynamic": 23, "prompt": 512, "output": 200}
"""The widely copied answer's numbers, whose batch grows by 2.3."""
BUSY = {"u_old": 0.65, "u_new": 0.92}
"""Its shares of time in which the GPU is busy."""
_RANGES = {  # least, most, step
    "static": (1, 64, 1),
    "dynamic": (1, 256, 1),
    "prompt": (16, 4096, 16),
    "output": (16, 1024, 8),
}


def apply_style() -> None:
    """Sliders without the ends of their scales, as in the panel: the picture comes sooner."""
    with st.container(key="thr-style"):
        st.html(
            "<style>.st-key-thr-style, [data-testid='stMain'] [data-testid='stSliderTickBar'] "
            "{display: none}</style>"
        )


def says(section: str, **numbers: object) -> str:
    """A section of the lesson's prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


def case_now(engine: Engine, lengths: str = "fixed") -> Case:
    """The sliders, and the case that they make; the page ends where the model cannot hold it."""
    found = {}
    # A value that a button has just set needs no default beside it: Streamlit would complain.
    is_set = st.session_state.pop("thr.set", False)
    for column, (name, (least, most, step)) in zip(
        st.columns(4, gap="medium"), _RANGES.items(), strict=True
    ):
        found[name] = column.slider(
            t(f"thr.slider.{name}"),
            least,
            most,
            None if is_set else TEXT[name],
            step,
            key=name,
            bind="query-params",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(t("thr.engine", engine=engine_name(engine)), width="content")
        st.button(t("thr.take_panel"), type="tertiary", key="thr.panel", on_click=_take_panel)
        if found != TEXT:
            st.button(t("thr.take_text"), type="tertiary", key="thr.text", on_click=_take_text)
    model = catalogue.model(engine.model)
    if found["prompt"] + found["output"] > model.max_context_tokens:
        limit = f"{model.max_context_tokens:,}"
        st.warning(t("thr.context", model=model.name, n=limit), icon=":material/tune:")
        st.stop()
    return Case(
        found["static"], found["dynamic"], found["prompt"], found["output"], lengths, engine
    )


def text_case(engine: Engine) -> Case:
    """The case of the widely copied answer on the panel's engine."""
    return Case(TEXT["static"], TEXT["dynamic"], TEXT["prompt"], TEXT["output"], "fixed", engine)


def engine_name(engine: Engine) -> str:
    """Model and GPUs, for people."""
    device, gpus = catalogue.device(engine.hardware).name, engine.tensor_parallel
    shown = f"{gpus} × {device}" if gpus > 1 else device
    return f"{catalogue.model(engine.model).name} · {shown}"


def _take_text() -> None:
    _set(TEXT)


def _take_panel() -> None:
    """The panel's four numbers, as far as the sliders reach."""
    wanted = (static_batch(), dynamic_batch(), input_tokens(), output_tokens())
    near = {}
    for (name, (least, most, step)), value in zip(_RANGES.items(), wanted, strict=True):
        step_value = least + round((value - least) / step) * step
        near[name] = int(min(max(step_value, least), most))
    _set(near)


def _set(numbers: Mapping[str, int]) -> None:
    for name, value in numbers.items():
        st.session_state[name] = value
    st.session_state["thr.set"] = True


# -- numbers of the formulas -----------------------------------------------------------------------


def formula_values(case: Case) -> dict[str, float]:
    """The values of every symbol that a formula of this lesson needs."""
    found = dict(values(case)) | BUSY
    found["B"] = found["B_d"]
    found["Delta"] = get("F14").evaluate(found)
    found["X_tok"] = found["B_d"] / found["t_d"]
    found["t_iter"] = found["t_d"]
    found["Q"] = found["b_w"] * found["Psi_a"] + found["kappa"] * found["B_d"] * found["ctx"]
    found |= {name: get(f).evaluate(found) for name, f in (("c_tok", "F18a"), ("m_tok", "F18b"))}
    return found


def where(case: Case) -> dict[str, str]:
    """Of each symbol where its value comes from, and which control moves it."""
    device = catalogue.device(case.engine.hardware).name
    model = catalogue.model(case.engine.model).name
    found = {
        symbol: t("thr.where.slider", name=t(f"thr.slider.{name}"))
        for symbol, name in (
            ("B_s", "static"), ("B_d", "dynamic"), ("B", "dynamic"), ("L_in", "prompt"),
            ("L", "output"),
        )
    }  # fmt: skip
    found |= dict.fromkeys(("P", "beta", "g"), t("thr.where.device", name=device))
    found |= dict.fromkeys(
        ("Psi_a", "n_L", "d_a", "kappa", "b_w"), t("thr.where.model", name=model)
    )
    found |= dict.fromkeys(("eta_c", "eta_m", "t_0"), t("thr.where.clock"))
    found |= dict.fromkeys(("T_s", "t_ds", "t_d", "t_p", "t_pB"), t("thr.where.f5"))
    found |= dict.fromkeys(("u_old", "u_new"), t("thr.where.text"))
    found["L_max"] = t("thr.where.longest" if case.lengths == "geometric" else "thr.where.equal")
    found["ctx"] = t("thr.where.ctx")
    return found


# -- pictures --------------------------------------------------------------------------------------


def _draw(figure: go.Figure, key: str, alt: str) -> None:
    draw(Picture(figure, alt), key)


def factors_picture(case: Case, state: str) -> None:
    """1 + Δ as an area."""
    batch = case.dynamic_batch / case.static_batch
    lengths = (case.prompt_tokens + case.output_tokens) / case.output_tokens
    alt = t("thr.area.alt", batch=significant(batch), lengths=significant(lengths))
    figure = _factors(batch, lengths, state, current_language(), current_theme())
    _draw(figure, "thr.factors", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _factors(batch, lengths, state, language, theme) -> go.Figure:
    return charts.factors(batch, lengths, state, translator(language), theme)


def bounds_picture(case: Case) -> None:
    """What is claimed beside what could explain it."""
    _draw(_bounds(case, current_language(), current_theme()), "thr.bounds", t("thr.bounds.alt"))


@st.cache_resource(max_entries=128, show_spinner=False)
def _bounds(case: Case, language: str, theme: str) -> go.Figure:
    t = translator(language)
    found, busy = improvements(case), get("F38").evaluate(BUSY)
    idle = get("F38a").evaluate({"f_idle": 1 - BUSY["u_old"], "r_idle": 1.0})
    rows = (
        Bar(t("thr.bounds.claim"), 1 + found.printed, "claim"),
        Bar(t("thr.bounds.same"), 1 + found.same_batch, "claim"),
        Bar(t("thr.bounds.alike"), 1 + found.alike, "bound"),
        Bar(t("thr.bounds.idle"), idle, "bound"),
        Bar(t("thr.bounds.busy"), busy, "bound"),
        Bar(
            t("thr.bounds.corrected"),
            1 + found.corrected,
            "computed",
            1 + found.lowest,
            1 + found.highest,
        ),
    )
    return charts.bars(
        rows, t("thr.bounds.title"), t("thr.bounds.more"), t("thr.bounds.axis"), theme
    )


def utilization_picture(case: Case) -> None:
    """Residency, MFU and MBU of both engines."""
    _draw(_usage(case, current_language(), current_theme()), "thr.usage", t("thr.usage.alt"))


@st.cache_resource(max_entries=128, show_spinner=False)
def _usage(case: Case, language: str, theme: str) -> go.Figure:
    t = translator(language)
    kinds = ("residency", "mfu", "mbu")
    groups = {
        t(f"engine.{name}"): [found[kind] for kind in kinds]
        for name, found in zip(("static", "continuous"), utilizations(case), strict=True)
    }
    names = [t(f"thr.usage.{kind}") for kind in kinds]
    return charts.shares(groups, names, t("thr.usage.title"), t("thr.usage.more"), theme)


def decode_picture(case: Case) -> None:
    """The time of a decode iteration against the batch."""
    _draw(_decode(case, current_language(), current_theme()), "thr.decode", t("thr.decode.alt"))


@st.cache_resource(max_entries=128, show_spinner=False)
def _decode(case: Case, language: str, theme: str) -> go.Figure:
    t = translator(language)
    found, text_ms = curves(case), values(case)["T_s"] * 1e3
    rows = (
        Line(t("thr.decode.time"), found.decode_ms, "decode", band=found.decode_band_ms),
        Line(t("thr.decode.memory"), found.memory_ms, 0, "dashdot", width=1.6),
        Line(t("thr.decode.compute"), found.compute_ms, 1, "dot", width=1.6),
        Line(
            t("thr.decode.text"), np.full(len(found.batch), text_ms), "violated", "longdash",
            width=1.8,
        ),
    )  # fmt: skip
    words = _axis_words("thr.decode", t, t("unit.ms"))
    return charts.lines(
        found.batch, rows, (), words, theme, height=400, at=_batches(case), legend_lines=2
    )


def throughput_picture(case: Case) -> None:
    """Throughput against the batch, with bands and the simulations."""
    _draw(_throughput(case, current_language(), current_theme()), "thr.x", t("thr.x.alt"))


@st.cache_resource(max_entries=128, show_spinner=False)
def _throughput(case: Case, language: str, theme: str) -> go.Figure:
    t = translator(language)
    found = curves(case)
    static, continuous = compare(case)[2:4]
    rows = (
        Line(t("thr.x.printed"), found.printed, "violated", "longdash", width=1.8),
        Line(t("thr.x.bound"), found.bound, "muted", "dot", width=1.6),
        Line(t("thr.x.continuous"), found.continuous, "decode", band=found.continuous_band),
        Line(t("thr.x.static"), found.static, 2, "dashdot", band=found.static_band),
    )
    marks = (
        Mark(t("thr.x.run"), case.dynamic_batch, continuous.simulated, "decode"),
        Mark("", case.static_batch, static.simulated, 2, "square"),
    )
    most = 1.08 * max(found.continuous_band[1].max(), np.median(found.bound))
    words = _axis_words("thr.x", t, t("unit.tokens_per_s"))
    return charts.lines(
        found.batch, rows, marks, words, theme,
        height=430, at=_batches(case), most=float(most), legend_lines=2,
    )  # fmt: skip


def padding_picture(case: Case) -> None:
    """E[max L]/E[L] against the batch, by distribution."""
    _draw(
        _padding(case.output_tokens, case.static_batch, current_language(), current_theme()),
        "thr.pad", t("thr.pad.alt"),
    )  # fmt: skip


@st.cache_resource(max_entries=128, show_spinner=False)
def _padding(output: int, static: int, language: str, theme: str) -> go.Figure:
    t = translator(language)
    batch = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128], dtype=float)

    def ratio(formula_id: str, cv: float = 1.0) -> np.ndarray:
        return np.array([longest(formula_id, output, B, cv) for B in batch]) / output

    rows = (
        Line(t("thr.pad.lognormal"), ratio("F16d", 2.0), 2, "longdash", width=1.8),
        Line(t("thr.pad.geometric"), ratio("F16c"), "decode"),
        Line(t("thr.pad.uniform"), ratio("F16b"), 0, "dashdot", width=1.8),
        Line(t("thr.pad.fixed"), np.ones(len(batch)), "muted", "dot", width=1.8),
    )
    words = _axis_words("thr.pad", t, "")
    at = ((float(static), f"B<sub>s</sub> = {static}"),)
    return charts.lines(batch, rows, (), words, theme, height=430, at=at, legend_lines=2)


def _axis_words(stem: str, t, unit: str) -> Mapping[str, str]:
    words = {name: t(f"{stem}.{name}") for name in ("title", "more", "y")}
    return {
        **words,
        "x": t("thr.axis.batch"),
        "batch": t("thr.axis.at"),
        "unit": unit,
        "run": t("thr.x.run"),
    }


def _batches(case: Case) -> tuple[tuple[float, str], ...]:
    found = ((case.static_batch, "s"), (case.dynamic_batch, "d"))
    return tuple((float(n), f"B<sub>{index}</sub>") for n, index in found)


# -- the table -------------------------------------------------------------------------------------


def pairs_table(case: Case) -> str:
    """Each formula beside its simulation, as a Markdown table."""
    heads = [t(f"thr.table.{name}") for name in ("formula", "says", "drawn", "run", "gap", "why")]
    rows = [heads, ["---", *(["---:"] * 4), "---"]]
    for pair in compare(case):
        reasons = [t(f"thr.reason.{reason}") for reason in pair.reasons] or [t("thr.reason.none")]
        rows.append(
            [
                f"**{pair.id}** {get(pair.id).name(current_language())}",
                significant(pair.formula, 4),
                significant(pair.drawn, 4) if pair.drawn != pair.formula else "–",
                f"**{significant(pair.simulated, 4)}**",
                signed(pair.difference),
                " ".join(reasons),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
