"""What a simulated engine writes down: every decision with its numbers.

An event is one row of integers and a time; :data:`FIELDS` names the columns. Pages turn events into
sentences, so an event carries what the sentence needs and nothing that can be derived later.
"""

from __future__ import annotations

from array import array

import numpy as np

EVENTS = (
    "arrive",  # a request joined the waiting queue
    "reject",  # it was refused for good, with the reason
    "admit",  # it left the queue for the running batch
    "resume",  # the same after a preemption: `tokens` of it are computed again
    "refuse",  # the head of the queue had to wait; written when head or reason changes
    "preempt",  # its KV was dropped, to be recomputed
    "swap_out",  # its KV moved to host memory
    "swap_in",  # and back
    "first_token",
    "finish",
    "cancel",  # the client gave up
    "hand_over",  # its prefill has ended; its KV waits for a decode engine to fetch it
    "transfer_start",  # a decode engine has room for it and asks for its KV
    "transfer_end",  # its KV is there: it decodes
    "kv_sent",  # the prefill engine frees the blocks that it has sent
)
REASONS = (
    "none",
    "no_blocks",  # not enough free KV blocks
    "no_budget",  # the token budget of this iteration is spent
    "no_slot",  # max_num_seqs requests run already
    "after_preemption",  # this iteration preempted, so it admits nobody
    "swapped_first",  # swapped-out requests come back before new ones are admitted
    "batch_running",  # a static batch admits nobody until it is empty
    "never_fits",  # needs more KV blocks than the pool can ever give it
    "never_returns",  # swapped out with more prompt left than an iteration's token budget
    "livelock",  # evicted again and again without ever getting further
    "exceeds_context",  # prompt + output is longer than max_model_len
    "exceeds_budget",  # an unchunked prompt longer than the token budget
    "latest_admitted",  # victim rule: tail of the running list
    "lowest_priority",  # victim rule: largest (priority, arrival)
    "outranked",  # V0: a more important request waits and does not fit
    "itself",  # nobody else is left to preempt
    "fewest_outputs",  # victim rule of SGLang: fewest outputs, then the longest prompt
    "just_large_enough",  # victim rule: the smallest that covers what is missing
    "most_remaining",  # victim rule: most outputs still to come, as predicted
    "no_free_slot",  # admission control of a loss system: every slot is taken
    "no_free_blocks",  # the same: not enough free blocks for its prompt now
    "queue_full",  # admission control: so many requests wait already
    "queued_tokens",  # admission control: too many prompt tokens wait already
    "system_full",  # admission control: so many requests are in the system already
    "ttft_hopeless",  # admission control: its predicted TTFT is above the bound
    "no_reservation",  # SGLang: no room for it beside what is reserved for the running ones
    "batch_full",  # SGLang: since somebody found no room nobody is tried until one leaves
)
EVENT = {name: code for code, name in enumerate(EVENTS)}
REASON = {name: code for code, name in enumerate(REASONS)}

FIELDS = (
    "event",  # index into EVENTS
    "iteration",  # of the engine; the one being decided, or (first_token, finish) just ended
    "request",  # row of the request
    "reason",  # index into REASONS
    "blocks_needed",  # KV blocks the decision asked for, or freed (preempt, swap_out)
    "blocks_free",  # free KV blocks at that moment, before the decision took effect
    "tokens",  # tokens scheduled (admit), lost and to be recomputed (preempt), asked for (refuse)
    "tokens_free",  # token budget left at that moment, -1 where there is none
    "other",  # row of the request on whose behalf it happened, -1 when there is none
    "cached_tokens",  # tokens found in the prefix cache
)


class EventLog:
    """Append-only columns; an event costs one buffer extension."""

    __slots__ = ("numbers", "times")

    def __init__(self) -> None:
        self.numbers = array("q")
        self.times = array("d")

    def add(
        self,
        time_s: float,
        event: int,
        iteration: int,
        request: int,
        reason: int = 0,
        blocks_needed: int = 0,
        blocks_free: int = 0,
        tokens: int = 0,
        tokens_free: int = -1,
        other: int = -1,
        cached_tokens: int = 0,
    ) -> None:
        """Write one event down (times in seconds, the rest as in :data:`FIELDS`)."""
        self.times.append(time_s)
        self.numbers.extend(
            (
                event,
                iteration,
                request,
                reason,
                blocks_needed,
                blocks_free,
                tokens,
                tokens_free,
                other,
                cached_tokens,
            )
        )

    def columns(self) -> dict[str, np.ndarray]:
        """The log as equal-length arrays, in the order in which things happened."""
        table = np.array(self.numbers, dtype=np.int64).reshape(-1, len(FIELDS))
        columns = {"time_s": np.array(self.times, dtype=float)}
        columns.update({name: table[:, i] for i, name in enumerate(FIELDS)})
        return columns
