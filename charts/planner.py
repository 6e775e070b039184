"""Engines and price over the load: steps, because engines come whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from charts.numbers import significant
from charts.slo import Curve, Place, Row, rows

__all__ = ["Sizes", "description", "over_load"]

Translator = Callable[..., str]


class Sizes(NamedTuple):
    """A way to deploy: GPUs and the price of a million output tokens at each rate."""

    name: str
    gpus: np.ndarray
    price: np.ndarray


def over_load(
    rates: np.ndarray,
    sizes: tuple[Sizes, ...],
    at: float,
    t: Translator,
    theme: str = "light",
) -> go.Figure:
    """GPUs above, price below, both over requests/s; ``at`` marks the load asked for."""
    dashes = ("solid", "dash")

    def curves(field: str) -> list[Curve]:
        return [
            Curve(
                one.name,
                rates,
                getattr(one, field),
                place,
                dashes[place],
                marks=False,
                steps=field == "gpus",
            )
            for place, one in enumerate(sizes)
        ]

    parts = (
        Row(t("plan.load.gpus"), t("plan.load.gpus.more"), "", curves("gpus")),
        Row(t("plan.load.price"), t("plan.load.price.more"), " $", curves("price")),
    )
    words = t("plan.load.at", rate=significant(at))
    axis = t("plan.load.x"), t("plan.load.x.says")
    return rows(parts, *axis, theme, height=470, at=(Place(at, words),))


def description(rates: np.ndarray, sizes: tuple[Sizes, ...], t: Translator) -> str:
    """What the figure shows, for those who do not see it."""
    said = [
        t("plan.load.alt.one", name=one.name, first=significant(one.gpus[0]),
          last=significant(one.gpus[-1]))
        for one in sizes
    ]  # fmt: skip
    return t("plan.load.alt", low=significant(rates[0]), high=significant(rates[-1]),
             said="; ".join(said))  # fmt: skip
