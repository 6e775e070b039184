"""What all engines share: a request's state, block counting, the clock, and the recording.

Times are seconds, lengths tokens, memory blocks.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TOLERANCE_S = 1e-12
"""Arrival and clock are compared with this tolerance, as the recorder did."""


class OutOfHostBlocks(Exception):
    """A victim must be swapped out but host memory has no room: the real engine aborts here."""


class StillDeciding(Exception):
    """The engine did not come to an end: a livelock, or far too long a test.

    Its argument is the list of iterations so far.
    """


def blocks_for(tokens: int, block_size: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    return -(-tokens // block_size)


@dataclass(eq=False)
class Request:
    """One request: its row of ``requests.csv``, and how far it has come."""

    id: str
    arrival_s: float
    prompt: int
    output: int
    priority: int = 0
    cancel_s: float = math.inf
    prefix_group: int = -1
    shared_prefix: int = 0

    computed: int = 0
    """Tokens whose KV is in GPU memory (or, for a swapped request, in host memory)."""
    emitted: int = 0
    target: int = 0
    """Known tokens when it was last admitted; its prefill is over once they are computed."""

    @property
    def known(self) -> int:
        """Prompt and outputs so far: what must be computed before the next output."""
        return self.prompt + self.emitted

    @classmethod
    def from_row(cls, row: Mapping) -> Request:
        def number(key: str, default, kind=int):
            value = row.get(key)
            return default if value is None or value == "" else kind(value)

        return cls(
            id=str(row["request_id"]),
            arrival_s=float(row["arrival_s"]),
            prompt=int(row["prompt_tokens"]),
            output=int(row["output_tokens"]),
            priority=number("priority", 0),
            cancel_s=number("cancel_s", math.inf, float),
            prefix_group=number("prefix_group", -1),
            shared_prefix=number("shared_prefix_tokens", 0),
        )


class Blocks:
    """Blocks without content: who holds how many of ``total``."""

    def __init__(self, total: int, block_size: int):
        self.total = total
        self.block_size = block_size
        self.held: dict[Request, int] = {}

    @property
    def free(self) -> int:
        return self.total - self.used

    @property
    def used(self) -> int:
        return sum(self.held.values())

    def grow(self, request: Request, tokens: int) -> None:
        """Let ``request`` hold the blocks of its first ``tokens`` tokens."""
        self.hold(request, blocks_for(tokens, self.block_size))

    def hold(self, request: Request, blocks: int) -> None:
        self.held[request] = max(blocks, self.held.get(request, 0))
        assert self.free >= 0, "more blocks handed out than there are"

    def release(self, request: Request) -> int:
        """Take all blocks from ``request``; how many they were."""
        return self.held.pop(request, 0)


@dataclass
class Decision:
    """What one call of a scheduler decided. ``scheduled`` is in the order of service."""

    scheduled: dict[Request, int] = field(default_factory=dict)
    preempted: list[Request] = field(default_factory=list)
    swapped_out: list[Request] = field(default_factory=list)
    swapped_in: list[Request] = field(default_factory=list)
    cached: dict[Request, int] = field(default_factory=dict)
    ignored: list[Request] = field(default_factory=list)
    blocks_moved: int = 0
    """Blocks swapped out or in."""

    @property
    def changed_something(self) -> bool:
        return bool(self.preempted or self.swapped_out or self.swapped_in)


class Engine:
    """A scheduler. Subclasses say ``decide``; ``scheduler`` is that part of ``config.json``."""

    empty_decision_is_a_row = False
    """Whether a decision that only takes requests away is an iteration of its own."""
    iteration_time: Mapping = {}
    """That part of ``config.json``; ``drive`` sets it, for rules that look ahead."""
    now_s = 0.0
    """The time of the decision."""

    def __init__(self, scheduler: Mapping):
        self.scheduler = scheduler
        self.block_size: int = scheduler["block_size"]
        self.blocks = Blocks(scheduler["kv_blocks"], self.block_size)
        self.max_num_seqs: int = scheduler["max_num_seqs"]
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.swapped: list[Request] = []

    def decide(self) -> Decision:
        raise NotImplementedError

    def idle(self) -> None:
        """Nobody is in the engine; it sleeps until the next arrival."""

    def starts_at(self, time_s: float) -> float:
        """When the next iteration may start, if not before ``time_s``."""
        return time_s

    def never_fits(self, request: Request) -> bool:
        """Whether even an empty engine could not finish it. The last output is never cached."""
        longest = request.prompt + request.output - 1
        return blocks_for(longest, self.block_size) > self.blocks.total

    def leave(self, request: Request) -> None:
        """The request has ended or its client gave up."""
        for queue in (self.waiting, self.running, self.swapped):
            if request in queue:
                queue.remove(request)
        self.blocks.release(request)


@dataclass
class Recording:
    """What happened, in the words of ``tests/golden``."""

    iterations: list[dict]
    tokens: list[dict]
    """A row a request: ``request_id, first_token_s, last_token_s`` (None: no output),
    ``output_tokens`` emitted."""
    rejected: list[str]
    """Too large for the memory; refused on arrival."""
    ignored: list[str]
    """Dropped by the engine at the head of its queue."""
    unfinished: list[str]
    """Still in the engine when nothing could run any more: the engine is stuck."""


def drive(
    engine: Engine, iteration_time: Mapping, rows: Sequence[Mapping], max_decisions: int
) -> Recording:
    """Let ``engine`` decide, iteration after iteration, until nothing is left to do."""
    base_s = iteration_time["base_s"]
    token_s = iteration_time["per_scheduled_token_s"]
    block_s = iteration_time.get("per_swapped_block_s", 0.0)

    requests = [Request.from_row(row) for row in rows]
    not_arrived = sorted(requests, key=lambda request: request.arrival_s)  # equal: row order
    in_system: list[Request] = []
    token_times: dict[Request, list[float]] = {request: [] for request in requests}
    iterations: list[dict] = []
    rejected: list[str] = []
    ignored: list[str] = []
    cancelled: list[Request] = []
    now = 0.0
    engine.iteration_time = iteration_time

    for _ in range(max_decisions):
        now = engine.now_s = engine.starts_at(now)
        # 1. Arrivals, then cancellations, then the decision.
        while not_arrived and not_arrived[0].arrival_s <= now + TOLERANCE_S:
            request = not_arrived.pop(0)
            if engine.never_fits(request):
                rejected.append(request.id)
            else:
                engine.waiting.append(request)
                in_system.append(request)
        for request in sorted(in_system, key=lambda request: request.cancel_s):
            if request.cancel_s <= now + TOLERANCE_S:
                engine.leave(request)
                in_system.remove(request)
                cancelled.append(request)
        if not in_system:
            if not not_arrived:
                break
            now = not_arrived[0].arrival_s
            engine.idle()
            continue
        decision = engine.decide()
        for request in decision.ignored:
            in_system.remove(request)
            ignored.append(request.id)

        # 2. Nothing to compute: another decision at once, or wait for something to happen.
        if not decision.scheduled:
            if decision.changed_something:
                if not engine.empty_decision_is_a_row:
                    continue
            else:
                # The engine is stuck: only an arrival, or the end of somebody's patience, helps.
                next_s = min((request.cancel_s for request in in_system), default=math.inf)
                if not_arrived:
                    next_s = min(next_s, not_arrived[0].arrival_s)
                if next_s == math.inf:
                    break
                now = next_s
                continue

        # 3. The iteration.
        tokens = sum(decision.scheduled.values())
        end_s = now + (base_s + token_s * tokens + block_s * decision.blocks_moved)
        iterations.append(
            {
                "iteration": len(iterations),
                "start_s": now,
                "end_s": end_s,
                "scheduled": {request.id: n for request, n in decision.scheduled.items()},
                "preempted": [request.id for request in decision.preempted],
                "blocks_used": engine.blocks.used,
                "waiting": len(engine.waiting),
                "running": len(engine.running),
                "swapped_out": [request.id for request in decision.swapped_out],
                "swapped_in": [request.id for request in decision.swapped_in],
                "cached": {request.id: n for request, n in decision.cached.items()},
                "cancelled": [request.id for request in cancelled],
            }
        )
        cancelled = []
        now = end_s

        # 4. Outputs, and the end of requests, in the order of service.
        for request, n in decision.scheduled.items():
            request.computed += n
            assert request.computed <= request.known
            if request.computed == request.known:
                request.emitted += 1
                token_times[request].append(now)
                if request.emitted == request.output:
                    engine.leave(request)
                    in_system.remove(request)
    else:
        raise StillDeciding(iterations)

    return Recording(
        iterations=iterations,
        tokens=[
            {
                "request_id": request.id,
                "first_token_s": times[0] if times else None,
                "last_token_s": times[-1] if times else None,
                "output_tokens": len(times),
            }
            for request, times in token_times.items()
        ],
        rejected=rejected,
        ignored=ignored,
        unfinished=[request.id for request in in_system],
    )


# ---------------------------------------------------------------- files of tests/golden

GOLDEN = Path(__file__).parent.parent / "golden"


def golden_names() -> list[str]:
    return sorted(path.parent.name for path in GOLDEN.glob("*/config.json"))


def read_rows(path: Path) -> list[dict]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_inputs(name: str) -> tuple[dict, list[dict]]:
    """Configuration and request rows of the golden folder ``name``."""
    folder = GOLDEN / name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config, read_rows(folder / "requests.csv")


def parse_iteration(row: Mapping) -> dict:
    """A row of ``iterations.csv`` (strings; missing columns are empty) as ``Recording`` has it."""

    def pairs(column: str) -> dict[str, int]:
        items = [item.rsplit(":", 1) for item in (row.get(column) or "").split()]
        return {request: int(tokens) for request, tokens in items}

    def names(column: str) -> list[str]:
        return (row.get(column) or "").split()

    return {
        "iteration": int(row["iteration"]),
        "start_s": float(row["start_s"]),
        "end_s": float(row["end_s"]),
        "scheduled": pairs("scheduled"),
        "preempted": names("preempted"),
        "blocks_used": int(row["blocks_used"]),
        "waiting": int(row["waiting"]),
        "running": int(row["running"]),
        "swapped_out": names("swapped_out"),
        "swapped_in": names("swapped_in"),
        "cached": pairs("cached"),
        "cancelled": names("cancelled"),
    }


def parse_tokens(row: Mapping) -> dict:
    """A row of ``tokens.csv`` as ``Recording`` has it."""

    def time_of(column: str) -> float | None:
        return float(row[column]) if row[column] != "" else None

    return {
        "request_id": row["request_id"],
        "first_token_s": time_of("first_token_s"),
        "last_token_s": time_of("last_token_s"),
        "output_tokens": int(row["output_tokens"]),
    }


def read_recording(name: str) -> tuple[list[dict], list[dict]]:
    """Parsed rows of ``iterations.csv`` and ``tokens.csv`` of the golden folder ``name``."""
    folder = GOLDEN / name
    return (
        [parse_iteration(row) for row in read_rows(folder / "iterations.csv")],
        [parse_tokens(row) for row in read_rows(folder / "tokens.csv")],
    )


UNORDERED = ("preempted", "swapped_out", "swapped_in", "cancelled")
"""Columns whose order within an iteration means nothing."""
EXACT = ("iteration", "scheduled", *UNORDERED, "cached", "blocks_used", "waiting", "running")
TIMES = ("start_s", "end_s")


def difference(
    actual: Sequence[Mapping], expected: Sequence[Mapping], tolerance_s: float = 1e-6
) -> str | None:
    """The first difference between two lists of parsed iterations in words, or None.

    Times may differ by ``tolerance_s`` (and a rounding error of the last decimal).
    """
    for a, e in zip(actual, expected, strict=False):
        for column in EXACT:
            left, right = a[column], e[column]
            if column in UNORDERED:
                left, right = sorted(left), sorted(right)
            if left != right:
                return f"iteration {e['iteration']}, {column}: {left} instead of {right}"
        for column in TIMES:
            if abs(a[column] - e[column]) > tolerance_s + 1e-9:
                return f"iteration {e['iteration']}, {column}: {a[column]} instead of {e[column]}"
    if len(actual) != len(expected):
        return f"{len(actual)} iterations instead of {len(expected)}"
    return None
