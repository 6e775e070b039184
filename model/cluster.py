"""How engines work together: who gets a request, and who prefills and who decodes.

The KV cache that a prefill engine hands to a decode engine travels over a link (F32): κ·tokens/β
seconds when it is sent after the prefill, or only what the prefill cannot hide when each layer is
sent as soon as it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from model import checks
from model.routers import ROUTERS

DISPATCHES = ("distserve", "splitwise")
TRANSFERS = ("own", "serial", "layer_wise")
SERIAL_BELOW_TOKENS = 512
"""Splitwise sends shorter prompts in one piece; a number measured on H100."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The router in front of the engines, or the pools that they form.

    ``router`` picks the engine of a request where every engine does all: see
    :mod:`model.routers`. ``match_threshold``, ``balance_abs`` and ``balance_rel`` belong to
    "prefix_aware". A router sees the load as it was up to ``snapshot_s`` seconds ago (0: as it is).

    With ``prefill_engines`` > 0 the first so many engines only prefill and the others only decode,
    and ``dispatch`` decides instead of the router:

    "distserve"   prefill goes to the shortest queue; when it has ended, decode to the engine with
                  the fewest requests, which fetches the KV when it has memory for it (until then
                  it stays in the prefill engine's memory).
    "splitwise"   both engines are those with the fewest pending tokens, chosen on arrival; each
                  layer is sent while the next one is computed, prompts below 512 tokens in one
                  piece.

    ``transfer`` is "own" (as the dispatch's system does: DistServe one piece, Splitwise by layers),
    "serial" or "layer_wise". ``link_bytes_per_s`` is that of one GPU in one direction (None: the
    hardware's own link); the GPUs of an engine send side by side. ``link_latency_s`` comes on top
    of every transfer.
    """

    router: str = "round_robin"
    match_threshold: float = 0.3
    balance_abs: int = 64
    balance_rel: float = 1.5
    snapshot_s: float = 0.0
    prefill_engines: int = 0
    dispatch: str = "distserve"
    link_bytes_per_s: float | None = None
    link_latency_s: float = 0.0
    transfer: str = "own"

    def __post_init__(self) -> None:
        checks.choice("cluster.router", self.router, ROUTERS)
        checks.number("cluster.match_threshold", self.match_threshold, 0.0, 1.0)
        checks.whole_number("cluster.balance_abs", self.balance_abs, 0, 1_000_000)
        checks.number("cluster.balance_rel", self.balance_rel, 1.0, 1000.0)
        checks.number("cluster.snapshot_s", self.snapshot_s, 0.0, 3600.0)
        checks.whole_number("cluster.prefill_engines", self.prefill_engines, 0, 63)
        checks.choice("cluster.dispatch", self.dispatch, DISPATCHES)
        if self.link_bytes_per_s is not None:
            checks.number("cluster.link_bytes_per_s", self.link_bytes_per_s, 1.0, 1e15)
        checks.number("cluster.link_latency_s", self.link_latency_s, 0.0, 10.0)
        checks.choice("cluster.transfer", self.transfer, TRANSFERS)

    @property
    def is_layer_wise(self) -> bool:
        """Whether long prompts are sent layer by layer while they are computed."""
        own = self.dispatch == "splitwise"
        return own if self.transfer == "own" else self.transfer == "layer_wise"


@dataclass(frozen=True, slots=True)
class Link:
    """What a handover costs on the link of one prefill engine (F32).

    ``bytes_per_token`` is κ of all the engine's GPUs, ``bytes_per_s`` their links together; both
    0 and inf where there is no model to say how large the KV is.
    """

    bytes_per_token: float = 0.0
    bytes_per_s: float = float("inf")
    layers: int = 1
    latency_s: float = 0.0
    layer_wise: bool = False

    def transfer_s(self, tokens: int, prefill_s: float) -> float:
        """Seconds from the end of the prefill, which took ``prefill_s``, to the last byte.

        One piece takes κ·n/β. Layer by layer the last layer's share remains, or what the link has
        not managed during the prefill where it is the slower of the two.
        """
        whole_s = self.bytes_per_token * tokens / self.bytes_per_s
        if self.layer_wise and tokens >= SERIAL_BELOW_TOKENS:
            whole_s = max(whole_s / self.layers, whole_s - prefill_s)
        return whole_s + self.latency_s
