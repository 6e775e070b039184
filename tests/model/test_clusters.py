"""Everything at once: routers or pools, turns, retries, patience, admission control, any policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalogue
from model.cluster import DISPATCHES, Cluster
from model.film import film
from model.iteration_time import Linear
from model.metrics import summary
from model.parameters import replace_at, sweepable
from model.routers import ROUTERS
from model.scenario import Memory, Scenario
from model.schedulers import POLICIES, Orca, Sarathi, VllmV0, VllmV1
from model.simulator import simulate
from model.state import FINISHED
from model.workload import Arrivals, Lengths, Stream, Turns, Workload
from tests.cases import profile
from tests.model.test_routers import assert_same

MIXED = (
    POLICIES["lab"](max_num_seqs=6, admission="queue_cap", queue_cap_requests=2),
    VllmV1(max_num_seqs=6, max_num_batched_tokens=64, enable_prefix_caching=True),
    VllmV1(max_num_seqs=6, queue_order="priority"),
    VllmV0(max_num_seqs=6, max_num_batched_tokens=512, preemption_mode="swap"),
    Sarathi(max_num_seqs=6, chunk_size=32),
    Orca(max_num_seqs=6),
)


@st.composite
def scenarios(draw) -> Scenario:
    choose = st.sampled_from
    turns = Turns(
        "geometric", draw(choose([1.0, 3.0])), message_tokens=8.0, think_s=draw(choose([0.0, 0.3]))
    )
    stream = Stream(
        n_requests=40,
        arrivals=Arrivals("gamma", rate_per_s=draw(choose([5.0, 20.0, 60.0])), cv=2.0),
        prompt=Lengths("exponential", 30.0, max_tokens=100),
        output=Lengths("geometric", 15.0, max_tokens=60),
        prefix_groups=2,
        shared_prefix_tokens=12,
        patience_s=draw(choose([None, 2.0])),
        turns=turns,
        retries=draw(st.integers(0, 3)),
        retry_after_s=0.2,
    )
    n_engines = draw(st.integers(1, 4))
    return Scenario(
        workload=Workload((stream,)),
        policy=draw(choose(MIXED)),
        clock=Linear(0.01, 3e-4, 1e-3),
        model=None,
        hardware=None,
        memory=Memory(
            kv_blocks=draw(choose([45, 80, 200])),
            block_size=4,
            num_cpu_blocks=1000,
            max_model_len=160,
        ),
        seed=draw(st.integers(0, 1000)),
        n_engines=n_engines,
        cluster=Cluster(
            router=draw(choose(list(ROUTERS))),
            prefill_engines=draw(st.integers(0, n_engines - 1)),
            dispatch=draw(choose(DISPATCHES)),
            link_latency_s=draw(choose([0.0, 0.01, 0.5])),
            snapshot_s=draw(choose([0.0, 1.0])),
        ),
    )


@profile(80)
@given(scenario=scenarios())
def test_nobody_is_lost(scenario):
    result = simulate(scenario)
    assert_same(result, simulate(scenario, fast_forward=False))
    assert summary(result)["unfinished_requests"] == 0
    table = result.requests
    done = table["status"] == FINISHED
    np.testing.assert_array_equal(table["emitted_tokens"][done], table["output_tokens"][done])
    tries = 1 + scenario.workload.streams[0].retries
    came = np.isfinite(table["arrival_s"])
    assert ((table["attempts"][came] >= 1) & (table["attempts"][came] <= tries)).all()
    assert (table["attempts"][~came] == 0).all()
    for engine in range(scenario.n_engines):
        film(result, engine)
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_an_old_scenario_has_the_default_cluster():
    data = catalogue.presets()["customer-service"].scenario.to_dict()
    del data["cluster"]
    for name in ("turns", "retries", "retry_after_s", "retry_factor"):
        del data["workload"]["streams"][0][name]
    assert Scenario.from_dict(data) == catalogue.presets()["customer-service"].scenario


@pytest.mark.parametrize(("engines", "offered"), [(1, False), (3, True)])
def test_a_sweep_offers_the_cluster_where_there_is_one(engines, offered):
    scenario = replace_at(catalogue.presets()["customer-service"].scenario, "n_engines", engines)
    found = {parameter.path: parameter for parameter in sweepable(scenario)}
    assert ("cluster.router" in found) == offered
    if offered:
        assert found["cluster.prefill_engines"].suggested == (0, 1, 2)
        assert 300e9 in found["cluster.link_bytes_per_s"].suggested


@pytest.mark.parametrize(
    "cluster", [Cluster(), *(Cluster(prefill_engines=1, dispatch=name) for name in DISPATCHES)]
)
def test_engines_whose_ends_send_something_do_not_walk_step_by_step(cluster):
    """An engine may go on up to where another's decision stops standing, not only to its clock.

    A request is an arrival and an end and, in pools, the end of a prefill and of a transfer: four
    moments at most, each of which cuts the stretches of all three engines.
    """
    stream = Stream(
        n_requests=30,
        arrivals=Arrivals("closed_loop", users=6),
        prompt=Lengths("uniform", low_tokens=100, high_tokens=3000),
        output=Lengths("uniform", low_tokens=1000, high_tokens=3000),
    )
    scenario = Scenario(Workload((stream,)), VllmV1(), n_engines=3, cluster=cluster)
    result = simulate(scenario)
    assert len(result.iterations["start_s"]) > 10_000
    assert result.stats["decisions"] < 30 * 3 * 4
