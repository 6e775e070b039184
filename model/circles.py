"""Do requests keep evicting each other although none of them gets any further?

Some real engines try for ever then. Progress is a new token, output or prompt. Without it the head
of the running list has at most its known tokens to compute again; more evictions than a few for
every piece of that are a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.state import EngineState

MANY_EVICTIONS = 20  # for every piece of work


class Circles:
    """Counts the evictions of one engine since anybody got further."""

    __slots__ = ("_evictions", "_progress", "_state")

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._evictions = 0
        self._progress = (0, 0)

    def close(self, evictions: int) -> bool:
        """So many more: is it a circle by now? If so the count starts anew."""
        state = self._state
        self._evictions += evictions
        progress = (state.progress, state.tick)
        if progress != self._progress:
            self._progress, self._evictions = progress, 0
            return False
        if self._evictions < MANY_EVICTIONS:
            return False
        if self._evictions < MANY_EVICTIONS * self._pieces():
            return False
        self._evictions = 0
        return True

    def _pieces(self) -> int:
        """Iterations that compute everybody's tokens; blocks of them where there is no budget."""
        state = self._state
        present = [*state.running, *state.waiting, *state.swapped]
        budget = state.policy.tokens_per_iteration
        if budget is None:
            return sum(state.blocks_for(state.known_tokens(r)) for r in present)
        return sum(1 + state.known_tokens(r) // budget for r in present)
