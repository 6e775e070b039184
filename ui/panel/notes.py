"""Errors and advice beside the control they are about, each with changes of one click."""

from __future__ import annotations

import streamlit as st

from model import catalogue
from model.errors import LabError
from ui.language import error_markdown, t
from ui.panel import session
from ui.panel.choices import Draft
from ui.panel.faults import Change, Fix, applied, fixes, named, place_of, too_long
from ui.panel.words import engine_name, name_of, shown

__all__ = ["Notes"]

_BASIC_NAMES = {"bs": "Bs", "bd": "Bd", "lin": "Lin", "l": "L"}


class Notes:
    """What there is to say in this run; each note is drawn once, under its control if that is
    there, and otherwise where :meth:`rest` stands."""

    def __init__(self, found: Draft) -> None:
        self.found = found
        self.last = session.last_changed()
        self.error: LabError | None = found.error
        self.place = None if self.error is None else place_of(self.error, found, self.last)
        self.advice = too_long(found)
        self.advice_place = self.last if self.last in ("l", "lin", "model", "ctx") else "lin"

    def under(self, control: str) -> None:
        """Draw what belongs to this control."""
        if self.error is not None and self.place == control:
            self._draw_error()
        if self.advice is not None and self.advice_place == control:
            self._draw_advice()

    def rest(self) -> None:
        """Draw what no control was there for."""
        if self.error is not None:
            self._draw_error()
        if self.advice is not None:
            self._draw_advice()

    def _draw_error(self) -> None:
        error, self.error = self.error, None
        st.error(error_markdown(error), icon=":material/error:")
        for number, fix in enumerate(fixes(error, self.found, self.last)):
            self._button(f"fix.{number}", fix)

    def _draw_advice(self) -> None:
        advice, self.advice = self.advice, None
        st.warning(
            t("panel.too_long", n=advice.rejected, requests=advice.requests, limit=advice.limit),
            icon=":material/block:",
        )
        if advice.fix is not None:
            self._button("advice", advice.fix)

    def _button(self, key: str, fix: Fix) -> None:
        st.button(
            t("list.and").join(_words(change, self.found) for change in fix),
            key=key,
            icon=":material/build:",
            on_click=_mend,
            args=(fix,),
            width="stretch",
        )


def _mend(fix: Fix) -> None:
    choices = session.current_choices()
    base = session.base_of(choices)
    if base is not None:
        session.adopt(applied(choices, base, fix), fix[0].target)


def _words(change: Change, found: Draft) -> str:
    """ "max_model_len = 8,192", "Model = Llama-3.1-8B", "4 GPUs"."""
    target, value = change.target, change.value
    if target == "gpus":
        return t("fix.gpus", n=value)
    if target == "model":
        return t("fix.model", model=catalogue.models()[value].name)
    setting = named(target, found)
    if setting is None:
        return t("fix.set", name=_BASIC_NAMES.get(target, target), value=f"{value:,}")
    name = engine_name(setting) or name_of(setting)
    return t("fix.set", name=name, value=shown(setting, value))
