"""The tables of the lesson on hardware, as Markdown: formulas beside runs (bold)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from model import catalogue
from ui.hardware import Run, device_name, mixed, on_device, spot_name
from ui.language import t
from ui.reference.marks import table
from ui.units import NOTHING, signed, significant
from validation.hardware import critical, elsewhere, spots, tile
from validation.throughput import Case

__all__ = [
    "batches_table",
    "blocks_table",
    "causes_table",
    "gains_table",
    "mixtures_table",
    "sources_table",
    "spots_table",
]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """A Markdown table of numbers; columns in ``words`` stand to the left."""
    return table(heads, rows, [place for place in range(len(heads)) if place not in words])


def _whole(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _milliseconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else significant(1e3 * seconds)


def spots_table(case: Case, devices: Sequence[str]) -> str:
    """Seconds of the case's iterations on each device: F5, and the run's."""
    heads = [t("hw.table.iteration"), t("hw.table.intensity"), *map(device_name, devices)]
    found = [spots(on_device(case, device)) for device in devices]
    rows = []
    for place, spot in enumerate(found[0]):
        times = (column[place] for column in found)
        rows.append(
            [
                spot_name(spot.kind, spot.batch, case.prompt_tokens, t),
                significant(spot.intensity),
                *(
                    f"{_milliseconds(one.seconds)} · **{_milliseconds(one.run_seconds)}**"
                    for one in times
                ),
            ]
        )
    return _table(heads, rows)


def batches_table(case: Case, devices: Sequence[str]) -> str:
    """F4, F6 and the simulated crossings of each device."""
    fields = ("device", "ridge", "peak", "achieved", "run", "context", "context_run", "holds")
    rows = []
    for device in devices:
        one = critical(on_device(case, device))
        rows.append(
            [
                device_name(device),
                significant(one.ridge),
                significant(one.peak),
                significant(one.achieved),
                f"**{_whole(one.run)}**",
                _whole(one.in_context) if one.in_context else t("hw.never"),
                f"**{_whole(one.run_in_context)}**",
                _whole(one.memory_holds),
            ]
        )
    return _table([t(f"hw.table.{field}") for field in fields], rows)


def sources_table(devices: Sequence[str]) -> str:
    """Where a device's numbers come from, and how sure they are."""
    rows = []
    for device in devices:
        entry = catalogue.device(device)
        rows.append(
            [
                entry.name,
                f"{entry.bf16_flop_per_s / 1e12:,g}",
                f"{entry.hbm_bytes_per_s / 1e12:,g}",
                t(f"hw.confidence.{entry.confidence}"),
                entry.source,
            ]
        )
    fields = ("device", "flop", "bandwidth", "confidence", "source")
    return _table([t(f"hw.table.{field}") for field in fields], rows, (0, 3, 4))


def causes_table(runs: Sequence[Run]) -> str:
    """Iterations by what binds them, and the run's length."""
    kinds = ("compute", "weights", "kv", "fixed")
    heads = [
        t("hw.table.device"),
        t("hw.table.length"),
        *(t(f"hw.cause.{kind}") for kind in kinds),
        t("hw.table.memory"),
    ]
    rows = []
    for run in runs:
        found = run.found
        rows.append(
            [
                device_name(run.device),
                f"{significant(found.length_s)} {t('unit.s')}",
                *(f"{found.iterations[kind]:,}" for kind in kinds),
                f"{significant(100 * found.memory_share)} %",
            ]
        )
    return _table(heads, rows)


def gains_table(case: Case, devices: Sequence[str]) -> str:
    """Throughputs and Δ by formula and simulation on each device, and over the first one's."""
    fields = ("device", "static", "continuous", "delta", "delta_run", "static_ratio", "ratio")
    rows, first = [], elsewhere(on_device(case, devices[0]))
    for device in devices:
        one = elsewhere(on_device(case, device))
        rows.append(
            [
                device_name(device),
                f"{significant(one.static.formula)} · **{significant(one.static.simulated)}**",
                f"{significant(one.continuous.formula)} · "
                f"**{significant(one.continuous.simulated)}**",
                signed(one.formula),
                f"**{signed(one.simulated)}**",
                significant(one.static.simulated / first.static.simulated),
                significant(one.continuous.simulated / first.continuous.simulated),
            ]
        )
    return _table([t(f"hw.table.{field}") for field in fields], rows)


def blocks_table(devices: Sequence[str], block: float) -> str:
    """The chosen block against each ridge."""
    rows = []
    for device in devices:
        one = tile(device, block)
        rows.append(
            [
                device_name(device),
                significant(one.ridge),
                f"{math.ceil(one.needed):,}",
                f"{significant(100 * one.share)} %",
                t("hw.tile.compute" if one.share >= 1 else "hw.tile.memory"),
            ]
        )
    fields = ("device", "ridge", "needed", "share", "bound")
    return _table([t(f"hw.table.{field}") for field in fields], rows, (0, 4))


def mixtures_table(case: Case, device: str) -> str:
    """Pairs of runs of one device: the measured f, F39, the ratio of the runs."""
    rows = [
        [
            str(one.batch),
            f"{significant(100 * one.measured_f)} %",
            significant(one.formula),
            f"**{significant(one.simulated)}**",
            signed(one.simulated / one.formula - 1),
        ]
        for one in mixed(on_device(case, device))
    ]
    fields = ("batch", "share_f", "f39", "run_ratio", "gap")
    return _table([t(f"hw.table.{field}") for field in fields], rows, ())
