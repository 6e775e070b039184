"""The lab's own scheduler: the four daily decisions, each chosen freely from a table.

No engine works exactly like this. Order, budget, victims and admission control are rules of real
engines and of papers, one function and one row of a table each; :data:`IMPOSSIBLE` says which do
not go together. With the defaults it takes vLLM V1's decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from model import checks
from model.errors import LabError
from model.events import REASON
from model.schedulers import admission, lab_order
from model.schedulers.base import (
    MOST_TOKENS,
    UNBOUNDED,
    Decision,
    Refused,
    Scheduler,
    register,
    watermark_blocks,
)
from model.schedulers.lab_budget import TimeBudget, TokenBudget, same_chunks_for
from model.schedulers.lab_serving import serve
from model.schedulers.lab_victims import SWAPS, VICTIMS, evict
from model.schedulers.queues import FcfsQueue, PriorityQueue

if TYPE_CHECKING:
    from model.state import EngineState

NO_BLOCKS, NO_BUDGET, NO_SLOT = REASON["no_blocks"], REASON["no_budget"], REASON["no_slot"]
AFTER_PREEMPTION, SWAPPED_FIRST = REASON["after_preemption"], REASON["swapped_first"]

PREFILL = ("apart", "whole", "chunks", "slo")
WHOLE_PROMPTS = ("apart", "whole")
LONGEST_S = 3600.0
MOST_STABLE = 4096  # iterations for which one time bound is looked ahead
CLOCK_NOISE = 1e-9  # of a quantum: a time so little past a tick is on it

IMPOSSIBLE: tuple[tuple[Mapping[str, object], str], ...] = (
    ({"evict_for_waiting": True, "queue_order": "fcfs"}, "lab_nobody_outranks"),
    ({"evict_for_waiting": True, "queue_order": "sjf"}, "lab_nobody_outranks"),
    ({"evict_for_waiting": True, "preemption_mode": "never"}, "lab_evicts_without_preemption"),
)
"""Settings that do not go together, and the code of the LabError that says why."""


@register
@dataclass(frozen=True)
class Lab(Scheduler):
    """A scheduler composed of one rule for each decision.

    Order (`queue_order`): "fcfs", "priority" or "sjf", the shortest by prompt and predicted output;
    the prediction is off by a lognormal factor of `prediction_sigma`. Waiting a second makes a
    request `aging_tokens_per_s` tokens shorter; after `fcfs_after_s` (0: never) it goes before the
    order.

    Batching (`prefill`): "apart" computes prompts in iterations of their own, before decodes;
    "whole" mixes whole prompts into them; "chunks" cuts prompts to what `max_num_batched_tokens`
    leaves; "slo" cuts them to what keeps an iteration with decodes within `target_itl_s`. With a
    `quantum_s` iterations start only at its multiples (the widely copied interview answer's rule).

    Preemption: `preemption_mode` "recompute", "swap" (recompute where host memory is full),
    "cheaper" of both, or "never": prompt and output are reserved on admission. `victim` says who
    goes; with `evict_for_waiting` a more important waiting request evicts a running one.

    Admission (`admission`): "open", "loss" (nobody waits), "queue_cap", "token_cap", "little" (a
    cap on the requests in the system) or "deadline": the predicted TTFT exceeds `ttft_bound_s`, at
    `prefill_rate_tokens_per_s` (0: from the cost). `watermark`: share of blocks an admission leaves
    free while something runs.
    """

    name: ClassVar[str] = "lab"
    source: ClassVar[str] = (
        "composition of this lab; order, budgets and victims are rules of real engines and papers"
    )

    max_num_batched_tokens: int = 2048
    queue_order: str = "fcfs"
    prediction_sigma: float = 0.0
    aging_tokens_per_s: float = 0.0
    fcfs_after_s: float = 0.0
    prefill: str = "chunks"
    target_itl_s: float = 0.05
    quantum_s: float = 0.0
    preemption_mode: str = "recompute"
    victim: str = "latest_admitted"
    evict_for_waiting: bool = False
    watermark: float = 0.0
    admission: str = "open"
    queue_cap_requests: int = 100
    queue_cap_tokens: int = 16384
    system_cap_requests: int = 100
    ttft_bound_s: float = 1.0
    prefill_rate_tokens_per_s: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number("max_num_batched_tokens", self.max_num_batched_tokens, 1, MOST_TOKENS)
        checks.choice("queue_order", self.queue_order, lab_order.RANKS)
        checks.number("prediction_sigma", self.prediction_sigma, 0.0, 3.0)
        checks.number("aging_tokens_per_s", self.aging_tokens_per_s, 0.0, 1e6)
        checks.number("fcfs_after_s", self.fcfs_after_s, 0.0, 1e6)
        checks.choice("prefill", self.prefill, PREFILL)
        checks.number("target_itl_s", self.target_itl_s, 1e-6, LONGEST_S)
        checks.number("quantum_s", self.quantum_s, 0.0, LONGEST_S)
        checks.choice("preemption_mode", self.preemption_mode, SWAPS)
        checks.choice("victim", self.victim, VICTIMS)
        checks.flag("evict_for_waiting", self.evict_for_waiting)
        checks.number("watermark", self.watermark, 0.0, 0.99)
        checks.choice("admission", self.admission, admission.RULES)
        checks.whole_number("queue_cap_requests", self.queue_cap_requests, 0, 1_000_000)
        checks.whole_number("queue_cap_tokens", self.queue_cap_tokens, 0, 1_000_000_000)
        checks.whole_number("system_cap_requests", self.system_cap_requests, 1, 1_000_000)
        checks.number("ttft_bound_s", self.ttft_bound_s, 1e-6, 1e6)
        checks.number("prefill_rate_tokens_per_s", self.prefill_rate_tokens_per_s, 0.0, 1e9)
        for settings, code in IMPOSSIBLE:
            if all(getattr(self, key) == value for key, value in settings.items()):
                raise LabError(code)

    # -- what the engine asks ------------------------------------------------------------------

    @property
    def reserves(self) -> bool:
        return self.preemption_mode == "never"

    @property
    def enable_chunked_prefill(self) -> bool:
        """Whether prompts are cut, under the name that real engines have for it."""
        return self.prefill not in WHOLE_PROMPTS

    @property
    def tokens_per_iteration(self) -> int:
        return self.max_num_batched_tokens

    @property
    def on_ticks(self) -> bool:
        return self.quantum_s > 0

    def start_not_before(self, times_s):
        """The next multiple of the quantum, or the time itself if it is one (scalar or array)."""
        if not self.quantum_s:
            return times_s
        ticks = times_s / self.quantum_s - CLOCK_NOISE
        if isinstance(times_s, np.ndarray):
            return np.maximum(times_s, np.ceil(ticks) * self.quantum_s)
        return max(times_s, math.ceil(ticks) * self.quantum_s)

    def rank_of(self, state: EngineState) -> Callable[[int], tuple]:
        return lab_order.RANKS[self.queue_order](self, state)

    def new_queue(self, rank: Callable[[int], tuple]) -> FcfsQueue | PriorityQueue:
        return lab_order.new_queue(self, rank)

    def predicted_outputs(self, output_tokens: np.ndarray, seed: int) -> list[float]:
        return lab_order.predicted_outputs(output_tokens, self.prediction_sigma, seed)

    def sizes(self, columns: Mapping[str, np.ndarray], seed: int) -> np.ndarray:
        """The ranks of shortest first (tokens) of the requests with these columns."""
        predicted = np.array(self.predicted_outputs(columns["output_tokens"], seed))
        aged = self.aging_tokens_per_s * columns["arrival_s"]
        return columns["prompt_tokens"] + predicted + aged

    def blocks_for_life(self, state: EngineState, request: int) -> int:
        if self.reserves:
            return state.blocks_for(self.tokens_reserved(state, request))
        return super().blocks_for_life(state, request)

    def blocks_to_join(self, state: EngineState, request: int) -> int:
        """KV blocks that must be free for a request to be admitted: its whole known prompt's."""
        if self.reserves:
            return self.blocks_for_life(state, request)
        return state.blocks_for(state.known[request])

    def reject_reason(self, state: EngineState, request: int) -> int:
        reason = super().reject_reason(state, request)
        too_long = state.prompt[request] > self.max_num_batched_tokens
        if not reason and too_long and not self.enable_chunked_prefill:
            return REASON["exceeds_budget"]
        return reason

    def refusal(self, state: EngineState, request: int) -> Refused | None:
        rule = admission.RULES[self.admission]
        return rule and rule(self, state, request)

    def stable_for(self, state: EngineState, decision: Decision) -> int:
        if decision.changes_queues:
            return 1
        if self.evict_for_waiting and state.running and (state.waiting or state.swapped):
            head = lab_order.next_to_join(self, state)
            if _outranks(state, head, state.least_important()):
                return 1  # it may be evicted as soon as blocks have become short
        if self.prefill == "slo":
            return same_chunks_for(state, decision, self.target_itl_s, MOST_STABLE)
        return UNBOUNDED

    # -- one iteration -------------------------------------------------------------------------

    def decide(self, state: EngineState, decision: Decision) -> None:
        decision.stands_until_s = lab_order.tell_time(self, state)
        if self.evict_for_waiting and state.running:
            self._make_way(state, decision)
        if self.prefill == "apart":
            self._decide_apart(state, decision)
        else:
            budget = self._budget(state, decision)
            victims = serve(self, state, decision, budget)
            self._join(state, decision, budget, victims)

    def _budget(self, state: EngineState, decision: Decision) -> TokenBudget:
        if self.prefill == "slo":
            return TimeBudget(self.max_num_batched_tokens, self.target_itl_s, state, decision)
        return TokenBudget(self.max_num_batched_tokens)

    def _decide_apart(self, state: EngineState, decision: Decision) -> None:
        """Prompts if one can be admitted, else decodes, which need no budget."""
        budget = TokenBudget(self.max_num_batched_tokens)
        while state.waiting and self._next_waits(state):
            if not self._admit(state, decision, state.waiting.head(), budget):
                break
        if decision.admitted:
            return
        victims = serve(self, state, decision, TokenBudget(UNBOUNDED))
        if state.swapped and not victims and not self._next_waits(state):
            self._join(state, decision, TokenBudget(UNBOUNDED), victims)
        decision.decodes = state.decoding > len(decision.skipped)

    def _next_waits(self, state: EngineState) -> bool:
        return lab_order.next_to_join(self, state) not in state.swapped

    def _join(
        self, state: EngineState, decision: Decision, budget: TokenBudget, victims: int
    ) -> None:
        """Take who is next, from the queue or from host memory, until something is short."""
        if victims:
            if state.waiting:
                state.refuse(state.waiting.head(), AFTER_PREEMPTION)
            return
        while state.waiting or state.swapped:
            request = lab_order.next_to_join(self, state)
            if request in state.swapped:
                if not self._bring_back(state, decision, request, budget):
                    if state.waiting:
                        state.refuse(state.waiting.head(), SWAPPED_FIRST)
                    return
            elif self.prefill == "apart" or not self._admit(state, decision, request, budget):
                return

    def _admit(
        self, state: EngineState, decision: Decision, head: int, budget: TokenBudget
    ) -> bool:
        """Admit the head of the queue, or note why it has to wait."""
        known = state.known[head]
        if budget.left <= 0:
            state.refuse(head, NO_BUDGET, tokens=known, tokens_free=0)
            return False
        if len(state.running) >= self.max_num_seqs:
            state.refuse(head, NO_SLOT, tokens_free=budget.left)
            return False
        wanted = min(known, state.prefill_token_cap)
        tokens = self._piece(budget, 0, wanted)
        if tokens == 0:
            state.refuse(head, NO_BUDGET, tokens=wanted, tokens_free=budget.left)
            return False
        need = self.blocks_to_join(state, head)
        if need > state.free - self._kept_free(state):
            state.refuse(head, NO_BLOCKS, blocks=need, tokens=tokens, tokens_free=budget.left)
            return False
        state.waiting.take()
        state.admit(head, tokens, blocks=need, tokens_free=budget.left)
        if self.reserves:
            state.take(need)
            state.held[head] = need
        else:
            state.grow_chunk(head, tokens)
        decision.admitted.append(head)
        decision.chunks.append((head, tokens))
        budget.spend(0, tokens)
        return True

    def _bring_back(
        self, state: EngineState, decision: Decision, request: int, budget: TokenBudget
    ) -> bool:
        """Bring a swapped-out request back for its next token, or its next piece of prompt."""
        start = state.computed[request]
        left = state.known[request] - start
        need = state.blocks_for(state.known[request])
        tokens = self._piece(budget, start, min(left, state.prefill_token_cap))
        if (
            tokens == 0
            or len(state.running) >= self.max_num_seqs
            or need > state.free - self._kept_free(state)
        ):
            return False
        decision.swapped_blocks += state.swap_in(request)
        decision.swapped_in.append(request)
        if request in state.prefilling:
            decision.chunks.append((request, tokens))
        else:
            decision.decodes = True
        budget.spend(start, tokens)
        return True

    def _piece(self, budget: TokenBudget, start: int, wanted: int) -> int:
        """How much of a prompt may be computed now; whole prompts are computed whole or not."""
        tokens = budget.room(start, wanted)
        return tokens if tokens == wanted or self.enable_chunked_prefill else 0

    def _kept_free(self, state: EngineState) -> int:
        return watermark_blocks(self.watermark, state.kv_blocks) if state.running else 0

    # -- evicting for those that wait ----------------------------------------------------------

    def _make_way(self, state: EngineState, decision: Decision) -> None:
        """Evict less important requests while the next to join has no slot or no blocks."""
        if not (state.waiting or state.swapped):
            return
        head = lab_order.next_to_join(self, state)
        need = state.blocks_for(state.known[head])
        while state.running:
            fits = need + state.decode_demand() <= state.free - self._kept_free(state)
            if fits and len(state.running) < self.max_num_seqs:
                return
            victim = state.least_important()
            if not _outranks(state, head, victim):
                return
            evict(self, state, decision, victim, "outranked", head)


def _outranks(state: EngineState, waiting: int, running: int) -> bool:
    """True if the one that waits is more important, or as important and came first."""
    return state.rank(waiting)[:2] < state.rank(running)[:2]
