"""A scenario as a ``vllm serve`` line, and what such a line cannot say."""

from __future__ import annotations

import shlex
from dataclasses import fields

from model.errors import LabError
from model.kv_cache import GIB, Memory
from model.scenario import Scenario
from model.schedulers.vllm_v0 import VllmV0
from model.vllm_command import SWITCH, V0, V1
from model.vllm_flags import Flag, flags
from model.vllm_names import names

__all__ = ["cannot_say", "to_command"]

_SET_BY_VLLM = {  # fields whose default in vLLM is not the default of the field here
    "policy.max_num_seqs",
    "policy.max_num_batched_tokens",
    "policy.enable_chunked_prefill",
    "policy.enable_prefix_caching",
    "memory.gpu_memory_utilization",
}


def to_command(scenario: Scenario) -> str:
    """The ``vllm serve`` line of a scenario; parsed again it gives the scheduling fields back.

    What it cannot say is listed by :func:`cannot_say`. Raises LabError vllm_no_command for
    a policy that is not vLLM's, vllm_model_needed without a model.
    """
    policy, memory = scenario.policy, scenario.memory
    if policy.name not in (V0, V1):
        raise LabError("vllm_no_command", policy=policy.name)
    if scenario.model is None:
        raise LabError("vllm_model_needed")
    name = _name_to_write(scenario)
    lines = [f"vllm serve {shlex.quote(name)}"]
    for flag in flags().values():
        if flag.role != "setting" or flag.reads in ("model", "dtype"):
            continue
        if flag.engine and flag.engine != policy.name:
            continue
        value = _value_to_write(scenario, flag)
        if value is None:
            continue
        if flag.reads == "flag":
            lines.append(_switch(flag.flag, bool(value), policy.name))
        else:
            lines.append(f"{flag.flag} {shlex.quote(str(value))}")
    if memory.weight_dtype == "bf16":
        lines.insert(1, "--dtype bfloat16")
    if policy.name == V0:
        lines[0] = f"{SWITCH}=0 {lines[0]}"
    return " \\\n  ".join(lines)


def cannot_say(scenario: Scenario) -> tuple[str, ...]:
    """Fields of a scenario that its command does not carry, by path.

    The first five never do; the others only where they have a value of their own.
    """
    policy, memory = scenario.policy, scenario.memory
    never = ("workload", "hardware", "clock", "slo", "seed")
    lost = {
        "model": scenario.model not in {model for _, model, _ in names()},
        "policy.watermark": policy.name == V0 and policy.watermark != VllmV0().watermark,
        "n_engines": policy.name == V0 and scenario.n_engines != 1,
        "memory.activation_bytes_per_gpu": memory.activation_bytes_per_gpu
        != Memory().activation_bytes_per_gpu,
        "memory.kv_gib": memory.kv_gib is not None and _bytes_per_gpu(scenario) is None,
        "memory.num_cpu_blocks": memory.num_cpu_blocks is not None,
        "memory.swap_space_gib": policy.name == V1
        and memory.swap_space_gib != Memory().swap_space_gib,
    }
    return (*never, *(field for field, is_lost in lost.items() if is_lost))


def _name_to_write(scenario: Scenario) -> str:
    """The model's usual name, of a checkpoint in the wanted precision if there is one."""
    mine = [(name, dtype) for name, model, dtype in names() if model == scenario.model]
    fitting = [name for name, dtype in mine if dtype == scenario.memory.weight_dtype]
    return (fitting or [name for name, _ in mine] or [scenario.model])[0]


def _value_to_write(scenario: Scenario, flag: Flag) -> object | None:
    """The text of a flag's value; None leaves the flag out, as where vLLM's default says it."""
    owner, _, name = flag.field.rpartition(".")
    holder = {"": scenario, "policy": scenario.policy, "memory": scenario.memory}[owner]
    value = getattr(holder, name)
    default = next(field.default for field in fields(holder) if field.name == name)
    if value is None or (value == default and flag.field not in _SET_BY_VLLM):
        return None
    if flag.reads == "quantization":
        return {"fp8": "fp8", "int4": "awq"}[value]
    if flag.reads == "gpu_blocks":
        return value + 1 if scenario.policy.name == V1 else value
    if flag.reads == "bytes_per_gpu":
        return _bytes_per_gpu(scenario)
    return value


def _bytes_per_gpu(scenario: Scenario) -> int | None:
    """The KV size given in GiB as whole bytes of one GPU, if reading that gives the same size."""
    gib, gpus = scenario.memory.kv_gib, scenario.tensor_parallel
    if gib is None or scenario.policy.name != V1:
        return None
    size = round(gib * GIB / gpus)
    return size if size / GIB * gpus == gib else None


def _switch(flag: str, on: bool, engine: str) -> str:
    if on:
        return flag
    # V0's switches take a value; V1's have a negation.
    return f"{flag}=False" if engine == V0 else f"--no-{flag.removeprefix('--')}"
