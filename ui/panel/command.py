"""A pasted ``vllm serve`` line becomes the scenario, and the scenario becomes such a line."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from model import catalogue
from model.errors import LabError
from model.vllm_command import ParsedCommand, Setting, Unknown, parse_command
from model.vllm_export import cannot_say, to_command
from model.vllm_flags import LONGEST_COMMAND
from ui.language import error_markdown, t
from ui.panel import link, session
from ui.panel.choices import Choices, Draft, choices_for
from ui.panel.words import engine_name, name_of, shown

__all__ = ["command_dialog", "draw_command"]

_APPLIED = "command.applied"
_EXAMPLE = "vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-seqs 128 --max-num-batched-tokens 4096"


def command_dialog() -> None:
    """Open the dialog; its words are those of the language now."""
    st.dialog(t("command.title"), width="large", icon=":material/terminal:")(draw_command)()


def draw_command() -> None:
    """What the dialog holds."""
    found = session.current_draft()
    if found is None:
        st.info(t("panel.missing"))
        return
    paste, export = st.tabs([t("command.paste"), t("command.export")])
    with paste:
        _paste(found)
    with export:
        _export(found)


def _paste(found: Draft) -> None:
    text = st.text_area(
        t("command.paste.label"),
        key="command.text",
        placeholder=_EXAMPLE,
        max_chars=LONGEST_COMMAND,
        height=100,
        help=t("command.paste.about"),
    )
    row = st.container(horizontal=True)
    row.button(t("command.read"), key="command.read")
    if not (text or "").strip():
        st.caption(t("command.paste.about"))
        return
    try:
        parsed = parse_command(text, found.scenario or found.base.scenario)
    except LabError as error:
        st.error(error_markdown(error), icon=":material/error:")
        return
    choices = None
    if parsed.scenario is not None:
        choices = choices_for(parsed.scenario, found.choices, found.base)
    if choices is not None and not link.holds(choices):
        choices = None
    row.button(
        t("command.apply"),
        key="command.apply",
        type="primary",
        icon=":material/check:",
        disabled=choices is None,
        on_click=_apply,
        args=(choices,),
    )
    if st.session_state.pop(_APPLIED, False):
        st.rerun()  # of the whole app, which closes the dialog
    _report(parsed, found)


def _apply(choices: Choices) -> None:
    session.adopt(choices, "model")
    st.session_state[_APPLIED] = True


def _report(parsed: ParsedCommand, found: Draft) -> None:
    """What became of the command, flag by flag; what needs attention first."""
    for fault in parsed.faults:
        show = st.error if parsed.scenario is None else st.warning
        show(error_markdown(fault), icon=":material/error:")
    if parsed.unknown:
        st.warning(
            f"{t('command.unknown')} {t('list.separator').join(map(_unknown, parsed.unknown))}",
            icon=":material/help:",
        )
    understood, defaults = st.columns(2)
    with understood:
        _table(t("command.understood"), parsed.understood, found)
    with defaults:
        _table(t("command.defaults"), parsed.defaults, found)
    _flags(t("command.not_modelled"), parsed.not_modelled)
    _flags(t("command.ignored"), parsed.ignored)
    st.caption(t("command.engine", engine=parsed.engine))


def _unknown(unknown: Unknown) -> str:
    flag = _code(unknown.flag)
    if not unknown.suggestion:
        return flag
    return f"{flag} ({t('command.suggestion', flag=_code(unknown.suggestion))})"


def _table(title: str, settings: Sequence[Setting], found: Draft) -> None:
    if not settings:
        return
    lines = [f"| {t('command.flag')} | {t('command.setting')} | {t('command.value')} |", "|-|-|-|"]
    for setting in settings:
        name = _field_word(setting.field, found)
        lines.append(f"| {_code(setting.flag)} | {name} | {_value(setting, found)} |")
    st.markdown(f"**{title}**\n\n" + "\n".join(lines))


def _value(setting: Setting, found: Draft) -> str:
    if setting.field == "model" and setting.value in catalogue.models():
        return catalogue.models()[setting.value].name
    known = found.setting_at(setting.field)
    return _plain(shown(known, setting.value) if known else str(setting.value))


def _flags(title: str, names: Sequence[str]) -> None:
    if names:
        st.markdown(f"**{title}** {' '.join(map(_code, names))}")


def _export(found: Draft) -> None:
    if found.scenario is None:
        st.info(t("panel.invalid"))
        return
    try:
        command = to_command(found.scenario)
    except LabError as error:
        st.info(error_markdown(error), icon=":material/info:")
        return
    st.code(command, language="bash", wrap_lines=True)
    fields = t("list.separator").join(
        _field_word(field, found) for field in cannot_say(found.scenario)
    )
    st.caption(t("command.cannot_say", fields=fields))


_BASIC_FIELDS = {
    "model": "panel.model",
    "hardware": "panel.hardware",
    "tensor_parallel": "panel.gpus",
    "workload": "panel.group.workload",
    "clock": "panel.group.clock",
    "slo": "panel.group.slo",
    "policy.max_num_seqs": "panel.bd",
}


def _field_word(field: str, found: Draft) -> str:
    """A field of the scenario in words."""
    if field in _BASIC_FIELDS:
        return t(_BASIC_FIELDS[field])
    setting = found.setting_at(field)
    if setting is None:
        return _code(field.rpartition(".")[2])
    return _code(engine_name(setting)) if engine_name(setting) else name_of(setting)


def _code(text: str) -> str:
    """Text from anywhere as code: it can end neither the code nor a table's cell."""
    return "`" + text.replace("`", "'").replace("|", "¦").replace("\n", " ") + "`"


def _plain(text: str) -> str:
    return text.replace("|", "¦").replace("\n", " ")
