"""What the lesson on preemption asks: its sliders, and where its numbers come from."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model import catalogue
from model.errors import LabError
from model.scenario import Scenario
from ui.choose import choose, formula_viewer
from ui.engine import simulated
from ui.language import t
from ui.prose import prose
from ui.scenario import MOST_MEASURED
from ui.throughput import apply_style, engine_name
from ui.units import duration, significant
from validation.preemption import Costs, values
from validation.preemption_runs import Chances, Eviction, chances, evictions
from validation.throughput import Engine, engine_of

__all__ = [
    "BLOCKS",
    "CONTEXTS",
    "PAGE",
    "SHARED",
    "WAYS",
    "Observed",
    "apply_style",
    "costs_now",
    "engine_name",
    "link_now",
    "measured_percent",
    "observed",
    "says",
    "seconds",
    "simulated_evictions",
    "tokens",
    "viewer",
    "where",
]

PAGE = "preemption"
STORM = "preemption-storm"
CONTEXTS = (128, 256, 512, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000)
BLOCKS = ("16", "1", "8", "32", "64", "128")
WAYS = ("2", "1")
SHARED = ("1", "2", "4", "8")

FORMULAS = {
    "cost": ("F25d", "F23a", "F24a", "F25c", "F25p", "F21"),
    "which": ("F25a", "F25", "F25b", "F25e", "F25f"),
    "expected": ("F23c", "F23b", "F23q"),
    "victim": ("F25g", "F25h", "F23"),
    "checkpoint": ("F40", "F40a", "F40b", "F40c", "F33e"),
}


def says(section: str, **numbers: object) -> str:
    """A section of the lesson's prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


def viewer(part: str, costs: Costs, **numbers: float) -> None:
    """The formulas of a part with the values of its costs, and those that it adds."""
    given = {**values(costs), **numbers}
    formula_viewer("pre", part, FORMULAS[part], given, where(costs))


def seconds(value: float) -> str:
    """Seconds with the unit that fits, in one piece."""
    if 0 < abs(value) < 1e-3:
        return f"{significant(value * 1e6)}\u00a0{t('unit.us')}"
    return "\u00a0".join(duration(value))


def tokens(length: float) -> str:
    """A border between lengths: whole tokens, but a short one is not rounded to nothing."""
    return f"{round(length):,}" if length >= 10 else significant(length, 2)


# -- sliders ---------------------------------------------------------------------------------------


def measured_percent(engine: Engine) -> int:
    """What is commonly reached of the nominal host link, in percent."""
    device = catalogue.device(engine.hardware)
    return round(100 * device.host_link_effective_bytes_per_s / device.host_link_bytes_per_s)


def link_now(engine: Engine, place: DeltaGenerator) -> float | None:
    """The slider of the host link: the share of nominal, None while it is the measured one."""
    measured = measured_percent(engine)
    percent = place.slider(
        t("pre.slider.link"), 5, 100, measured, 1, key="pcie", format="%d %%", bind="query-params",
        help=t("pre.slider.link.help"),
    )  # fmt: skip
    return None if percent == measured else percent / 100


def costs_now(engine: Engine) -> Costs:
    """The sliders of the costs and what they make."""
    first = st.columns(4, gap="medium")
    context = first[0].select_slider(
        t("pre.slider.context"), CONTEXTS, 2000, key="n", bind="query-params"
    )
    swap_ms = first[1].slider(
        t("pre.slider.swap_fixed"), 0.0, 20.0, 5.0, 0.5, key="fs", bind="query-params",
        help=t("pre.teaching"),
    )  # fmt: skip
    recompute_ms = first[2].slider(
        t("pre.slider.recompute_fixed"), 0.0, 20.0, 0.0, 0.5, key="fr", bind="query-params",
        help=t("pre.slider.recompute_fixed.help"),
    )  # fmt: skip
    copy_us = first[3].slider(
        t("pre.slider.copy"), 0.0, 10.0, 5.0, 0.5, key="copy", bind="query-params",
        help=t("pre.teaching"),
    )  # fmt: skip
    second = st.columns([4, 6, 4, 4], gap="medium")
    link = link_now(engine, second[0])
    with second[1]:
        block = choose("pblock", BLOCKS, "pre.block", t("pre.block"))
    with second[2]:
        ways = choose("ways", WAYS, "pre.ways", t("pre.ways"))
    with second[3]:
        shared = choose("shared", SHARED, "pre.shared", t("pre.shared"))
    costs = Costs(
        engine=engine,
        context_tokens=int(context),
        swap_fixed_s=swap_ms / 1e3,
        recompute_fixed_s=recompute_ms / 1e3,
        copy_s=copy_us / 1e6,
        block_size=int(block),
        link_share=link,
        copies=int(ways),
        gpus_per_link=int(shared),
    )
    reached = values(costs)["beta_h"] / 1e9
    said = t("pre.engine", engine=engine_name(engine), link=significant(reached))
    most = catalogue.model(engine.model).max_context_tokens
    if context > most:
        said += " " + t("pre.beyond", n=f"{most:,}")
    st.caption(said)
    return costs


def where(costs: Costs) -> dict[str, str]:
    """Of each symbol where its value comes from, and which control moves it."""
    device = catalogue.device(costs.engine.hardware).name
    model = catalogue.model(costs.engine.model).name

    def slider(name: str) -> str:
        return t("thr.where.slider", name=t(f"pre.{name}"))

    found = {
        "n": slider("slider.context"),
        "F_s": slider("slider.swap_fixed"),
        "F_r": slider("slider.recompute_fixed"),
        "delta_copy": slider("slider.copy"),
        "beta_h": slider("slider.link"),
        "bs": slider("block"),
        "w": slider("ways"),
        "beta_pcie": t("pre.where.text"),
        "eta_c": t("pre.where.clock"),
    }
    if catalogue.model(costs.engine.model).kv_kind == "mla":
        found["delta_copy"] = t("pre.where.latent")
    found |= dict.fromkeys(("s_p", "s_g"), t("pre.where.split"))
    found |= dict.fromkeys(("t_c", "t_m"), t("pre.where.ride"))
    found |= dict.fromkeys(("P", "g"), t("thr.where.device", name=device))
    found |= dict.fromkeys(
        ("Psi", "Psi_a", "n_L", "d", "d_a", "kappa", "b_kv"), t("thr.where.model", name=model)
    )
    found |= dict.fromkeys(("r_tok", "s_tok", "a_sq", "R_hat", "C_rec"), t("pre.where.slopes"))
    return found


# -- runs ------------------------------------------------------------------------------------------


def simulated_evictions(costs: Costs) -> tuple[tuple[Eviction, ...], LabError | None]:
    """One eviction both ways in the simulator, or why it cannot run."""
    try:
        return evictions(costs.engine, costs.context_tokens), None
    except LabError as error:
        return (), error


class Observed(NamedTuple):
    """Preemptions of a run; ``source`` is "own", or why it is a preset's: "none", "large"."""

    found: Chances
    source: str


def observed(scenario: Scenario) -> Observed:
    """What the panel's scenario preempts, or a preset where it preempts nobody or is too large."""
    source = "none"
    if scenario.workload.n_requests > MOST_MEASURED:
        source = "large"
    elif (found := chances(simulated(scenario), engine_of(scenario))) is not None:
        return Observed(found, "own")
    preset = catalogue.presets()[STORM].scenario
    return Observed(chances(simulated(preset), engine_of(preset)), source)
