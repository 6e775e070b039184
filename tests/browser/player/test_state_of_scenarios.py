"""The state of every iteration where no recording exists: other policies, clocks, engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model import catalogue
from model.film import film
from model.iteration_time import Linear, Textbook
from model.scenario import Memory, Scenario
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload

COUNTS = """() => {
    const columns = { running: [], waiting: [], hosted: [], decodes: [], prefills: [],
        tokens: [], recompute: [], used: [], held: [] };
    for (let row = 0; row < film.length; row++) {
        const state = film.stateAt(row);
        const of = (phase) => state.running.filter((m) => m.phase === phase);
        const sum = (list, value) => list.reduce((total, item) => total + value(item), 0);
        const prefills = [...of("prefill"), ...of("recompute")];
        columns.running.push(state.running.length);
        columns.waiting.push(state.waiting.length);
        columns.hosted.push(state.hosted.length);
        columns.decodes.push(of("decode").length);
        columns.prefills.push(prefills.length);
        columns.tokens.push(sum(prefills, (m) => m.tokens));
        columns.recompute.push(sum(prefills, (m) => m.recompute));
        columns.used.push(state.used);
        columns.held.push(sum([...state.running, ...state.kept], (m) => m.blocks));
    }
    return columns;
}"""


def small(policy, *, n=120, rate=30.0, clock=None, engines=1, arrivals=None, **memory) -> Scenario:
    stream = Stream(
        "s",
        n,
        arrivals or Arrivals("poisson", rate_per_s=rate),
        Lengths("uniform", mean_tokens=120, low_tokens=20, high_tokens=220),
        Lengths("geometric", mean_tokens=60, max_tokens=300),
    )
    return Scenario(
        Workload((stream,)),
        policy,
        clock=clock or Linear(0.005, 5e-5, 2e-5),
        model=None,
        hardware=None,
        memory=Memory(**{"kv_blocks": 120, "num_cpu_blocks": 4000, "max_model_len": 600} | memory),
        n_engines=engines,
    )


SCENARIOS = {
    "padded": small(POLICIES["static"](max_num_seqs=8, finished_rows="padded"), kv_blocks=400),
    "orca-pow2": small(POLICIES["orca"](max_num_seqs=8, reserve="pow2")),
    "orca-oracle": small(POLICIES["orca"](max_num_seqs=8, reserve="oracle")),
    "v0-chunked-swap": small(
        POLICIES["vllm-v0"](
            max_num_seqs=32,
            max_num_batched_tokens=256,
            enable_chunked_prefill=True,
            preemption_mode="swap",
        )
    ),
    "v0-priority": small(POLICIES["vllm-v0"](max_num_seqs=16, queue_order="priority")),
    "sarathi": small(POLICIES["sarathi"](max_num_seqs=32, chunk_size=128)),
    "textbook-serial": small(
        POLICIES["vllm-v1"](max_num_seqs=16), clock=Textbook(0.01), n=40, rate=4.0
    ),
    "two-engines": small(POLICIES["vllm-v1"](max_num_seqs=32), engines=2, n=200, rate=60.0),
    "closed-loop": small(
        POLICIES["vllm-v1"](max_num_seqs=32, max_num_batched_tokens=128),
        arrivals=Arrivals("closed_loop", users=20, think_s=0.2),
    ),
}


@pytest.mark.parametrize("name", [*SCENARIOS, "preemption-storm", "interactive-offline"])
def test_counts_are_those_of_the_engine(name, open_film):
    presets = catalogue.presets()
    scenario = SCENARIOS[name] if name in SCENARIOS else presets[name].scenario
    result = simulate(scenario)
    for engine in range(scenario.n_engines):
        counts = open_film(film(result, engine).windows[0]).evaluate(COUNTS)
        mine = result.iterations["engine_id"] == engine
        columns = {key: column[mine] for key, column in result.iterations.items()}
        prefill_tokens = columns["prefill_tokens"] + columns["recompute_tokens"]
        padded = columns["padding_tokens"] > 0
        for found, wanted in (
            ("running", columns["running"]),
            ("waiting", columns["waiting"]),
            ("hosted", columns["swapped"]),
            ("decodes", columns["decode_requests"]),
            ("prefills", columns["prefill_requests"]),
            ("tokens", prefill_tokens),
            ("recompute", columns["recompute_tokens"]),
            ("used", columns["blocks_used"]),
            ("held", columns["blocks_used"]),
        ):
            same = np.array(counts[found]) == wanted
            assert same.all(), f"{found}, row {int(np.argmin(same))}, engine {engine}"
        assert padded.any() == (name == "padded")


def test_equal_scenarios_have_equal_films():
    scenario = SCENARIOS["sarathi"]
    first, again = film(simulate(scenario)), film(simulate(scenario))
    assert first.digest == again.digest
    assert film(simulate(replace(scenario, seed=1))).digest != first.digest
