"""Pictures of the lesson: token budget, stall, number of requests, waits, loads allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import slo as charts
from charts.slo import Bar, Curve, Level, Place, Row
from model.parameters import replace_at, with_policy
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import current_language, t, translator
from ui.pictures import Key, Picture, draw, key_of
from ui.slo.words import bound, time
from ui.theme import current_theme
from ui.units import significant
from validation import slo_lesson as lesson

__all__ = [
    "BOUNDS",
    "BUDGETS",
    "allowed_picture",
    "number_picture",
    "over_budgets",
    "stall_picture",
    "tension_picture",
    "waits_picture",
]

BUDGETS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
BOUNDS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
"""x = D_ttft/D on the axis; each point is found from the distribution of the wait."""


# -- token budget ----------------------------------------------------------------------------------


def over_budgets(scenario: Scenario) -> Sequence[Mapping[str, float]]:
    """The scenario under vLLM V1 in numbers, for each token budget of BUDGETS."""
    base = with_policy(scenario, "vllm-v1")
    return [summary(replace_at(base, "policy.max_num_batched_tokens", n)) for n in BUDGETS]


def tension_picture(scenario: Scenario, found: Sequence[Mapping[str, float]]) -> None:
    """TTFT and TPOT over the token budget, with their bounds; ``found`` is of over_budgets."""
    key = key_of(scenario), current_language(), current_theme()
    draw(Picture(_tension(*key, found), _tension_alt(found)), "slo.tension")


@st.cache_resource(max_entries=64, show_spinner=False)
def _tension(run: Key, language: str, theme: str, _found) -> go.Figure:
    t, slo = translator(language), run.scenario.slo
    x = np.array(BUDGETS, dtype=float)

    def line(metric: str, color: str | int, dash: str = "solid", factor: float = 1.0) -> Curve:
        values = np.array([numbers[metric] for numbers in _found]) * factor
        return Curve(t(f"measure.{metric}"), x, values, color, dash)

    def promise(value: float, unit: str) -> str:
        return t("slo.level.bound", bound=f"{value:g} {t(f'unit.{unit}')}")

    rows = (
        Row(
            t("slo.tension.ttft"),
            t("unit.s"),
            f" {t('unit.s')}",
            (line("ttft_p90_s", "prefill"),),
            (Level(slo.ttft_s, promise(slo.ttft_s, "s")),),
            log=True,
        ),
        Row(
            t("slo.tension.tpot"),
            t("unit.ms"),
            f" {t('unit.ms')}",
            (
                line("tpot_p90_s", "decode", factor=1e3),
                line("itl_max_s", 2, "dot", factor=1e3),
            ),
            (Level(slo.tpot_s * 1e3, promise(slo.tpot_s * 1e3, "ms")),),
            log=True,
        ),
    )  # fmt: skip
    return charts.rows(
        rows, t("slo.tension.x"), t("slo.tension.at"), theme, height=520, log_x=BUDGETS
    )


def _tension_alt(found: Sequence[Mapping[str, float]]) -> str:
    first, last = found[0], found[-1]
    return t(
        "slo.tension.alt",
        low=BUDGETS[0],
        high=BUDGETS[-1],
        ttft_low=time(first["ttft_p90_s"]),
        ttft_high=time(last["ttft_p90_s"]),
        tpot_low=time(first["tpot_p90_s"]),
        tpot_high=time(last["tpot_p90_s"]),
    )


def stall_picture(found: lesson.Stall, tpot_s: float) -> None:
    """The longest gap behind whole prompts, beside F22, and in chunks."""
    parts = (
        Bar(t("slo.stall.whole"), found.whole_s * 1e3, "prefill", found.expected_s * 1e3),
        Bar(t("slo.stall.chunked"), found.chunked_s * 1e3, "decode"),
    )
    figure = charts.bars(
        parts,
        t("slo.stall.title"),
        t("slo.stall.more"),
        t("slo.stall.axis"),
        f" {t('unit.ms')}",
        t("slo.stall.formula"),
        current_theme(),
        level=Level(tpot_s * 1e3, t("slo.level.tpot", bound=bound(tpot_s))),
    )
    alt = t("slo.stall.alt", whole=time(found.whole_s), chunked=time(found.chunked_s))
    draw(Picture(figure, alt), "slo.stall")


# -- Little's law ----------------------------------------------------------------------------------


def number_picture(scenario: Scenario, balance: lesson.Balance, most: float) -> None:
    """N(t) with its mean in the window, λ·W, and the requests that the KV memory holds."""
    time_s, number = lesson.in_system(simulated(scenario))
    step = max(len(time_s) // 1500, 1)
    window = balance.window
    inside = np.array([window.start_s, window.end_s])
    curves = (
        Curve(
            t("slo.number.now"), time_s[::step], number[::step], "waiting", marks=False,
            steps=True, width=1.6,
        ),
        Curve(
            t("slo.number.mean"), inside, np.full(2, balance.number), "decode", marks=False,
            width=3.4,
        ),
        Curve(
            t("slo.number.product"), inside, np.full(2, balance.product), "ink", "dash",
            marks=False, width=2.0,
        ),
    )  # fmt: skip
    top = 1.2 * max(float(number.max(initial=0)), balance.product)
    levels = (
        [Level(most, t("slo.number.most", n=f"{most:,.0f}"), "violated", "longdash")]
        if most < top
        else []
    )
    unit = t("unit.requests")
    row = Row(t("slo.number.title"), unit, f" {unit}", curves, levels, top=top)
    figure = charts.rows(
        (row,), t("slo.number.x"), t("slo.number.at"), current_theme(), height=360
    )
    alt = t(
        "slo.number.alt",
        mean=significant(balance.number),
        product=significant(balance.product),
        high=int(number.max(initial=0)),
    )
    draw(Picture(figure, alt), "slo.number")


# -- the prefill server ----------------------------------------------------------------------------

_WAIT_LOOKS = ((3, "solid"), (1, "dot"), ("violated", "solid"))


def waits_picture(found: Sequence[lesson.Waits], x: float, break_at: float) -> None:
    """TTFT of successive prompts in prefill times, with F28e's line of the overload."""
    curves = []
    for waits, (color, dash) in zip(found, _WAIT_LOOKS, strict=True):
        d = waits.service_s
        name = t("slo.waits.load", load=f"{waits.load:g}")
        curves.append(
            Curve(name, waits.arrival_s / d, waits.ttft_s / d, color, dash, marks=False, width=1.8)
        )
    end = max(float(waits.arrival_s[-1] / waits.service_s) for waits in found)
    worst = found[-1]
    ends = np.array([0.0, float(worst.arrival_s[-1] / worst.service_s)])
    line = worst.growth_s(ends * worst.service_s) / worst.service_s
    curves.append(Curve(t("slo.waits.formula"), ends, line, "ink", "dash", marks=False, width=1.8))
    row = Row(
        t("slo.waits.title"),
        t("slo.waits.more", d=time(worst.service_s)),
        " D",
        curves,
        (Level(x, t("slo.waits.bound", x=f"{x:g}"), end="right"),),
    )
    at = (Place(break_at, t("slo.waits.break")),) if break_at < end else ()
    figure = charts.rows(
        (row,), t("slo.waits.x"), t("slo.waits.at"), current_theme(), height=430, at=at,
        x_range=(0, end), legend_lines=2,
    )  # fmt: skip
    alt = t("slo.waits.alt", last=significant(float(worst.ttft_s[-1] / worst.service_s)))
    draw(Picture(figure, alt), "slo.waits")


def allowed_picture(x: float) -> None:
    """Loads that keep a bound in the mean, for 90 % and for 99 % of the requests."""
    found = lesson.loads_allowed(BOUNDS)
    curves = (
        Curve(t("slo.allowed.mean"), found.x, found.mean, 3, marks=False),
        Curve(t("slo.allowed.p90"), found.x, found.p90, 1, "dashdot", marks=False),
        Curve(t("slo.allowed.p99"), found.x, found.p99, "violated", "solid", marks=False),
    )
    row = Row(t("slo.allowed.title"), t("slo.allowed.more"), "", curves, top=1.05)
    figure = charts.rows(
        (row,), t("slo.allowed.x"), t("slo.allowed.at"), current_theme(), height=430,
        at=(Place(x, f"x = {x:g}"),), x_range=(1, BOUNDS[-1]), legend_lines=2,
    )  # fmt: skip
    draw(Picture(figure, t("slo.allowed.alt")), "slo.allowed")
