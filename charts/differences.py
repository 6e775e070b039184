"""What differs between a run and its baseline, number by number, and whether that is good."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from charts.numbers import NOTHING, shown, significant
from model.metrics import METRICS

__all__ = ["VERDICTS", "Difference", "differences", "in_words"]

VERDICTS = ("better", "worse", "neutral")
_ROUNDING = 1e-9  # relative; closer numbers are the same number computed another way

Translator = Callable[..., str]


class Difference(NamedTuple):
    """``delta`` is value − baseline, nan where one of them is not defined."""

    metric: str
    value: float
    baseline: float
    delta: float
    verdict: str

    @property
    def relative(self) -> float:
        """delta over the baseline's size; nan where that is 0 or not defined."""
        return self.delta / abs(self.baseline) if self.baseline else float("nan")


def differences(
    summary: Mapping[str, float],
    baseline_summary: Mapping[str, float],
    metrics: Iterable[str] | None = None,
) -> list[Difference]:
    """One row a metric (default: all of METRICS that both runs have), in the order of METRICS.

    A verdict is "neutral" where the numbers agree, cannot be compared, or where METRICS says
    that neither direction is better.
    """
    wanted = METRICS if metrics is None else metrics
    rows = []
    for metric in wanted:
        if metric not in summary or metric not in baseline_summary:
            continue
        value, baseline = float(summary[metric]), float(baseline_summary[metric])
        delta = value - baseline
        if abs(delta) <= _ROUNDING * max(abs(value), abs(baseline)):
            delta = 0.0
        rows.append(Difference(metric, value, baseline, delta, _verdict(metric, delta)))
    return rows


def _verdict(metric: str, delta: float) -> str:
    better = METRICS[metric].better
    if not better or not delta or math.isnan(delta):
        return "neutral"
    return "better" if (delta > 0) == (better == "higher") else "worse"


def in_words(row: Difference, t: Translator) -> dict[str, str]:
    """The row for a table: name, value, baseline, delta (with its share) and verdict, as text."""
    delta = shown(row.metric, row.delta, t, signed=True)
    if METRICS[row.metric].unit == "1" and row.metric.endswith("_share") and delta != NOTHING:
        # A difference of shares is one of points, not of percent.
        delta = f"{delta.removesuffix(t('unit.percent')).rstrip()} {t('unit.points')}"
    elif row.delta and math.isfinite(row.relative):
        share = significant(abs(row.relative) * 100)
        delta = t("ghost.delta", delta=delta, share=("−" if row.delta < 0 else "+") + share)
    return {
        "name": t(f"measure.{row.metric}"),
        "value": shown(row.metric, row.value, t),
        "baseline": shown(row.metric, row.baseline, t),
        "delta": delta,
        "verdict": t(f"verdict.{row.verdict}"),
    }
