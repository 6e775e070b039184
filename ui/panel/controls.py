"""Controls that show a value of the draft and write a change into the address.

A control never keeps a value of its own: before it is drawn it is told what holds, and what people
do with it goes through a callback into the choices. So a preset, a link, the back button and a fix
with one click move every control, and nothing depends on which controls are drawn.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

import streamlit as st

from model.scenario import Scenario
from ui.language import t
from ui.panel import session
from ui.panel.choices import Draft, Value
from ui.panel.settings import Setting
from ui.panel.words import (
    choice_word,
    engine_name,
    from_unit,
    help_of,
    in_unit,
    name_of,
    open_value,
    shown,
    unit_of,
)

__all__ = ["emphasize", "select", "setting_control", "steps", "toggle"]

_LONG_NAME = 22
"""Letters from which on a name may break after its underscores."""


def _say(widget: str, value: object, *, anew: bool = False) -> None:
    """Tell a control what holds; only where it differs, so that nothing jumps under the hand."""
    if anew or widget not in st.session_state or st.session_state[widget] != value:
        st.session_state[widget] = value


def select(
    name: str,
    label: str,
    known: Sequence[str],
    value: str | None,
    words: Callable[[str], str],
    take: Callable[[str], None],
    *,
    help: str | None = None,
    disabled: bool = False,
) -> None:
    """A select box over codes; ``take`` gets the code that was picked."""
    widget = f"choice.{name}"
    # The browser knows only the label, in the language before, so the code is said anew.
    _say(widget, value, anew=True)
    st.selectbox(
        label,
        known,
        index=None if value is None else 0,
        format_func=words,
        key=widget,
        on_change=lambda: take(st.session_state[widget]),
        help=help,
        disabled=disabled,
    )


def steps(
    name: str,
    label: str,
    scale: Sequence[int],
    value: int,
    own: int,
    *,
    help: str | None = None,
    disabled: bool = False,
) -> None:
    """A slider over steps that grow with the number.

    The base's own number is always one of the steps, and so is one that came with a link.
    """
    widget = f"choice.{name}"
    _say(widget, value)
    st.select_slider(
        label,
        _with(_with(scale, own), value),
        format_func=lambda number: f"{number:,}",
        key=widget,
        on_change=lambda: session.change_basic(name, st.session_state[widget]),
        help=help,
        disabled=disabled,
    )


def toggle(name: str, label: str, value: bool, take: Callable[[bool], None]) -> None:
    """A switch; ``take`` gets its new position."""
    widget = f"choice.{name}"
    _say(widget, value)
    st.toggle(
        label,
        key=widget,
        help=t(f"{name}.help"),
        on_change=lambda: take(st.session_state[widget]),
    )


def _with(scale: Sequence[int], value: int) -> Sequence[int]:
    place = bisect_left(scale, value)
    if place < len(scale) and scale[place] == value:
        return scale
    return (*scale[:place], value, *scale[place:])


def emphasize(*widgets: str) -> None:
    """Print the labels of these controls bold; marks in a label would be read aloud."""
    if widgets:
        rules = ", ".join(f".st-key-{re.sub('[^a-z0-9]', '-', w)} label p" for w in widgets)
        st.html(f"<style>{rules} {{ font-weight: 700 }}</style>")


def setting_control(setting: Setting, found: Draft, *, of_stream: str = "") -> None:
    """The control of a setting, and a way back to the base's value where it is changed."""
    changed = setting.code in found.defaults
    value = found.values[setting.code]
    draw = {"flag": _flag, "choice": _choice}.get(setting.kind, _number)
    draw(setting, value, _label(setting, of_stream), found.scenario)
    if changed:
        default = found.defaults[setting.code]
        st.button(
            t("panel.back_to", value=shown(setting, default)),
            key=f"back.{setting.code}",
            type="tertiary",
            icon=":material/undo:",
            on_click=session.change_setting,
            args=(setting.code, default),
        )


def _label(setting: Setting, of_stream: str) -> str:
    """Plain text, because it is also what a screen reader says."""
    unit = unit_of(setting)[1]
    name = name_of(setting)
    parts = [t("setting.with_unit", name=name, unit=unit) if unit else name]
    if of_stream:
        parts.append(of_stream)
    engine = engine_name(setting)
    if engine not in ("", name):
        parts.append(engine.replace("_", "_\u200b") if len(engine) > _LONG_NAME else engine)
    return " · ".join(parts)


def _flag(setting: Setting, value: bool, label: str, scenario: Scenario | None) -> None:
    widget = f"setting.{setting.code}"
    _say(widget, value)
    st.toggle(label, key=widget, help=help_of(setting), on_change=_taker(setting, widget, 1.0))


def _choice(setting: Setting, value: str, label: str, scenario: Scenario | None) -> None:
    widget = f"setting.{setting.code}"
    _say(widget, value, anew=True)
    st.selectbox(
        label,
        setting.choices,
        format_func=lambda code: choice_word(setting, code),
        key=widget,
        help=help_of(setting),
        on_change=_taker(setting, widget, 1.0),
    )


def _number(setting: Setting, value: Value, label: str, scenario: Scenario | None) -> None:
    widget = f"setting.{setting.code}"
    scale = unit_of(setting)[0]
    kind = int if setting.kind == "whole" else float
    if value is not None:
        value = kind(value) if kind is int else in_unit(value, scale)
    low, high = (
        None if bound is None else kind(bound) if kind is int else in_unit(bound, scale)
        for bound in (setting.low, setting.high)
    )
    if value is not None:  # a file may bring more than the app offers
        low = None if low is None else min(low, value)
        high = None if high is None else max(high, value)
    _say(widget, value)
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        value=None if setting.optional else "min",
        step=_step(value, kind),
        format=None if kind is int else "%g",
        placeholder=open_value(setting, scenario) if setting.optional else None,
        key=widget,
        help=help_of(setting),
        on_change=_taker(setting, widget, scale),
    )


def _step(value: Value, kind: type) -> int | float:
    """A tenth of the number's size: about ten clicks double it."""
    size = 10.0 ** (math.floor(math.log10(abs(value))) - 1) if value else 0.1
    return max(int(size), 1) if kind is int else size


def _taker(setting: Setting, widget: str, scale: float) -> Callable[[], None]:
    def take() -> None:
        value = st.session_state[widget]
        if isinstance(value, float):
            value = from_unit(value, scale)
        if setting.allows(value):
            session.change_setting(setting.code, value)

    return take
