"""Where an error of a scenario belongs, and the single changes that mend it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from model import catalogue
from model.errors import LabError
from model.kv_cache import TENSOR_PARALLEL_SIZES
from model.scenario import Scenario
from model.workload import Workload
from ui.panel.choices import BASIC, Base, Choices, Draft, Value, draft, with_basic, with_setting
from ui.panel.settings import Setting, setting_of

__all__ = ["Change", "Fix", "TooLong", "applied", "fixes", "named", "place_of", "too_long"]

MOST_FIXES = 3

# What an error without a field may be about, by the names of controls; the first is its usual place
# and it moves to the one that was used last.
_ABOUT = MappingProxyType(
    {
        "model_does_not_fit": ("model", "hardware", "gpus", "weights", "util", "act"),
        "no_whole_block": ("model", "hardware", "gpus", "weights", "util", "act", "block", "kv"),
        "context_does_not_fit": (
            *("model", "ctx", "hardware", "gpus", "weights", "kv", "util", "act", "block"),
            *("kvblocks", "kvgib"),
        ),
        "kv_above_memory": ("kvblocks", "kvgib", "model", "hardware", "gpus", "weights", "block"),
        "kv_size_needed": ("kvblocks",),
        "tensor_parallel_heads": ("gpus", "model"),
        "context_above_model": ("ctx", "model"),
        "model_without_hardware": ("model", "hardware"),
        "model_needed": ("clock", "model"),
        "prefix_incomplete": ("shared", "groups"),
        "closed_loop_alone": ("arr",),
        "closed_loop_patience": ("patience", "arr"),
        "too_many_requests": ("n",),
        "vllm_tokens_below_seqs": ("budget", "whole", "bd"),
        "vllm_tokens_below_context": ("whole", "ctx", "model", "chunked"),
    }
)
_BASIC_PATHS = MappingProxyType({"tensor_parallel": "gpus", "policy": "policy"})
_HINTS = MappingProxyType(  # code of a hint: the control, and which of its values
    {
        "hint_max_model_len": ("ctx", "tokens"),
        "hint_utilization": ("util", "value"),
        "hint_kv_dtype": ("kv", "dtype"),
        "hint_weight_dtype": ("weights", "dtype"),
        "hint_gpus": ("gpus", "gpus"),
        "hint_kv_blocks": ("kvblocks", "blocks"),
        "hint_kv_gib": ("kvgib", "gib"),
    }
)
_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Change:
    """Another value for one control: a name of BASIC or the code of a setting."""

    target: str
    value: Value


Fix = tuple[Change, ...]
"""Changes that are made together with one click."""


def place_of(error: LabError, found: Draft, last: str | None) -> str:
    """The control beside which an error belongs: where it was entered, or what it is about."""
    about = _targets(error, found)
    return last if last in about else about[0]


def _targets(error: LabError, found: Draft) -> tuple[str, ...]:
    field = error.values.get("field")
    if isinstance(field, str) and (target := _control_at(field, found)):
        return (target,)
    plain = _ABOUT.get(error.code, ("policy",))
    index = _stream_of(error, found.base.scenario)
    return tuple(_of_stream(name, index) for name in plain)


def _control_at(field: str, found: Draft) -> str | None:
    path = _INDEX.sub(r".\1", field)
    if path in _BASIC_PATHS:
        return _BASIC_PATHS[path]
    for candidate in (path, f"policy.{path}", f"clock.{path}"):
        if setting := found.setting_at(candidate):
            return setting.code
    if path.endswith("max_num_seqs"):
        return "bs" if found.basic["policy"] == "static" else "bd"
    if path.endswith("mean_tokens"):  # of a single stream
        return "lin" if ".prompt." in path else "l"
    return None


def _stream_of(error: LabError, scenario: Scenario) -> int:
    names = [s.name for s in getattr(scenario.workload, "streams", ())]
    name = error.values.get("name")
    return names.index(name) if name in names else 0


def _of_stream(name: str, index: int) -> str:
    setting = None if name in BASIC else setting_of(name)
    return f"{name}.{index}" if index and setting and setting.group == "workload" else name


# -- mending ---------------------------------------------------------------------------------------


def applied(choices: Choices, base: Base, fix: Sequence[Change]) -> Choices:
    """The choices after a fix."""
    for change in fix:
        change_one = with_basic if change.target in BASIC else with_setting
        choices = change_one(choices, base, change.target, change.value)
    return choices


def fixes(error: LabError, found: Draft, last: str | None) -> tuple[Fix, ...]:
    """Changes each of which makes the scenario run, the error's own advice first."""
    kept = []
    for fix in dict.fromkeys(_proposed(error, found, place_of(error, found, last))):
        if draft(applied(found.choices, found.base, fix), found.base).error is None:
            kept.append(fix)
    return tuple(kept[:MOST_FIXES])


def _proposed(error: LabError, found: Draft, place: str) -> Iterator[Fix]:
    values, code = error.values, error.code
    for hint, numbers in values.get("hints", ()):
        if hint in _HINTS:
            target, key = _HINTS[hint]
            yield (Change(target, numbers[key]),)
    if code == "tensor_parallel_heads":
        possible = [size for size in TENSOR_PARALLEL_SIZES if str(size) in _listed(values)]
        for size in sorted(possible, key=lambda size: abs(size - values["gpus"]))[:2]:
            yield (Change("gpus", size),)
    elif code == "context_above_model":
        yield (Change("ctx", values["limit"]),)
    elif code == "swap_above_host":
        yield (Change(place, values["limit"]),)
    elif code == "low_above_high":
        high = place.replace("low", "high")
        yield Change(place, values["high"]), Change(high, values["low"])
    elif code == "out_of_range":
        low, high = values["low"], values["high"]
        yield (Change(place, min(max(values["value"], low), high)),)
    elif code == "not_a_whole_number":
        yield (Change(place, round(values["value"])),)
    elif code == "too_many_requests" and len(found.base.scenario.workload.streams) == 1:
        yield (Change("n", values["limit"]),)
    elif code == "prefix_incomplete":
        shared = place.replace("groups", "shared")
        groups = place.replace("shared", "groups")
        if values["groups"]:
            yield (Change(shared, 256),)
        if values["tokens"]:
            yield (Change(groups, 8),)
        yield Change(groups, 0), Change(shared, 0)
    elif code == "closed_loop_patience":
        yield (Change("patience", None),)
    elif code == "vllm_tokens_below_seqs":
        budget = "budget" if found.setting("budget") else "whole"
        yield (Change(budget, values["seqs"]),)
        yield (Change("bd", values["tokens"]),)
    elif code == "vllm_tokens_below_context":
        yield (Change("whole", values["context"]),)
        yield (Change("chunked", True),)


def _listed(values) -> list[str]:
    return str(values["choices"]).split(", ")


# -- advice: the scenario runs, but not as anybody would want --------------------------------------


@dataclass(frozen=True, slots=True)
class TooLong:
    """Requests that are rejected because prompt and answer exceed the context limit."""

    rejected: int
    requests: int
    limit: int
    longest: int
    fix: Fix | None


def too_long(found: Draft) -> TooLong | None:
    """What Lin and L ask for beyond the context limit; None where everything fits."""
    scenario = found.scenario
    if scenario is None or not isinstance(scenario.workload, Workload):
        return None
    limit = scenario.max_model_len()
    if limit is None:
        return None
    rejected, longest = _beyond(scenario.workload, scenario.seed, limit)
    if not rejected:
        return None
    n = scenario.workload.n_requests
    return TooLong(rejected, n, limit, longest, _roomier(found, longest))


@lru_cache(maxsize=256)
def _beyond(workload: Workload, seed: int, limit: int) -> tuple[int, int]:
    """(requests whose prompt and answer exceed the limit, tokens of the longest)."""
    requests = workload.generate(seed)
    total = requests.prompt_tokens + requests.output_tokens
    return int((total > limit).sum()), int(total.max())


def _roomier(found: Draft, tokens: int) -> Fix | None:
    """A longer context, or the most similar model that has one."""
    context = math.ceil(tokens / 1024) * 1024
    own = catalogue.models().get(found.basic["model"])
    if own is None:
        return None
    others = sorted(
        (model for model in catalogue.models().values() if model.max_context_tokens >= tokens),
        key=lambda model: abs(math.log(model.parameters / own.parameters)),
    )
    candidates: list[Fix] = [(Change("ctx", min(context, own.max_context_tokens)),)]
    for model in others[:3]:
        candidates.append((Change("model", model.id), Change("ctx", context)))
        candidates.append((Change("model", model.id),))
    for fix in candidates:
        after = draft(applied(found.choices, found.base, fix), found.base)
        if after.scenario and (after.scenario.max_model_len() or tokens) >= tokens:
            return fix
    return None


def named(target: str, found: Draft) -> Setting | None:
    """The setting of a change, None for the basic controls."""
    return found.setting(target) or (None if target in BASIC else setting_of(target))
