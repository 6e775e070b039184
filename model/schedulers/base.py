"""What every scheduler shares: the contract with the engine and the record of one decision.

A scheduler is a frozen dataclass of its engine's own parameters without state of its own. Its
:meth:`Scheduler.decide` looks at an :class:`~model.state.EngineState`, moves requests between the
queues, takes and releases KV blocks through the state's methods, and writes into a
:class:`Decision` how many tokens each request gets. Work is in proportion to what changes: requests
that decode are counted, not listed, unless something is short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from model import checks
from model.events import REASON
from model.schedulers.queues import FcfsQueue

if TYPE_CHECKING:
    import numpy as np

    from model.prefix_cache import PrefixCache
    from model.radix_cache import RadixCache
    from model.requests import Requests
    from model.state import EngineState

UNBOUNDED = 1 << 60
MOST_SEQS = 100_000
MOST_TOKENS = 10_000_000


class Refused(NamedTuple):
    """Admission control's no: the reason, what was measured, and the limit it would break.

    Both numbers in the unit of the rule: requests, tokens, blocks or milliseconds.
    """

    reason: int  # index into REASONS
    measured: int
    limit: int


class Decision:
    """One iteration: who gets how many tokens, and who came and went to make it possible.

    Every decoding request gets one token if `decodes`, except those in `skipped`; `chunks` lists
    the others as (request, prefill tokens), in the order in which they are served.
    """

    __slots__ = (
        "admitted",
        "cached",
        "chunks",
        "decodes",
        "padding_pairs",
        "padding_tokens",
        "preempted",
        "queue_changed",
        "row_without_tokens",
        "skipped",
        "stands_until_s",
        "swapped_blocks",
        "swapped_in",
        "swapped_out",
    )

    def __init__(self) -> None:
        self.decodes = False
        self.skipped: list[int] = []
        self.chunks: list[tuple[int, int]] = []
        self.admitted: list[int] = []
        self.cached: list[tuple[int, int]] = []  # (request, tokens found in the prefix cache)
        self.preempted: list[int] = []
        self.swapped_out: list[int] = []
        self.swapped_in: list[int] = []
        self.queue_changed = False  # the waiting queue was sorted, or lost a request for good
        self.swapped_blocks = 0
        self.padding_tokens = 0  # prompt padding of a static batch
        self.padding_pairs = 0
        self.stands_until_s = float("inf")  # from this clock on it has to be taken anew
        self.row_without_tokens = False  # V0 spends an iteration on a decision that only evicts

    @property
    def changes_queues(self) -> bool:
        """True if the next decision starts from other queues even when nothing else happens."""
        return bool(
            self.admitted
            or self.preempted
            or self.swapped_out
            or self.swapped_in
            or self.skipped
            or self.queue_changed
        )


@dataclass(frozen=True)
class Scheduler:
    """Base of all schedulers; subclasses are registered in :data:`POLICIES` by `name`."""

    name: ClassVar[str]
    source: ClassVar[str]  # what it reproduces, and how that was checked
    reserves: ClassVar[bool] = False  # a request holds the same blocks from admission to its end
    preempted_go_last: ClassVar[bool] = False  # not to the front of the waiting queue
    needs_free_block: ClassVar[bool] = False  # a decode asks for a free block even if it has room
    keeps_finished_rows: ClassVar[bool] = False  # computed on until the batch ends
    works_in_pools: ClassVar[bool] = True  # decodes may join it that it has not admitted

    max_num_seqs: int = 256

    @property
    def needs_max_model_len(self) -> bool:
        """True if the policy cannot work without a context limit."""
        return False

    @property
    def tokens_per_iteration(self) -> int | None:
        """Most tokens that one iteration computes; None where there is no such budget."""
        return None

    def __post_init__(self) -> None:
        checks.whole_number("max_num_seqs", self.max_num_seqs, 1, MOST_SEQS)

    def new_queue(self, rank: Callable[[int], tuple]) -> FcfsQueue:
        """The waiting queue of this policy; `rank` gives (priority, arrival, id) of a request."""
        return FcfsQueue()

    def rank_of(self, state: EngineState) -> Callable[[int], tuple]:
        """In which order waiting requests are served, smaller first; given to `new_queue`."""
        return state.rank

    def predicted_outputs(self, output_tokens: np.ndarray, seed: int) -> list[float]:
        """What the policy believes each request will answer (tokens), if it believes anything."""
        return []

    @property
    def on_ticks(self) -> bool:
        """True if iterations start only at certain times: see :meth:`start_not_before`."""
        return False

    def start_not_before(self, times_s):
        """The first moment at or after a time (s, scalar or array) at which one may start."""
        return times_s

    def new_memory(self) -> object:
        """What the policy remembers of one engine between decisions, kept as `state.memory`."""
        return None

    def new_cache(
        self, requests: Requests, blocks: int, block_size: int
    ) -> PrefixCache | RadixCache | None:
        """The prefix cache of one engine, None where the policy keeps none."""
        return None

    def blocks_for_life(self, state: EngineState, request: int) -> int:
        """KV blocks without which the request can never finish."""
        return state.blocks_for(state.last_token[request] - 1)

    def tokens_reserved(self, state: EngineState, request: int) -> int:
        """Tokens for which a request takes KV at its admission, where the policy reserves."""
        return state.last_token[request]

    def reject_reason(self, state: EngineState, request: int) -> int:
        """Why a request must be refused on arrival (index into REASONS), 0 if it need not."""
        limit = state.max_model_len
        if limit is not None and state.last_token[request] > limit:
            return REASON["exceeds_context"]
        if self.blocks_for_life(state, request) > state.kv_blocks:
            return REASON["never_fits"]
        return 0

    def refusal(self, state: EngineState, request: int) -> Refused | None:
        """Admission control: why a request that could be served is refused on arrival."""
        return None

    def decide(self, state: EngineState, decision: Decision) -> None:
        """Decide one iteration."""
        raise NotImplementedError

    def stable_for(self, state: EngineState, decision: Decision) -> int:
        """For how many iterations the same decision would be taken, if nothing arrives or ends.

        The engine itself cuts this at the next arrival, cancellation, completion, chunk end and
        shortage of blocks, so a decision that moved nobody can stand until then. Where ends send
        requests to other engines these rely on it too: too many is wrong, too few only slow.
        """
        return 1 if decision.changes_queues else UNBOUNDED


def watermark_blocks(watermark: float, kv_blocks: int) -> int:
    """KV blocks that an admission leaves free, rounded down as the engines do."""
    return int(watermark * kv_blocks)


POLICIES: dict[str, type[Scheduler]] = {}


def register(policy: type[Scheduler]) -> type[Scheduler]:
    """Class decorator: make a policy known under its `name`."""
    POLICIES[policy.name] = policy
    return policy
