"""Any one parameter of a scenario by its dotted path: change it, or list what can be varied.

Nothing here names the parameters of an engine. Paths, kinds and limits come from the dataclass
fields, their type hints and their own checks, so a new field of a policy appears by itself.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from model import checks, kv_cache
from model.errors import LabError
from model.iteration_time import CLOCKS, IterationTime
from model.scenario import Scenario, TraceReference
from model.schedulers import POLICIES, Scheduler
from model.workload import Arrivals, Lengths, Workload

__all__ = ["RATE", "Parameter", "described", "replace_at", "sweepable", "value_at", "with_policy"]

RATE = "workload.rate_per_s"
"""Path of a parameter that is no field: requests/s of all streams together, shares kept."""

OPEN_LOOP = ("poisson", "constant", "gamma")
_LOWEST_RATE, _HIGHEST_RATE = 1e-6, 1e6

# The seed is varied by the seeds of a sweep.
_LEFT_OUT = {"seed"}

# Fields that matter only for some kinds of their class; the others are not offered.
_USED_BY_KIND = {
    Lengths: {
        "fixed": {"mean_tokens"},
        "uniform": {"low_tokens", "high_tokens"},
        "exponential": {"mean_tokens"},
        "geometric": {"mean_tokens"},
        "lognormal": {"mean_tokens", "cv"},
        "quantiles": set(),
    },
    Arrivals: {
        "poisson": {"rate_per_s"},
        "constant": {"rate_per_s"},
        "gamma": {"rate_per_s", "cv"},
        "at_once": set(),
        "closed_loop": {"users", "think_s", "think_kind"},
    },
}
_ALWAYS_USED = {"kind", "max_tokens"}

_INSTEAD_OF = {"memory.kv_blocks": "kv_gib", "memory.kv_gib": "kv_blocks"}

_SHARES = (0.0, 0.01, 0.02, 0.05, *(round(0.1 * tenth, 1) for tenth in range(1, 11)))
_FACTORS = (0.125, 0.25, 0.5, 1, 2, 4, 8)
_STARTS = (  # what the name of a field that is 0 or None says of the size of its values
    ("_s", (0.1, 0.2, 0.5, 1, 2, 5, 10)),
    ("_bytes_per_gpu", (0, 1e9, 2e9, 4e9, 8e9)),
    ("token", (128, 256, 512, 1024, 2048, 4096)),
    ("len", (1024, 2048, 4096, 8192, 16384)),
    ("blocks", (256, 512, 1024, 2048, 4096)),
)
_SMALL_NUMBERS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a sweep can vary, or that a form can ask for.

    ``kind`` is "whole", "number", "flag" or "choice". ``low`` and ``high`` are the limits of its
    own check (None where there is none), ``current`` its value now (None: left open, which only
    an ``optional`` one can be).
    ``suggested`` are values around it for which the scenario can run, ascending or in the order
    of the choices; for a choice ``choices`` are all of them.
    """

    path: str
    kind: str
    current: object
    low: float | None = None
    high: float | None = None
    suggested: tuple = ()
    choices: tuple[str, ...] = ()
    optional: bool = False


def value_at(scenario: Scenario, path: str) -> object:
    """The value at a path; of a policy or clock its name. Raises LabError parameter_unknown."""
    if path == RATE:
        return _total_rate(scenario)
    value: object = scenario
    for key in path.split("."):
        value = getattr(value, key) if key in _fields(value) else _item(value, key, path)
    return value.name if isinstance(value, Scheduler | IterationTime) else value


def replace_at(scenario: Scenario, path: str, value: object) -> Scenario:
    """The scenario with another value at a dotted path such as "workload.streams.0.n_requests".

    A whole number may be given as a float (2.0) and as a NumPy scalar. "policy" and "clock" also
    take a name, as :func:`with_policy` does. :data:`RATE` scales the rates of all streams that
    have one. Setting one of the two sizes of the KV cache clears the other.

    Raises LabError parameter_unknown, or the sentence of whatever check refuses the value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if path == RATE:
        return _with_total_rate(scenario, value)
    if path == "policy" and isinstance(value, str):
        return with_policy(scenario, value)
    if path == "clock" and isinstance(value, str):
        checks.choice("clock", value, CLOCKS)
        same = scenario.clock.name == value
        return scenario if same else replace(scenario, clock=CLOCKS[value]())
    return _replaced(scenario, path.split("."), value, path)


def with_policy(scenario: Scenario, name: str) -> Scenario:
    """The scenario under another policy with the same limits, so that only the rules differ.

    ``max_num_seqs``, the token budget (``chunk_size`` in Sarathi,
    ``chunked_prefill_size`` in SGLang) and the queue order are kept
    where both have them. A policy without chunks must take a prompt whole, so its budget is at
    least the context limit, which is vLLM V0's own default.
    """
    checks.choice("policy", name, POLICIES)
    old, kind = scenario.policy, POLICIES[name]
    if old.name == name:
        return scenario
    kept = {"max_num_seqs": old.max_num_seqs}
    budget = old.tokens_per_iteration
    known = _fields(kind)
    for field in ("max_num_batched_tokens", "chunk_size", "chunked_prefill_size"):
        if field in known and budget is not None:
            kept[field] = budget
    if "queue_order" in known and hasattr(old, "queue_order"):
        kept["queue_order"] = old.queue_order
    policy = kind(**kept)
    if not getattr(policy, "enable_chunked_prefill", True):
        whole = max(policy.max_num_batched_tokens, scenario.max_model_len() or 0)
        policy = replace(policy, max_num_batched_tokens=whole)
    return replace(scenario, policy=policy)


def sweepable(scenario: Scenario) -> tuple[Parameter, ...]:
    """Every parameter of this scenario that a sweep can vary, in the order of the fields.

    Left out: fields that the kind of their object does not use, free texts, the seed, and those
    for which only one value of a first guess can run.
    """
    found = list(_walk(scenario, scenario, ""))
    if any(stream.arrivals.kind in OPEN_LOOP for stream in _streams(scenario)):
        found.insert(0, _rate_parameter(scenario))
    return tuple(found)


def described(owner: object, prefix: str = "") -> tuple[Parameter, ...]:
    """The fields of a policy, clock, memory or stream with their kinds, limits and choices.

    Quick, because no value is tried: ``suggested`` stays empty. Fields of nested objects follow
    under their dotted path. Left out are free texts, tables, and what the kind does not use.
    """
    used = _USED_BY_KIND.get(type(owner), {}).get(getattr(owner, "kind", None))
    found: list[Parameter] = []
    for name, hint in _fields(owner).items():
        value = getattr(owner, name)
        if used is not None and name not in used | _ALWAYS_USED:
            continue
        if dataclasses.is_dataclass(value):
            found += described(value, f"{prefix}{name}.")
        elif (parameter := _without_suggestions(owner, name, hint, prefix + name)) is not None:
            found.append(parameter)
    return tuple(found)


# -- changing one value ----------------------------------------------------------------------------


@cache
def _hints(cls: type) -> dict[str, object]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _fields(value: object) -> dict[str, object]:
    cls = value if isinstance(value, type) else type(value)
    return _hints(cls) if dataclasses.is_dataclass(cls) else {}


def _item(value: object, key: str, path: str) -> object:
    is_index = key.isascii() and key.isdigit() and len(key) < 7
    if isinstance(value, tuple) and is_index and int(key) < len(value):
        return value[int(key)]
    raise LabError("parameter_unknown", path=path[:80])


def _replaced(owner: object, keys: list[str], value: object, path: str):
    key, rest = keys[0], keys[1:]
    if isinstance(owner, tuple):
        old = _item(owner, key, path)
        if not rest:
            raise LabError("parameter_unknown", path=path[:80])
        index = int(key)
        return (*owner[:index], _replaced(old, rest, value, path), *owner[index + 1 :])
    hints = _fields(owner)
    if key not in hints:
        raise LabError("parameter_unknown", path=path[:80])
    if rest:
        new = _replaced(getattr(owner, key), rest, value, path)
    else:
        new = _converted(value, hints[key], path)
    changes = {key: new}
    if path in _INSTEAD_OF and not rest and new is not None:
        changes[_INSTEAD_OF[path]] = None
    try:
        return replace(owner, **changes)
    except LabError as error:
        if error.values.get("field") != key or rest:
            raise
        # The class knows its own field; which of several objects it is only the path says.
        raise LabError(error.code, **{**error.values, "field": path}) from None


def _converted(value: object, hint: object, path: str) -> object:
    """The value in the type of its field, where that loses nothing.

    Numbers and flags are left to the check of their class, which says what is allowed.
    """
    inner = _without_none(hint)
    if value is None and inner is not hint:
        return None
    if inner is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if inner is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if inner in (int, float, bool):
        return value
    classes = tuple(c for c in typing.get_args(inner) or (inner,) if isinstance(c, type))
    items = value if typing.get_origin(inner) is tuple and isinstance(value, tuple) else (value,)
    if not items or not all(isinstance(item, classes) for item in items):
        expected = "a text" if inner is str else "an object"
        raise LabError("json_type", field=path, expected=expected, found=repr(value)[:40])
    return value


def _without_none(hint: object) -> object:
    """X of "X | None", else the hint itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        if len(inner) == 1:
            return inner[0]
    return hint


# -- the rate of all streams -----------------------------------------------------------------------


def _streams(scenario: Scenario) -> tuple:
    return scenario.workload.streams if isinstance(scenario.workload, Workload) else ()


def _total_rate(scenario: Scenario) -> float:
    rates = [s.arrivals.rate_per_s for s in _streams(scenario) if s.arrivals.kind in OPEN_LOOP]
    if not rates:
        raise LabError("no_rate")
    return sum(rates)


def _with_total_rate(scenario: Scenario, value: object) -> Scenario:
    total = _total_rate(scenario)
    checks.number(RATE, value, _LOWEST_RATE, _HIGHEST_RATE)
    streams = tuple(
        replace(s, arrivals=replace(s.arrivals, rate_per_s=value * (s.arrivals.rate_per_s / total)))
        if s.arrivals.kind in OPEN_LOOP
        else s
        for s in _streams(scenario)
    )
    return replace(scenario, workload=replace(scenario.workload, streams=streams))


def _rate_parameter(scenario: Scenario) -> Parameter:
    current = _total_rate(scenario)
    values = _valid(scenario, RATE, [current * factor for factor in _FACTORS])
    return Parameter(RATE, "number", current, _LOWEST_RATE, _HIGHEST_RATE, values)


# -- listing ---------------------------------------------------------------------------------------


def _walk(scenario: Scenario, owner: object, prefix: str) -> Iterator[Parameter]:
    used = _USED_BY_KIND.get(type(owner), {}).get(getattr(owner, "kind", None))
    for name, hint in _fields(owner).items():
        path, value = prefix + name, getattr(owner, name)
        if path == "cluster" and scenario.n_engines == 1:
            continue  # nobody to work together with
        if path in _LEFT_OUT or (used is not None and name not in used | _ALWAYS_USED):
            continue
        if isinstance(value, Scheduler | IterationTime):
            names = tuple(POLICIES if isinstance(value, Scheduler) else CLOCKS)
            offered = _valid(scenario, path, names)
            yield Parameter(path, "choice", value.name, suggested=offered, choices=names)
            yield from _walk(scenario, value, path + ".")
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if dataclasses.is_dataclass(item):
                    yield from _walk(scenario, item, f"{path}.{index}.")
        elif dataclasses.is_dataclass(value):
            if not isinstance(value, TraceReference):
                yield from _walk(scenario, value, path + ".")
        else:
            parameter = _leaf(scenario, owner, name, hint, path)
            if parameter is not None and len(parameter.suggested) > 1:
                yield parameter


def _leaf(
    scenario: Scenario, owner: object, name: str, hint: object, path: str
) -> Parameter | None:
    found = _without_suggestions(owner, name, hint, path)
    if found is None:
        return None
    if found.kind == "flag":
        return replace(found, suggested=_valid(scenario, path, (False, True)))
    if found.kind == "choice":
        return replace(found, suggested=_valid(scenario, path, found.choices))
    current = found.current
    effective = _effective(scenario, path) if current is None else current
    candidates = _candidates(name, effective, found.low, found.high)
    if found.kind == "whole" or name.endswith("tokens"):
        candidates = [round(value) for value in candidates]
    return replace(found, suggested=_valid(scenario, path, sorted(set(candidates))))


def _without_suggestions(owner: object, name: str, hint: object, path: str) -> Parameter | None:
    """A field with its kind, limits and choices; None for free text and for tables."""
    inner, current = _without_none(hint), getattr(owner, name)
    optional = inner is not hint
    if inner is bool:
        return Parameter(path, "flag", current, optional=optional)
    if inner is str:
        choices = _refusal(owner, name, "\0").get("choices")
        if not isinstance(choices, str):
            return None
        names = tuple(choices.split(", "))
        return Parameter(path, "choice", current, choices=names, optional=optional)
    if inner not in (int, float):
        return None
    limits = _refusal(owner, name, -(2**62) if inner is int else -1e300)
    kind = "whole" if inner is int else "number"
    return Parameter(path, kind, current, limits.get("low"), limits.get("high"), optional=optional)


def _refusal(owner: object, name: str, absurd: object) -> dict[str, object]:
    """What the field's own check says to a value it must refuse: its limits or its choices."""
    try:
        replace(owner, **{name: absurd})
    except LabError as error:
        return error.values
    return {}


def _effective(scenario: Scenario, path: str) -> float | None:
    """What holds while the field is None."""
    capacity = scenario.kv_capacity()
    return {
        "memory.kv_blocks": capacity.blocks,
        "memory.kv_gib": capacity.kv_bytes and round(capacity.kv_bytes / kv_cache.GIB, 2),
        "memory.num_cpu_blocks": capacity.cpu_blocks,
        "memory.max_model_len": scenario.max_model_len(),
        "cluster.link_bytes_per_s": scenario.device and scenario.device.gpu_link_bytes_per_s,
    }.get(path)


def _candidates(
    name: str, current: float | None, low: float | None, high: float | None
) -> Iterable[float]:
    is_share = low is not None and high is not None and low >= 0 and high <= 1
    if is_share and not name.endswith("_s"):
        values = [*_SHARES, current or 0.0]
    elif current:
        values = [current * factor for factor in _FACTORS]
    else:
        values = next((values for part, values in _STARTS if _names(name, part)), _SMALL_NUMBERS)
        values = values if current is None else (0, *values)
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    return [value for value in values if low <= value <= high]


def _names(name: str, part: str) -> bool:
    return name.endswith(part) if part.startswith("_") else part in name


def _valid(scenario: Scenario, path: str, values: Iterable) -> tuple:
    """The values with which the scenario can run."""
    kept = []
    for value in values:
        try:
            replace_at(scenario, path, value)
        except LabError:
            continue
        kept.append(value)
    return tuple(kept)
