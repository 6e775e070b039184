"""How settings are called and how their values are shown, in the language of the session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from model.kv_cache import GIB
from model.scenario import Scenario
from ui.language import LANGUAGES, catalogue, current_language, t
from ui.panel.choices import Value
from ui.panel.settings import Setting

__all__ = ["Unit", "engine_name", "help_of", "matches", "name_of", "open_value", "shown", "unit_of"]

Unit = tuple[float, str]

_MS, _US = (1e-3, "unit.ms"), (1e-6, "unit.us")
_UNITS: Mapping[str, Unit] = MappingProxyType(  # where the model's own unit makes odd numbers
    {
        "memory.activation_bytes_per_gpu": (1e9, "unit.gb"),
        "slo.tpot_s": _MS,
        "clock.base_s": _MS,
        "clock.fixed_s": _MS,
        "clock.forward_s": _MS,
        "clock.per_scheduled_token_s": _US,
        "clock.per_swapped_block_s": _US,
        "clock.link_latency_s": _US,
        "cluster.link_bytes_per_s": (1e9, "unit.gb_per_s"),
        "cluster.link_latency_s": _US,
    }
)
_ENDINGS = (
    ("_per_s", "unit.requests_per_s"),
    ("_s", "unit.s"),
    ("_gib", "unit.gib"),
    ("_tokens", "unit.tokens"),
)
_PLAIN_GROUPS = ("workload", "cluster", "slo", "run", "clock")  # no engine's names


def unit_of(setting: Setting) -> tuple[float, str]:
    """What a value is divided by to be shown, and the word for that unit ("" for none)."""
    if setting.word in _UNITS:
        scale, key = _UNITS[setting.word]
        return scale, t(key)
    if setting.kind not in ("whole", "number") or setting.group == "engine":
        return 1.0, ""
    return 1.0, next((t(key) for ending, key in _ENDINGS if setting.name.endswith(ending)), "")


def name_of(setting: Setting) -> str:
    """The setting in words; its own name where nobody has translated it yet."""
    return _message(f"setting.{setting.word}") or setting.name


def engine_name(setting: Setting) -> str:
    """The name under which an engine has this setting, "" where it is no engine's."""
    return "" if setting.group in _PLAIN_GROUPS else setting.name


def help_of(setting: Setting) -> str:
    """What a setting does."""
    return _message(f"setting.{setting.word}.help")


def choice_word(setting: Setting, value: str) -> str:
    """A choice in words, or as the engine writes it."""
    return _message(f"choice.{setting.name}.{value}") or _message(f"choice.{value}") or value


def shown(setting: Setting, value: Value) -> str:
    """A value for a sentence or a button."""
    if value is None:
        return t("setting.none")
    if isinstance(value, bool):
        return t("setting.on" if value else "setting.off")
    if isinstance(value, str):
        return choice_word(setting, value)
    scale, unit = unit_of(setting)
    number = f"{value:,}" if isinstance(value, int) else f"{in_unit(value, scale):,.6g}"
    return f"{number} {unit}".strip()


def in_unit(value: float, scale: float) -> float:
    """A value in the unit shown, without the dust of division."""
    return float(f"{value / scale:.12g}")


def from_unit(value: float, scale: float) -> float:
    """The way back."""
    return float(f"{value * scale:.12g}")


def open_value(setting: Setting, scenario: Scenario | None) -> str:
    """What holds while an optional setting is left open."""
    if setting.word in (
        "stream.patience_s",
        "stream.prompt.max_tokens",
        "stream.output.max_tokens",
    ):
        return t("setting.none")
    value = None if scenario is None else _effective(setting.word, scenario)
    return t("setting.automatic") if value is None else t("setting.automatic.value", value=value)


def _effective(word: str, scenario: Scenario) -> str | None:
    capacity = scenario.kv_capacity()
    value = {
        "memory.max_model_len": scenario.max_model_len(),
        "memory.kv_blocks": capacity.blocks,
        "memory.kv_gib": capacity.kv_bytes and round(capacity.kv_bytes / GIB, 1),
        "memory.num_cpu_blocks": capacity.cpu_blocks,
    }.get(word)
    return None if value is None else f"{value:,}"


def matches(setting: Setting, text: str) -> bool:
    """Whether every word of a search stands in the names, of any language, or in the help."""
    parts = [setting.code, setting.path, help_of(setting)]
    for language in LANGUAGES:
        messages = catalogue(language)
        parts.append(str(messages.get(f"setting.{setting.word}", "")))
        parts.append(str(messages.get(f"panel.group.{setting.group}", "")))
    haystack = " ".join(parts).casefold()
    return all(word in haystack for word in text.casefold().split())


def _message(key: str) -> str:
    message = catalogue(current_language()).get(key, "")
    return message if isinstance(message, str) else ""
