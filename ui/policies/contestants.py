"""Who takes part in a comparison: every policy that is registered, and the variants of a table.

A row of ``contestants.json`` is a policy and the settings in which the variant differs, under the
engine's own names; its name for people is made of both. A policy without variants needs no row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from model import checks
from model.errors import LabError
from model.result import SimulationResult
from model.scenario import Scenario
from model.schedulers import POLICIES
from ui.engine import simulated
from ui.language import catalogue, current_language, error_markdown
from ui.panel import session
from ui.panel.choices import draft
from ui.parameter_words import value_word

__all__ = [
    "FEWEST",
    "FIRST",
    "MOST",
    "Contestant",
    "Run",
    "contestants",
    "known",
    "label",
    "run",
    "under",
]

FEWEST, MOST = 2, 6
FIRST = ("static", "orca", "vllm-v0", "vllm-v1", "sarathi")
"""Who takes part at first."""

SEPARATOR = " · "
_TABLE = Path(__file__).with_name("contestants.json")


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy with some of its settings changed; ``id`` is part of links and keeps its meaning."""

    id: str
    policy: str
    settings: tuple[tuple[str, bool | int | float | str], ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A contestant under the scenario of the panel: its scenario, or the sentence why not."""

    contestant: Contestant
    label: str
    scenario: Scenario | None
    sentence: str = ""

    @property
    def id(self) -> str:
        return self.contestant.id

    @property
    def name(self) -> str:
        """The policy's own name."""
        return self.label.partition(SEPARATOR)[0]

    @property
    def variant(self) -> str:
        """What it does otherwise, empty for the policy itself."""
        return self.label.partition(SEPARATOR)[2]

    @property
    def result(self) -> SimulationResult:
        """The run itself, from the cache of all sessions."""
        return simulated(self.scenario)


@cache
def contestants() -> Mapping[str, Contestant]:
    """All by id: the registered policies, then the rows of the table."""
    found = {name: Contestant(name, name) for name in POLICIES}
    for row in json.loads(_TABLE.read_text(encoding="utf-8")):
        found[row["id"]] = Contestant(row["id"], row["policy"], tuple(row["set"].items()))
    return MappingProxyType(found)


def label(contestant: Contestant) -> str:
    """Its name: the policy's, and each setting that the row changes."""
    messages = catalogue(current_language())
    parts = [str(messages.get(f"policy.{contestant.policy}", contestant.policy))]
    for name, value in contestant.settings:
        word = value_word(f"policy.{name}", value)
        short = messages.get(f"pol.set.{name}.{value}") or messages.get(f"pol.set.{name}")
        if short is None:
            short = f"{messages.get(f'setting.policy.{name}', name)} {{value}}"
        parts.append(str(short).format(value=word))
    return SEPARATOR.join(parts)


def under(contestant: Contestant) -> Scenario:
    """The scenario of the panel with this contestant, as if it were chosen and set there.

    Raises LabError where it cannot run, or where there is no such policy or setting.
    """
    checks.choice("policy", contestant.policy, POLICIES)
    choices = session.current_choices()
    base = session.base_of(choices)
    choices = replace(choices, policy=contestant.policy)
    found = draft(choices, base)
    if contestant.settings:
        expert = dict(choices.expert)
        for name, value in contestant.settings:
            setting = found.setting_at(f"policy.{name}")
            if setting is None:
                raise LabError("parameter_unknown", path=f"{contestant.policy}.{name}")
            expert[setting.code] = value
        found = draft(replace(choices, expert=tuple(sorted(expert.items()))), base)
    if found.error is not None:
        raise found.error
    return found.scenario


def run(contestant: Contestant, *, to_the_end: bool = True) -> Run:
    """The contestant with its scenario; ``to_the_end``: simulated too, so that it is known to run.

    What cannot run is not raised but said.
    """
    try:
        scenario = under(contestant)
        if to_the_end:
            simulated(scenario)
    except LabError as error:
        return Run(contestant, label(contestant), None, error_markdown(error))
    return Run(contestant, label(contestant), scenario)


def known(ids: Sequence[str]) -> tuple[str, ...]:
    """The ids that exist, each once, at most MOST."""
    return tuple(dict.fromkeys(name for name in ids if name in contestants()))[:MOST]
