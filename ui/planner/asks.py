"""What the planner is asked: a rate, two promises, for whom TTFT is promised, a price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from model.parameters import OPEN_LOOP
from model.scenario import Scenario, Slo
from model.steady_load import gpus, rate_of
from ui.choose import choose
from ui.language import t
from ui.scenario import input_tokens, output_tokens
from ui.slo.words import rate_or_none
from validation.planner import PROMISES
from validation.planner_load import asked

__all__ = ["Asked", "asks"]

_TIMES = 10
"""The first question is about so many times the scenario's own rate."""
_USUAL_RATE = 20.0
_PRICE = 2.0  # a teaching value
_RATE, _TTFT_S, _TPOT_MS = (0.01, 10_000.0), (0.01, 600.0), (1.0, 5000.0)  # lowest, highest
_PRICES = (0.01, 1000.0)
_LIMITS = {"rate": _RATE, "ttft": _TTFT_S, "tpot": _TPOT_MS, "price": _PRICES}
_LEFT_OUT = "plan.left_out"
_CODES = dict(zip(("p99", "p90", "mean"), PROMISES, strict=True))


@dataclass(frozen=True, slots=True)
class Asked:
    """One engine with the load and the promises; a share of requests (None: the mean); a price.

    ``price`` is that of a GPU for an hour.
    """

    scenario: Scenario
    promise: float | None
    price: float


def asks(scenario: Scenario) -> Asked:
    """The controls, and what they say; what the panel has beyond their limits is taken to them."""
    _note_left_out()
    own = None if rate_or_none(scenario) is None else rate_of(scenario) * gpus(scenario)
    first, second, third, fourth = st.columns(4, gap="medium", vertical_alignment="bottom")
    rate = first.number_input(
        t("plan.rate"), *_RATE, _first_rate(own), _step(own), "%g",
        key="rate", bind="query-params",
    )  # fmt: skip
    ttft = second.number_input(
        t("plan.ttft"), *_TTFT_S, _within(_TTFT_S, scenario.slo.ttft_s), 0.1, "%g",
        key="ttft", bind="query-params",
    )  # fmt: skip
    tpot = third.number_input(
        t("plan.tpot"), *_TPOT_MS, _within(_TPOT_MS, 1000 * scenario.slo.tpot_s), 5.0, "%g",
        key="tpot", bind="query-params",
    )  # fmt: skip
    price = fourth.number_input(
        t("plan.price"), *_PRICES, _PRICE, 0.1, "%g",
        key="price", bind="query-params", help=t("plan.price.help"),
    )  # fmt: skip
    code = choose("promise", tuple(_CODES), "plan.promise", t("plan.promise"))
    _say_left_out({"rate": rate, "ttft": ttft, "tpot": tpot, "price": price})
    if not _has_rate(scenario):
        st.info(t("plan.no_rate"), icon=":material/schedule:")
    means = input_tokens(), output_tokens()
    one = asked(scenario, rate, Slo(ttft, tpot / 1000), means)
    return Asked(one, _CODES[code], price)


def _note_left_out() -> None:
    """What the link asks for beyond the limits; before the controls, which take it out of it."""
    noted = st.session_state.setdefault(_LEFT_OUT, {})
    for name, limits in _LIMITS.items():
        if name not in st.session_state and not _allowed(st.query_params.get(name), limits):
            noted[name] = None


def _allowed(text: str | None, limits: tuple[float, float]) -> bool:
    try:
        return not text or limits[0] <= float(text) <= limits[1]
    except ValueError:
        return False


def _say_left_out(values: Mapping[str, float]) -> None:
    """Name it until the control is used: ``values`` are what the controls say now."""
    noted = st.session_state[_LEFT_OUT]
    first = {name: values[name] if value is None else value for name, value in noted.items()}
    now = {name: value for name, value in first.items() if value == values[name]}
    st.session_state[_LEFT_OUT] = now
    if now:
        listed = t("list.separator").join(f"`{name}`" for name in now)
        st.warning(t("plan.left_out", names=listed), icon=":material/link_off:")


def _first_rate(own: float | None) -> float:
    return _USUAL_RATE if own is None else _within(_RATE, _TIMES * own)


def _within(limits: tuple[float, float], value: float) -> float:
    lowest, highest = limits
    return min(max(value, lowest), highest)


def _step(own: float | None) -> float:
    return 1.0 if _first_rate(own) >= 10 else 0.1


def _has_rate(scenario: Scenario) -> bool:
    kinds = {stream.arrivals.kind for stream in getattr(scenario.workload, "streams", ())}
    return bool(kinds) and kinds <= set(OPEN_LOOP)
