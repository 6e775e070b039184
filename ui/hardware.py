"""The lesson on hardware: its case, its devices, its runs, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from formulas import get
from model import catalogue
from model.catalogue import DTYPE_BYTES
from model.errors import LabError
from model.iteration_time import Roofline
from model.scenario import Scenario
from ui.choose import code_field
from ui.engine import simulated
from ui.language import error_markdown, t
from ui.pictures import Key, key_of
from ui.prose import prose
from ui.scenario import (
    MOST_MEASURED,
    dynamic_batch,
    input_tokens,
    output_tokens,
    static_batch,
)
from ui.throughput import engine_name
from ui.units import significant
from validation.hardware import elsewhere, kv_border, on, spots
from validation.hardware_causes import Causes, causes
from validation.hardware_factor import REFERENCE, Mixture, mixture, ratios
from validation.throughput import Case, engine_of, values

__all__ = [
    "MOST_OTHERS",
    "PAGE",
    "PRINTED",
    "Run",
    "border_numbers",
    "case_line",
    "case_of",
    "causes_of",
    "causes_under",
    "decode_intensity",
    "device_name",
    "device_names",
    "device_numbers",
    "devices_chosen",
    "fitting",
    "formula_values",
    "mixed",
    "model_name",
    "on_device",
    "prediction_numbers",
    "says",
    "spot_name",
    "where",
]

PAGE = "hardware"
PRINTED = 0.85
"""The factor of the widely copied answer."""
_DEFAULTS = ("a100-80g-sxm", "h100-sxm", "h20", "910b2")
MOST_OTHERS = 4
"""As many devices beside the scenario's own as there are colors."""
_MIXED_BATCHES = (1, 4, 16, 64, 256)


def says(section: str, **numbers: object) -> str:
    """A section of the lesson's prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


# -- the case and the devices ----------------------------------------------------------------------


def case_of(scenario: Scenario) -> Case:
    """The panel's batches and lengths on its device; the page ends where the model has no room."""
    model = catalogue.model(engine_of(scenario).model)
    prompt, output = max(input_tokens(), 1), max(output_tokens(), 2)
    if prompt + output > model.max_context_tokens:
        limit = f"{model.max_context_tokens:,}"
        st.warning(t("thr.context", model=model.name, n=limit), icon=":material/tune:")
        st.stop()
    batch = max(round(dynamic_batch()), 1)
    return Case(static_batch(), batch, prompt, output, engine=engine_of(scenario))


def model_name(case: Case) -> str:
    """The name of the case's model."""
    return catalogue.model(case.engine.model).name


def case_line(case: Case) -> str:
    """The case in one line, and that the panel has it."""
    return t(
        "hw.case",
        engine=engine_name(case.engine),
        static=case.static_batch,
        dynamic=case.dynamic_batch,
        prompt=f"{case.prompt_tokens:,}",
        output=f"{case.output_tokens:,}",
    )


def device_numbers(device: str) -> dict[str, float]:
    """P and β of a device, FLOP/s and bytes/s."""
    entry = catalogue.device(device)
    return {"P": entry.bf16_flop_per_s, "beta": entry.hbm_bytes_per_s}


def on_device(case: Case, device: str) -> Case:
    """The case on other GPUs."""
    return replace(case, engine=on(case.engine, device))


def device_name(device: str) -> str:
    """The name of a device by its id."""
    return catalogue.device(device).name


def device_names(devices: Sequence[str]) -> str:
    """Their names in one line."""
    return t("list.separator").join(map(device_name, devices))


def devices_chosen(own: str) -> tuple[str, ...]:
    """The scenario's device and up to four others; the address keeps their ids."""
    known = [name for name in catalogue.devices() if name != own]
    code = code_field("devices")
    wanted = code.split(",") if code else _DEFAULTS
    others = [name for name in known if name in wanted][:MOST_OTHERS]
    st.session_state["choice.devices"] = others

    def take() -> None:
        st.session_state["devices"] = ",".join(st.session_state["choice.devices"]) or "-"

    st.multiselect(
        t("hw.devices", own=device_name(own)),
        known,
        format_func=device_name,
        key="choice.devices",
        on_change=take,
        max_selections=MOST_OTHERS,
        placeholder=t("hw.devices.none"),
    )
    return (own, *others)


def fitting(case: Case, devices: Sequence[str]) -> tuple[str, ...]:
    """Devices on which the model fits; of the others it is said why it does not."""
    found = []
    for device in devices:
        try:
            elsewhere(on_device(case, device))
        except LabError as error:
            _no_room(device, error)
        else:
            found.append(device)
    return tuple(found)


def _no_room(device: str, error: LabError) -> None:
    st.warning(f"**{device_name(device)}**: {error_markdown(error)}", icon=":material/memory:")


# -- numbers of the formulas -----------------------------------------------------------------------


def formula_values(case: Case, **more: float) -> dict[str, float]:
    """The values of every symbol that a formula of this lesson needs, but what ``more`` brings."""
    found, model = dict(values(case)), catalogue.model(case.engine.model)
    batch = found["B_d"]
    found |= {
        "B": batch,
        "T": batch,
        "A": batch * found["ctx"],
        "R_kv": batch * found["ctx"],
        "n": found["ctx"],
        "H": float(model.heads),
        "H_kv": float(max(model.kv_heads, 1)),
        "h": float(model.head_dim),
        "b_kv": float(DTYPE_BYTES[case.engine.memory.kv_dtype]),
        "b_el": 2.0,
        "phi_dev": PRINTED,
        **ratios(case.engine.hardware),
    }
    # One decode of B_d requests, as F5 defines its parts.
    found["F"] = 2 * found["Psi_a"] * batch + 4 * found["n_L"] * found["d_a"] * found["A"]
    found["Q"] = found["b_w"] * found["Psi_a"] + found["kappa"] * found["R_kv"]
    found["t_c"] = found["F"] / (found["g"] * found["P"] * found["eta_c"])
    found["t_m"] = found["Q"] / (found["g"] * found["beta"] * found["eta_m"])
    found["X_old"], found["X_new"] = (get(name).evaluate(found) for name in ("F15", "F17"))
    found["Delta"] = get("F17a").evaluate(found)
    return found | more


def where(case: Case) -> dict[str, str]:
    """Of each symbol where its value comes from, and which control moves it."""
    name = device_name(case.engine.hardware)
    model = catalogue.model(case.engine.model).name
    groups = (
        (("B_s", "B_d", "B", "T", "L_in", "L"), t("hw.where.panel")),
        (("A", "R_kv", "n", "ctx", "F", "Q", "t_c", "t_m"), t("hw.where.context")),
        (("P", "beta", "g"), t("thr.where.device", name=name)),
        (("r_P", "r_beta"), t("hw.where.ratio", name=name, reference=device_name(REFERENCE))),
        (
            ("Psi_a", "n_L", "d_a", "kappa", "b_w", "H", "H_kv", "h", "b_kv"),
            t("thr.where.model", name=model),
        ),
        (("eta_c", "eta_m", "t_0"), t("thr.where.clock")),
        (("t_d", "t_ds", "t_p", "t_pB"), t("thr.where.f5")),
        (("b_blk", "f_mem"), t("hw.where.slider")),
        (("b_el",), t("hw.where.element")),
        (("phi_dev",), t("hw.where.printed")),
        (("X_old", "X_new", "Delta"), t("hw.where.f17")),
    )
    return {symbol: words for symbols, words in groups for symbol in symbols}


def spot_name(kind: str, batch: int, prompt: int, t) -> str:
    """An iteration in words."""
    return t(f"hw.spot.{kind}", batch=batch, prompt=f"{prompt:,}")


def mixed(case: Case) -> list[Mixture]:
    """Pairs of runs at batches from 1 to 256; none where the model does not fit on both."""
    try:
        return [mixture(replace(case, dynamic_batch=batch)) for batch in _MIXED_BATCHES]
    except LabError:
        return []


def decode_intensity(case: Case) -> float | None:
    """FLOP/byte of decode attention (F4b); None where all heads share a latent cache."""
    if catalogue.model(case.engine.model).kv_kind == "mla":
        return None
    return get("F4b").evaluate(formula_values(case))


def border_numbers(case: Case) -> dict[str, str]:
    """F7 of the case's model, in tokens and in requests of its mean context."""
    tokens = kv_border(case)
    context = values(case)["ctx"]
    return {
        "tokens": significant(tokens),
        "requests": significant(tokens / context),
        "context": significant(context),
    }


def prediction_numbers(case: Case, before: str, after: str) -> Mapping[str, str]:
    """Milliseconds on two devices: of the prefill, of one decode, and of B_d decodes together."""
    found = {}
    for moment, device in (("before", before), ("after", after)):
        seconds = {(s.kind, s.batch): s.seconds for s in spots(on_device(case, device))}
        for name, key in (
            ("prefill", ("prefill", 1)),
            ("single", ("decode", 1)),
            ("full", ("decode", case.dynamic_batch)),
        ):
            found[f"{name}_{moment}"] = significant(1e3 * seconds[key])
    return found


# -- what a run's seconds went into ----------------------------------------------------------------


class Run(NamedTuple):
    """The scenario on a device, and what its seconds went into."""

    device: str
    scenario: Scenario
    found: Causes


def causes_under(scenario: Scenario, devices: Sequence[str]) -> list[Run]:
    """The same requests on each device; of those on which they cannot run it is said why.

    Empty where there is nothing to compare.
    """
    if scenario.workload.n_requests > MOST_MEASURED:
        st.info(t("hw.too_large", n=f"{MOST_MEASURED:,}"), icon=":material/speed:")
        return []
    clock = scenario.clock if isinstance(scenario.clock, Roofline) else Roofline()
    found, unused = [], []
    for device in devices:
        try:
            there = replace(scenario, hardware=device, clock=clock)
            why = causes_of(key_of(there))
        except LabError as error:
            _no_room(device, error)
        else:
            if why is None:
                unused.append(device)
            else:
                found.append(Run(device, there, why))
    if unused:
        st.info(t("hw.nothing_ran", devices=device_names(unused)), icon=":material/block:")
    return found


@st.cache_resource(max_entries=64, show_spinner=False)
def causes_of(run: Key) -> Causes | None:
    """What the seconds of a run went into; None if nobody was served."""
    there = run.scenario
    return causes(simulated(there), there.cost(), there.n_engines)
