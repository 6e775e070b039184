"""Prefill and decode pools: hand-computed schedules, transfers (F32), the bottleneck, invariants.

Iterations of most cases last one second, so that times can be counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cluster import Cluster, Link
from model.errors import LabError
from model.events import EVENT
from model.film import film
from model.film_stays import stays
from model.iteration_time import Linear
from model.metrics import summary
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import POLICIES, Sarathi, VllmV0, VllmV1
from model.simulator import Kernel, _engine, simulate
from model.state import CANCELLED, FINISHED, REJECTED
from tests.cases import profile
from tests.model.test_engines import POLICIES as CONFIGURED
from tests.model.test_engines import SECONDS, events_of, mixed_requests
from tests.model.test_routers import assert_same, columns

V1 = VllmV1(max_num_seqs=8, max_num_batched_tokens=64)
POOLED = {name: policy for name, policy in CONFIGURED.items() if not name.startswith("static")}
POOLED |= {
    name: replace(kind(), max_num_seqs=8) for name, kind in POLICIES.items() if name == "lab"
}
EACH_POLICY = pytest.mark.parametrize("policy", POOLED.values(), ids=list(POOLED))
EACH_DISPATCH = pytest.mark.parametrize("dispatch", ["distserve", "splitwise"])


def scenario_of(policy, requests, prefill=1, decode=1, clock=SECONDS, memory=None, **cluster):
    given_memory = {"kv_blocks": 100, "block_size": 4, "num_cpu_blocks": 1000}
    return Scenario(
        workload=TraceReference("case", "0" * 64, len(requests)),
        policy=policy,
        clock=clock,
        model=None,
        hardware=None,
        memory=Memory(**given_memory | (memory or {})),
        n_engines=prefill + decode,
        cluster=Cluster(prefill_engines=prefill, **cluster),
    )


def run(policy, requests, prefill=1, decode=1, *, fast_forward=True, **options):
    return simulate(
        scenario_of(policy, requests, prefill, decode, **options),
        requests,
        fast_forward=fast_forward,
    )


# ------------------------------------------------------------------ by hand


def test_one_and_one_with_a_free_link():
    """A: prefill 0-1, decode 1-2, 2-3. B comes at 0.5: prefill 1-2, decode 2-3 and 3-4.

    A prefill of B beside the decode of A would have been one iteration of one engine; here both
    run at once, and the last iteration of A is the first of B.
    """
    requests = columns(arrival_s=[0.0, 0.5], prompt_tokens=[8, 6], output_tokens=[3, 3])
    result = run(V1, requests)
    assert [result.token_times(i).tolist() for i in (0, 1)] == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    table = result.requests
    assert table["engine_id"].tolist() == [0, 0]
    assert table["decode_engine_id"].tolist() == [1, 1]
    assert table["first_token_s"].tolist() == [1.0, 2.0]
    assert table["end_s"].tolist() == [3.0, 4.0]
    assert table["transfer_s"].tolist() == [0.0, 0.0]
    rows = result.iterations
    assert rows["engine_id"].tolist() == [0, 0, 1, 1, 1]
    assert rows["decode_requests"].tolist() == [0, 0, 1, 2, 1]
    # 2 blocks for 8 tokens on their way; with its next token A needs a third, B two for 7 and 8
    assert rows["blocks_used"].tolist() == [2, 2, 3, 5, 2]
    assert events_of(result, "hand_over", "transfer_start", "transfer_end", "kv_sent") == [
        ("hand_over", 1.0, 0),
        ("kv_sent", 1.0, 0),
        ("transfer_start", 1.0, 0),
        ("transfer_end", 1.0, 0),
        ("hand_over", 2.0, 1),
        ("kv_sent", 2.0, 1),
        ("transfer_start", 2.0, 1),
        ("transfer_end", 2.0, 1),
    ]


def test_the_second_token_waits_for_the_transfer():
    """0.25 s on the link, one after the other: A and B are prefilled together and end at 1."""
    requests = columns(prompt_tokens=[8, 6], output_tokens=[2, 2])
    result = run(V1, requests, link_latency_s=0.25)
    assert result.requests["first_token_s"].tolist() == [1.0, 1.0]
    assert result.requests["transfer_s"].tolist() == [0.25, 0.25]
    # A decodes 1.25-2.25; B is there at 1.5 and joins the next iteration
    assert result.requests["end_s"].tolist() == [2.25, 3.25]


def test_one_output_token_is_never_sent():
    result = run(V1, columns(prompt_tokens=[8], output_tokens=[1]), link_latency_s=5.0)
    assert result.requests["end_s"].tolist() == [1.0]
    assert result.requests["decode_engine_id"].tolist() == [-1]
    assert np.isnan(result.requests["transfer_s"]).all()
    assert summary(result)["slo_attainment_share"] == 1.0


def test_the_prefill_engine_is_the_buffer():
    """The decode engine holds one request; the next one's KV waits where it was computed.

    6 blocks of 4: A of 16 + 6 tokens takes them all in the end, so B (4 blocks) is fetched when A
    has gone. Until then B's blocks are taken on the prefill engine and C (4 blocks) waits there.
    """
    requests = columns(prompt_tokens=[16, 16, 16], output_tokens=[6, 2, 2])
    result = run(VllmV1(), requests, memory={"kv_blocks": 6})
    # A: prefill 0-1, decode 1-6. B: prefill 1-2, fetched at 6, decode 6-7. C: prefill 6-7, 7-8.
    assert result.requests["first_token_s"].tolist() == [1.0, 2.0, 7.0]
    assert result.requests["end_s"].tolist() == [6.0, 7.0, 8.0]
    starts = [time_s for _, time_s, _ in events_of(result, "transfer_start")]
    assert starts == [1.0, 6.0, 7.0]


def test_distserve_dispatches_to_the_shortest_queue_and_the_least_loaded():
    requests = columns(
        prompt_tokens=[40, 8, 8, 8], output_tokens=[2, 9, 9, 9], arrival_s=[0, 0, 0, 0]
    )
    one_by_one = replace(V1, max_num_seqs=1)
    result = run(one_by_one, requests, 2, 2)
    assert result.requests["engine_id"].tolist() == [0, 1, 0, 1]  # queues of requests
    tokens = run(one_by_one, requests, 2, 2, dispatch="splitwise")
    assert tokens.requests["engine_id"].tolist() == [0, 1, 1, 1]  # pending tokens: 40 | 8, 16, 24
    # pending outputs 2 | 9, then 2 + 9 | 9, then 11 | 18
    assert tokens.requests["decode_engine_id"].tolist() == [0 + 2, 1 + 2, 0 + 2, 1 + 2]


def test_a_decode_engine_preempts_as_its_policy_does():
    """Two requests outgrow 6 blocks: the later one is computed again on the decode engine."""
    requests = columns(prompt_tokens=[8, 8], output_tokens=[10, 10])
    result = run(VllmV1(), requests, memory={"kv_blocks": 6})
    assert (result.requests["status"] == FINISHED).all()
    assert result.requests["preemptions"].tolist() == [0, 1]
    assert result.requests["emitted_tokens"].tolist() == [10, 10]
    preempts = result.events["event"] == EVENT["preempt"]
    assert result.events["engine_id"][preempts].tolist() == [1]
    # at 5 s both hold 12 tokens, 3 blocks each: B's 12 are computed again, and its newest
    assert result.requests["recomputed_tokens"].tolist() == [0, 12]


def test_who_gives_up_between_the_engines_frees_both():
    requests = columns(
        prompt_tokens=[8, 8, 8], output_tokens=[5, 5, 5], cancel_s=[np.inf, 1.5, 3.5]
    )
    result = run(V1, requests, link_latency_s=2.0)  # transfers 1-3, 3-5, 5-7
    assert result.requests["status"].tolist() == [FINISHED, CANCELLED, CANCELLED]
    assert result.requests["end_s"].tolist() == [7.0, 1.5, 3.5]
    assert result.requests["emitted_tokens"].tolist() == [5, 1, 1]


def test_a_prompt_that_no_decode_engine_can_hold_is_refused():
    requests = columns(prompt_tokens=[8], output_tokens=[40])
    result = run(V1, requests, memory={"kv_blocks": 6})
    assert result.requests["status"].tolist() == [REJECTED]
    (event,) = np.flatnonzero(result.events["event"] == EVENT["reject"])
    assert result.events["blocks_needed"][event] == 12  # of 4 tokens, for all 48 but the last
    assert result.events["blocks_free"][event] == 6
    assert result.events["tokens"][event] == 48


# ------------------------------------------------------------------ transfers (F32)


def link(model, gpus=1, **cluster) -> Link:
    return Scenario(
        workload=TraceReference("case", "0" * 64, 1),
        policy=VllmV1(),
        model=model,
        hardware="a100-80g-sxm",
        tensor_parallel=gpus,
        memory=Memory(max_model_len=2048),
        n_engines=2,
        cluster=Cluster(prefill_engines=1, **cluster),
    ).link()


def test_kv_of_opt_66b():
    """512 tokens are 1.208 GB (1.125 GiB), at 10 requests/s 97 Gbit/s."""
    one = link("opt-66b", 4, link_bytes_per_s=25e9)
    size = one.bytes_per_token * 512
    assert size / 1e9 == pytest.approx(1.208, abs=5e-4)
    assert size / 2**30 == 1.125
    assert size * 10 * 8 / 1e9 == pytest.approx(97, abs=0.5)
    assert one.transfer_s(512, 0.0) == pytest.approx(size / 100e9)  # four GPUs send side by side


def test_kv_of_llama_2_70b():
    """1500 tokens are 0.49 GB: 2.5 ms over 8 x 200 Gbit/s."""
    one = link("llama-2-70b", 8, link_bytes_per_s=25e9)
    assert one.bytes_per_token * 1500 / 1e9 == pytest.approx(0.49, abs=5e-3)
    assert one.transfer_s(1500, 0.0) == pytest.approx(2.5e-3, rel=0.02)


def test_layer_by_layer_leaves_the_last_layer_or_what_the_prefill_cannot_hide():
    slow, fast = (Link(1e5, 1e9, 40, 0.0, layer_wise) for layer_wise in (False, True))
    assert slow.transfer_s(1000, 0.5) == pytest.approx(0.1)
    assert fast.transfer_s(1000, 0.5) == pytest.approx(0.1 / 40)
    # complete overlap if and only if κ/β <= t_p/n, but for the last layer
    assert fast.transfer_s(1000, 0.04) == pytest.approx(0.06)
    assert fast.transfer_s(511, 0.5) == pytest.approx(0.0511)  # short prompts go in one piece
    assert replace(fast, latency_s=1e-3).transfer_s(1000, 0.5) == pytest.approx(0.0035)


def test_without_a_speed_the_link_is_the_hardware_s():
    assert link("llama-2-70b", 8).bytes_per_s == 8 * 300e9
    assert link("llama-2-70b", 8, dispatch="splitwise").layer_wise
    assert not link("llama-2-70b", 8).layer_wise
    assert not link("llama-2-70b", 8, dispatch="splitwise", transfer="serial").layer_wise


def test_transfers_take_their_time_in_a_run():
    """A slow link: one 1000-token request of Llama-3-8B, 131,072 bytes a token, over 1 GB/s."""
    requests = columns(prompt_tokens=[1000], output_tokens=[5])
    scenario = Scenario(
        workload=TraceReference("case", "0" * 64, 1),
        policy=VllmV1(),
        clock=SECONDS,
        model="llama-3-8b",
        hardware="a100-80g-sxm",
        n_engines=2,
        cluster=Cluster(prefill_engines=1, link_bytes_per_s=1e9),
    )
    result = simulate(scenario, requests)
    assert result.requests["transferred_bytes"][0] == 131_072_000
    assert result.requests["transfer_s"][0] == pytest.approx(0.131072)
    assert result.token_times(0)[1] == pytest.approx(1.0 + 0.131072 + 1.0)
    numbers = summary(result)
    assert numbers["transferred_bytes"] == 131_072_000
    assert numbers["transfer_mean_s"] == pytest.approx(0.131072)
    layers = replace(scenario, cluster=replace(scenario.cluster, transfer="layer_wise"))
    assert simulate(layers, requests).requests["transfer_s"][0] == pytest.approx(0.131072 / 32)


# ------------------------------------------------------------------ the bottleneck (P12)


@pytest.mark.parametrize(("prefill", "per_s"), [(1, 5.6), (2, 10.0), (3, 10.0)])
def test_the_slower_pool_is_the_bottleneck(prefill, per_s):
    """μp = 5.6/s and μd = 10/s: min(n·5.6, 10), and 2P1D gives 3.33 per GPU, 2.08 times 1.6.

    Prompts of 1000 tokens and 560 decodes at 1/5600 s a token, nothing else.
    """
    n = 400
    requests = columns(prompt_tokens=[1000] * n, output_tokens=[561] * n)
    result = run(
        VllmV1(max_num_seqs=64, max_num_batched_tokens=1000),
        requests,
        prefill,
        1,
        clock=Linear(base_s=0.0, per_scheduled_token_s=1 / 5600),
        memory={"kv_blocks": 100_000, "block_size": 16},
    )
    measured = n / result.requests["end_s"].max()
    assert measured == pytest.approx(per_s, rel=0.02)
    if prefill == 2:
        assert measured / 3 / 1.6 == pytest.approx(2.08, rel=0.02)


# ------------------------------------------------------------------ laws


CLOCK = Linear(base_s=0.01, per_scheduled_token_s=3e-4, per_swapped_block_s=1e-3)


@EACH_POLICY
@EACH_DISPATCH
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 2)], ids=str)
def test_everybody_is_accounted_for(policy, dispatch, sizes):
    requests = mixed_requests()
    options = {
        "clock": CLOCK,
        "memory": {"kv_blocks": 60, "max_model_len": 160},
        "dispatch": dispatch,
        "link_latency_s": 0.02,
    }
    result = run(policy, requests, *sizes, **options)
    check(result)
    assert_same(result, run(policy, requests, *sizes, **options))
    assert_same(result, run(policy, requests, *sizes, fast_forward=False, **options))
    scenario = scenario_of(policy, requests, *sizes, **options)
    engines = [_engine(scenario, requests, i, True) for i in range(sum(sizes))]
    Kernel(engines, requests, scenario.cluster, scenario.link()).run()
    for engine in engines:
        state = engine.state
        assert state.free == state.kv_blocks
        assert not any((state.running, state.waiting, state.swapped, state.inbox))
        assert state.inbox is None or not state.inbox.coming
        assert state.outbox is None or not state.outbox.kept


def check(result):
    """Conservation, tokens once, phases where they belong, memory within bounds."""
    table, inputs = result.requests, result.inputs
    done = table["status"] == FINISHED
    assert set(np.unique(table["status"])) <= {FINISHED, REJECTED, CANCELLED}
    np.testing.assert_array_equal(table["emitted_tokens"][done], inputs.output_tokens[done])
    prefill = result.scenario.cluster.prefill_engines
    assert (table["engine_id"] < prefill).all()
    sent = np.isfinite(table["transfer_s"]) & done
    assert (table["decode_engine_id"][sent] >= prefill).all()
    assert (inputs.output_tokens[done & ~sent] == 1).all()
    for i in np.flatnonzero(done).tolist():
        times = result.token_times(i)
        assert (np.diff(times) > 0).all() or len(times) < 2
        assert times[0] == table["first_token_s"][i]
    rows = result.iterations
    assert (rows["blocks_used"] <= result.kv_blocks).all()
    assert (rows["running"] <= result.scenario.policy.max_num_seqs).all()
    assert (rows["decode_requests"][rows["engine_id"] < prefill] == 0).all()
    scheduled = result.scheduled()
    processed = np.bincount(
        scheduled["request"], weights=scheduled["tokens"], minlength=len(inputs)
    )
    found = table["cached_tokens"] + table["cached_again_tokens"]
    plain = done & (table["preemptions"] == 0)
    needed = inputs.prompt_tokens + inputs.output_tokens - 1
    np.testing.assert_array_equal((processed + found)[plain], needed[plain])
    for name in ("iterations", "events"):
        engines = np.unique(getattr(result, name)["engine_id"])
        assert set(engines) <= set(range(result.scenario.n_engines))


@st.composite
def loads(draw):
    n = draw(st.integers(1, 20))
    times = st.sampled_from([i * 0.5 for i in range(16)])
    small = st.integers(1, 20)
    arrival = draw(st.lists(times, min_size=n, max_size=n))
    patience = draw(st.lists(st.sampled_from([1.0, 4.5, np.inf]), min_size=n, max_size=n))
    return Requests.from_columns(
        arrival_s=arrival,
        prompt_tokens=draw(st.lists(small, min_size=n, max_size=n)),
        output_tokens=draw(st.lists(small, min_size=n, max_size=n)),
        cancel_s=np.add(arrival, patience),
    )


@profile(100)
@given(
    requests=loads(),
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dispatch=st.sampled_from(["distserve", "splitwise"]),
    latency_s=st.sampled_from([0.0, 0.25, 1.0, 3.0]),
    policy=st.sampled_from(
        [V1, VllmV0(max_num_seqs=4, max_num_batched_tokens=64), Sarathi(max_num_seqs=4)]
    ),
)
def test_any_load_is_conserved(requests, sizes, dispatch, latency_s, policy):
    options = {
        "memory": {"kv_blocks": 12, "max_model_len": 40},
        "dispatch": dispatch,
        "link_latency_s": latency_s,
    }
    result = run(policy, requests, *sizes, **options)
    check(result)
    assert_same(result, run(policy, requests, *sizes, fast_forward=False, **options))


def test_turns_and_retries_go_through_pools():
    requests = Requests.from_columns(
        arrival_s=[0.0, np.nan],
        prompt_tokens=[8, 16],
        output_tokens=[3, 3],
        follows=[-1, 0],
        think_s=[0.0, 2.0],
    )
    result = run(replace(V1, enable_prefix_caching=True), requests)
    assert result.requests["arrival_s"].tolist() == [0.0, 5.0]
    assert result.requests["end_s"].tolist() == [3.0, 8.0]
    # the prefill engine knows the first prompt, not what was decoded elsewhere
    assert result.requests["cached_tokens"].tolist() == [0, 8]


@EACH_DISPATCH
def test_each_engine_has_a_film(dispatch):
    result = run(
        V1,
        mixed_requests(),
        2,
        2,
        clock=CLOCK,
        memory={"kv_blocks": 60, "max_model_len": 160},
        dispatch=dispatch,
        link_latency_s=0.02,
    )
    for engine in range(4):
        mine = result.iterations["engine_id"] == engine
        assert film(result, engine).rows == mine.sum()
        _, stayed = stays(result, engine, int(mine.sum()), keeps_finished_rows=False)
        rows = np.arange(mine.sum())[:, None]
        there = (stayed["first"] <= rows) & (rows < stayed["end"])
        np.testing.assert_array_equal(there.sum(axis=1), result.iterations["running"][mine])


def test_a_transfer_costs_what_it_moves():
    """Three events and two notices a handover, however many requests there are."""
    n = 500
    requests = columns(arrival_s=np.arange(n) * 4.0, prompt_tokens=[8] * n, output_tokens=[2] * n)
    result = run(V1, requests)
    assert result.stats["decisions"] == 2 * n
    of_pools = [EVENT[name] for name in ("hand_over", "transfer_start", "transfer_end", "kv_sent")]
    assert np.isin(result.events["event"], of_pools).sum() == 4 * n


def test_pools_that_cannot_be():
    requests = columns(prompt_tokens=[1], output_tokens=[1])
    with pytest.raises(LabError, match="nobody decodes"):
        scenario_of(V1, requests, 2, 0)
    with pytest.raises(LabError, match="static cannot take in"):
        scenario_of(POLICIES["static"](), requests, memory={"max_model_len": 40})
