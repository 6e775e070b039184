"""The pictures of the lesson on hardware, kept for all sessions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts import hardware as charts
from charts import hardware_causes as cause_charts
from charts import hardware_curves as curve_charts
from formulas import get
from ui.hardware import (
    PRINTED,
    Run,
    causes_of,
    decode_intensity,
    device_name,
    device_names,
    mixed,
    on_device,
    spot_name,
)
from ui.language import current_language, t, translator
from ui.pictures import Key, Picture, draw, key_of
from ui.theme import current_theme
from validation.hardware import critical, elsewhere, on, roof, spots, tile
from validation.hardware_factor import ratio_at, share_for
from validation.throughput import Case

__all__ = [
    "batches_picture",
    "causes_pictures",
    "gains_picture",
    "mixtures_picture",
    "roofline_picture",
    "tiles_picture",
]

_BLOCKS = np.geomspace(16, 1024, 61)
_SHARES = np.linspace(0, 1, 51)


def _colors(devices: Sequence[str], own: str) -> list[str | int]:
    """Of the charts: ink for the scenario's own device, a place in the series for the others."""
    places = itertools.count()
    return ["ink" if device == own else next(places) for device in devices]


def _draw(figure: go.Figure, key: str, alt: str) -> None:
    draw(Picture(figure, alt), key)


def roofline_picture(case: Case, devices: tuple[str, ...]) -> None:
    """Roofs of the devices, and the case's iterations on its own."""
    alt = t("hw.roof.alt", devices=device_names(devices))
    _draw(_roofline(case, devices, current_language(), current_theme()), "hw.roof", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _roofline(case: Case, devices: tuple[str, ...], language: str, theme: str) -> go.Figure:
    t = translator(language)
    roofs = []
    for device, color in zip(devices, _colors(devices, case.engine.hardware), strict=True):
        found = roof(on(case.engine, device))
        roofs.append(
            charts.Roof(
                device_name(device),
                found.flop_per_s,
                found.bytes_per_s,
                found.achieved_flop_per_s,
                found.achieved_bytes_per_s,
                color,
            )
        )
    marks = [
        charts.Spot(
            spot_name(spot.kind, spot.batch, case.prompt_tokens, t),
            spot.kind,
            spot.intensity,
            spot.flop_per_s,
            spot.run_intensity,
            spot.run_flop_per_s,
        )
        for spot in spots(case)
    ]
    return charts.roofline(roofs, marks, t, theme)


def batches_picture(case: Case, devices: tuple[str, ...]) -> None:
    """Critical batches on one line a device."""
    alt = t("hw.batches.alt", devices=device_names(devices))
    _draw(_batches(case, devices, current_language(), current_theme()), "hw.batches", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _batches(case: Case, devices: tuple[str, ...], language: str, theme: str) -> go.Figure:
    rows = []
    for device in devices:
        found = critical(on_device(case, device))
        rows.append(
            charts.Batches(
                device_name(device),
                found.peak,
                found.achieved,
                found.run,
                found.in_context,
                found.memory_holds,
            )
        )
    at = dict.fromkeys([(float(case.static_batch), "B<sub>s</sub>"),
                        (float(case.dynamic_batch), "B<sub>d</sub>")])  # fmt: skip
    return charts.batches(rows, tuple(at), translator(language), theme)


def gains_picture(case: Case, devices: tuple[str, ...]) -> None:
    """Δ on each device."""
    alt = t("hw.gain.alt", devices=device_names(devices))
    _draw(_gains(case, devices, current_language(), current_theme()), "hw.gain", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _gains(case: Case, devices: tuple[str, ...], language: str, theme: str) -> go.Figure:
    found = [elsewhere(on_device(case, device)) for device in devices]
    rows = [charts.Gain(device_name(one.device), one.formula, one.simulated) for one in found]
    reference = found[0].formula
    printed = get("F39p").evaluate({"Delta": reference, "phi_dev": PRINTED})
    return charts.gains(rows, reference, printed, translator(language), theme)


def tiles_picture(case: Case, devices: tuple[str, ...], block: float) -> None:
    """Intensity of an attention tile over its block."""
    alt = t("hw.tile.alt", devices=device_names(devices))
    _draw(_tiles(case, devices, block, current_language(), current_theme()), "hw.tile", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _tiles(case: Case, devices: tuple[str, ...], block: float, language: str, theme: str):
    F4c = get("F4c")
    intensity = np.array([F4c.evaluate({"b_blk": b, "b_el": 2.0}) for b in _BLOCKS])
    levels = []
    for device, color in zip(devices, _colors(devices, case.engine.hardware), strict=True):
        found = tile(device, block)
        levels.append(
            curve_charts.Level(device_name(device), found.ridge, found.needed, color)
        )
    here = block, F4c.evaluate({"b_blk": block, "b_el": 2.0})
    decode = decode_intensity(case)
    return curve_charts.tiles(
        _BLOCKS, intensity, levels, here, decode, translator(language), theme
    )


def mixtures_picture(case: Case, devices: tuple[str, ...], share: float) -> None:
    """F39 over the share f, with pairs of runs."""
    alt = t("hw.mix.alt", devices=device_names(devices))
    _draw(_mixtures(case, devices, share, current_language(), current_theme()), "hw.mix", alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _mixtures(case: Case, devices: tuple[str, ...], share: float, language: str, theme: str):
    curves = []
    for device, color in zip(devices, _colors(devices, case.engine.hardware), strict=True):
        runs = [
            curve_charts.Place(found.measured_f, found.simulated, found.batch)
            for found in mixed(on_device(case, device))
        ]
        curves.append(
            curve_charts.Curve(
                device_name(device),
                ratio_at(device, _SHARES),
                share_for(device, PRINTED),
                runs,
                color,
            )
        )
    return curve_charts.mixtures(_SHARES, curves, PRINTED, share, translator(language), theme)


def causes_pictures(runs: Sequence[Run]) -> None:
    """Shares side by side, and strips over time."""
    words = current_language(), current_theme()
    names = device_names([run.device for run in runs])
    keys = tuple((run.device, key_of(run.scenario)) for run in runs)
    shares, strips = _cause_figures(keys, *words)
    _draw(shares, "hw.causes", t("hw.causes.alt", devices=names))
    _draw(strips, "hw.strips", t("hw.strips.alt", devices=names))


@st.cache_resource(max_entries=64, show_spinner=False)
def _cause_figures(
    runs: tuple[tuple[str, Key], ...], language: str, theme: str
) -> tuple[go.Figure, go.Figure]:
    rows = []
    for device, key in runs:
        found = causes_of(key)
        shares = list(found.shares.values())
        rows.append(cause_charts.Row(device_name(device), shares, found.edges_s, found.strip))
    t = translator(language)
    return cause_charts.shares(rows, t, theme), cause_charts.strips(rows, t, theme)
