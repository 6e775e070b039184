"""How many prompt tokens the lab puts beside its decodes: a fixed budget, or what the clock allows.

Both kinds answer `room`: how many of the wanted tokens of a prompt, computed up to `start`, fit
this iteration. Whoever schedules them says `spend`, and `give_back` for a victim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.events import REASON
from model.schedulers.base import UNBOUNDED

if TYPE_CHECKING:
    from model.schedulers.base import Decision
    from model.state import EngineState

NO_BLOCKS = REASON["no_blocks"]


class TokenBudget:
    """A fixed number of tokens; a decode takes one."""

    __slots__ = ("left",)

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def room(self, start: int, wanted: int) -> int:
        """How many of the `wanted` tokens fit, 0 if none."""
        return max(0, min(wanted, self.left))

    def spend(self, start: int, tokens: int) -> None:
        """Schedule so many tokens of a prompt."""
        self.left -= tokens

    def give_back(self, start: int, tokens: int) -> None:
        """A prompt loses the tokens that this iteration had given it."""
        self.left += tokens


class TimeBudget(TokenBudget):
    """Also no more than keeps the predicted iteration within a bound while somebody decodes (F19).

    The decodes are those present when the decision begins; the prediction is the engine's own cost.
    Without a decode there is no gap between tokens to protect.
    """

    __slots__ = ("_bound_s", "_bounded", "_cost", "_decision", "_pairs", "_reads", "_tokens")

    def __init__(
        self, tokens: int, bound_s: float, state: EngineState, decision: Decision
    ) -> None:
        super().__init__(tokens)
        self._bound_s = bound_s
        self._cost = state.cost
        self._decision = decision
        self._tokens = state.decoding
        self._pairs = self._reads = state.context_sum + state.decoding
        self._bounded = state.decoding > 0

    def room(self, start: int, wanted: int) -> int:
        """The largest number of tokens that fits; the cost never falls with their number.

        Only the cost itself says whether a number fits. F19's closed form says where to look, so
        that two neighbours mostly settle it; where it is off (a mixture of experts) halving does.
        """
        wanted = super().room(start, wanted)
        if not self._bounded or wanted == 0 or self._fits(start, wanted):
            return wanted
        fits, too_many = 0, wanted
        guess = self._closed_form(start, wanted)
        for probe in (guess, guess + 1):
            if fits < probe < too_many:
                if self._fits(start, probe):
                    fits = probe
                else:
                    too_many = probe
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._fits(start, middle):
                fits = middle
            else:
                too_many = middle
        return fits

    def _closed_form(self, start: int, most: int) -> int:
        """About how many tokens fit, up to `most`: where computing or reading reaches the bound."""
        cost = self._cost
        rest_s = self._bound_s - cost.fixed_s - cost.token_s * self._tokens
        rest_s -= cost.swapped_block_s * self._decision.swapped_blocks
        to_read_s = rest_s - cost.weights_s(self._tokens + most)
        to_read_s -= cost.kv_token_read_s * (self._reads + start)
        to_compute_s = rest_s - cost.compute_token_s * self._tokens
        to_compute_s -= cost.compute_pair_s * self._pairs
        token_s = cost.token_s + cost.compute_token_s + cost.compute_pair_s * (start + 0.5)
        read_s = cost.token_s + cost.kv_token_read_s
        if to_read_s <= 0 or to_compute_s <= 0:
            return 0
        found = float(most)
        if read_s > 0:
            found = min(found, to_read_s / read_s)
        if token_s > 0:
            root = (token_s**2 + 2 * cost.compute_pair_s * to_compute_s) ** 0.5
            found = min(found, 2 * to_compute_s / (token_s + root))
        return int(found)

    def spend(self, start: int, tokens: int) -> None:
        super().spend(start, tokens)
        self._add(start, tokens, 1)

    def give_back(self, start: int, tokens: int) -> None:
        super().give_back(start, tokens)
        self._add(start, tokens, -1)

    def _add(self, start: int, tokens: int, sign: int) -> None:
        self._tokens += sign * tokens
        self._pairs += sign * pairs_of(start, tokens)
        self._reads += sign * (start + tokens)

    def _fits(self, start: int, tokens: int) -> bool:
        seconds = self._cost.seconds(
            self._tokens + tokens,
            self._pairs + pairs_of(start, tokens),
            self._reads + start + tokens,
            self._decision.swapped_blocks,
        )
        return seconds <= self._bound_s


def pairs_of(start: int, tokens: int) -> int:
    """Attention pairs of a chunk of `tokens` tokens after `start` computed ones."""
    return tokens * start + tokens * (tokens + 1) // 2


def same_chunks_for(state: EngineState, decision: Decision, bound_s: float, most: int) -> int:
    """For how many iterations, `most` at most, the bound allows the same chunks and no others.

    Contexts grow, so an iteration of the same tokens takes longer each time: what did not fit
    never will, and what fits now has an end, mostly a near one. A head that waits for blocks is
    told so only while a token of it would fit.
    """
    decodes = state.decoding
    waits_for_blocks = bool(state.waiting) and state.refusal == NO_BLOCKS
    if not decodes or not (decision.chunks or waits_for_blocks):
        return UNBOUNDED
    sizes = [(state.computed[request], size) for request, size in decision.chunks]
    tokens = decodes + sum(size for _, size in sizes) + waits_for_blocks

    def fits(iteration: int) -> bool:
        context = state.context_sum + decodes * (1 + iteration)
        pairs = reads = context + waits_for_blocks
        for start, size in sizes:
            start += size * iteration
            pairs += pairs_of(start, size)
            reads += start + size
        return state.cost.seconds(tokens, pairs, reads) <= bound_s

    good, bad = 0, 1  # iterations after the first, which fits
    while bad < most and fits(bad):
        good, bad = bad, 2 * bad
    bad = min(bad, most)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good + 1
