"""How the parameters of a scenario are called, by their path, in the language of the session."""

from __future__ import annotations

import re
from collections.abc import Mapping

from model import catalogue
from model.parameters import RATE
from model.scenario import Scenario
from model.workload import Workload
from ui.language import catalogue as messages_of
from ui.language import current_language, t

__all__ = ["changed", "class_word", "parameter_name", "parameter_unit", "value_word"]

_PLAIN = {
    RATE: "parameter.rate",
    "workload": "parameter.workload",
    "policy": "panel.policy",
    "policy.max_num_seqs": "parameter.max_num_seqs",
    "clock": "parameter.clock",
    "model": "panel.model",
    "hardware": "panel.hardware",
    "tensor_parallel": "panel.gpus",
}
_STREAM = re.compile(r"workload\.streams\.(\d+)\.(.+)")
_UNITS = (
    ("_bytes_per_s", "unit.bytes_per_s"),
    ("_per_s", "unit.requests_per_s"),
    ("_s", "unit.s"),
    ("_tokens", "unit.tokens"),
)


def parameter_name(path: str, scenario: Scenario) -> str:
    """The parameter in words; its own name where it has no other."""
    if path in _PLAIN:
        return t(_PLAIN[path])
    stream = _STREAM.fullmatch(path)
    word = f"stream.{stream[2]}" if stream else path if "." in path else f"run.{path}"
    name = _message(f"setting.{word}") or path.rpartition(".")[2]
    if stream and isinstance(scenario.workload, Workload) and len(scenario.workload.streams) > 1:
        owner = scenario.workload.streams[int(stream[1])].name
        name = t("parameter.of_stream", name=name, stream=class_word(owner))
    return name


def parameter_unit(path: str) -> str:
    """The unit of a parameter's values, "" for a pure number."""
    return next((t(word) for ending, word in _UNITS if path.endswith(ending)), "")


def class_word(name: str, language: str | None = None) -> str:
    """The name of a class of requests, in words where a preset has it; else as it is."""
    return str(messages_of(language or current_language()).get(f"class.{name}", name))


def value_word(path: str, value: object) -> str:
    """A value in words: names of policies, models and hardware, on and off."""
    if isinstance(value, bool):
        return t("parameter.on" if value else "parameter.off")
    if not isinstance(value, str):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    if path == "policy":
        return t(f"policy.{value}")
    named = {"model": catalogue.models, "hardware": catalogue.devices}.get(path)
    if named and value in named():
        return named()[value].name
    last = path.rpartition(".")[2]
    return _message(f"choice.{last}.{value}") or _message(f"choice.{value}") or value


def changed(before: Scenario, after: Scenario) -> tuple[str, ...]:
    """Names of the parameters in which two scenarios differ; of another policy only that."""
    one, other = before.to_dict(), after.to_dict()
    paths = _different(one, other)
    return tuple(dict.fromkeys(parameter_name(path, after) for path in paths))


def _different(one: Mapping, other: Mapping, prefix: str = "") -> list[str]:
    paths = []
    for key in dict.fromkeys((*one, *other)):
        path, a, b = prefix + key, one.get(key), other.get(key)
        if a == b:
            continue
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if a.get("kind") == b.get("kind"):
                paths += _different(a, b, path + ".")
            else:  # what another engine or distribution brings along is no change of its own
                paths.append(path if path in _PLAIN else f"{path}.kind")
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, (x, y) in enumerate(zip(a, b, strict=True)):
                if isinstance(x, Mapping) and isinstance(y, Mapping):
                    paths += _different(x, y, f"{path}.{index}.")
                elif x != y:
                    paths.append(path)
        else:
            paths.append(path)
    return paths


def _message(key: str) -> str:
    message = messages_of(current_language()).get(key, "")
    return message if isinstance(message, str) else ""
