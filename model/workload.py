"""What arrives: seeded, vectorised generation of requests from a frozen description.

Common random numbers: each column of each stream draws from its own child of the seed, so that
changing the lengths leaves the arrivals as they are, a higher rate moves the same arrivals closer
together, more requests extend the same sequence, and a further stream disturbs no other. Two
policies, or two settings, are thus compared on the same luck.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model import checks
from model.errors import LabError
from model.lengths import LENGTH_KINDS, Lengths
from model.requests import LABEL, LARGEST_TOKENS, MOST_RETRIES, Requests

__all__ = [
    "ARRIVAL_KINDS",
    "LARGEST_REQUESTS",
    "LENGTH_KINDS",
    "Arrivals",
    "Lengths",
    "Requests",
    "Stream",
    "Turns",
    "Workload",
]

LARGEST_REQUESTS = 1_000_000
ARRIVAL_KINDS = ("poisson", "constant", "gamma", "at_once", "closed_loop")
_USUAL_PROMPT, _USUAL_OUTPUT = Lengths(), Lengths("fixed", 128.0)
DURATION_KINDS = ("fixed", "exponential")
TURN_KINDS = ("fixed", "geometric")

# The children of the seed, one per column of a stream. Append only: the order is part of the
# meaning of a seed.
_COLUMNS = ("arrival", "prompt", "output", "prefix", "patience", "think")
_COLUMNS += ("turns", "message", "turn_think")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When requests of a stream arrive; the first comes at the stream's ``start_s``.

    kind            gaps between arrivals
    "poisson"       exponential with mean 1 / ``rate_per_s``
    "constant"      1 / ``rate_per_s``
    "gamma"         gamma with mean 1 / ``rate_per_s`` and coefficient of variation ``cv``
                    (0 is constant, 1 Poisson, above 1 bursty)
    "at_once"       0
    "closed_loop"   ``users`` requests at the start; each request that ends releases the next one
                    after a think time of ``think_s`` seconds (``think_kind`` "fixed", or
                    "exponential" with that mean)
    """

    kind: str = "poisson"
    rate_per_s: float = 1.0
    cv: float = 1.0
    users: int = 8
    think_s: float = 0.0
    think_kind: str = "fixed"

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, ARRIVAL_KINDS)
        checks.number("rate_per_s", self.rate_per_s, 1e-6, 1e6)
        checks.number("cv", self.cv, 0, 100)
        checks.whole_number("users", self.users, 1, LARGEST_REQUESTS)
        checks.number("think_s", self.think_s, 0, 1e6)
        checks.choice("think_kind", self.think_kind, DURATION_KINDS)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """``n`` arrival times in seconds, ascending from 0; nan where released by an end."""
        if self.kind == "at_once":
            return np.zeros(n)
        if self.kind == "closed_loop":
            return np.where(np.arange(n) < self.users, 0.0, np.nan)
        if self.kind == "constant" or (self.kind == "gamma" and self.cv == 0):
            return np.arange(n) / self.rate_per_s
        if self.kind == "poisson":
            gaps = rng.standard_exponential(n - 1)
        else:
            shape = self.cv**-2.0
            gaps = rng.standard_gamma(shape, n - 1) / shape
        # The gaps have mean 1: another rate is another scale of the same times.
        return np.concatenate(([0.0], np.cumsum(gaps))) / self.rate_per_s


@dataclass(frozen=True, slots=True)
class Turns:
    """Conversations: how many requests follow one another, and how they grow.

    A conversation has ``mean_turns`` turns ("fixed", or "geometric" with that mean), at most
    ``most_turns``. The prompt of a further turn is the whole history, answers included, and a new
    message of ``message_tokens`` tokens (``message_kind`` as the turns). It arrives ``think_s``
    seconds after the answer before it (``think_kind`` "exponential" with that mean, or "fixed"). A
    turn that is refused, or whose client gives up, ends the conversation.
    """

    kind: str = "fixed"
    mean_turns: float = 1.0
    most_turns: int = 100
    message_kind: str = "geometric"
    message_tokens: float = 64.0
    think_s: float = 10.0
    think_kind: str = "exponential"

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, TURN_KINDS)
        checks.number("mean_turns", self.mean_turns, 1, 10_000)
        checks.whole_number("most_turns", self.most_turns, 1, 10_000)
        checks.choice("message_kind", self.message_kind, TURN_KINDS)
        checks.number("message_tokens", self.message_tokens, 1, LARGEST_TOKENS)
        checks.number("think_s", self.think_s, 0, 1e6)
        checks.choice("think_kind", self.think_kind, DURATION_KINDS)
        for kind, field in ((self.kind, "mean_turns"), (self.message_kind, "message_tokens")):
            value = getattr(self, field)
            if kind == "fixed" and value != int(value):
                raise LabError("not_a_whole_number", field=field, value=value)

    def of_requests(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Turns of the conversations that make up ``n`` requests; the last one may be cut."""
        turns = Lengths(self.kind, float(self.mean_turns), max_tokens=self.most_turns)
        ends = np.cumsum(turns.sample(rng, n))
        last = int(np.searchsorted(ends, n))
        return np.diff(np.minimum(ends[: last + 1], n), prepend=0)


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of one class (``name``): how many, when, how long, how important.

    With ``turns`` of more than one, requests form conversations: ``arrivals`` say when these
    begin, ``prompt`` is that of the first turn, and ``n_requests`` are the turns of all of them. A
    refused request comes again up to ``retries`` times, after ``retry_after_s`` seconds and then
    ``retry_factor`` times as long each.

    ``prefix_groups`` groups (drawn evenly) share the first ``shared_prefix_tokens`` tokens of
    their prompts. ``patience_s``: the client gives up so long after arrival (``patience_kind``
    "exponential" with that mean, or "fixed"); None: never.
    """

    name: str = "all"
    n_requests: int = 100
    arrivals: Arrivals = Arrivals()
    prompt: Lengths = _USUAL_PROMPT
    output: Lengths = _USUAL_OUTPUT
    priority: int = 0
    start_s: float = 0.0
    prefix_groups: int = 0
    shared_prefix_tokens: int = 0
    patience_s: float | None = None
    patience_kind: str = "exponential"
    turns: Turns = Turns()
    retries: int = 0
    retry_after_s: float = 1.0
    retry_factor: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not LABEL.fullmatch(self.name):
            raise LabError("stream_name", name=str(self.name)[:40])
        checks.whole_number("n_requests", self.n_requests, 1, LARGEST_REQUESTS)
        checks.whole_number("priority", self.priority, -(10**9), 10**9)
        checks.number("start_s", self.start_s, 0, 1e9)
        checks.whole_number("prefix_groups", self.prefix_groups, 0, LARGEST_REQUESTS)
        shared = self.shared_prefix_tokens
        checks.whole_number("shared_prefix_tokens", shared, 0, LARGEST_TOKENS)
        if bool(self.prefix_groups) != bool(shared):
            raise LabError(
                "prefix_incomplete",
                name=self.name,
                tokens=shared,
                groups=self.prefix_groups,
            )
        checks.choice("patience_kind", self.patience_kind, DURATION_KINDS)
        if self.patience_s is not None:
            checks.number("patience_s", self.patience_s, 0, 1e9)
            if self.arrivals.kind == "closed_loop":
                raise LabError("closed_loop_patience", name=self.name)
        if self.has_conversations and self.arrivals.kind == "closed_loop":
            raise LabError("closed_loop_turns", name=self.name)
        checks.whole_number("retries", self.retries, 0, MOST_RETRIES)
        checks.number("retry_after_s", self.retry_after_s, 0, 1e6)
        checks.number("retry_factor", self.retry_factor, 1, 100)

    @property
    def has_conversations(self) -> bool:
        """Whether requests of this stream may follow one another."""
        return self.turns.mean_turns > 1 and self.turns.most_turns > 1


@dataclass(frozen=True, slots=True)
class Workload:
    """Streams of requests, merged by arrival time (ties: in the order of the streams)."""

    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", tuple(self.streams))
        if not self.streams:
            raise LabError("no_streams")
        names = [stream.name for stream in self.streams]
        for name in names:
            if names.count(name) > 1:
                raise LabError("stream_names", name=name)
        if self.n_requests > LARGEST_REQUESTS:
            raise LabError("too_many_requests", n_requests=self.n_requests, limit=LARGEST_REQUESTS)
        for stream in self.streams:
            if stream.arrivals.kind == "closed_loop" and len(self.streams) > 1:
                raise LabError("closed_loop_alone", name=stream.name)

    @property
    def n_requests(self) -> int:
        return sum(stream.n_requests for stream in self.streams)

    def generate(self, seed: int) -> Requests:
        """The requests of this seed (a whole number, 0 or more); the same every time."""
        checks.whole_number("seed", seed, 0, 2**63 - 1)
        parts = [self._columns(index, int(seed)) for index in range(len(self.streams))]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        first = self.streams[0].arrivals
        closed = first.kind == "closed_loop"
        talks = any(stream.has_conversations for stream in self.streams)
        if talks:
            starts = np.cumsum([0] + [len(part["follows"]) for part in parts])
            starts = np.repeat(starts[:-1], np.diff(starts))
            columns["follows"] = np.where(columns["follows"] < 0, -1, columns["follows"] + starts)
        if not talks:
            del columns["follows"], columns["patience_s"]
        if not closed and not talks:
            del columns["think_s"]
        if not any(stream.retries for stream in self.streams):
            del columns["retries"], columns["retry_after_s"], columns["retry_factor"]
        return Requests.from_columns(
            **columns,
            class_names=[stream.name for stream in self.streams],
            users=min(first.users, self.n_requests) if closed else None,
        )

    def _columns(self, index: int, seed: int) -> dict[str, np.ndarray]:
        stream = self.streams[index]
        n = int(stream.n_requests)
        rng = {
            column: np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, child)))
            for child, column in enumerate(_COLUMNS)
        }
        turns = np.ones(n, dtype=np.int64)
        if stream.has_conversations:
            turns = stream.turns.of_requests(rng["turns"], n)
        talks = len(turns)
        first_rows = np.cumsum(turns) - turns
        talk = np.repeat(np.arange(talks), turns)
        follows = np.arange(n) - 1
        follows[first_rows] = -1
        arrival_s = np.full(n, np.nan)
        arrival_s[first_rows] = stream.start_s + stream.arrivals.sample(rng["arrival"], talks)
        output = stream.output.sample(rng["output"], n)
        opening = stream.prompt.sample(rng["prompt"], talks)
        prompt = opening[talk]
        if talks < n:
            said = Lengths(stream.turns.message_kind, float(stream.turns.message_tokens))
            prompt = prompt + _history(said.sample(rng["message"], n), output, first_rows, talk)
        if stream.prefix_groups:
            group = rng["prefix"].integers(stream.prefix_groups, size=talks)[talk]
            group += sum(earlier.prefix_groups for earlier in self.streams[:index])
        else:
            group = np.full(n, -1)
        patience = np.full(n, np.inf)
        if stream.patience_s is not None:
            patience = _durations(stream.patience_s, stream.patience_kind, rng["patience"], n)
        closed = stream.arrivals.kind == "closed_loop"
        pause, child = (stream.turns, "turn_think") if talks < n else (stream.arrivals, "think")
        think_s = _durations(pause.think_s, pause.think_kind, rng[child], n)
        return {
            "arrival_s": arrival_s,
            "prompt_tokens": prompt,
            "output_tokens": output,
            "priority": np.full(n, int(stream.priority)),
            "cancel_s": np.where(
                closed | np.isnan(arrival_s), np.inf, np.nan_to_num(arrival_s) + patience
            ),
            "patience_s": patience,
            "prefix_group": group,
            "shared_prefix_tokens": np.minimum(stream.shared_prefix_tokens, opening)[talk],
            "request_class": np.full(n, index),
            "think_s": think_s,
            "follows": follows,
            "retries": np.full(n, int(stream.retries)),
            "retry_after_s": np.full(n, float(stream.retry_after_s)),
            "retry_factor": np.full(n, float(stream.retry_factor)),
        }


def _history(
    said: np.ndarray, output: np.ndarray, first_rows: np.ndarray, talk: np.ndarray
) -> np.ndarray:
    """Tokens of each prompt beyond the first prompt of its conversation."""
    added = said.copy()
    added[1:] += output[:-1]  # the answer before, and the new message
    added[first_rows] = 0
    total = np.cumsum(added)
    return total - total[first_rows][talk]


def _durations(mean_s: float, kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    return mean_s * (np.ones(n) if kind == "fixed" else rng.standard_exponential(n))
