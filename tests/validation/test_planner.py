"""Plans against the domain's numbers, hand computation and small simulations."""

from dataclasses import replace

import pytest

import formulas
from model import catalogue
from model.cluster import Cluster
from model.errors import LabError
from model.iteration_time import Roofline
from model.scenario import Scenario, Slo
from model.schedulers import VllmV1
from model.workload import Arrivals, Lengths, Stream, Workload
from validation.planner import Refusal, carried_by_one, deployment, plan, price_of_a_million
from validation.planner_engine import beside, chunk_beside, decode_batch
from validation.planner_load import Load, asked, load_of
from validation.planner_split import Split, split, split_deployment

USUAL = Slo(1.0, 0.05)


def scenario(prompt=512, output=200, rate=6.0, slo=USUAL, **more):
    stream = Stream(
        "load",
        400,
        Arrivals("poisson", rate),
        Lengths("fixed", float(prompt)),
        Lengths("fixed", float(output)),
    )
    return Scenario(Workload((stream,)), VllmV1(), slo=slo, **more)


def plain(model, hardware, gpus=1):
    """The cost of an iteration without communication, as in the domain's table."""
    found = scenario(
        model=model,
        hardware=hardware,
        tensor_parallel=gpus,
        clock=Roofline(communication=False),
    )
    return found.cost()


# -- DOMAIN §1.7 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "hardware", "gpus", "context", "chunks"),
    [
        ("llama-3-8b", "a100-80g-sxm", 1, 1500, {30: 224, 50: 416, 100: 896, 200: 1824}),
        ("llama-3-8b", "h100-sxm", 1, 1500, {30: 816, 50: 1408}),
        ("llama-3-70b", "a100-80g-sxm", 4, 1500, {50: 176, 100: 384}),
    ],
)
def test_the_chunk_beside_32_decodes(model, hardware, gpus, context, chunks):
    cost = plain(model, hardware, gpus)
    found = {ms: chunk_beside(cost, 32, context, ms / 1000) for ms in chunks}
    assert found == chunks


def test_an_endless_prompt_is_prefilled_at_9714_tokens_a_second():
    cost = plain("llama-3-8b", "a100-80g-sxm")
    assert 1 / cost.compute_token_s == pytest.approx(9714, rel=1e-3)
    # Beside decodes, and with a fixed time and attention, it is less.
    found = plan(asked(scenario(), 6.0, Slo()))
    assert found.beside.prefill_tokens_per_s < 9714


def test_a_prompt_of_32k_needs_too_many_iterations():
    """79 of them take about 4 s: no budget keeps 1 s, and pools do not either (5.4 s)."""
    found = plan(asked(scenario(32_000, 200), 0.01, Slo(1.0, 0.05)))
    assert isinstance(found, Refusal)
    assert found.reason == "ttft"
    assert found.needs_s > 4
    assert split(asked(scenario(32_000, 200), 0.01, Slo(1.0, 0.05))).reason == "ttft"


# -- by hand ---------------------------------------------------------------------------------------


def test_the_decode_batch_by_hand():
    """F5a at 612 tokens: computing takes 0.10501 ms a request, of 50 − 2 ms; reading is faster."""
    cost = plain("llama-3-8b", "a100-80g-sxm")
    flop = 2 * 8.030e9 + 4 * 32 * 4096 * 612
    assert decode_batch(cost, 612, 0.050) == int(0.048 / (flop / 156e12)) == 457
    given = {"t_0": 0.002, "b_w": 2, "Psi_a": 8.030261248e9, "n_L": 32, "d_a": 4096}
    given |= {"kappa": 131_072, "g": 1, "P": 312e12, "eta_c": 0.5, "beta": 2.039e12, "eta_m": 0.8}
    times = [formulas.get("F5a").evaluate({**given, "B": n, "ctx": 612}) for n in (457, 458)]
    assert times[0] <= 0.050 < times[1]


def test_a_plan_by_hand():
    """60 requests/s of 512 + 200 tokens on 8B and an A100, TTFT 1 s for 99 %, TPOT 50 ms."""
    found = plan(asked(scenario(), 60.0, Slo(1.0, 0.05)))
    one = found.beside
    # F29: 60/6 · 200 · 0.05 = 100 decodes. Of 48 ms · 156 TFLOP/s they leave 5.85e12 FLOP,
    # at 1.62e10 a prompt token: 361, which is 352 on the grid of 16.
    assert (found.engines, one.decodes, one.chunk_tokens) == (6, 100, 352)
    assert found.max_num_batched_tokens == 452
    # F19b: two chunks; F28b at x = 10 is 0.773 (the domain's table).
    assert one.prefill_s == pytest.approx(2 * one.iteration_s)
    assert one.load_max == pytest.approx(0.773, abs=0.005)
    assert one.load_mean == pytest.approx(0.947, abs=0.002)
    assert one.load == pytest.approx(10 * 512 / (352 / one.iteration_s))
    # Five engines would have 120 decodes each, and too little left for their prompts.
    five = beside(asked(scenario(), 60.0, Slo(1.0, 0.05)), found.load, 5, 0.99)
    assert five.decodes == 120
    assert not five.keeps
    # A share ρ of the time goes to chunks of 49 ms, the rest to decodes alone: reading the weights
    # and 612 tokens of each.
    alone_s = 0.002 + (2 * 8.030261e9 + 131_072 * 612 * found.decodes) / (2.039e12 * 0.8)
    pace = one.load / one.iteration_s + (1 - one.load) / alone_s
    assert found.tpot_s == pytest.approx(1 / pace, rel=0.01)
    assert found.decodes == pytest.approx(10 * 200 * found.tpot_s)
    assert found.stay_s == pytest.approx(one.prefill_s + 200 * found.tpot_s)
    assert found.batch_memory == 411_520 // 624 == 659
    assert found.engines_batch == 5
    assert found.binding == "prefill"


def test_memory_may_bind():
    storm = catalogue.presets()["preemption-storm"].scenario
    found = plan(asked(storm, 6.0, storm.slo))
    assert found.binding == "memory"
    assert found.batch_max == found.batch_memory < found.batch_tpot
    assert found.engines == found.engines_batch


@pytest.mark.parametrize("preset", ["customer-service", "conversation", "code", "morning-peak"])
def test_more_for_room_than_for_ttft_is_more_for_memory(preset):
    """An engine that keeps TTFT is stable: with memory to spare it carries no less."""
    found = catalogue.presets()[preset].scenario
    ample = replace(found, memory=replace(found.memory, kv_blocks=30_000))
    for promise in (None, 0.99):
        carried = carried_by_one(asked(ample, 20.0, USUAL), promise)
        assert carried.ttft_per_s <= carried.room_per_s * (1 + 1e-5)


@pytest.mark.parametrize("promise", [None, 0.9, 0.99])
def test_more_engines_for_more_load_and_for_a_harder_promise(promise):
    def engines(rate, of):
        return plan(asked(scenario(1000, 200), rate, Slo(1.0, 0.05)), of).engines

    counts = [engines(rate, promise) for rate in (1, 5, 20, 80)]
    assert counts == sorted(counts)
    assert engines(20, None) <= engines(20, 0.9) <= engines(20, 0.99)


def test_the_planned_number_is_the_smallest():
    found = asked(scenario(1000, 200), 40.0, Slo(1.0, 0.05))
    made = plan(found)
    load = load_of(found)
    assert beside(found, load, made.engines_prefill, 0.99).keeps
    assert not beside(found, load, made.engines_prefill - 1, 0.99).keeps


@pytest.mark.parametrize(
    ("slo", "reason"),
    [
        (Slo(1.0, 0.010), "tpot"),  # one decode takes 11.9 ms
        (Slo(1.0, 0.0119), "chunk"),  # reading 16 prompt tokens more takes it to 11.92
        (Slo(0.04, 0.05), "ttft"),  # two chunks take 97 ms
    ],
)
def test_what_cannot_be_kept_has_its_reason(slo, reason):
    found = plan(asked(scenario(), 6.0, slo))
    assert isinstance(found, Refusal)
    assert found.reason == reason
    assert found.needs_s > found.bound_s


def test_a_price_of_a_million():
    """6 GPUs at 2.50 an hour and 12,000 tokens/s: 15 an hour for 43.2 million."""
    assert price_of_a_million(6, 2.5, 12_000) == pytest.approx(15 / 43.2)


# -- pools -----------------------------------------------------------------------------------------


def test_pools_by_hand():
    found = split(asked(scenario(), 60.0, Slo(1.0, 0.05)))
    assert isinstance(found, Split)
    flop = 2 * 8.030e9 * 512 + 2 * 32 * 4096 * 512 * 513
    assert found.prefill_s == pytest.approx(0.002 + flop / 156e12, rel=1e-3)
    assert found.prefill_rate == pytest.approx(found.prefill_load / found.prefill_s)
    assert found.batch == 457
    assert found.decode_rate == pytest.approx(457 / (200 * found.decode_s))
    # 512 tokens of 131,072 bytes over NVLink's 300 GB/s in one direction.
    assert found.transfer_s == pytest.approx(512 * 131_072 / 300e9)
    assert (found.prefill_engines, found.decode_engines) == (4, 2)
    assert found.ratio == pytest.approx(found.decode_rate / found.prefill_rate)


def test_distserve_s_example():
    """μ_p = 5.6, μ_d = 10: 1.79 prefill engines for one of decode, 3.33 requests/s an engine."""
    numbers = {
        "prefill_s": 0.1,
        "prefill_load": 0.56,
        "prefill_rate": 5.6,
        "batch": 1,
        "decode_s": 0.1,
        "decode_rate": 10.0,
        "transfer_s": 0.0,
        "seen_s": 0.0,
        "link_load": 0.0,
        "prefill_engines": 2,
        "decode_engines": 1,
        "gpus_per_engine": 1,
        "max_num_batched_tokens": 512,
    }
    found = Split(**numbers)
    assert found.ratio == pytest.approx(1.79, abs=0.005)
    assert found.rate_per_engine == pytest.approx(10 / 3)


# -- deployments -----------------------------------------------------------------------------------


def test_a_deployment_has_the_knobs():
    found = asked(scenario(), 60.0, Slo(1.0, 0.05))
    made = plan(found)
    deployed = deployment(found, made)
    assert deployed.n_engines == made.engines
    assert deployed.policy.max_num_seqs == made.max_num_seqs <= made.max_num_batched_tokens
    assert deployed.policy.max_num_batched_tokens == made.max_num_batched_tokens
    pools = split_deployment(found, split(found))
    assert (pools.n_engines, pools.cluster.prefill_engines) == (6, 4)
    with pytest.raises(LabError):
        deployment(found, made, 65)


def test_requests_without_a_rate_become_a_stream_of_their_mean():
    offline = catalogue.presets()["interactive-offline"].scenario
    found = load_of(asked(offline, 3.0, Slo(), (700, 90)))
    assert found == Load(3.0, 700.0, 90.0, 745.0, 0.0)
    without = load_of(asked(offline, 3.0, Slo()))
    assert without.prompt_tokens == pytest.approx(offline.requests().prompt_tokens.mean(), abs=0.5)


def test_turns_of_conversations_are_requests():
    """Conversations of exactly 4 turns: 2 of them a second are 8 requests/s."""
    preset = catalogue.presets()["conversation-turns"].scenario
    (stream,) = preset.workload.streams
    four = replace(stream, turns=replace(stream.turns, mean_turns=4.0, kind="fixed"))
    found = asked(replace(preset, workload=Workload((four,))), 8.0, Slo())
    assert found.workload.streams[0].arrivals.rate_per_s == pytest.approx(2.0)
    assert load_of(found).rate_per_s == pytest.approx(8.0)


def test_the_link_between_pools_is_the_panels():
    """A gigabyte a second: 512 tokens of 131,072 bytes take 67 ms, and 10 ms on top."""
    slow = scenario(cluster=Cluster(link_bytes_per_s=1e9, link_latency_s=0.01))
    found = split(asked(slow, 6.0, USUAL))
    assert found.transfer_s == pytest.approx(512 * 131_072 / 1e9 + 0.01)
    cluster = split_deployment(asked(slow, 6.0, USUAL), found).cluster
    assert (cluster.link_bytes_per_s, cluster.link_latency_s) == (1e9, 0.01)


def test_other_streams_keep_their_shares():
    peak = catalogue.presets()["morning-peak"].scenario
    found = asked(peak, 5.0, Slo())
    assert [stream.arrivals.rate_per_s for stream in found.workload.streams] == [1.0, 4.0]
    assert replace(found, n_engines=2).n_engines == 2
