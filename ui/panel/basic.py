"""The basic part of the panel: preset, policy, Bs, Bd, Lin, L, hardware, model."""

from __future__ import annotations

import streamlit as st

from model import catalogue
from model.kv_cache import TENSOR_PARALLEL_SIZES
from model.schedulers import POLICIES
from ui.language import current_language, t, translator
from ui.panel import session
from ui.panel.choices import Draft, is_static
from ui.panel.controls import emphasize, select, steps
from ui.panel.notes import Notes

__all__ = ["basic_panel", "preset_row", "preset_select"]

BATCHES = (
    *range(1, 17),
    *(20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 100, 112, 128, 160, 192, 200, 224, 256),
    *(320, 384, 448, 512, 640, 768, 896, 1024),
)
TOKENS = (
    *(1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 320, 384, 448, 512, 640, 768, 896),
    *(1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192),
)
PROMPT_TOKENS = (*TOKENS, 10240, 12288, 16384, 20480, 24576, 32768)


def preset_select() -> None:
    """Where to start from: a preset, or the file that is in use."""
    words = translator(current_language())
    name = session.current_choices().base
    file = session.held_now()
    known = tuple(catalogue.presets())
    if name not in known:
        known = (*known, name)

    def called(base: str) -> str:
        if base in catalogue.presets():
            return words(f"preset.{base}")
        return words("panel.file", name=file.title) if file else words("panel.missing_file")

    select("preset", t("panel.preset"), known, name, called, session.choose_base)


def preset_row(found: Draft) -> None:
    """What the preset is about while it is unchanged; afterwards the way back."""
    name = found.choices.base
    if not found.is_unchanged:
        st.button(
            t("panel.reset"),
            key="panel.reset",
            type="tertiary",
            icon=":material/undo:",
            help=t("panel.reset.help"),
            on_click=session.reset,
        )
    elif name in catalogue.presets():
        st.caption(t(f"preset.{name}.about"))
    else:
        st.caption(t("panel.file.about", hash=name.removeprefix("bundle-")))


def basic_panel(found: Draft, notes: Notes) -> st.delta_generator.DeltaGenerator:
    """Draw the controls; returns the place under Bd for what the simulation measures."""
    words = translator(current_language())
    basic, own = found.basic, found.own
    select(
        "policy",
        t("panel.policy"),
        tuple(POLICIES),
        basic["policy"],
        lambda policy: words(f"policy.{policy}"),
        lambda policy: session.change_basic("policy", policy),
        help=t("panel.policy.help"),
    )
    notes.under("policy")
    emphasize("choice.bs" if is_static(basic["policy"]) else "choice.bd")
    for name in ("bs", "bd"):
        steps(
            name,
            t(f"panel.{name}"),
            BATCHES,
            basic[name],
            own[name],
            help=t(f"panel.{name}.help"),
        )
        notes.under(name)
    measured = st.empty()
    for name, scale in (("lin", PROMPT_TOKENS), ("l", TOKENS)):
        steps(
            name,
            t(f"panel.{name}"),
            scale,
            basic[name],
            own[name],
            help=t(f"panel.{name}.help"),
            disabled=found.base.has_trace,
        )
        notes.under(name)
    _hardware(found, notes)
    _model(found, notes)
    return measured


def _hardware(found: Draft, notes: Notes) -> None:
    devices = catalogue.devices()
    device, gpus = st.columns([5, 3], vertical_alignment="bottom")
    with device:
        select(
            "hardware",
            t("panel.hardware"),
            tuple(devices),
            found.basic["hardware"],
            lambda name: devices[name].name,
            lambda name: session.change_basic("hardware", name),
        )
    sizes = sorted({*TENSOR_PARALLEL_SIZES, found.basic["gpus"]})
    with gpus:
        select(
            "gpus",
            t("panel.gpus"),
            tuple(map(str, sizes)),
            str(found.basic["gpus"]),
            str,
            lambda size: session.change_basic("gpus", int(size)),
            help=t("panel.gpus.help"),
        )
    notes.under("hardware")
    notes.under("gpus")


def _model(found: Draft, notes: Notes) -> None:
    models = catalogue.models()
    select(
        "model",
        t("panel.model"),
        tuple(models),
        found.basic["model"],
        lambda name: models[name].name,
        lambda name: session.change_basic("model", name),
    )
    notes.under("model")
