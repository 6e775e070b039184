"""Every preset under every policy and cluster, with extreme settings, comes to an end.

The result says what became of everybody, its metrics are numbers or undefined (never infinite), and
it took few decisions for what happened: nothing goes round in circles until it is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from model import catalogue, export
from model.cluster import Cluster
from model.experiment import replace_at, with_policy
from model.scenario import Scenario
from model.schedulers import POLICIES
from model.simulator import simulate
from model.state import STATUS
from model.workload import Arrivals, Lengths, Turns, Workload

CLUSTERS = {
    "alone": (1, Cluster()),
    "in turn": (2, Cluster()),
    "least work": (3, Cluster(router="least_work", snapshot_s=1.0)),
    "known prefix": (2, Cluster(router="prefix_aware", balance_abs=2)),
    "distserve": (3, Cluster(prefill_engines=2, link_bytes_per_s=1e9, link_latency_s=0.01)),
    "splitwise": (3, Cluster(prefill_engines=1, dispatch="splitwise")),
}
OFTEN = 30
"""Decisions of each engine for an arrival or a preemption; a chunk beside a tree is one each."""


def with_memory(**values) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, memory=replace(scenario.memory, **values))


def with_streams(**values) -> Callable[[Scenario], Scenario]:
    def change(scenario: Scenario) -> Scenario:
        streams = (replace(stream, **values) for stream in scenario.workload.streams)
        return replace(scenario, workload=Workload(tuple(streams)))

    return change


def one_stream(**values) -> Callable[[Scenario], Scenario]:
    def change(scenario: Scenario) -> Scenario:
        first = replace(scenario.workload.streams[0], turns=Turns(), **values)
        return replace(scenario, workload=Workload((first,)))

    return change


EXTREMES: dict[str, Callable[[Scenario], Scenario]] = {
    "as it is": lambda scenario: scenario,
    "one place": lambda scenario: replace_at(scenario, "policy.max_num_seqs", 1),
    "blocks of one token": with_memory(block_size=1),
    "blocks of 256 tokens": with_memory(block_size=256),
    "hardly any memory": with_memory(kv_blocks=40, max_model_len=600),
    "little memory": with_memory(kv_blocks=256, max_model_len=4000),
    "a single request": one_stream(n_requests=1),
    "prompts beyond everything": with_streams(prompt=Lengths("fixed", 1_000_000.0)),
    "impatient clients": with_streams(patience_s=0.5),
    "at once": one_stream(
        n_requests=200,
        arrivals=Arrivals("at_once"),
        prompt=Lengths("geometric", 200.0),
        output=Lengths("geometric", 60.0),
    ),
    "closed loop": one_stream(arrivals=Arrivals("closed_loop", users=5), patience_s=None),
    "conversations with retries": with_streams(turns=Turns(mean_turns=3.0), retries=3),
}


def combinations(preset: str, policy: str, n_requests: int) -> Iterator[tuple[str, Scenario]]:
    """Those of a preset and a policy that can be, and what to call them."""
    small = with_streams(n_requests=n_requests)(catalogue.presets()[preset].scenario)
    for extreme, change in EXTREMES.items():
        for name, (engines, cluster) in CLUSTERS.items():
            if cluster.prefill_engines and not POLICIES[policy].works_in_pools:
                continue
            scenario = change(with_policy(small, policy))
            yield f"{extreme}, {name}", replace(scenario, n_engines=engines, cluster=cluster)


def check(what: str, scenario: Scenario) -> None:
    result = simulate(scenario)
    requests = result.requests
    came = requests["attempts"] > 0
    assert not np.any(came & (requests["status"] == STATUS.index("unfinished"))), what
    if result.inputs.follows is None:
        assert came.all(), what
    finished = requests["status"] == STATUS.index("finished")
    emitted = requests["emitted_tokens"] == requests["output_tokens"]
    assert np.array_equal(emitted[finished], finished[finished]), what
    json.loads(export.summary_json(result), parse_constant=pytest.fail)
    happened = requests["attempts"].sum() + requests["preemptions"].sum()
    assert result.stats["decisions"] <= OFTEN * scenario.n_engines * happened, what


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["interactive-offline", "conversation-turns"])
def test_a_few_requests(preset, policy):
    for what, scenario in combinations(preset, policy, 12):
        check(what, scenario)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", catalogue.presets())
def test_many_requests(preset, policy):
    for what, scenario in combinations(preset, policy, 40):
        check(what, scenario)
