"""Figures of the lesson on hardware: what they show is what they were given."""

import numpy as np
import pytest

from charts import hardware, hardware_causes, hardware_curves
from charts.palette import THEMES


def said(key, **values):
    return " ".join([key, *(f"{name}={value}" for name, value in values.items())])


def named(figure, start):
    return [trace for trace in figure.data if (trace.name or "").startswith(start)]


@pytest.mark.parametrize("theme", THEMES)
def test_a_roof_bends_at_its_ridge(theme):
    roofs = [hardware.Roof("A", 300e12, 2e12, 150e12, 1.6e12, "ink")]
    spots = [
        hardware.Spot("p", "prefill", 500.0, 140e12, 500.0, 141e12),
        hardware.Spot("d", "decode", 1.0, 1.4e12, None, None),
    ]
    figure = hardware.roofline(roofs, spots, said, theme)
    peak, achieved = figure.data[:2]
    assert (peak.x[1], peak.y[1], peak.y[2]) == (150.0, 300.0, 300.0)
    assert (achieved.x[1], achieved.y[1]) == (93.75, 150.0)
    assert achieved.line.dash == "dash"
    (runs,) = named(figure, "hw.run")
    assert list(runs.y) == [141.0, None]
    assert [figure.layout.xaxis.type, figure.layout.yaxis.type] == ["log", "log"]


def test_batches_that_do_not_exist_are_not_drawn():
    rows = [
        hardware.Batches("A", 153, 96, 97, None, 600),
        hardware.Batches("B", 37, 23, 24, 26, None),
    ]
    figure = hardware.batches(rows, ((16.0, "Bs"),), said)
    (context,) = named(figure, "hw.batches.in_context")
    assert list(context.x) == [None, 26]
    assert list(context.y) == ["A", "B"]


def test_gains_are_percent_and_the_printed_line_runs_through_all():
    rows = [hardware.Gain("A", 0.64, 0.63), hardware.Gain("B", 0.74, 0.73)]
    figure = hardware.gains(rows, 0.64, 0.544, said)
    assert list(figure.data[0].x) == pytest.approx([64, 74])
    assert list(figure.data[1].x) == pytest.approx([63, 73])
    (printed,) = named(figure, "hw.gain.printed")
    assert list(printed.x) == pytest.approx([54.4, 54.4])


def test_a_ridge_is_marked_where_the_tile_reaches_it():
    blocks = np.array([16.0, 64.0, 1024.0])
    levels = [hardware_curves.Level("A", 153.0, 229.5, "ink")]
    figure = hardware_curves.tiles(blocks, blocks * 2 / 3, levels, (64.0, 42.7), 4.0, said)
    (level,) = named(figure, "hw.tile.level")
    assert (level.x[1], level.y[1]) == (229.5, 153.0)
    assert "needed=230" in level.name


def test_only_reachable_ratios_are_marked():
    shares = np.array([0.0, 1.0])
    places = [hardware_curves.Place(0.5, 1.0, 8)]
    curves = [
        hardware_curves.Curve("A", np.array([1.2, 0.8]), 0.78, places, 0),
        hardware_curves.Curve("B", np.array([3.0, 1.6]), None, (), 1),
    ]
    figure = hardware_curves.mixtures(shares, curves, 0.85, 0.65, said)
    crosses = [trace for trace in figure.data if trace.marker.symbol == "x"]
    assert list(crosses[0].x) == [78.0]
    assert named(figure, "hw.mix.solved")[0].name.endswith("f=78.0")


@pytest.mark.parametrize("theme", THEMES)
def test_shares_and_strips_are_percent(theme):
    strip = np.array([[0.5, 0.2], [0.2, 0.5], [0.1, 0.1], [0.2, 0.1], [0.0, 0.1]])
    row = hardware_causes.Row("A", strip.mean(axis=1), np.array([0.0, 1.0, 2.0]), strip)
    bars = hardware_causes.shares([row], said, theme)
    assert sum(trace.x[0] for trace in bars.data) == pytest.approx(100)
    strips = hardware_causes.strips([row, row], said, theme)
    assert len(strips.data) == 10
    assert list(strips.data[0].y) == pytest.approx([50, 50, 20, 20])
    assert len({trace.fillpattern.shape for trace in strips.data[:4]}) == 4


@pytest.mark.parametrize("devices", range(1, 6))
def test_strips_of_any_number_of_devices_fit_on_the_paper(devices):
    row = hardware_causes.Row("A", [1.0, 0, 0, 0, 0], np.array([0.0, 1.0]), np.eye(5, 1))
    figure = hardware_causes.strips([row] * devices, said)
    axes = [figure.layout[f"yaxis{n}" if n > 1 else "yaxis"] for n in range(1, devices + 1)]
    assert min(axis.domain[0] for axis in axes) == pytest.approx(0)
    assert len({axis.domain for axis in axes}) == devices
