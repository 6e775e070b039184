"""What a plan is asked for: a kind of requests, their rate, and two promises.

Public: :func:`asked`, :func:`at_rate`, :class:`Load`, :func:`load_of`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from model.cluster import Cluster
from model.parameters import OPEN_LOOP, RATE, replace_at, value_at
from model.scenario import Scenario, Slo
from model.steady_load import gpus, rate_of, steady
from model.workload import Arrivals, Lengths, Stream, Workload

__all__ = ["SAMPLE", "Load", "asked", "at_rate", "load_of"]

SAMPLE = 2000
"""Requests that means are taken of."""
_LINK = ("link_bytes_per_s", "link_latency_s")  # what a plan keeps of a cluster


def asked(
    scenario: Scenario, rate_per_s: float, slo: Slo, means: tuple[int, int] | None = None
) -> Scenario:
    """One engine of the scenario, with its kind of requests at this rate and with these promises.

    Requests that come from a file, all at once or from users who wait have no rate; in their place
    come requests of the mean lengths ``means`` (prompt, output), at random times. Of the scenario's
    cluster only the link between pools is kept.
    """
    workload = scenario.workload
    link = {name: getattr(scenario.cluster, name) for name in _LINK}
    one = replace(scenario, slo=slo, n_engines=1, cluster=Cluster(**link))
    kinds = {stream.arrivals.kind for stream in getattr(workload, "streams", ())}
    if kinds and kinds <= set(OPEN_LOOP):
        return at_rate(one, rate_per_s)
    if means is None:
        found = scenario.requests()
        means = round(found.prompt_tokens.mean()), round(found.output_tokens.mean())
    prompt, output = (Lengths("fixed", float(max(n, 1))) for n in means)
    stream = Stream("load", SAMPLE, Arrivals("poisson", rate_per_s), prompt, output)
    return replace(one, workload=Workload((stream,)))


def at_rate(scenario: Scenario, rate_per_s: float) -> Scenario:
    """So many requests/s, further turns of conversations among them."""
    return replace_at(scenario, RATE, rate_per_s / _requests_per_arrival(scenario))


def _requests_per_arrival(scenario: Scenario) -> float:
    once = replace_at(scenario, RATE, 1.0)
    return rate_of(once) * gpus(once)


@dataclass(frozen=True, slots=True)
class Load:
    """The requests of a plan: rate of all engines, mean lengths, and how they scatter.

    ``context_tokens`` is the mean context of a decode over time: long answers are there for longer.
    ``prompt_cv`` is the standard deviation of prompts over their mean.
    """

    rate_per_s: float
    prompt_tokens: float
    output_tokens: float
    context_tokens: float
    prompt_cv: float = 0.0


@lru_cache(maxsize=128)
def _lengths(scenario: Scenario) -> tuple[float, float, float, float]:
    found = steady(scenario, SAMPLE).requests()
    prompt, output = found.prompt_tokens, found.output_tokens
    context = float(((prompt + output / 2) * output).sum() / output.sum())
    mean = float(prompt.mean())
    return mean, float(output.mean()), context, float(prompt.std()) / mean


def load_of(scenario: Scenario) -> Load:
    """The load of a scenario that :func:`asked` made."""
    rate = value_at(scenario, RATE) * _requests_per_arrival(scenario)
    alike = replace(replace_at(scenario, RATE, 1.0), slo=Slo(), seed=0)  # means depend on neither
    return Load(rate, *_lengths(alike))
