"""Schedulers of real engines, one file each, under the engine's own names and parameters."""

from model.schedulers.base import POLICIES, Decision, Scheduler
from model.schedulers.orca import Orca
from model.schedulers.sarathi import Sarathi
from model.schedulers.sglang import Sglang
from model.schedulers.static import Static
from model.schedulers.vllm_v0 import VllmV0
from model.schedulers.vllm_v1 import VllmV1

# isort: split
# After the real engines, in every list of policies.
from model.schedulers.lab import Lab

__all__ = [
    "POLICIES",
    "Decision",
    "Lab",
    "Orca",
    "Sarathi",
    "Scheduler",
    "Sglang",
    "Static",
    "VllmV0",
    "VllmV1",
]
