"""What is simulated: the workloads on which peers were measured, and scenarios for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from model.iteration_time import Linear
from model.requests import Requests
from model.scenario import Memory, Scenario, TraceReference
from model.schedulers import Sarathi, Scheduler, VllmV1
from model.traces import read_trace
from model.workload import Arrivals, Lengths, Stream, Workload

BESIDE_THE_PROJECT = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where the recorded workloads lie if somebody has put them there; they are no part of the code."""

KV_BLOCKS, MAX_NUM_SEQS = 30_208, 128


@dataclass(frozen=True)
class Peer:
    """A workload, and how long Vidur took for it.

    ``vidur_s``: fastest and slowest of its runs, its simulation loop alone with metrics off, on a
    machine of two cores (recorded with the workloads: README.md of their folder).
    """

    name: str
    file: str
    n_requests: int
    rate_per_s: float
    vidur_s: tuple[float, float]


PEERS = (
    Peer("a", "a_2000_qps6.csv", 2000, 6.0, (4.4, 5.7)),
    Peer("b", "b_2000_qps14.csv", 2000, 14.0, (2.6, 3.3)),
    Peer("c", "c_500_qps2.csv", 500, 2.0, (4.3, 4.7)),
)
BLIS_A_S = (7.5, 8.9)
"""The same of BLIS, a simulator in Go, for workload a (same source)."""

PEER_POLICIES: tuple[Scheduler, ...] = (
    Sarathi(max_num_seqs=MAX_NUM_SEQS, chunk_size=512),
    VllmV1(max_num_seqs=MAX_NUM_SEQS, max_num_batched_tokens=4096),
)


def peer_requests(peer: Peer, data: Path) -> tuple[Requests, str]:
    """The recorded requests, or ones that look like them; and which of the two, in words."""
    path = data / "workloads" / peer.file
    if path.is_file():
        return read_trace(path).requests, "recorded"
    # Medians and spreads of the recorded lengths: 500 (0.88) in, 182 (0.69) out, as logarithms.
    stream = Stream(
        name=peer.name,
        n_requests=peer.n_requests,
        arrivals=Arrivals("poisson", rate_per_s=peer.rate_per_s),
        prompt=Lengths("lognormal", mean_tokens=740, cv=1.08, max_tokens=3000),
        output=Lengths("lognormal", mean_tokens=231, cv=0.78, max_tokens=1000),
    )
    return Workload((stream,)).generate(seed=0), "generated alike"


def azure_requests(data: Path) -> Requests | None:
    """The whole Azure conversation trace of 2023 (19,366 requests), where it is at hand."""
    path = data / "AzureLLMInferenceTrace_conv.csv"
    return read_trace(path).requests if path.is_file() else None


def scenario_for(
    requests: Requests,
    policy: Scheduler,
    *,
    model: str = "llama-3-8b",
    memory: Memory | None = None,
) -> Scenario:
    """These requests on one A100 with the roofline clock."""
    return Scenario(
        workload=TraceReference("benchmark", "0" * 64, len(requests)),
        policy=policy,
        model=model,
        memory=memory or Memory(kv_blocks=KV_BLOCKS),
    )


def steady_workload(n_requests: int, rate_per_s: float = 4.0) -> Workload:
    """A load at which the queue stays short, however long it lasts: 512 in, 200 out."""
    stream = Stream(
        n_requests=n_requests,
        arrivals=Arrivals("poisson", rate_per_s=rate_per_s),
        prompt=Lengths("exponential", mean_tokens=512, max_tokens=4096),
        output=Lengths("geometric", mean_tokens=200, max_tokens=2048),
    )
    return Workload((stream,))


def recording_of(requests: Requests, policy: str, scheduler: dict) -> tuple[dict, list[dict]]:
    """Configuration and rows as the naive loop of `tests/reference` takes them."""
    clock = Linear(base_s=0.008, per_scheduled_token_s=5e-5)
    config = {
        "policy": policy,
        "scheduler": {"block_size": 16, "kv_blocks": KV_BLOCKS, "max_num_seqs": MAX_NUM_SEQS}
        | scheduler,
        "iteration_time": {
            "base_s": clock.base_s,
            "per_scheduled_token_s": clock.per_scheduled_token_s,
        },
    }
    columns = ("request_id", "arrival_s", "prompt_tokens", "output_tokens", "priority")
    values = [
        requests.request_id,
        *(getattr(requests, name).tolist() for name in columns[1:]),
    ]
    return config, [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
