"""Who gets a request: one function for each router, in the table :data:`ROUTERS`.

A router knows what a real one knows: what it has sent to each engine and what has ended since. It
never looks into an engine. A new router is one function and one row.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple


class Ledger:
    """What has been sent to each of some engines and has not ended.

    ``requests`` and ``tokens`` have an entry an engine (by its number); a request weighs
    ``weight[request]`` tokens. Who chooses looks at the load as :meth:`look` left it: at the
    present, or at what was true at the last look that is ``every_s`` seconds or more ago.
    """

    def __init__(
        self, engines: Sequence[int], weight: Sequence[int], every_s: float = 0.0
    ) -> None:
        self.engines = engines
        self.sent = 0
        size = engines[-1] + 1
        self.requests = [0] * size
        self.tokens = [0] * size
        self._weight = weight
        self._every_s = every_s
        self._looks_again_s = 0.0
        self.seen_requests, self.seen_tokens = self.requests, self.tokens

    def look(self, time_s: float) -> None:
        """Note the load, unless the last note is not old enough."""
        if self._every_s and time_s >= self._looks_again_s:
            self._looks_again_s = time_s + self._every_s
            self.seen_requests, self.seen_tokens = list(self.requests), list(self.tokens)

    def add(self, request: int, engine: int) -> None:
        """A request has been sent to an engine."""
        self.sent += 1
        self.requests[engine] += 1
        self.tokens[engine] += self._weight[request]

    def remove(self, request: int, engine: int) -> None:
        """It has ended there."""
        self.requests[engine] -= 1
        self.tokens[engine] -= self._weight[request]

    def fewest_requests(self) -> int:
        """The engine with the fewest requests, the first of equals."""
        return min(self.engines, key=self.seen_requests.__getitem__)

    def fewest_tokens(self) -> int:
        """The engine with the fewest tokens, the first of equals."""
        return min(self.engines, key=self.seen_tokens.__getitem__)


class Fleet:
    """A ledger and, for routers that look for it, a memory of the prompts sent to each engine.

    ``content(request, i)`` names block i of a request (see :mod:`model.prefix_cache`). The memory
    of an engine holds at most ``blocks`` blocks and forgets the least recently used first, the
    end of a prompt before its beginning.
    """

    def __init__(
        self,
        ledger: Ledger,
        prompt_blocks: Sequence[int],
        content: Callable[[int, int], Hashable],
        blocks: int,
    ) -> None:
        self.ledger = ledger
        self._prompt_blocks = prompt_blocks
        self._content = content
        self._most = blocks
        self._seen: list[OrderedDict] = [OrderedDict() for _ in ledger.requests]

    def best_match(self, request: int) -> tuple[int, float]:
        """(engine with the longest known prefix, its share of the prompt's full blocks)."""
        best, longest = self.ledger.engines[0], 0
        n = self._prompt_blocks[request]
        for engine in self.ledger.engines:
            seen, length = self._seen[engine], 0
            while length < n and self._content(request, length) in seen:
                length += 1
            if length > longest:
                best, longest = engine, length
        return best, longest / n if n else 0.0

    def smallest_memory(self) -> int:
        """The engine of which the fewest blocks are known, the first of equals."""
        return min(self.ledger.engines, key=lambda engine: len(self._seen[engine]))

    def remember(self, request: int, engine: int) -> None:
        """The prompt of a request is in this engine's cache from now on, as far as one knows."""
        seen = self._seen[engine]
        for i in reversed(range(min(self._prompt_blocks[request], self._most))):
            key = self._content(request, i)
            seen[key] = None
            seen.move_to_end(key)
        while len(seen) > self._most:
            seen.popitem(last=False)


class Balance(NamedTuple):
    """Limits of the prefix-aware router."""

    match_threshold: float
    balance_abs: int
    balance_rel: float


def round_robin(fleet: Fleet, request: int, limits: Balance) -> int:
    """In turn, whatever the load."""
    engines = fleet.ledger.engines
    return engines[fleet.ledger.sent % len(engines)]


def least_work(fleet: Fleet, request: int, limits: Balance) -> int:
    """Where the prompts and outputs of what has not ended are fewest tokens.

    Output lengths are known here before they are generated: an oracle, the best that an estimate
    could be.
    """
    return fleet.ledger.fewest_tokens()


def prefix_aware(fleet: Fleet, request: int, limits: Balance) -> int:
    """As SGLang's cache-aware router: to the longest known prefix, unless the load is unbalanced.

    Unbalanced: the busiest engine has more than `balance_abs` requests over the idlest and more
    than `balance_rel` times as many; then the idlest gets it. Where at most `match_threshold` of
    the prompt is known, the engine of which least is known gets it.
    """
    load = [fleet.ledger.seen_requests[engine] for engine in fleet.ledger.engines]
    most, least = max(load), min(load)
    if most - least > limits.balance_abs and most > limits.balance_rel * least:
        engine = fleet.ledger.fewest_requests()
    else:
        engine, share = fleet.best_match(request)
        if share <= limits.match_threshold:
            engine = fleet.smallest_memory()
    fleet.remember(request, engine)
    return engine


class Router(NamedTuple):
    """``watches``: it needs to hear of every end before the next arrival."""

    choose: Callable[[Fleet, int, Balance], int]
    watches: bool


ROUTERS: dict[str, Router] = {
    "round_robin": Router(round_robin, watches=False),
    "least_work": Router(least_work, watches=True),
    "prefix_aware": Router(prefix_aware, watches=True),
}
