"""The lesson on prefix caching: its conversation, its runs, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import streamlit as st

from model import catalogue
from model.parameters import replace_at
from model.requests import Requests
from model.scenario import Scenario, TraceReference
from ui.choose import choose, formula_viewer
from ui.engine import simulated, summary
from ui.language import t
from ui.prose import prose
from ui.scenario import current_requests, current_scenario
from validation import prefix_traces as traces
from validation.prefix_caching import (
    Talk,
    cached_or_not,
    conversations,
    crowded,
    fleet,
    has_shared_prompts,
)
from validation.throughput import Engine

__all__ = [
    "BLOCKS",
    "FORMULAS",
    "GUARDS",
    "PAGE",
    "RATE_PER_S",
    "ROUTERS",
    "Kind",
    "Replay",
    "engines_of",
    "kinds",
    "orders",
    "replay",
    "says",
    "studied",
    "talk_now",
    "viewer",
]

PAGE = "prefix_caching"
MOST_SIMULATED = 5_000
MOST_REPLAYED = 5_000
BLOCKS = ("16", "1", "64")
GUARDS = ("64", "16", "8")
ROUTERS = ("round_robin", "least_work", "prefix_aware")
RATE_PER_S = 8.0
FORMULAS = {
    "turns": ("F10c", "F10d", "F2f"),
    "effect": ("F2f", "F23"),
    "memory": ("F8b", "F10"),
    "admission": ("F10", "F10c"),
    "replicas": ("F10d",),
    "trace": ("F10c",),
}


def says(section: str, **numbers: object) -> str:
    """A section of the lesson's prose with its numbers."""
    return prose(PAGE, section).text.format(**numbers)


def viewer(part: str, engine: Engine, **numbers: float) -> None:
    """The formulas of a part with the model's numbers and those that it adds."""
    model = catalogue.model(engine.model)
    given = {
        "Psi_a": float(model.active_parameters),
        "n_L": float(model.layers),
        "d_a": float(model.attention_width),
        **numbers,
    }
    where = dict.fromkeys(("Psi_a", "n_L", "d_a"), t("thr.where.model", name=model.name))
    where |= dict.fromkeys(numbers, t(f"pfx.where.{part}"))
    formula_viewer("pfx", part, FORMULAS[part], given, where)


# -- one conversation ------------------------------------------------------------------------------


def talk_now() -> Talk:
    """The sliders of the conversation and what they make."""
    row = st.columns([3, 3, 3, 3, 3], gap="medium")
    sizes = (
        ("first", 16, 4000, 600, 8),
        ("message", 1, 1000, 60, 1),
        ("answer", 1, 2000, 200, 1),
        ("turns", 2, 10, 6, 1),
    )
    chosen = [
        column.slider(
            t(f"pfx.slider.{name}"), low, high, start, step, key=f"t{name}", bind="query-params"
        )
        for column, (name, low, high, start, step) in zip(row, sizes, strict=False)
    ]
    with row[4]:
        size = choose("tpage", BLOCKS, "pfx.block", t("pfx.block"))
    st.caption(t("pfx.block.help"))
    return Talk(*chosen, block_size=int(size))


# -- runs ------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """An engine with the cache off or on (or a queue order, or a router), and its run."""

    engine: str
    setting: str
    scenario: Scenario
    numbers: Mapping[str, float]

    @property
    def computed_tokens(self) -> float:
        """Prompt tokens computed at first admissions."""
        requests = simulated(self.scenario).requests
        return float((requests["prompt_tokens"] - requests["cached_tokens"]).sum())


def studied() -> tuple[Scenario, str]:
    """The panel's scenario, or the preset and why: "none" shares nothing, "large"."""
    scenario = current_scenario()
    if not has_shared_prompts(scenario):
        return conversations(), "none"
    if scenario.workload.n_requests > MOST_SIMULATED:
        return conversations(), "large"
    return scenario, "own"


def kinds(scenario: Scenario) -> list[Kind]:
    """Both engines with the cache off and on, serving the same requests."""
    runs = [
        (policy, setting, cached_or_not(scenario, policy, setting == "on"))
        for policy in ("vllm-v1", "sglang")
        for setting in ("off", "on")
    ]
    return [Kind(policy, setting, run, summary(run)) for policy, setting, run in runs]


def orders() -> list[Kind]:
    """SGLang with little memory: in order of arrival, and the longest cached prefix first."""
    base = cached_or_not(crowded(), "sglang", True)
    runs = [
        (order, replace_at(base, "policy.schedule_policy", order)) for order in ("fcfs", "lpm")
    ]
    return [Kind("sglang", order, run, summary(run)) for order, run in runs]


def engines_of(guard: int) -> list[Kind]:
    """Four engines under each router."""
    runs = [(router, fleet(router, guard, RATE_PER_S)) for router in ROUTERS]
    return [Kind("vllm-v1", router, run, summary(run)) for router, run in runs]


# -- a trace ---------------------------------------------------------------------------------------


class Replay(NamedTuple):
    """A trace replayed; ``source`` is "own", or why it is the sample: "none", "unhashed".

    ``blocks`` are cache sizes in hash blocks of ``block_tokens``, ``shares`` what they find.
    """

    source: str
    name: str
    reuse: traces.Reuse
    block_tokens: int
    blocks: np.ndarray
    shares: np.ndarray


def replay(scenario: Scenario) -> Replay:
    """The panel's trace, or the sample where it has none with hashes."""
    requests, workload = current_requests(), scenario.workload
    if requests is None or not isinstance(workload, TraceReference):
        return _replayed("none", "", "", None)
    if requests.hash_ids is None:
        return _replayed("unhashed", workload.name, "", None)
    return _replayed("own", workload.name, workload.sha256, requests)


@st.cache_resource(max_entries=16, show_spinner=False)
def _replayed(source: str, name: str, digest: str, _requests: Requests | None) -> Replay:
    requests = traces.sample() if _requests is None else _first(_requests)
    found = traces.reuse(requests)
    blocks = _sizes(found.blocks)
    shares = traces.hit_shares(requests, blocks.tolist())
    return Replay(source, name, found, requests.hash_block_tokens, blocks, shares)


def _sizes(most: int) -> np.ndarray:
    """1, 2, 5, 10, ... over three decades, the last one with room for ``most`` blocks."""
    steps = np.outer(10 ** np.arange(8), (1, 2, 5)).ravel()
    last = int(np.searchsorted(steps, most))
    return steps[max(last - 9, 0) : last + 1]


def _first(requests: Requests) -> Requests:
    return requests.take(np.arange(min(len(requests), MOST_REPLAYED)))
