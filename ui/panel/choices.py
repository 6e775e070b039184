"""What somebody has chosen in the panel, and the scenario that these choices make.

The choices say only what differs from a base, which is a preset or the scenario of a bundle.
Everything here is pure; equal choices on an equal base are answered from memory.

Three rules turn choices into a scenario:

* The policy that runs takes Bs as its ``max_num_seqs`` where it is static and Bd otherwise; the
  other number stays, for formulas. Other limits follow a policy under its own names for them.
* Lin and L stretch the lengths of all requests of the base, with their shape, until the mean over
  all requests is the one chosen. Numbers set for single streams come after that and win.
* Where a policy takes prompts whole, its token budget is at least the context limit, unless a
  budget for whole prompts has been set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from model import catalogue, kv_cache
from model.codec import KIND
from model.errors import LabError
from model.iteration_time import CLOCKS
from model.parameters import with_policy
from model.scenario import Scenario
from model.schedulers.base import Scheduler
from model.workload import Lengths, Workload
from ui.panel.lengths import mean_of, stretched, with_kind
from ui.panel.settings import CLOCK, MOST_REQUESTS, WHOLE, Setting, Shape, settings_for

__all__ = [
    "BASIC",
    "MOST_SEQS",
    "MOST_TOKENS",
    "Base",
    "Choices",
    "Draft",
    "Value",
    "choices_for",
    "draft",
    "is_static",
    "with_basic",
    "with_setting",
]

Value = bool | int | float | str | None

BASIC = ("policy", "bs", "bd", "lin", "l", "hardware", "gpus", "model")
"""Fields of the choices that have a control of their own."""

MOST_SEQS = 100_000
"""Largest Bs and Bd of a link; the sliders end sooner."""
MOST_TOKENS = 1_000_000
"""Largest Lin and L of a link."""
USUAL_STATIC_BATCH = 16
"""Bs of a preset whose policy has none, or as many full contexts as its memory can reserve."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Differences from a base; None is what the base has.

    ``base`` is the id of a preset or the name of a bundle. ``expert`` are (code, value) of
    :mod:`ui.panel.settings`, by code. ``measured``: formulas take the simulated mean batch for Bd.
    """

    base: str
    policy: str | None = None
    bs: int | None = None
    bd: int | None = None
    lin: int | None = None
    l: int | None = None  # noqa: E741 (the symbol of the formulas)
    hardware: str | None = None
    gpus: int | None = None
    model: str | None = None
    expert: tuple[tuple[str, Value], ...] = ()
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Base:
    """What choices differ from; ``means`` are the mean prompt and output of a trace."""

    scenario: Scenario
    means: tuple[float, float] | None = None

    @property
    def has_trace(self) -> bool:
        return not isinstance(self.scenario.workload, Workload)


@dataclass(frozen=True, eq=False, slots=True)
class Draft:
    """Choices on their base: what every control shows, and the scenario if it can run.

    ``basic`` are the values in force of :data:`BASIC`, ``own`` those of the base; ``values`` are
    those of the settings by code, ``defaults`` what each changed one would be if left alone.
    ``scenario`` is None exactly if ``error`` says why.
    """

    choices: Choices
    base: Base
    scenario: Scenario | None
    error: LabError | None
    basic: Mapping[str, Value]
    own: Mapping[str, Value]
    settings: tuple[Setting, ...]
    values: Mapping[str, Value]
    defaults: Mapping[str, Value]

    @property
    def is_unchanged(self) -> bool:
        """Whether this is the base itself, in every number that pages use."""
        same_batches = all(self.basic[name] == self.own[name] for name in ("bs", "bd"))
        is_base = self.scenario == self.base.scenario
        return is_base and same_batches and not self.choices.measured

    def setting(self, code: str) -> Setting | None:
        """The setting of this code, if the scenario has it now."""
        return next((setting for setting in self.settings if setting.code == code), None)

    def setting_at(self, path: str) -> Setting | None:
        """The setting at this path of the scenario."""
        return next((setting for setting in self.settings if setting.path == path), None)


def is_static(policy: str) -> bool:
    """Whether a policy runs static batches, whose size is Bs."""
    return policy == "static"


@lru_cache(maxsize=256)
def draft(choices: Choices, base: Base) -> Draft:
    """The scenario of these choices, or the error that says why there is none."""
    built = _build(choices, base)
    scenario = error = None
    try:
        scenario = Scenario.from_dict(built.data)
        _check_app_limits(scenario)
    except LabError as refused:
        scenario, error = None, refused
    here = {setting.code for setting in built.settings}
    changed = [code for code, _ in choices.expert if code in here]
    return Draft(
        choices=choices,
        base=base,
        scenario=scenario,
        error=error,
        basic=MappingProxyType(built.basic),
        own=MappingProxyType(_build(Choices(choices.base), base).basic),
        settings=built.settings,
        values=MappingProxyType({s.code: _at(built.data, s.path) for s in built.settings}),
        defaults=MappingProxyType({code: _left_alone(choices, base, code) for code in changed}),
    )


def with_basic(choices: Choices, base: Base, name: str, value: Value) -> Choices:
    """The choices with another value of :data:`BASIC`, left out where it is the base's."""
    if name in _SIDES:
        choices = _without_lengths(choices, name)
    own = _build(replace(choices, **{name: None}), base).basic[name]
    return replace(choices, **{name: None if value == own else value})


def with_setting(choices: Choices, base: Base, code: str, value: Value) -> Choices:
    """The choices with another value of a setting, left out where it is the default."""
    left_out = {code, _INSTEAD_OF.get(code)} if value is not None else {code}
    others = tuple(pair for pair in choices.expert if pair[0] not in left_out)
    choices = replace(choices, expert=others)
    if value == _left_alone(choices, base, code):
        return choices
    return replace(choices, expert=tuple(sorted((*others, (code, value)), key=lambda p: p[0])))


def choices_for(scenario: Scenario, start: Choices, base: Base) -> Choices | None:
    """Choices near ``start`` that make this very scenario; None where no choices can."""
    static = is_static(scenario.policy.name)
    seqs = scenario.policy.max_num_seqs
    for name, value in (
        ("policy", scenario.policy.name),
        ("bs" if static else "bd", seqs),
        ("hardware", scenario.hardware),
        ("gpus", scenario.tensor_parallel),
        ("model", scenario.model),
    ):
        start = with_basic(start, base, name, value)
    if isinstance(scenario.workload, Workload) and len(scenario.workload.streams) == 1:
        stream = scenario.workload.streams[0]
        for name, lengths in (("lin", stream.prompt), ("l", stream.output)):
            mean = round(mean_of([lengths], [1]))
            if _build(start, base).basic[name] != mean:
                start = with_basic(start, base, name, mean)
    wanted = scenario.to_dict()
    # A kind decides which settings there are, so a few rounds until nothing differs.
    for _ in range(4):
        found = draft(start, base)
        if found.scenario == scenario:
            return _pruned(start, base)
        for setting in found.settings:
            value = _at(wanted, setting.path)
            if value is not _NOWHERE and value != found.values[setting.code]:
                start = with_setting(start, base, setting.code, value)
    return None


def _pruned(choices: Choices, base: Base) -> Choices:
    """The choices without settings that are what they would be anyway."""
    for code, value in choices.expert:
        choices = with_setting(choices, base, code, value)
    return choices


# -- building --------------------------------------------------------------------------------------

_NOWHERE = object()
_SIDES = MappingProxyType({"lin": ("prompt", "in"), "l": ("output", "out")})
# Two ways to say one thing: the later word counts.
_INSTEAD_OF = MappingProxyType({"kvblocks": "kvgib", "kvgib": "kvblocks"})
_BUDGETS = ("max_num_batched_tokens", "chunk_size", "chunked_prefill_size")


@dataclass(frozen=True, slots=True)
class _Built:
    """A scenario as JSON values that nothing has checked yet, its settings, and BASIC."""

    data: dict
    settings: tuple[Setting, ...]
    basic: dict[str, Value]


@lru_cache(maxsize=1024)
def _build(choices: Choices, base: Base) -> _Built:
    expert = dict(choices.expert)
    data = base.scenario.to_dict()
    for key, value in (
        ("hardware", choices.hardware),
        ("tensor_parallel", choices.gpus),
        ("model", choices.model),
    ):
        if value is not None:
            data[key] = value
    if expert.get(CLOCK) in CLOCKS and expert[CLOCK] != data["clock"][KIND]:
        data["clock"] = {KIND: expert[CLOCK], **asdict(CLOCKS[expert[CLOCK]]())}
    for code, other in _INSTEAD_OF.items():
        if expert.get(code) is not None:
            data["memory"]["kv_gib" if other == "kvgib" else "kv_blocks"] = None
    if not base.has_trace:
        _set_lengths(data["workload"]["streams"], choices, base, expert)
    policy = choices.policy or base.scenario.policy.name
    bs = choices.bs or _own_static_batch(base.scenario)
    bd = choices.bd or _own_dynamic_batch(base.scenario)
    data["policy"] = _policy_data(policy, base.scenario, bs if is_static(policy) else bd)
    chunked = data["policy"].get("enable_chunked_prefill", True)
    if "enable_chunked_prefill" in data["policy"]:
        chunked = expert.get("chunked", chunked)
    settings = settings_for(_shape(data, expert, bool(chunked)))
    for setting in settings:
        if setting.code in expert and setting.allows(expert[setting.code]):
            _put(data, setting.path, expert[setting.code])
    if not chunked and WHOLE not in expert:
        least = _context(data) or 0
        data["policy"][_BUDGETS[0]] = max(data["policy"][_BUDGETS[0]], least)
    lin, output = base.means or (_mean(data, "prompt"), _mean(data, "output"))
    basic = {
        "policy": policy,
        "bs": bs,
        "bd": bd,
        "lin": round(lin),
        "l": round(output),
        "hardware": data["hardware"],
        "gpus": data["tensor_parallel"],
        "model": data["model"],
    }
    return _Built(data, settings, basic)


def _own_static_batch(scenario: Scenario) -> int:
    if is_static(scenario.policy.name):
        return scenario.policy.max_num_seqs
    context = scenario.max_model_len()
    if context is None:
        return USUAL_STATIC_BATCH
    reserved = kv_cache.reserved_batch(scenario.kv_capacity().tokens, context)
    return max(min(USUAL_STATIC_BATCH, reserved), 1)


def _own_dynamic_batch(scenario: Scenario) -> int:
    static = is_static(scenario.policy.name)
    return Scheduler.max_num_seqs if static else scenario.policy.max_num_seqs


def _policy_data(name: str, base: Scenario, max_num_seqs: int) -> dict:
    """The policy of the base, or another one with its limits, under its own names."""
    policy = with_policy(base, name).policy
    data = {KIND: name, **asdict(policy), "max_num_seqs": max_num_seqs}
    for field in _BUDGETS:
        # with_policy raises a budget for whole prompts; that is decided later, for the context
        # that these choices make.
        budgets = [getattr(base.policy, other) for other in _BUDGETS if hasattr(base.policy, other)]
        if field in data and budgets:
            data[field] = budgets[0]
    return data


def _set_lengths(streams: list[dict], choices: Choices, base: Base, expert: Mapping) -> None:
    own = base.scenario.workload.streams
    weights = [expert.get(_code("n", index), stream.n_requests) for index, stream in enumerate(own)]
    for name, (side, code) in _SIDES.items():
        mean = mean_of([getattr(stream, side) for stream in own], weights)
        chosen = getattr(choices, name)
        factor = 1.0 if chosen is None else chosen / mean
        for index, stream in enumerate(own):
            lengths = stretched(getattr(stream, side), factor)
            kind = expert.get(_code(code, index), lengths.kind)
            streams[index][side] = _lengths_data(with_kind(lengths, kind))


def _lengths_data(lengths: Lengths) -> dict:
    return {**asdict(lengths), "quantiles": [list(pair) for pair in lengths.quantiles]}


def _code(code: str, index: int) -> str:
    return f"{code}.{index}" if index else code


def _shape(data: dict, expert: Mapping[str, Value], chunked: bool) -> Shape:
    streams = data["workload"].get("streams", ())
    return Shape(
        policy=data["policy"][KIND],
        chunked=chunked,
        clock=data["clock"][KIND],
        streams=tuple(
            (
                expert.get(_code("arr", index), stream["arrivals"]["kind"]),
                stream["prompt"]["kind"],
                stream["output"]["kind"],
            )
            for index, stream in enumerate(streams)
        ),
    )


def _context(data: dict) -> int | None:
    """The context limit in tokens; None where neither model nor setting gives one."""
    own = data["memory"]["max_model_len"]
    if own is not None or data["model"] not in catalogue.models():
        return own
    return catalogue.models()[data["model"]].max_context_tokens


def _mean(data: dict, side: str) -> float:
    streams = data["workload"]["streams"]
    parts = [_mean_of_data(stream[side]) for stream in streams]
    weights = [stream["n_requests"] for stream in streams]
    return sum(part * n for part, n in zip(parts, weights, strict=True)) / sum(weights)


def _mean_of_data(data: dict) -> float:
    """As :func:`mean_tokens`, for numbers that nothing has checked."""
    if data["kind"] == "uniform":
        return (data["low_tokens"] + data["high_tokens"]) / 2
    if data["kind"] == "quantiles":
        return mean_of([Lengths("quantiles", quantiles=data["quantiles"])], [1])
    return data["mean_tokens"]


def _at(data: object, path: str) -> Value | object:
    for key in path.split("."):
        if isinstance(data, list) and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict) and key in data:
            data = data[key]
        else:
            return _NOWHERE
    return data


def _put(data: dict, path: str, value: Value) -> None:
    *parents, key = path.split(".")
    owner = _at(data, ".".join(parents)) if parents else data
    owner[key] = value


def _left_alone(choices: Choices, base: Base, code: str) -> Value:
    """The value of a setting if nobody had set it; None where there is no such setting now."""
    others = tuple(pair for pair in choices.expert if pair[0] != code)
    built = _build(replace(choices, expert=others), base)
    setting = next((setting for setting in built.settings if setting.code == code), None)
    return None if setting is None else _at(built.data, setting.path)


def _without_lengths(choices: Choices, name: str) -> Choices:
    """The choices without what single streams say of the lengths that Lin or L is about to set."""
    side = _SIDES[name][1]
    plain = {f"{side}{part}" for part in ("mean", "low", "high", "max")}
    kept = (pair for pair in choices.expert if pair[0].partition(".")[0] not in plain)
    return replace(choices, expert=tuple(kept))


# -- limits of the app -----------------------------------------------------------------------------


def _check_app_limits(scenario: Scenario) -> None:
    """What the simulator could do, but a server of many people or vLLM's own start does not."""
    workload, policy = scenario.workload, scenario.policy
    if workload.n_requests > MOST_REQUESTS:
        raise LabError("too_many_requests", n_requests=workload.n_requests, limit=MOST_REQUESTS)
    if policy.name not in ("vllm-v0", "vllm-v1"):
        return
    tokens, seqs, context = policy.max_num_batched_tokens, policy.max_num_seqs, None
    if not policy.enable_chunked_prefill:
        context = scenario.max_model_len()
    if tokens < seqs:
        raise LabError("vllm_tokens_below_seqs", tokens=tokens, seqs=seqs)
    if context is not None and tokens < context:
        raise LabError("vllm_tokens_below_context", tokens=tokens, context=context)
