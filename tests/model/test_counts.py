"""The simulator's work is in proportion to what changes: bounds on counts, never on times.

A decision stands until something happens, so the number of decisions is the number of reasons for
which a stretch of equal iterations ends. Without a preemption, and with one engine, they are:

  arrival      a request comes: once a request
  departure    a request finishes or its client gives up: once a request
  admission    the batch has a new member, the next iteration is another one: once a request
  prefill end  a prompt is computed, the request decodes from now on: once a request
  last chunk   a run of equal chunks ends before the last, usually shorter one: once a request,
               because first come, first served leaves only one request at a time short of budget

so at most ``PER_REQUEST`` = 5 decisions a request, however long its prompt and its output. A
preemption adds at most ``PER_PREEMPTION`` = 7: a stretch is cut where blocks would run short, at
the latest one iteration before they do (V0 and Sarathi want a block to spare, so they may cut
twice), then comes the decision that preempts, and the victim has its admission, prefill end and
last chunk again; one more if the decision schedules nobody and is taken once again. (While not one
block is free V0 and Sarathi decide every iteration anew, which these loads hardly ever meet.)

Each decision computes the durations of its stretch in one call and is one row of the kernel's
record. Events: each finished request has arrive, admit, first_token and finish, a preemption adds
itself and the return, and a decision refuses at most one head of the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from model import catalogue
from model.events import EVENT
from model.iteration_time import Linear, Textbook
from model.requests import Requests
from model.result import SimulationResult
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Lab, Orca, Sarathi, Scheduler, Static, VllmV0, VllmV1
from model.simulator import simulate
from model.state import CANCELLED, FINISHED
from model.workload import Arrivals, Lengths, Stream, Workload

PER_REQUEST, PER_PREEMPTION = 5, 7
LONGEST = 4096
AMPLE, TIGHT = 40_000, 600  # KV blocks; the longest request here needs 256

POLICIES = {
    "static": Static(max_num_seqs=64),
    "static, padded": Static(max_num_seqs=64, finished_rows="padded"),
    "orca": Orca(max_num_seqs=64),
    "orca, oracle": Orca(max_num_seqs=64, reserve="oracle"),
    "vllm-v0": VllmV0(max_num_seqs=64, max_num_batched_tokens=LONGEST),
    "vllm-v0, swap": VllmV0(
        max_num_seqs=64, max_num_batched_tokens=LONGEST, preemption_mode="swap"
    ),
    "vllm-v0, chunked": VllmV0(
        max_num_seqs=64, max_num_batched_tokens=512, enable_chunked_prefill=True
    ),
    "vllm-v1": VllmV1(max_num_seqs=64, max_num_batched_tokens=512),
    "vllm-v1, whole prompts": VllmV1(
        max_num_seqs=64, max_num_batched_tokens=LONGEST, enable_chunked_prefill=False
    ),
    "vllm-v1, priority": VllmV1(
        max_num_seqs=64, max_num_batched_tokens=512, queue_order="priority"
    ),
    "sarathi": Sarathi(max_num_seqs=64, chunk_size=512),
    "lab": Lab(max_num_seqs=64, max_num_batched_tokens=512, queue_order="sjf"),
    "lab, apart": Lab(max_num_seqs=64, max_num_batched_tokens=LONGEST, prefill="apart"),
    "lab, swap": Lab(max_num_seqs=64, preemption_mode="swap", victim="fewest_outputs"),
    "lab, on ticks": Lab(max_num_seqs=64, max_num_batched_tokens=512, quantum_s=0.01),
    "lab, reserving": Lab(max_num_seqs=64, preemption_mode="never"),
}
EACH_POLICY = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))


def stream(n_requests: int, **changes: object) -> Stream:
    """Prompts of 512 tokens and outputs of 200, both spread widely, 4 requests a second."""
    given = {
        "arrivals": Arrivals("poisson", rate_per_s=4.0),
        "prompt": Lengths("exponential", mean_tokens=512, max_tokens=2048),
        "output": Lengths("geometric", mean_tokens=200, max_tokens=2000),
    }
    return Stream(n_requests=n_requests, **(given | changes))


def storm(n_requests: int, **changes: object) -> Stream:
    """Short prompts, long outputs and more of them than the tight memory holds."""
    given = {
        "arrivals": Arrivals("poisson", rate_per_s=20.0),
        "prompt": Lengths("exponential", mean_tokens=100, max_tokens=2048),
        "output": Lengths("geometric", mean_tokens=400, max_tokens=2000),
    }
    return stream(n_requests, **(given | changes))


def run(
    policy: Scheduler,
    workload: Stream | Requests,
    *,
    kv_blocks: int = AMPLE,
    clock=Linear(),  # noqa: B008 (frozen)
    fast_forward: bool = True,
    n_engines: int = 1,
) -> SimulationResult:
    requests = Workload((workload,)).generate(3) if isinstance(workload, Stream) else workload
    scenario = Scenario(
        workload=TraceReference("counts", "0" * 64, len(requests)),
        policy=policy,
        clock=clock,
        model=None,
        hardware=None,
        memory=Memory(kv_blocks=kv_blocks, max_model_len=LONGEST, num_cpu_blocks=AMPLE),
        n_engines=n_engines,
    )
    return simulate(scenario, requests, fast_forward=fast_forward)


@dataclass(frozen=True)
class Counts:
    requests: int
    iterations: int
    decisions: int
    preemptions: int
    departures_unserved: int
    events: int

    @classmethod
    def of(cls, result: SimulationResult) -> Counts:
        return cls(
            requests=len(result.inputs),
            iterations=len(result.iterations["start_s"]),
            decisions=result.stats["decisions"],
            preemptions=int(result.requests["preemptions"].sum()),
            departures_unserved=int((result.requests["status"] != FINISHED).sum()),
            events=len(result.events["event"]),
        )

    @property
    def most_decisions(self) -> int:
        return PER_REQUEST * self.requests + PER_PREEMPTION * self.preemptions

    @property
    def most_events(self) -> int:
        return 4 * self.requests + 2 * self.preemptions + self.decisions


def check(result: SimulationResult) -> Counts:
    counts, stats = Counts.of(result), result.stats
    assert counts.decisions <= counts.most_decisions
    assert counts.events <= counts.most_events
    assert stats["events"] == counts.events
    # One call of the clock a stretch; a decision without a stretch is one that only preempted.
    assert stats["iteration_time_calls"] == stats["stretches"] <= counts.decisions
    assert counts.decisions - stats["stretches"] <= counts.preemptions
    return counts


@EACH_POLICY
def test_a_calm_load(policy):
    counts = check(run(policy, stream(300)))
    assert counts.preemptions == 0
    assert counts.decisions < counts.iterations


@EACH_POLICY
def test_an_overload(policy):
    """Everybody at once: no arrivals cut stretches, but a queue is there all the time."""
    check(run(policy, stream(300, arrivals=Arrivals("at_once"))))


@EACH_POLICY
def test_a_storm_of_preemptions(policy):
    counts = check(run(policy, storm(300), kv_blocks=TIGHT))
    assert (counts.preemptions > 300) == (not policy.reserves)


@EACH_POLICY
def test_clients_that_give_up(policy):
    result = run(policy, stream(300, arrivals=Arrivals("at_once"), patience_s=10.0))
    assert (result.requests["status"] == CANCELLED).sum() > 50
    check(result)


@EACH_POLICY
@pytest.mark.parametrize(
    ("workload", "kv_blocks"), [(stream, AMPLE), (storm, TIGHT)], ids=["calm", "storm"]
)
def test_linear_in_requests(policy, workload, kv_blocks):
    """Four times the requests, four times the counts: the same load for four times as long.

    The first requests meet an empty engine, hence 20 %. Where the load is more than the engine
    serves the queue grows with the run, and still nothing counts it again and again.
    """
    few, many = (Counts.of(run(policy, workload(n), kv_blocks=kv_blocks)) for n in (600, 2400))
    assert many.decisions / 4 == pytest.approx(few.decisions, rel=0.2)
    assert many.events / 4 == pytest.approx(few.events, rel=0.2)


@EACH_POLICY
def test_a_long_answer_is_one_stretch(policy):
    """One request: its prefill in one decision, its decodes in one more, be they 1 or 8,000."""
    for output in (2, 30, 1000, 3500):
        requests = Requests.from_columns(
            arrival_s=[0.0], prompt_tokens=[500], output_tokens=[output]
        )
        result = run(policy, requests)
        assert result.requests["emitted_tokens"][0] == output
        assert result.stats["decisions"] == result.stats["iteration_time_calls"] == 2


@pytest.mark.parametrize("batch", [1, 64])
def test_eight_thousand_tokens_of_a_whole_batch_are_one_stretch(batch):
    """The same for a full batch, in the memory and with the clock of a real device."""
    requests = Requests.from_columns(
        arrival_s=np.zeros(batch),
        prompt_tokens=np.full(batch, 32),
        output_tokens=np.full(batch, 8000),
    )
    scenario = Scenario(
        workload=TraceReference("counts", "0" * 64, batch),
        policy=VllmV1(max_num_seqs=64, max_num_batched_tokens=2048),
        model="llama-3.1-8b",
        memory=Memory(max_model_len=16384, kv_blocks=64 * 512),
    )
    result = simulate(scenario, requests)
    assert len(result.iterations["start_s"]) == 8000
    assert result.stats["decisions"] == result.stats["iteration_time_calls"] == 2


@pytest.mark.parametrize(
    "policy",
    [
        VllmV1(max_num_batched_tokens=128),
        Lab(max_num_batched_tokens=128, quantum_s=0.01),
        Sarathi(chunk_size=128),
        VllmV0(max_num_batched_tokens=128, enable_chunked_prefill=True, max_num_seqs=64),
        VllmV1(long_prefill_token_threshold=128),
    ],
    ids=["vllm-v1", "lab, on ticks", "sarathi", "vllm-v0, chunked", "vllm-v1, threshold"],
)
def test_a_long_prompt_is_one_run_of_chunks(policy):
    """Alone: admission with the first chunk, the equal ones, the last one, the decodes.

    The threshold is off for a request that is alone, then the prompt is one chunk of 2,048 or less.
    """
    for prompt in (1290, 2040):
        requests = Requests.from_columns(
            arrival_s=[0.0], prompt_tokens=[prompt], output_tokens=[100]
        )
        result = run(policy, requests)
        alone_in_one = isinstance(policy, VllmV1) and policy.long_prefill_token_threshold
        assert result.stats["decisions"] == (2 if alone_in_one else 4)
        chunks = 1 if alone_in_one else -(-prompt // 128)
        assert (result.iterations["prefill_tokens"] > 0).sum() == chunks


@EACH_POLICY
def test_prompts_fed_token_by_token(policy):
    """Textbook, serial: 256 iterations of a run of chunks are joined at most, so a request adds
    one decision for each 256 tokens of its prompt."""
    result = run(policy, stream(200), clock=Textbook(0.0126, "serial"))
    counts = Counts.of(result)
    runs_cut = int((result.inputs.prompt_tokens // 256).sum())
    assert counts.decisions <= counts.most_decisions + runs_cut
    assert counts.events <= counts.most_events


@EACH_POLICY
@pytest.mark.parametrize("kv_blocks", [AMPLE, TIGHT], ids=["ample", "tight"])
def test_one_iteration_at_a_time_is_one_decision_each(policy, kv_blocks):
    workload = storm(60)
    slow = run(policy, workload, kv_blocks=kv_blocks, fast_forward=False)
    fast = run(policy, workload, kv_blocks=kv_blocks)
    iterations = len(slow.iterations["start_s"])
    assert slow.stats["iteration_time_calls"] == slow.stats["stretches"] == iterations
    # A decision that schedules nobody is no iteration; it preempted, and is taken once again.
    taken_again = slow.stats["decisions"] - iterations
    assert 0 <= taken_again <= slow.requests["preemptions"].sum()
    if kv_blocks == AMPLE:
        assert taken_again == 0
    assert fast.stats["decisions"] - fast.stats["stretches"] == taken_again
    assert len(fast.iterations["start_s"]) == iterations


def test_prefix_caching_costs_a_decision_a_chunk_at_most():
    """While a prompt is computed and others wait, each chunk may change what the head needs."""
    policy = VllmV1(max_num_seqs=64, max_num_batched_tokens=512, enable_prefix_caching=True)
    workload = storm(300, prefix_groups=5, shared_prefix_tokens=64)
    for kv_blocks in (AMPLE, TIGHT):
        result = run(policy, workload, kv_blocks=kv_blocks)
        counts = Counts.of(result)
        chunks = int((result.iterations["prefill_requests"] > 0).sum())
        assert result.requests["cached_tokens"].sum() > 0
        assert counts.decisions <= counts.most_decisions + chunks
        assert counts.events <= counts.most_events


@pytest.mark.parametrize("n_engines", [2, 4])
def test_an_arrival_cuts_at_most_one_stretch_of_each_engine(n_engines):
    """An arrival for one engine stops the clock of all, as a router may want to look at them."""
    policy = VllmV1(max_num_seqs=64, max_num_batched_tokens=512)
    result = run(policy, stream(300), n_engines=n_engines)
    counts = Counts.of(result)
    assert counts.decisions <= counts.most_decisions + (n_engines - 1) * counts.requests
    assert counts.events <= counts.most_events


@pytest.mark.parametrize("preset", list(catalogue.presets()))
def test_presets(preset):
    """Iterations outnumber decisions; the law preset's by far, with its 8,192 tokens an answer."""
    counts = check(simulate(catalogue.presets()[preset].scenario))
    assert counts.departures_unserved == 0
    assert counts.decisions < counts.iterations / 2
    if preset == "law":
        assert counts.decisions < counts.iterations / 200


def test_a_longer_law_preset_needs_no_more_decisions():
    """Longer answers are longer stretches, not more of them."""
    scenario = catalogue.presets()["law"].scenario
    (law,) = scenario.workload.streams
    scenario = replace(scenario, tensor_parallel=4)  # room for all
    decisions = []
    for tokens in (4096, 8192, 16384):
        longer = replace(law, output=Lengths("fixed", tokens))
        counts = check(simulate(replace(scenario, workload=Workload((longer,)))))
        assert counts.preemptions == 0
        assert counts.decisions < counts.iterations / 200
        decisions.append(counts.decisions)
    assert max(decisions) - min(decisions) <= 24  # by chance an arrival meets a prefill or not


@EACH_POLICY
def test_four_events_make_a_life(policy):
    """Besides refusals, a run without preemptions writes exactly four events a request."""
    events = run(policy, stream(200)).events["event"]
    counts = np.bincount(events, minlength=len(EVENT))
    for name in ("arrive", "admit", "first_token", "finish"):
        assert counts[EVENT[name]] == 200
    assert counts.sum() - counts[EVENT["refuse"]] == 4 * 200
