"""What an engine writes down while it runs: one row a stretch of equal iterations, a run of equal
chunks, a move between queues. :mod:`model.result` makes columns of iterations and requests of it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from model.events import EVENT

if TYPE_CHECKING:
    from model.schedulers.base import Decision

CONSTANT_FIELDS = (  # the same in every iteration of a stretch
    "decode_requests",
    "prefill_requests",
    "prefill_tokens",
    "recompute_tokens",
    "padding_tokens",
    "waiting",
    "running",
    "swapped",
    "swapped_blocks",
)
STRETCH_FIELDS = (
    "iterations",
    *CONSTANT_FIELDS,
    "attention_pairs",
    "attention_pairs_step",
    "kv_tokens_read",
    "kv_tokens_read_step",
    "ticks",  # 1 if the decodes advanced
)
CHUNK_FIELDS = ("row", "iterations", "request", "tokens", "first_token")
FIRST_TOKEN_FIELDS = ("row", "request")
MOVE_FIELDS = ("row", "event", "request", "tokens")
"""Rows are iterations of the engine; tokens of a move are those found in the prefix cache."""


class EngineRecord:
    """Flat buffers, a row after the other, of the fields above."""

    __slots__ = (
        "blocks_used",
        "chunks",
        "end_s",
        "first_tokens",
        "moves",
        "stretch_start_s",
        "stretches",
    )

    def __init__(self) -> None:
        self.stretches = array("q")
        self.stretch_start_s = array("d")
        self.end_s = array("d")  # of every iteration, as are the blocks
        self.blocks_used = array("q")
        self.chunks = array("q")
        self.first_tokens = array("q")  # emissions at the end of a prefill
        self.moves = array("q")

    def add_stretch(
        self, start_s: float, end_s: list[float], blocks_used: list[int], row: tuple[int, ...]
    ) -> None:
        """Iterations in a row, of which `row` has the STRETCH_FIELDS."""
        self.stretch_start_s.append(start_s)
        self.end_s.extend(end_s)
        self.blocks_used.extend(blocks_used)
        self.stretches.extend(row)

    def add_moves(self, iteration: int, decision: Decision) -> None:
        """Who left the batch or came back to it, and what was found in the prefix cache."""
        for kind, requests in (
            ("preempt", decision.preempted),
            ("swap_out", decision.swapped_out),
            ("swap_in", decision.swapped_in),
        ):
            for request in requests:
                self.move(iteration, EVENT[kind], request)
        for request, cached in decision.cached:
            self.move(iteration, EVENT["admit"], request, cached)

    def move(self, iteration: int, event: int, request: int, tokens: int = 0) -> None:
        """One request moves (event: index into EVENTS)."""
        self.moves.extend((iteration, event, request, tokens))
