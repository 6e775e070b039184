"""How much of a trace's prompts a cache of a given size finds: replay of its blocks, without time.

Blocks go by the trace's own hashes. The cache forgets the least recently used block first, of a
prompt its end before its beginning; so what is left of a prompt is always a beginning, as in a
prefix cache it must be. Only full blocks are kept, and the last token is always computed (F10c).
No block is held by running requests and answers are not kept, so an engine finds less where it is
crowded, and more where a conversation continues an answer whose tokens the trace does not name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model.prefix_cache import content_keys
from model.requests import Requests

__all__ = ["Reuse", "hit_shares", "reuse", "sample"]

_BLOCK = 512
_SAMPLE_SEED = 7


def hit_shares(requests: Requests, blocks: Sequence[int]) -> np.ndarray:
    """Share of all prompt tokens that caches of so many hash blocks find, one for each."""
    size = requests.hash_block_tokens
    key = content_keys(requests, size)
    prompt = requests.prompt_tokens.tolist()
    chains = [[key(row, i) for i in range(n // size)] for row, n in enumerate(prompt)]
    usable = [(n - 1) // size for n in prompt]
    return np.array([_found(chains, usable, most) for most in blocks]) * size / sum(prompt)


def _found(chains: list[list], usable: list[int], most: int) -> int:
    cache: OrderedDict = OrderedDict()
    found = 0
    for chain, limit in zip(chains, usable, strict=True):
        hits = 0
        while hits < limit and chain[hits] in cache:
            hits += 1
        found += hits
        for content in reversed(chain):
            cache[content] = None
            cache.move_to_end(content)
        while len(cache) > most:
            cache.popitem(last=False)
    return found


class Reuse(NamedTuple):
    """``blocks`` differ in content, ``once`` of them are asked for by a single request only."""

    requests: int
    mean_prompt_tokens: float
    blocks: int
    once: int


def reuse(requests: Requests) -> Reuse:
    """What a trace with hash ids asks for, in numbers."""
    size = requests.hash_block_tokens
    key = content_keys(requests, size)
    asked: dict = {}
    for row, n in enumerate(requests.prompt_tokens.tolist()):
        for i in range(n // size):
            content = key(row, i)
            asked[content] = asked.get(content, 0) + 1
    once = sum(times == 1 for times in asked.values())
    return Reuse(len(requests), float(requests.prompt_tokens.mean()), len(asked), once)


def sample(talks: int = 120) -> Requests:
    """Made-up conversations in Mooncake's form: a shared first block, then histories that grow.

    Documents of some thousand tokens are talked about in up to eight turns a minute apart. These
    are no measurements.
    """
    rng = np.random.default_rng(_SAMPLE_SEED)
    rows, fresh = [], 1
    for _ in range(talks):
        start_s = float(rng.uniform(0, 1800))
        tokens = _BLOCK + int(rng.lognormal(8.2, 0.9))
        ids = [0]
        for turn in range(int(min(rng.geometric(0.4), 8))):
            while len(ids) < -(-tokens // _BLOCK):
                ids.append(fresh)
                fresh += 1
            answer = int(rng.geometric(1 / 350))
            rows.append((start_s + 60.0 * turn, tokens, answer, tuple(ids)))
            # The last block was not full: the next turn fills it with other content.
            ids = ids[: tokens // _BLOCK]
            tokens += answer + int(rng.geometric(1 / 200))
    rows.sort()
    arrival_s, prompt, output, hashes = zip(*rows, strict=True)
    return Requests.from_columns(
        arrival_s=arrival_s,
        prompt_tokens=prompt,
        output_tokens=output,
        hash_ids=hashes,
        hash_block_tokens=_BLOCK,
    )
