"""Everything a scenario can be told: each setting with its place, its code in links, its limits.

Nothing here lists the parameters of an engine, a clock or the memory: they are the fields of their
classes, so a new one appears by itself (with its own name as code and label until the tables here
and in ``locales/`` give it better ones). A code is part of links that people keep: a code in the
table below may never change its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType

from model.cluster import Cluster
from model.iteration_time import CLOCKS
from model.kv_cache import Memory
from model.parameters import Parameter, described
from model.scenario import LARGEST_ENGINES, LARGEST_SEED, Slo
from model.schedulers import POLICIES
from model.workload import ARRIVAL_KINDS, LENGTH_KINDS, Arrivals, Lengths, Stream

__all__ = ["CODES", "GROUPS", "MOST_REQUESTS", "Setting", "Shape", "setting_of", "settings_for"]

GROUPS = ("workload", "engine", "cluster", "memory", "clock", "slo", "run")

MOST_REQUESTS = 20_000
"""Of all streams, in the app: many people share its server. The command line has no such limit."""

CODES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "policy": {
            # One limit under the names it has in each engine.
            "max_num_batched_tokens": "budget",
            "chunk_size": "budget",
            "chunked_prefill_size": "budget",
            "max_prefill_tokens": "maxprefill",
            "schedule_policy": "schedule",
            "schedule_conservativeness": "conservative",
            "enable_mixed_chunk": "mixed",
            "disable_radix_cache": "noradix",
            "enable_priority_scheduling": "prioritized",
            "retraction_policy": "retract",
            "max_new_tokens": "maxnew",
            "enable_chunked_prefill": "chunked",
            "long_prefill_token_threshold": "longprefill",
            "scheduler_reserve_full_isl": "fullisl",
            "watermark": "watermark",
            "enable_prefix_caching": "prefixcache",
            "queue_order": "order",
            "preemption_mode": "preempt",
            "reserve": "reserve",
            "finished_rows": "rows",
            "max_num_queued_reqs": "queuedreqs",
            "max_num_queued_tokens": "queuedtokens",
            "prediction_sigma": "predsigma",
            "aging_tokens_per_s": "aging",
            "fcfs_after_s": "fcfsafter",
            "prefill": "beside",
            "target_itl_s": "targetitl",
            "quantum_s": "quantum",
            "victim": "victim",
            "evict_for_waiting": "evict",
            "admission": "admission",
            "queue_cap_requests": "capreqs",
            "queue_cap_tokens": "captokens",
            "system_cap_requests": "capsystem",
            "ttft_bound_s": "ttftbound",
            "prefill_rate_tokens_per_s": "prefillrate",
        },
        "memory": {
            "block_size": "block",
            "gpu_memory_utilization": "util",
            "max_model_len": "ctx",
            "weight_dtype": "weights",
            "kv_dtype": "kv",
            "activation_bytes_per_gpu": "act",
            "kv_blocks": "kvblocks",
            "kv_gib": "kvgib",
            "num_cpu_blocks": "cpublocks",
            "swap_space_gib": "swap",
        },
        "clock": {
            "base_s": "base",
            "per_scheduled_token_s": "pertoken",
            "per_swapped_block_s": "perswap",
            "forward_s": "forward",
            "prefill_accounting": "prefill",
            "compute_efficiency": "effc",
            "memory_efficiency": "effm",
            "fixed_s": "fixed",
            "communication": "comm",
            "link_latency_s": "latency",
        },
        "cluster": {
            "router": "router",
            "match_threshold": "match",
            "balance_abs": "balabs",
            "balance_rel": "balrel",
            "snapshot_s": "snapshot",
            "prefill_engines": "prefillers",
            "dispatch": "dispatch",
            "transfer": "transfer",
            "link_bytes_per_s": "link",
            "link_latency_s": "linklatency",
        },
        "slo": {"ttft_s": "ttft", "tpot_s": "tpot"},
        "run": {"seed": "seed", "n_engines": "engines"},
        "stream": {
            "n_requests": "n",
            "arrivals.kind": "arr",
            "arrivals.rate_per_s": "rate",
            "arrivals.cv": "arrcv",
            "arrivals.users": "users",
            "arrivals.think_s": "think",
            "arrivals.think_kind": "thinkkind",
            "prompt.kind": "in",
            "prompt.mean_tokens": "inmean",
            "prompt.cv": "incv",
            "prompt.low_tokens": "inlow",
            "prompt.high_tokens": "inhigh",
            "prompt.max_tokens": "inmax",
            "output.kind": "out",
            "output.mean_tokens": "outmean",
            "output.cv": "outcv",
            "output.low_tokens": "outlow",
            "output.high_tokens": "outhigh",
            "output.max_tokens": "outmax",
            "priority": "prio",
            "start_s": "start",
            "prefix_groups": "groups",
            "shared_prefix_tokens": "shared",
            "patience_s": "patience",
            "patience_kind": "patiencekind",
            "turns.kind": "turnskind",
            "turns.mean_turns": "turns",
            "turns.most_turns": "turnsmax",
            "turns.message_kind": "msgkind",
            "turns.message_tokens": "msg",
            "turns.think_s": "turnthink",
            "turns.think_kind": "turnthinkkind",
            "retries": "retries",
            "retry_after_s": "retryafter",
            "retry_factor": "retryfactor",
        },
    }
)
CLOCK = "clock"
"""Code of the clock itself."""
WHOLE = "whole"
"""Code of the token budget while prompts are not chunked: it must hold one whole, so the number
for chunks says nothing about it."""

_OPEN_LOOP_ONLY = ("patience", "turns.")
_OF_STREAM = re.compile(r"(?P<code>[a-z][a-z.]*)\.(?P<index>[1-9])")
_GROUP = MappingProxyType({"policy": "engine", "stream": "workload"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the expert part.

    ``path`` leads to it in ``Scenario.to_dict()`` ("workload.streams.0.prompt.cv"), ``code`` is its
    name in links, ``word`` the key of its name and help ("stream.prompt.cv"). ``kind``,
    ``optional``, limits and choices are those of :class:`model.parameters.Parameter`.
    """

    path: str
    code: str
    group: str
    word: str
    kind: str
    optional: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    stream: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path: an engine's own name where it is an engine's."""
        return self.path.rpartition(".")[2]

    def allows(self, value: object) -> bool:
        """Whether the value alone could stand here (others may still forbid it)."""
        if value is None:
            return self.optional
        if self.kind == "flag":
            return isinstance(value, bool)
        if self.kind == "choice":
            return value in self.choices
        low = float("-inf") if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        return low <= value <= high


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides which settings there are; ``streams`` are (arrivals, prompt, output) kinds."""

    policy: str
    chunked: bool
    clock: str
    streams: tuple[tuple[str, str, str], ...]


@lru_cache(maxsize=512)
def settings_for(shape: Shape) -> tuple[Setting, ...]:
    """The settings of a scenario of this shape, in the order of the groups.

    Bs, Bd, Lin and L are not among them, nor are the mean lengths of a single stream, which are
    Lin and L themselves.
    """
    found: list[Setting] = []
    single = len(shape.streams) == 1
    for index, kinds in enumerate(shape.streams):
        for setting in _stream_settings(kinds):
            if not (single and setting.name == "mean_tokens"):
                found.append(_of_stream(setting, index))
    for setting in _policy_settings(shape.policy):
        whole = setting.name == "max_num_batched_tokens" and not shape.chunked
        found.append(replace(setting, code=WHOLE) if whole else setting)
    found += _plain_settings("cluster", Cluster())
    found += _plain_settings("memory", Memory())
    found.append(_CLOCK_SETTING)
    found += _plain_settings("clock", CLOCKS[shape.clock]())
    found += _plain_settings("slo", Slo())
    found += _RUN_SETTINGS
    return tuple(found)


@cache
def setting_of(code: str) -> Setting | None:
    """The setting behind a code of a link, whichever engine or clock has it; None if none has."""
    if (match := _OF_STREAM.fullmatch(code)) and match["code"] in _by_code():
        plain = _by_code()[match["code"]]
        if plain.group == "workload":
            return _of_stream(plain, int(match["index"]))
    return _by_code().get(code)


@cache
def _by_code() -> Mapping[str, Setting]:
    every: dict[str, Setting] = {}
    for kinds in _every_stream_kind():
        for setting in _stream_settings(kinds):
            every.setdefault(setting.code, _of_stream(setting, 0))
    for setting in (
        *(s for policy in POLICIES for s in _policy_settings(policy)),
        *_plain_settings("cluster", Cluster()),
        *_plain_settings("memory", Memory()),
        _CLOCK_SETTING,
        *(s for clock in CLOCKS.values() for s in _plain_settings("clock", clock())),
        *_plain_settings("slo", Slo()),
        *_RUN_SETTINGS,
    ):
        every[setting.code] = _merged(every.get(setting.code), setting)
    every[WHOLE] = replace(every["budget"], code=WHOLE)
    return MappingProxyType(every)


def _merged(one: Setting | None, other: Setting) -> Setting:
    """A code that two engines share allows what either of them does."""
    if one is None:
        return other
    if one.kind != other.kind or one.group != other.group:
        raise ValueError(f"The code {one.code!r} means two things: {one.path} and {other.path}.")
    lows, highs = (one.low, other.low), (one.high, other.high)
    return replace(
        one,
        low=None if None in lows else min(lows),
        high=None if None in highs else max(highs),
        choices=tuple(dict.fromkeys((*one.choices, *other.choices))),
        optional=one.optional or other.optional,
    )


def _every_stream_kind():
    plain = ("poisson", "fixed", "fixed")
    for kind in ARRIVAL_KINDS:
        yield kind, *plain[1:]
    for kind in LENGTH_KINDS:
        yield plain[0], kind, kind


@cache
def _stream_settings(kinds: tuple[str, str, str]) -> tuple[Setting, ...]:
    arrivals, prompt, output = kinds
    stream = Stream(
        arrivals=Arrivals(kind=arrivals), prompt=_example(prompt), output=_example(output)
    )
    return tuple(
        _adapted(parameter, _setting("stream", parameter))
        for parameter in described(stream)
        if not (arrivals == "closed_loop" and parameter.path.startswith(_OPEN_LOOP_ONLY))
    )


def _adapted(parameter: Parameter, setting: Setting) -> Setting:
    if parameter.path == "n_requests":
        return replace(setting, high=MOST_REQUESTS)
    if parameter.path in ("prompt.kind", "output.kind") and parameter.current != "quantiles":
        # Nobody types a table of quantiles: only a preset or a bundle brings one.
        return replace(setting, choices=tuple(k for k in LENGTH_KINDS if k != "quantiles"))
    return setting


def _example(kind: str) -> Lengths:
    table = ((0.0, 1.0), (1.0, 2.0)) if kind == "quantiles" else ()
    return Lengths(kind=kind, quantiles=table)


@cache
def _policy_settings(policy: str) -> tuple[Setting, ...]:
    return tuple(
        _setting("policy", parameter)
        for parameter in described(POLICIES[policy]())
        if parameter.path != "max_num_seqs"  # Bs or Bd
    )


def _plain_settings(owner: str, example: object) -> tuple[Setting, ...]:
    return tuple(_setting(owner, parameter) for parameter in described(example))


def _setting(owner: str, parameter: Parameter) -> Setting:
    place = "" if owner in ("stream", "run") else f"{owner}."
    return Setting(
        path=place + parameter.path,
        code=CODES[owner].get(parameter.path, f"{owner}.{parameter.path}".replace("_", ".")),
        group=_GROUP.get(owner, owner),
        word=f"{owner}.{parameter.path}",
        kind=parameter.kind,
        optional=parameter.optional,
        low=parameter.low,
        high=parameter.high,
        choices=parameter.choices,
    )


def _of_stream(setting: Setting, index: int) -> Setting:
    plain = setting.path.removeprefix("workload.streams.0.")
    return replace(
        setting,
        path=f"workload.streams.{index}.{plain}",
        code=setting.code if index == 0 else f"{setting.code}.{index}",
        stream=index,
    )


_CLOCK_SETTING = Setting(
    path="clock.kind", code=CLOCK, group="clock", word="clock", kind="choice", choices=tuple(CLOCKS)
)
_RUN_SETTINGS = (
    _setting("run", Parameter("seed", "whole", 0, 0, LARGEST_SEED)),
    _setting("run", Parameter("n_engines", "whole", 1, 1, LARGEST_ENGINES)),
)
