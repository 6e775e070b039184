"""How soon goodput frontiers and tables of policies are there, on the workers that the app uses.

Workers are warm, as in a server that has been used before; what starting them takes has a line of
its own.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from benchmarks.report import measure, ms, table
from model import catalogue
from model.experiment import sweep
from model.goodput import FULL, Bracket, Frontier, frontier, search
from model.metrics import METRICS
from model.parameters import RATE, replace_at, value_at, with_policy
from model.scenario import Scenario
from model.schedulers import POLICIES
from model.workers import Workers

FRONTIER_POLICIES = ("vllm-v1", "vllm-v0", "sarathi", "orca")
TABLE_POLICIES = ("static", "orca", "vllm-v0", "vllm-v1", "sarathi", "sglang")
TABLE_REQUESTS = 500
PRESETS = ("customer-service", "conversation")


def workers(data: Path, repeat: int) -> str:
    """What the first learner waits for once."""
    times = {}
    for name, processes in (("processes", True), ("threads", False)):
        began = perf_counter()
        with Workers(processes) as pool:
            pool.warm_up()
            times[name] = perf_counter() - began
    return table("Starting the workers", ("kind", "time"), [(k, ms(t)) for k, t in times.items()])


def goodput(data: Path, repeat: int) -> str:
    """A frontier of 4 policies × 8 rates × 2,000 requests × 3 seeds, and one search."""
    rows = []
    with Workers() as pool:
        pool.warm_up()
        for name in PRESETS:
            scenario = catalogue.presets()[name].scenario
            policies = {policy: with_policy(scenario, policy) for policy in FRONTIER_POLICIES}
            for how, executor in (("workers", pool), ("alone", None)):
                rough_s, whole_s, last = _frontier_times(policies, executor)
                search_s, (low, high, _) = _searched(scenario, executor)
                times = ms(rough_s), ms(whole_s), last.done, ms(search_s)
                rows.append((name, how, *times, f"{low:.3g}–{high:.3g}/s"))
    return table(
        f"Goodput: {len(FRONTIER_POLICIES)} policies, 8 rates and 2 halvings of each bracket, "
        f"{FULL.requests:,} requests, {FULL.seeds} seeds",
        ("preset", "runs go to", "rough curve", "whole frontier", "runs", "one search", "vllm-v1"),
        rows,
        f"Rough: all points of the grid with 250 requests. Workers: {Workers().size} processes.",
    )


def _frontier_times(policies: dict[str, Scenario], executor) -> tuple[float, float, Frontier]:
    began, rough_s = perf_counter(), 0.0
    for last in frontier(policies, executor=executor):
        if not rough_s and all(len(curve.points) >= 8 for curve in last.curves):
            rough_s = perf_counter() - began
    return rough_s, perf_counter() - began, last


def _searched(scenario: Scenario, executor) -> tuple[float, Bracket]:
    began = perf_counter()
    *_, last = search(scenario, executor=executor)
    return perf_counter() - began, last.curves[0].goodput


def policies(data: Path, repeat: int) -> str:
    """A table of policies: all metrics of 500 requests under each of six."""
    names = [name for name in TABLE_POLICIES if name in POLICIES]
    rows = []
    with Workers() as pool:
        pool.warm_up()
        for preset in PRESETS:
            scenario = replace_at(
                catalogue.presets()[preset].scenario,
                "workload.streams.0.n_requests",
                TABLE_REQUESTS,
            )
            for how, executor in (("workers", pool), ("alone", None)):
                timing = measure(
                    lambda s=scenario, e=executor: sweep(s, "policy", names, METRICS, executor=e),
                    repeat,
                )
                rate = f"{value_at(scenario, RATE):g}/s"
                rows.append((preset, rate, how, len(names), ms(timing.median_s)))
    head = ("preset", "rate", "runs go to", "policies", "median")
    return table(f"A table of policies ({TABLE_REQUESTS} requests, all metrics)", head, rows)


SECTIONS = {"workers": workers, "goodput": goodput, "policies": policies}
"""Name on the command line -> measurement (data folder, repetitions)."""
