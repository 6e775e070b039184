"""How fast the simulator is: each function measures one thing and returns a table of medians.

A time is that of `simulate()` from requests to result columns, events included; reading or
generating the requests is not part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.inputs import (
    BLIS_A_S,
    KV_BLOCKS,
    PEER_POLICIES,
    PEERS,
    azure_requests,
    peer_requests,
    recording_of,
    scenario_for,
    steady_workload,
)
from benchmarks.report import measure, ms, table
from model import catalogue, recording
from model.cluster import DISPATCHES, Cluster
from model.metrics import summary
from model.scenario import Memory, Scenario
from model.schedulers import Sarathi, VllmV0, VllmV1
from model.simulator import simulate
from model.workload import Arrivals, Workload
from tests import reference

SIZES = (500, 2000, 8000)


def peers(data: Path, repeat: int) -> str:
    """The workloads on which other simulators were measured, in the recorded set-up."""
    rows = []
    for peer in PEERS:
        requests, origin = peer_requests(peer, data)
        for policy in PEER_POLICIES:
            scenario = scenario_for(requests, policy)
            result = simulate(scenario, requests)
            median_s = measure(lambda s=scenario, r=requests: simulate(s, r), repeat).median_s
            fastest_s, slowest_s = peer.vidur_s
            iterations = len(result.iterations["start_s"])
            rows.append(
                (
                    f"{peer.name} ({origin})",
                    policy.name,
                    len(requests),
                    iterations,
                    result.stats["decisions"],
                    ms(median_s),
                    iterations / median_s,
                    f"{fastest_s}–{slowest_s} s",
                    f"{fastest_s / median_s:.0f}–{slowest_s / median_s:.0f}×",
                )
            )
    head = ("workload", "policy", "requests", "iterations", "decisions", "median")
    return table(
        "Against Vidur (Llama-3-8B, one A100, 30,208 KV blocks, 128 sequences)",
        (*head, "iterations/s", "Vidur", "faster"),
        rows,
        f"Vidur: its loop alone, metrics off. BLIS (Go) took {BLIS_A_S[0]}–{BLIS_A_S[1]} s for a.",
    )


def azure(data: Path, repeat: int) -> str:
    """One hour of real conversations."""
    title = "The Azure conversation trace, 19,366 requests (vllm-v1, budget 2,048, 8B on an A100)"
    requests = azure_requests(data)
    if requests is None:
        return f"{title}\nleft out: no AzureLLMInferenceTrace_conv.csv in the data folder"
    policy = VllmV1(max_num_seqs=256, max_num_batched_tokens=2048)
    scenario = scenario_for(
        requests, policy, model="llama-3.1-8b", memory=Memory(max_model_len=16384)
    )
    result = simulate(scenario, requests)
    median_s = measure(lambda: simulate(scenario, requests), repeat).median_s
    summary_s = measure(lambda: summary(replace(result)), repeat).median_s
    iterations = len(result.iterations["start_s"])
    row = (
        len(requests),
        iterations,
        result.stats["decisions"],
        result.stats["events"],
        ms(median_s),
        len(requests) / median_s,
        ms(summary_s),
    )
    head = ("requests", "iterations", "decisions", "events", "median", "requests/s", "all metrics")
    return table(title, head, [row])


def presets(data: Path, repeat: int) -> str:
    """What a learner waits for after moving a slider."""
    rows = []
    for name, preset in catalogue.presets().items():
        result = simulate(preset.scenario)
        median_s = measure(lambda s=preset.scenario: simulate(s), repeat).median_s
        summary_s = measure(lambda r=result: summary(replace(r)), repeat).median_s
        rows.append(
            (
                name,
                len(result.inputs),
                len(result.iterations["start_s"]),
                result.stats["decisions"],
                result.stats["events"],
                int(result.requests["preemptions"].sum()),
                ms(median_s),
                ms(summary_s),
            )
        )
    head = ("preset", "requests", "iterations", "decisions", "events", "preemptions")
    return table("Presets", (*head, "median", "all metrics"), rows)


def linearity(data: Path, repeat: int) -> str:
    """Time and decisions a request must not depend on how many there are."""
    policies = (
        VllmV1(),
        VllmV1(queue_order="priority"),
        VllmV0(max_num_batched_tokens=8192),
        Sarathi(max_num_seqs=256),
    )
    rows = []
    for load, (memory, workload) in LOADS.items():
        for policy in policies:
            by_priority = getattr(policy, "queue_order", "fcfs") == "priority"
            cells: list[object] = [load, policy.name + (", priority" if by_priority else "")]
            for n in SIZES:
                requests = workload(n).generate(seed=1)
                scenario = scenario_for(requests, policy, memory=memory)
                decisions = simulate(scenario, requests).stats["decisions"]
                median_s = measure(lambda s=scenario, r=requests: simulate(s, r), repeat).median_s
                cells += [f"{median_s / n * 1e6:.1f} µs", decisions / n]
            rows.append(tuple(cells))
    sizes = [cell for n in SIZES for cell in (f"{n:,}", "decisions")]
    return table("Time and decisions a request", ("load", "policy", *sizes), rows)


def _workload(n_requests: int, arrivals: Arrivals, patience_s: float | None = None) -> Workload:
    stream = steady_workload(n_requests).streams[0]
    return Workload((replace(stream, arrivals=arrivals, patience_s=patience_s),))


AMPLE, TIGHT = Memory(kv_blocks=KV_BLOCKS), Memory(kv_blocks=1_600)

LOADS: dict[str, tuple[Memory, Callable[[int], Workload]]] = {
    "4 requests/s": (AMPLE, steady_workload),
    "all at once": (AMPLE, lambda n: _workload(n, Arrivals("at_once"))),
    "all at once, few blocks": (TIGHT, lambda n: _workload(n, Arrivals("at_once"))),
    "40 requests/s, clients give up": (
        AMPLE,
        lambda n: _workload(n, Arrivals("poisson", rate_per_s=40.0), patience_s=30.0),
    ),
}


def naive(data: Path, repeat: int) -> str:
    """Against one iteration at a time, and against the plain loop that tests compare with.

    Under overload (b) every other iteration changes something, so joining them saves little; at a
    low load (c) it saves most.
    """
    engines = {
        "sarathi": {"chunk_size": 512},
        "vllm-v1": {"max_num_batched_tokens": 4096},
        "vllm-v0": {"max_num_batched_tokens": 8192},
    }
    rows = []
    for peer in PEERS[1:]:
        requests, origin = peer_requests(peer, data)
        for policy, scheduler in engines.items():
            config, lines = recording_of(requests, policy, scheduler)
            scenario, columns = recording.load(config, lines)
            fast_s = measure(lambda s=scenario, r=columns: simulate(s, r), repeat).median_s
            slow_s = measure(
                lambda s=scenario, r=columns: simulate(s, r, fast_forward=False), repeat
            ).median_s
            loop_s = measure(lambda c=config, r=lines: reference.run(c, r), 1).median_s
            rows.append(
                (
                    f"{peer.name} ({origin})",
                    policy,
                    ms(fast_s),
                    f"{ms(slow_s)} ({slow_s / fast_s:.1f}×)",
                    f"{ms(loop_s)} ({loop_s / fast_s:.0f}×)",
                )
            )
    head = ("workload", "policy", "median", "fast_forward=False", "naive loop")
    return table("Against a naive loop (linear clock)", head, rows)


def clusters(data: Path, repeat: int) -> str:
    """Engines whose ends send something: a closed loop on several of them, and pools.

    Each end may send a request to any engine, so none may run ahead of the others' ends.
    """
    stream = replace(
        steady_workload(2000).streams[0], arrivals=Arrivals("closed_loop", users=64)
    )
    kinds = {"least_work": Cluster(router="least_work")}
    kinds |= {name: Cluster(prefill_engines=1, dispatch=name) for name in DISPATCHES}
    rows = []
    for name, cluster in kinds.items():
        for policy in (VllmV1(), Sarathi(max_num_seqs=256)):
            scenario = Scenario(Workload((stream,)), policy, n_engines=4, cluster=cluster)
            requests = scenario.requests()
            result = simulate(scenario, requests)
            median_s = measure(lambda s=scenario, r=requests: simulate(s, r), repeat).median_s
            iterations = len(result.iterations["start_s"])
            decisions = result.stats["decisions"]
            rows.append(
                (name, policy.name, iterations, decisions, ms(median_s), iterations / median_s)
            )
    head = ("cluster", "policy", "iterations", "decisions", "median", "iterations/s")
    return table("2,000 requests of 64 users on four engines", head, rows)


SECTIONS = {
    "peers": peers,
    "azure": azure,
    "presets": presets,
    "linearity": linearity,
    "clusters": clusters,
    "naive": naive,
}
"""Name on the command line -> measurement (data folder, repetitions)."""
