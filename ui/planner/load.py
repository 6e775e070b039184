"""The answers over the load: engines and price against requests per second."""

from __future__ import annotations

import numpy as np
import streamlit as st

from charts import planner as charts
from charts.planner import Sizes
from model.scenario import Scenario
from ui.language import current_language, translator
from ui.pictures import Picture, draw
from ui.planner.asks import Asked
from ui.theme import current_theme
from validation.planner import Refusal, engines_at, price_of_a_million
from validation.planner_load import at_rate, load_of
from validation.planner_split import split

__all__ = ["load_picture"]

_SHARES = np.linspace(0.05, 2.0, 79)


def load_picture(asked: Asked) -> None:
    """GPUs and price from a twentieth of the load to twice as much."""
    key = asked.scenario, asked.promise, asked.price, current_language(), current_theme()
    draw(_picture(*key), "plan.load")


@st.cache_resource(max_entries=64, show_spinner=False)
def _picture(
    scenario: Scenario, promise: float | None, price: float, language: str, theme: str
) -> Picture:
    t, load = translator(language), load_of(scenario)
    rates = _SHARES * load.rate_per_s
    both = np.full((2, len(rates)), np.nan)
    for place, rate in enumerate(rates):
        at = at_rate(scenario, float(rate))
        both[0, place] = engines_at(scenario, promise, float(rate)) * scenario.tensor_parallel
        pools = split(at, promise)
        both[1, place] = np.nan if isinstance(pools, Refusal) else pools.gpus
    names = t("plan.load.together"), t("plan.load.pools")
    sizes = tuple(
        Sizes(name, gpus, _prices(gpus, price, rates * load.output_tokens))
        for name, gpus in zip(names, both, strict=True)
    )
    figure = charts.over_load(rates, sizes, load.rate_per_s, t, theme)
    return Picture(figure, charts.description(rates, sizes, t))


def _prices(gpus: np.ndarray, price: float, tokens_per_s: np.ndarray) -> np.ndarray:
    return np.array(
        [
            np.nan if np.isnan(n) else price_of_a_million(n, price, rate)
            for n, rate in zip(gpus, tokens_per_s, strict=True)
        ]
    )
