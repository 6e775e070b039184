"""A second, naive simulator of the recorded schedulers, to check the real one against.

It advances one iteration at a time, keeps plain lists and is written for reading: no shortcut, no
array, nothing shared with ``model``. One file an engine, each the transcript of that engine's
rules. ``run`` takes a configuration and requests as the files of ``tests/golden`` hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.reference.common import Recording, drive
from tests.reference.lab import Lab
from tests.reference.orca import Orca
from tests.reference.sarathi import Sarathi
from tests.reference.sglang import Sglang
from tests.reference.static import Static
from tests.reference.vllm_v0 import VllmV0
from tests.reference.vllm_v1 import VllmV1

ENGINES = {
    "static": Static,
    "orca": Orca,
    "sarathi": Sarathi,
    "vllm-v0": VllmV0,
    "vllm-v1": VllmV1,
    "sglang": Sglang,
    "lab": Lab,
}


def run(config: Mapping, requests: Sequence[Mapping], *, max_decisions: int = 100_000) -> Recording:
    """Simulate ``requests`` (rows of ``requests.csv``) under ``config`` (``config.json``).

    Raises ``common.OutOfHostBlocks`` where the real engine aborts, and ``common.StillDeciding``
    after ``max_decisions``.
    """
    engine = ENGINES[config["policy"]](config["scheduler"])
    return drive(engine, config["iteration_time"], requests, max_decisions)
