"""The table, the curves and the file of a comparison."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

import streamlit as st

from charts import policies as charts
from charts.policy_table import Head, Row, table
from charts.sheet import plain
from model import metrics
from model.parting import Parting, parting
from model.scenario import Scenario
from ui.engine import simulated, summary
from ui.language import current_language, definition, t, translator
from ui.parameter_words import class_word
from ui.pictures import Key, Picture, draw, key_of
from ui.policies.contestants import Run
from ui.theme import current_theme

Ends = tuple[metrics.LengthEnd, metrics.LengthEnd]

__all__ = [
    "alike",
    "best_of",
    "csv_of",
    "curves_picture",
    "of_panel",
    "parted",
    "rows",
    "show_table",
]

ATTAINMENT = "slo_attainment_share"
_GROUPS = (
    ("throughput", ("throughput_output_tokens_per_s", "throughput_requests_per_s")),
    ("ttft", ("ttft_mean_s", *(f"ttft_p{share}_s" for share in metrics.PERCENTILES))),
    ("tpot", tuple(f"tpot_p{share}_s" for share in metrics.PERCENTILES)),
    ("promises", (ATTAINMENT, "ttft_attainment_share", "tpot_attainment_share")),
    (
        "price",
        (
            *("preemptions", "wasted_tokens_share", "residency_share"),
            *("head_of_line_blocking_s", "rejected_requests"),
        ),
    ),
    ("fairness", ("fairness_jain",)),
)
_BETWEEN = "fairness_between_classes_jain"
_BY_LENGTH = ("ttft_mean_s", ATTAINMENT)
_ENDS = ("shortest", "longest")


def rows(runs: Sequence[Run]) -> list[Row]:
    """The rows of the table: of each run, of each class where there are several, by length."""
    numbers = [summary(run.scenario) for run in runs]
    classes = [_by_class(key_of(run.scenario)) for run in runs]
    ends = [_by_length(key_of(run.scenario)) for run in runs]
    found = []
    for group, names in _GROUPS:
        title = t(f"pol.group.{group}")
        for metric in names:
            found.append(_row(title, metric, numbers))
            if metric == ATTAINMENT and len(classes[0]) > 1:
                found += _class_rows(title, classes)
            if metric in _BY_LENGTH and None not in ends:
                found += _length_rows(title, metric, ends)
        if group == "fairness" and len(classes[0]) > 1:
            found.append(_row(title, _BETWEEN, numbers))
    return found


def _row(title: str, metric: str, numbers: Sequence[Mapping[str, float]]) -> Row:
    values = tuple(float(one[metric]) for one in numbers)
    return Row(title, metric, t(f"measure.{metric}"), definition(metric), values)


def _class_rows(title: str, classes: Sequence[Mapping[str, Mapping[str, float]]]) -> list[Row]:
    return [
        Row(
            title,
            ATTAINMENT,
            t("pol.of_class", name=class_word(name)),
            definition(ATTAINMENT),
            tuple(float(one[name][ATTAINMENT]) for one in classes),
        )
        for name in classes[0]
    ]


def _length_rows(title: str, metric: str, ends: Sequence[Ends]) -> list[Row]:
    return [
        Row(
            title,
            metric,
            t(f"pol.{name}", n=ends[0][place].tokens),
            definition(metric),
            tuple(float(getattr(pair[place], metric)) for pair in ends),
        )
        for place, name in enumerate(_ENDS)
    ]


@st.cache_resource(max_entries=64, show_spinner=False)
def _by_length(run: Key) -> Ends | None:
    return metrics.length_ends(simulated(run.scenario).requests, run.scenario.slo)


@st.cache_resource(max_entries=64, show_spinner=False)
def _by_class(run: Key) -> Mapping[str, Mapping[str, float]]:
    return metrics.class_summary(simulated(run.scenario))


def show_table(runs: Sequence[Run], panel: object) -> None:
    """The table; ``panel`` is the policy that the panel has chosen."""
    heads = [Head(run.name, run.variant, run.scenario.policy == panel) for run in runs]
    words = translator(current_language())
    st.html(table(heads, rows(runs), words, current_theme()))


def csv_of(runs: Sequence[Run]) -> bytes:
    """One line a policy: its id, its name, its settings, every metric under its key.

    What belongs to a class, or to the shortest or longest tenth, follows as METRIC.WHOSE. A metric
    that is not defined is empty.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    own = [_parts(key_of(run.scenario)) for run in runs]
    writer.writerow(("id", "policy", "settings", *metrics.METRICS, *own[0]))
    for run, parts in zip(runs, own, strict=True):
        numbers = summary(run.scenario)
        values = [*(numbers[metric] for metric in metrics.METRICS), *parts.values()]
        settings = " ".join(f"{name}={value}" for name, value in run.contestant.settings)
        cells = ("" if isinstance(v, float) and math.isnan(v) else v for v in values)
        writer.writerow((run.id, run.contestant.policy, settings, *cells))
    return text.getvalue().encode()


def _parts(run: Key) -> Mapping[str, float]:
    """Numbers of classes and of both ends by length, under METRIC.WHOSE."""
    classes, ends = _by_class(run), _by_length(run)
    found = {f"{ATTAINMENT}.{name}": one[ATTAINMENT] for name, one in classes.items()}
    if len(classes) < 2:
        found = {}
    for name, end in zip(_ENDS, ends or (), strict=False):
        found |= {f"{metric}.{name}": getattr(end, metric) for metric in _BY_LENGTH}
    return found


def best_of(runs: Sequence[Run], metric: str = ATTAINMENT) -> list[Run]:
    """The runs that are best in a metric of which more is better; several where they are equal."""
    values = [float(summary(run.scenario)[metric]) for run in runs]
    highest = max(values)
    return [run for run, value in zip(runs, values, strict=True) if value >= highest - 1e-9]


def of_panel(runs: Sequence[Run], panel: Scenario) -> Run:
    """The run of the panel's policy, or the first where that takes no part."""
    return next((one for one in runs if one.scenario == panel), runs[0])


def alike(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups that decided alike from beginning to end."""
    groups: list[list[Run]] = []
    for one in runs:
        same = (group for group in groups if parted(group[0], one) is None)
        if (group := next(same, None)) is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


def parted(one: Run, other: Run) -> Parting | None:
    """The first decision in which two runs differ, kept like the runs themselves."""
    return _parted(key_of(one.scenario), key_of(other.scenario))


@st.cache_resource(max_entries=256, show_spinner=False)
def _parted(one: Key, other: Key) -> Parting | None:
    if one == other:
        return None
    return parting(simulated(one.scenario), simulated(other.scenario))


def curves_picture(runs: Sequence[Run]) -> None:
    """The distributions of all runs in one picture."""
    keys = tuple(key_of(run.scenario) for run in runs)
    names = tuple(run.label for run in runs)
    draw(_curves(keys, names, current_language(), current_theme()), "pol.curves")


@st.cache_resource(max_entries=64, show_spinner=False)
def _curves(keys: tuple[Key, ...], names: tuple[str, ...], language: str, theme: str) -> Picture:
    slo = keys[0].scenario.slo
    bounds_s = {"ttft": slo.ttft_s, "tpot": slo.tpot_s}
    found = [
        charts.curves(plain(name), simulated(key.scenario))
        for key, name in zip(keys, names, strict=True)
    ]
    words = translator(language)
    figure = charts.distributions(found, bounds_s, words, theme)
    return Picture(figure, charts.description(found, bounds_s, words))
