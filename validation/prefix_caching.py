"""What a prefix cache finds: a conversation by formula and by simulation, and the lesson's runs.

A prompt of a conversation is the whole history and a new message. Of the history all KV is stored
but that of the answer's last token, which was never fed back; of this the full blocks are found
(F10c). The simulated conversation runs alone on an engine with memory to spare, so that nothing is
evicted and both must agree to the token.

Public: :class:`Talk`, :func:`turns`, :func:`alone`, :func:`simulated_turns`,
:func:`cached_or_not`, :func:`with_blocks`, :func:`conversations`, :func:`crowded`, :func:`steady`,
:func:`fleet`, :func:`open_histories`, :class:`Admission`, :func:`admissions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import formulas
from model import catalogue
from model.events import EVENT, REASON
from model.parameters import replace_at, with_policy
from model.result import SimulationResult
from model.scenario import Scenario, TraceReference
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Turns, Workload

__all__ = [
    "CROWDED_BLOCKS",
    "PRESET",
    "STEADY_PER_S",
    "Admission",
    "Histories",
    "Talk",
    "TalkTurns",
    "admissions",
    "alone",
    "cached_or_not",
    "conversations",
    "crowded",
    "fleet",
    "has_shared_prompts",
    "open_histories",
    "refusals",
    "simulated_turns",
    "steady",
    "turns",
    "with_blocks",
]

PRESET = "conversation-turns"
CROWDED_BLOCKS = 1500
"""KV blocks of 16 tokens at which the preset's requests preempt one another."""
STEADY_PER_S = 0.8
"""Conversations/s of the sweep over memory: fewer than the preset's, so that many overlap."""
_STREAM = "workload.streams.0."


# -- one conversation ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: tokens of the first prompt, of each further message and answer."""

    first_tokens: int = 600
    message_tokens: int = 60
    answer_tokens: int = 200
    turns: int = 6
    block_size: int = 16


class TalkTurns(NamedTuple):
    """Tokens of each turn: the prompt, what is found of it, what is computed, what is answered."""

    prompt: np.ndarray
    found: np.ndarray
    computed: np.ndarray
    answer: np.ndarray


@lru_cache(maxsize=256)
def turns(talk: Talk) -> TalkTurns:
    """The turns by formula (F10c)."""
    k = np.arange(talk.turns)
    prompt = talk.first_tokens + k * (talk.answer_tokens + talk.message_tokens)
    stored = np.maximum(prompt - talk.message_tokens - 1, 0)
    stored[0] = 0
    rule = formulas.get("F10c")
    found = np.array(
        [
            rule.evaluate({"bs": float(talk.block_size), "n": float(n), "n_old": float(old)})
            for n, old in zip(prompt, stored, strict=True)
        ]
    ).astype(int)
    return TalkTurns(prompt, found, prompt - found, np.full(talk.turns, talk.answer_tokens))


def alone(talk: Talk) -> Scenario:
    """The conversation as a scenario: vLLM V1, or SGLang's radix tree where a block is a token."""
    preset = catalogue.presets()[PRESET].scenario
    stream = Stream(
        name="talk",
        n_requests=talk.turns,
        arrivals=Arrivals("at_once"),
        prompt=Lengths("fixed", float(talk.first_tokens)),
        output=Lengths("fixed", float(talk.answer_tokens)),
        turns=Turns(
            mean_turns=float(talk.turns),
            message_kind="fixed",
            message_tokens=float(talk.message_tokens),
            think_s=1.0,
            think_kind="fixed",
        ),
    )
    scenario = replace(preset, workload=Workload((stream,)))
    if talk.block_size == 1:
        scenario = with_policy(scenario, "sglang")
    return with_blocks(scenario, talk.block_size)


@lru_cache(maxsize=256)
def simulated_turns(talk: Talk) -> TalkTurns:
    """The same from a run of :func:`alone`."""
    requests = simulate(alone(talk)).requests
    prompt, found = requests["prompt_tokens"], requests["cached_tokens"]
    return TalkTurns(prompt, found, prompt - found, requests["emitted_tokens"])


# -- scenarios of the lesson -----------------------------------------------------------------------


def has_shared_prompts(scenario: Scenario) -> bool:
    """Whether prompts of its generated workload begin alike, so that a cache can find anything."""
    if isinstance(scenario.workload, TraceReference):
        return False
    return any(s.has_conversations or s.prefix_groups for s in scenario.workload.streams)


def conversations() -> Scenario:
    """The preset with conversations of several turns."""
    return catalogue.presets()[PRESET].scenario


def with_blocks(scenario: Scenario, block_size: int) -> Scenario:
    """Blocks of another size, in the same memory."""
    memory = scenario.memory
    blocks = memory.kv_blocks
    if blocks is not None:
        blocks = max(blocks * memory.block_size // block_size, 1)
    return replace(scenario, memory=replace(memory, block_size=block_size, kv_blocks=blocks))


def cached_or_not(scenario: Scenario, policy: str, cached: bool) -> Scenario:
    """The scenario under "vllm-v1", or "sglang" in pages of one token, with the cache on or off."""
    if policy == "sglang":
        found = with_blocks(with_policy(scenario, "sglang"), 1)
        return replace_at(found, "policy.disable_radix_cache", not cached)
    found = with_policy(scenario, "vllm-v1")
    return replace_at(found, "policy.enable_prefix_caching", cached)


def crowded(blocks: int = CROWDED_BLOCKS) -> Scenario:
    """The preset where memory is short: contexts may be as long as it is."""
    preset = conversations()
    limit = min(preset.memory.max_model_len, blocks * preset.memory.block_size)
    return replace(preset, memory=replace(preset.memory, kv_blocks=blocks, max_model_len=limit))


def steady(blocks: int, think_s: float, requests: int = 600) -> Scenario:
    """The preset with STEADY_PER_S conversations a second, so much memory, and pauses so long."""
    found = replace_at(crowded(blocks), _STREAM + "arrivals.rate_per_s", STEADY_PER_S)
    found = replace_at(found, _STREAM + "n_requests", requests)
    return replace_at(found, _STREAM + "turns.think_s", think_s)


def fleet(router: str, guard_requests: int, rate_per_s: float, engines: int = 4) -> Scenario:
    """The preset on several crowded engines; ``guard_requests`` is the imbalance it bears."""
    found = replace_at(crowded(), _STREAM + "arrivals.rate_per_s", rate_per_s)
    found = replace_at(found, "n_engines", engines)
    found = replace_at(found, "cluster.router", router)
    return replace_at(found, "cluster.balance_abs", guard_requests)


# -- what runs say ---------------------------------------------------------------------------------


class Histories(NamedTuple):
    """Most conversations open at a time, and the KV blocks that the histories of all then fill."""

    conversations: int
    blocks: int


def open_histories(result: SimulationResult) -> Histories:
    """A conversation is open from its first arrival to its last end; its history only grows.

    What the prompts of different conversations share is counted once for each.
    """
    follows, requests = result.inputs.follows, result.requests
    size = result.block_size
    held = (requests["prompt_tokens"] + requests["output_tokens"]) // size
    changes: list[tuple[float, int, int]] = []  # time, conversations, blocks
    last = set(range(len(held))) - set(follows.tolist())
    for row, before in enumerate(follows.tolist()):
        grown = held[row] - (held[before] if before >= 0 else 0)
        changes.append((requests["arrival_s"][row], int(before < 0), int(grown)))
        if row in last:
            changes.append((requests["end_s"][row], -1, -int(held[row])))
    order = sorted(changes)
    counts = np.cumsum([change[1] for change in order])
    blocks = np.cumsum([change[2] for change in order])
    return Histories(int(counts.max()), int(blocks.max()))


class Admission(NamedTuple):
    """One admission in the numbers of its event.

    ``whole_blocks`` are those of the prompt, ``found_blocks`` the cached ones among them, of which
    ``idle_blocks`` nobody held: these counted as free, and are taken out of the free ones.
    """

    request: str
    prompt_tokens: int
    found_tokens: int
    whole_blocks: int
    found_blocks: int
    idle_blocks: int
    needed_blocks: int
    free_blocks: int
    tokens: int
    budget_tokens: int


def admissions(result: SimulationResult) -> list[Admission]:
    """Every first admission that found something."""
    events, size = result.events, result.block_size
    chosen = (events["event"] == EVENT["admit"]) & (events["cached_tokens"] > 0)
    listed = []
    for place in np.flatnonzero(chosen).tolist():
        row = int(events["request"][place])
        prompt = int(result.requests["prompt_tokens"][row])
        found, need = int(events["cached_tokens"][place]), int(events["blocks_needed"][place])
        whole, blocks = -(-prompt // size), found // size
        listed.append(
            Admission(
                result.inputs.request_id[row],
                prompt,
                found,
                whole,
                blocks,
                need - whole + blocks,
                need,
                int(events["blocks_free"][place]),
                int(events["tokens"][place]),
                int(events["tokens_free"][place]),
            )
        )
    return listed


def refusals(result: SimulationResult) -> dict[str, int]:
    """How often the head of the queue had to wait for blocks, and for token budget."""
    events = result.events
    refused = events["event"] == EVENT["refuse"]
    return {
        name: int((refused & (events["reason"] == REASON[name])).sum())
        for name in ("no_blocks", "no_budget")
    }
