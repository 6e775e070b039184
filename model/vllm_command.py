"""A pasted ``vllm serve`` line as a scenario (:mod:`model.vllm_export` writes one).

A command says how a server schedules, not what it serves or on which machine: workload, hardware,
clock, SLOs and seed come from a base scenario. What a command leaves out gets vLLM's own default,
which for the batch limits depends on the hardware. Text is only split and looked up in tables.

Sources: vLLM's ``engine/arg_utils.py`` (defaults by device memory, the A100 exception of PR
#17885, human-readable numbers) and ``config/cache.py``; 0.6.3.post1 for V0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from model import kv_cache
from model.catalogue import Device
from model.errors import LabError
from model.kv_cache import GIB, Memory
from model.parameters import value_at
from model.scenario import Scenario
from model.schedulers import POLICIES
from model.schedulers.vllm_v0 import VllmV0
from model.schedulers.vllm_v1 import VllmV1
from model.trace_formats import shown
from model.vllm_flags import NUMBER, Command, Flag, bad_value, closest, flags, take_apart
from model.vllm_names import model_of

__all__ = ["ParsedCommand", "Setting", "Unknown", "parse_command"]

V1, V0 = VllmV1.name, VllmV0.name
SWITCH = "VLLM_USE_V1"

_WEIGHTS = MappingProxyType(  # by the method of --quantization
    {
        **dict.fromkeys(("fp8", "fbgemm_fp8", "ptpc_fp8", "modelopt", "modelopt_fp8"), "fp8"),
        **dict.fromkeys(("awq", "awq_marlin", "gptq", "gptq_marlin", "bitsandbytes"), "int4"),
        **dict.fromkeys(("mxfp4", "modelopt_fp4"), "int4"),
    }
)
_KV_DTYPES = MappingProxyType(
    {
        **dict.fromkeys(("auto", "bfloat16", "float16", "half"), "bf16"),
        **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), "fp8"),
    }
)
_DTYPES = MappingProxyType(dict.fromkeys(("auto", "bfloat16", "float16", "half"), "bf16"))
_SUFFIXES = MappingProxyType(
    {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
    | {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
)
_HUMAN = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)([kKmMgGtT]?)", re.ASCII)

# Batch limits of the API server by GPU memory: (at least GB, on an A100 too, tokens, sequences).
_BATCH_DEFAULTS = ((160, True, 16_384, 1024), (70, False, 8192, 1024), (0, True, 2048, 256))
_UTILIZATION = MappingProxyType({V1: 0.92, V0: 0.9})
_LONG_CONTEXT = 32_768  # tokens above which V0 switches chunked prefill on


@dataclass(frozen=True, slots=True)
class Setting:
    """A flag that set a field, or a default in its place; ``value`` is the field's."""

    flag: str
    field: str
    value: object


@dataclass(frozen=True, slots=True)
class Unknown:
    """A word that vLLM's table of flags does not have, and a flag it may have meant (or "")."""

    flag: str
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """What a command says, and what became of each of its flags.

    ``scenario`` is None where the settings cannot run; a fault then says why. ``faults`` are
    LabErrors, each with a sentence. ``engine`` is the modelled version, such as "vLLM 0.33.0".
    ``ignored`` flags have no effect on scheduling; ``not_modelled`` ones may have.
    """

    scenario: Scenario | None
    engine: str
    understood: tuple[Setting, ...]
    defaults: tuple[Setting, ...]
    ignored: tuple[str, ...]
    not_modelled: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    faults: tuple[LabError, ...]


def parse_command(text: str, base: Scenario) -> ParsedCommand:
    """The scenario of a pasted command, with workload, hardware, clock, SLOs and seed of ``base``.

    ``VLLM_USE_V1=0`` before the command means V0. Of a flag given twice the last one counts.
    Raises LabError (vllm_not_a_command, vllm_quotes, vllm_too_long) for text without a command;
    everything else that is wrong is one of the faults.
    """
    command = take_apart(text)
    engine = V0 if command.environment.get(SWITCH, "1").strip().lower() in ("0", "false") else V1
    reading = _Reading(command, engine, base)
    scenario = reading.scenario()
    return ParsedCommand(
        scenario,
        engine_version(engine),
        tuple(_in_force(setting, scenario) for setting in reading.understood.values()),
        tuple(reading.defaults),
        tuple(dict.fromkeys(reading.ignored)),
        tuple(dict.fromkeys(reading.not_modelled)),
        tuple(dict.fromkeys(Unknown(name, closest(name)) for name in reading.strange)),
        tuple(reading.faults),
    )


def _in_force(setting: Setting, scenario: Scenario | None) -> Setting:
    """The setting with what its field became: another flag may have had the last word."""
    return replace(setting, value=value_at(scenario, setting.field)) if scenario else setting


def engine_version(policy: str) -> str:
    """The version that a policy models, such as "vLLM 0.33.0"."""
    return POLICIES[policy].source.split(",")[0]


class _Reading:
    """One command on its way to a scenario: settings by field, and notes on every flag."""

    def __init__(self, command: Command, engine: str, base: Scenario) -> None:
        self.engine, self.base = engine, base
        self.understood: dict[str, Setting] = {}
        self.defaults: list[Setting] = []
        self.ignored: list[str] = []
        self.not_modelled: list[str] = []
        self.strange: list[str] = list(command.unknown)
        self.faults: list[LabError] = list(command.faults)
        self.values: dict[str, object] = {}
        self.model, self.checkpoint_dtype = base.model, "bf16"
        self.fits_context = False  # --max-model-len auto
        name = None
        for given in command.given:
            flag = flags()[given.flag]
            if flag.reads == "model":
                name = given.value
            elif flag.role == "setting":
                self._setting(flag, given.value)
            elif flag.role == "none" or _same(given.value, flag.harmless):
                self.ignored.append(flag.flag)
            else:
                self.not_modelled.append(flag.flag)
        words = list(command.words)
        if words:  # the word after "vllm serve" outranks --model, as in vLLM
            name = words.pop(0)
        self.strange += [shown(word) for word in words]
        self._name_model(name)

    def _name_model(self, name: str | None) -> None:
        found = None if name is None else model_of(name)
        if found is None:
            stays = {"model": self.base.model or "none"}
            if name is None:
                self.faults.append(LabError("vllm_no_model", **stays))
            else:
                self.faults.append(LabError("vllm_model_unknown", value=shown(name), **stays))
            return
        self.model, self.checkpoint_dtype = found
        self.understood = {"--model": Setting("--model", "model", self.model)} | self.understood

    def _setting(self, flag: Flag, text: str) -> None:
        if flag.engine and flag.engine != self.engine:
            if flag.elsewhere == "none":
                self.ignored.append(flag.flag)
            elif flag.elsewhere == "unmodelled":
                self.not_modelled.append(flag.flag)
            else:
                self.faults.append(
                    LabError(
                        "vllm_other_engine",
                        flag=flag.flag,
                        engine=engine_version(flag.engine),
                        other=engine_version(self.engine),
                        switch=1 if flag.engine == V1 else 0,
                    )
                )
            return
        try:
            value = self._read(flag, text)
        except LabError as fault:
            self.faults.append(fault)
            return
        self.understood.pop(flag.flag, None)
        self.understood[flag.flag] = Setting(flag.flag, flag.field, value)
        if flag.reads != "dtype" or flag.field not in self.values:
            self.values[flag.field] = value

    def _read(self, flag: Flag, text: str) -> object:
        """The value of a flag in the unit of its field."""
        reads = flag.reads
        if reads == "flag":
            return text == "true"
        if reads == "number":
            if not NUMBER.fullmatch(text):
                raise bad_value(flag.flag, text, "a number")
            return float(text)
        if reads in ("quantization", "kv_dtype", "dtype"):
            table = {"quantization": _WEIGHTS, "kv_dtype": _KV_DTYPES, "dtype": _DTYPES}[reads]
            if text not in table:
                raise bad_value(flag.flag, text, "one of " + ", ".join(table))
            return table[text]
        if reads == "text":
            return text
        if reads == "context" and text in ("auto", "-1"):
            self.fits_context = True
            return None
        number = _whole(flag.flag, text)
        if reads == "context":
            self.fits_context = False
        elif reads == "gpu_blocks" and self.engine == V1:
            return number - 1  # V1 keeps one null block for itself
        elif reads == "bytes_per_gpu":
            return number / GIB  # times the GPUs, once their number is known
        return number

    # -- from settings to a scenario ---------------------------------------------------------------

    def scenario(self) -> Scenario | None:
        try:
            return self._scenario()
        except LabError as fault:
            self.faults.append(fault)
            return None

    def _scenario(self) -> Scenario:
        base, values = self.base, self.values
        gpus = values.get("tensor_parallel", 1)
        memory = self._memory(gpus)
        parts = {
            "model": self.model,
            "tensor_parallel": gpus,
            "n_engines": values.get("n_engines", 1),
        }
        if self.fits_context:
            memory = self._with_context_that_fits(memory, parts)
        hardware_only = replace(base, memory=memory, **parts)
        context = hardware_only.max_model_len()
        policy = self._policy(context)
        self._check_start(policy, context)
        return replace(hardware_only, policy=policy)

    def _memory(self, gpus: object) -> Memory:
        values = dict(_fields_of("memory", self.values))
        values.setdefault("weight_dtype", self.checkpoint_dtype)
        if values["weight_dtype"] == "bf16":  # --dtype does not undo a checkpoint's quantization
            values["weight_dtype"] = self.checkpoint_dtype
        if "gpu_memory_utilization" not in values:
            values["gpu_memory_utilization"] = _UTILIZATION[self.engine]
            self._default("--gpu-memory-utilization", values["gpu_memory_utilization"])
        if "kv_blocks" in values:
            values.pop("kv_gib", None)  # the override wins
        elif "kv_gib" in values and isinstance(gpus, int):
            values["kv_gib"] *= gpus
        return Memory(activation_bytes_per_gpu=self.base.memory.activation_bytes_per_gpu, **values)

    def _with_context_that_fits(self, memory: Memory, parts: Mapping[str, object]) -> Memory:
        one = replace(self.base, memory=replace(memory, max_model_len=1), **parts)
        limit = kv_cache.max_model_len(one.model_entry, memory)
        tokens = one.kv_capacity().tokens
        return memory if limit is None or limit <= tokens else replace(memory, max_model_len=tokens)

    def _policy(self, context: int | None):
        values = dict(_fields_of("policy", self.values))
        if self.engine == V0:
            chunked, tokens, seqs = _v0_defaults(context, values.get("enable_chunked_prefill"))
        else:
            chunked = values.get("enable_chunked_prefill", True)
            tokens, seqs = _v1_defaults(self.base.device, context, chunked, values)
            if "enable_prefix_caching" not in values:
                values["enable_prefix_caching"] = True
                self._default("--enable-prefix-caching", True)
        for flag, name, value in (
            ("--max-num-seqs", "max_num_seqs", seqs),
            ("--max-num-batched-tokens", "max_num_batched_tokens", tokens),
            ("--enable-chunked-prefill", "enable_chunked_prefill", chunked),
        ):
            if name not in values:
                values[name] = value
                self._default(flag, value)
        return POLICIES[self.engine](**values)

    def _default(self, flag: str, value: object) -> None:
        self.defaults.append(Setting(flag, flags()[flag].field, value))

    def _check_start(self, policy: VllmV0 | VllmV1, context: int | None) -> None:
        """What the scheduler could do and vLLM does not let it."""
        tokens, seqs = policy.max_num_batched_tokens, policy.max_num_seqs
        if tokens < seqs:
            self.faults.append(LabError("vllm_tokens_below_seqs", tokens=tokens, seqs=seqs))
        if context is not None and not policy.enable_chunked_prefill and tokens < context:
            self.faults.append(
                LabError("vllm_tokens_below_context", tokens=tokens, context=context)
            )


def _v1_defaults(
    device: Device | None, context: int | None, chunked: object, values: Mapping[str, object]
) -> tuple[int, int]:
    """(max_num_batched_tokens, max_num_seqs) of the 0.33 API server where they are left out."""
    # A vendor's GB are about vLLM's GiB: an 80 GB card reports 79 to 80 GiB.
    size_gb = device.hbm_bytes / 1e9 if device else 0
    on_a100 = device is not None and "a100" in device.name.lower()
    tokens, seqs = next(
        (tokens, seqs)
        for least_gb, a100_too, tokens, seqs in _BATCH_DEFAULTS
        if size_gb >= least_gb and (a100_too or not on_a100)
    )
    seqs = values.get("max_num_seqs", seqs)
    if "max_num_batched_tokens" in values:
        tokens = values["max_num_batched_tokens"]
    elif context is not None:
        if not chunked:
            tokens = max(tokens, context)
        tokens = min(tokens, seqs * context)
    return tokens, min(seqs, tokens)


def _v0_defaults(context: int | None, chunked: object) -> tuple[object, int, int]:
    """(enable_chunked_prefill, max_num_batched_tokens, max_num_seqs) of 0.6.3."""
    if chunked is None:
        chunked = context is not None and context > _LONG_CONTEXT
    return chunked, 512 if chunked else max(context or 0, 2048), 256


def _fields_of(owner: str, values: Mapping[str, object]) -> list[tuple[str, object]]:
    prefix = owner + "."
    return [(k[len(prefix) :], v) for k, v in values.items() if k.startswith(prefix)]


def _whole(flag: str, text: str) -> int:
    """A whole number as vLLM reads it: 8k is 8,000, 8K is 8,192, 25.6k is 25,600."""
    match = _HUMAN.fullmatch(text)
    if match:
        digits, suffix = match.groups()
        if digits.isdigit():
            return int(digits) * _SUFFIXES[suffix]
        if suffix.islower():
            return int(float(digits) * _SUFFIXES[suffix])
    raise bad_value(flag, text, "a whole number such as 8192, 8k (8,000) or 8K (8,192)")


def _same(value: str, harmless: str) -> bool:
    """Whether a value is the harmless one; numbers are compared as numbers."""
    if NUMBER.fullmatch(value) and NUMBER.fullmatch(harmless):
        return float(value) == float(harmless)
    return harmless != "" and value.lower() == harmless
