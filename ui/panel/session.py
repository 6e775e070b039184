"""The panel's choices in this session: read from the address, changed by controls, drafted once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import streamlit as st

from model import catalogue
from ui import address
from ui.panel import link
from ui.panel.choices import Base, Choices, Draft, Value, draft, with_basic, with_setting
from ui.panel.uploads import Held, held

__all__ = [
    "ADDRESS",
    "adopt",
    "base_of",
    "change_basic",
    "change_setting",
    "choose_base",
    "current_choices",
    "current_draft",
    "held_now",
    "last_changed",
    "left_out",
    "open_panel",
    "reset",
    "set_measured",
]

ADDRESS = ("lang", link.PARAMETER)
"""The parameters of the address that the whole app shares."""

_LEFT_OUT = "panel.left_out"
_LAST = "panel.last"


def open_panel() -> None:
    """Bring address and session together; before everything else in every run."""
    if address.is_first_run():
        _take_plain_form()
    if address.open_address(ADDRESS):
        _read_address()


def _take_plain_form() -> None:
    """A link of the plain form becomes one of the present form before anything is bound to it."""
    plain = _plain_fields()
    if not plain:
        return
    text = st.query_params.get(link.PARAMETER, "")
    choices, names = link.read(text) if text else link.read_plain(plain)
    _note(names, None)
    address.rewrite({link.PARAMETER: link.write(choices)}, link.PLAIN, ADDRESS)


def _plain_fields() -> dict[str, str]:
    return {name: st.query_params[name] for name in link.PLAIN if name in st.query_params}


def _read_address() -> None:
    """Take over what stands in the address, and name what could not be used."""
    text = address.codes()[link.PARAMETER]
    # After the back button the plain form may be there again.
    choices, names = link.read(text) if text else link.read_plain(_plain_fields())
    _note(names, None)
    address.put(link.PARAMETER, link.write(choices))


def _note(names: tuple[str, ...], last: str | None) -> None:
    st.session_state[_LEFT_OUT] = names
    st.session_state[_LAST] = last


def left_out() -> tuple[str, ...]:
    """Names of what the link asks for and nobody understands, until something is changed."""
    return st.session_state.get(_LEFT_OUT, ())


def last_changed() -> str | None:
    """The control that was used last: a name of BASIC or a code."""
    return st.session_state.get(_LAST)


def current_choices() -> Choices:
    """What is chosen now."""
    return link.read(address.codes()[link.PARAMETER])[0]


def base_of(choices: Choices) -> Base | None:
    """The preset or file that the choices differ from; None for a file nobody has uploaded."""
    presets = _preset_bases()
    if choices.base in presets:
        return presets[choices.base]
    file = held(choices.base)
    return None if file is None else file.base


@cache
def _preset_bases() -> Mapping[str, Base]:
    return MappingProxyType(
        {name: Base(preset.scenario) for name, preset in catalogue.presets().items()}
    )


def held_now() -> Held | None:
    """The uploaded file that the choices are based on, if they are."""
    return held(current_choices().base)


def current_draft() -> Draft | None:
    """What the choices make of their base; None where the base is missing."""
    choices = current_choices()
    base = base_of(choices)
    return None if base is None else draft(choices, base)


# -- changing --------------------------------------------------------------------------------------


def adopt(choices: Choices, last: str | None = None) -> None:
    """Make these the choices of the session."""
    _note((), last)
    address.put(link.PARAMETER, link.write(choices))


def change_basic(name: str, value: Value) -> None:
    """Another value for a control of the basic part."""
    _change(name, lambda choices, base: with_basic(choices, base, name, value))


def change_setting(code: str, value: Value) -> None:
    """Another value for a setting of the expert part."""
    _change(code, lambda choices, base: with_setting(choices, base, code, value))


def set_measured(measured: bool) -> None:
    """Whether formulas take the simulated mean batch for Bd."""
    _change("bd", lambda choices, base: replace(choices, measured=measured))


def _change(last: str, change: Callable[[Choices, Base], Choices]) -> None:
    choices = current_choices()
    base = base_of(choices)
    if base is not None:
        adopt(change(choices, base), last)


def choose_base(name: str) -> None:
    """Start from a preset, or from an uploaded file: without any difference."""
    adopt(Choices(name))


def reset() -> None:
    """Back to the preset or file itself."""
    choose_base(current_choices().base)
