"""Columns of a result made by hand, with harmless defaults, to test metrics without a simulator."""

from types import SimpleNamespace

import numpy as np

from model.events import EVENT, REASON
from model.state import FINISHED

_REQUEST = {
    "engine_id": 0,
    "request_class": 0,
    "priority": 0,
    "arrival_s": 0.0,
    "prompt_tokens": 10,
    "output_tokens": 1,
    "status": FINISHED,
    "reason": 0,
    "first_scheduled_s": np.nan,
    "first_token_s": np.nan,
    "last_token_s": np.nan,
    "end_s": np.nan,
    "emitted_tokens": 0,
    "preemptions": 0,
    "recomputed_tokens": 0,
    "cached_tokens": 0,
    "swapped_blocks": 0,
    "cached_again_tokens": 0,
    "attempts": 1,
    "decode_engine_id": 0,
    "transferred_bytes": 0.0,
    "transfer_s": np.nan,
}
_ITERATION = {
    "engine_id": 0,
    "start_s": 0.0,
    "end_s": 1.0,
    "decode_requests": 0,
    "prefill_requests": 0,
    "prefill_tokens": 0,
    "recompute_tokens": 0,
    "padding_tokens": 0,
    "tokens": 0,
    "blocks_used": 0,
    "waiting": 0,
    "running": 0,
    "swapped": 0,
    "attention_pairs": 0,
    "kv_tokens_read": 0,
    "swapped_blocks": 0,
}


def _columns(defaults: dict, rows: list[dict]) -> dict[str, np.ndarray]:
    return {
        name: np.array([row.get(name, default) for row in rows], dtype=np.array(default).dtype)
        for name, default in defaults.items()
    }


def requests(*rows: dict) -> dict[str, np.ndarray]:
    """Request columns; what a row does not name has the default above."""
    return _columns(_REQUEST, list(rows))


def answered(arrival_s: float, *token_s: float, **more) -> dict:
    """A finished request that emitted its tokens at the given moments."""
    return {
        "arrival_s": arrival_s,
        "first_scheduled_s": arrival_s,
        "output_tokens": len(token_s),
        "emitted_tokens": len(token_s),
        "first_token_s": token_s[0],
        "last_token_s": token_s[-1],
        "end_s": token_s[-1],
    } | more


def iterations(*rows: dict) -> dict[str, np.ndarray]:
    """Iteration columns; rows of one engine must stand together."""
    columns = _columns(_ITERATION, list(rows))
    engine = columns["engine_id"]
    columns["iteration"] = np.array([np.sum(engine[:i] == engine[i]) for i in range(len(engine))])
    return columns


def events(*rows: tuple) -> dict[str, np.ndarray]:
    """Events as (kind, iteration, request, reason, number), the last two optional.

    The number are the blocks needed of a refusal for blocks, the tokens free of one for budget.
    """
    filled = [(*row, "none", -1)[:5] if len(row) == 3 else (*row, -1)[:5] for row in rows]
    numbers = np.array([row[4] for row in filled], dtype=np.int64)
    return {
        "event": np.array([EVENT[row[0]] for row in filled], dtype=np.int64),
        "iteration": np.array([row[1] for row in filled], dtype=np.int64),
        "request": np.array([row[2] for row in filled], dtype=np.int64),
        "reason": np.array([REASON[row[3]] for row in filled], dtype=np.int64),
        "tokens_free": numbers,
        "blocks_needed": numbers,
        "engine_id": np.zeros(len(filled), dtype=np.int64),
        "time_s": np.zeros(len(filled)),
    }


def after_arrivals(log: dict[str, np.ndarray], queue: dict[str, np.ndarray]) -> dict:
    """The events behind one arrival of every request."""
    n = len(queue["arrival_s"])
    arrivals = events(*(("arrive", 0, request) for request in range(n)))
    arrivals["time_s"] = queue["arrival_s"]
    return {name: np.concatenate((arrivals[name], column)) for name, column in log.items()}


def slo(ttft_s: float, tpot_s: float) -> SimpleNamespace:
    """Two bounds."""
    return SimpleNamespace(ttft_s=ttft_s, tpot_s=tpot_s)
