"""Prefix caching as vLLM V1 does it: full KV blocks stay findable after their last user has left.

Blocks are handed out from the front of one free list. A released block that holds cached content
goes to the back, one without content to the front; taking a block forgets what it held. Blocks
without content are therefore always in front of those with content, so a counter stands for the
first part and an ordered dict for the second; a block needs an identity only while it has content.

Source: `golden/RULES.md`, section "Prefix cache"; vLLM 0.33 `v1/core/block_pool.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from model.requests import Requests


class PrefixCache:
    """Content of the KV blocks of one engine.

    `content_key(request, i)` names the content of the i-th full block of a request; equal keys mean
    equal tokens from the first one on.
    """

    __slots__ = (
        "_block_size",
        "_content_key",
        "_empty",
        "_found",
        "_free",
        "_key",
        "_next",
        "_table",
        "_users",
    )

    def __init__(
        self, blocks: int, block_size: int, content_key: Callable[[int, int], Hashable]
    ) -> None:
        self._block_size = block_size
        self._content_key = content_key
        self._empty = blocks  # free blocks without content
        # An OrderedDict, because taking the first entry of a dict gets slower with every one taken.
        self._free: OrderedDict[int, None] = OrderedDict()  # free blocks with content, oldest first
        self._found: dict[Hashable, dict[int, None]] = {}  # content -> blocks, first cached first
        self._key: dict[int, Hashable] = {}  # block -> content
        self._users: dict[int, int] = {}  # block with content -> requests that hold it
        self._table: dict[int, list[int]] = {}  # request -> its leading blocks with content
        self._next = 0

    def take(self, blocks: int) -> None:
        """Take `blocks` from the free list; those with content lose it, oldest first."""
        from_empty = min(blocks, self._empty)
        self._empty -= from_empty
        for _ in range(blocks - from_empty):
            self._forget(self._free.popitem(last=False)[0])

    def lookup(self, request: int, known_tokens: int) -> tuple[list[int], int]:
        """Longest run of leading full blocks that are cached, and how many of them nobody holds."""
        hits: list[int] = []
        unused = 0
        for i in range((known_tokens - 1) // self._block_size):
            blocks = self._found.get(self._content_key(request, i))
            if not blocks:
                break
            block = next(iter(blocks))
            hits.append(block)
            unused += block in self._free
        return hits, unused

    def adopt(self, request: int, hits: list[int]) -> None:
        """Let a request hold the blocks that :meth:`lookup` found."""
        for block in hits:
            self._free.pop(block, None)
            self._users[block] = self._users.get(block, 0) + 1
        self._table[request] = list(hits)

    def fill(self, request: int, computed_tokens: int) -> None:
        """Make the full blocks of a request findable (their space was taken with :meth:`take`)."""
        table = self._table.setdefault(request, [])
        found, content_key = self._found, self._content_key
        block = self._next
        for i in range(len(table), computed_tokens // self._block_size):
            key = content_key(request, i)
            self._key[block] = key
            copies = found.get(key)
            if copies is None:
                found[key] = {block: None}
            else:
                copies[block] = None
            self._users[block] = 1
            table.append(block)
            block += 1
        self._next = block

    def release(self, request: int, computed_tokens: int, held_blocks: int) -> int:
        """Return the blocks of a request, last block first; how many of them nobody else holds."""
        self.fill(request, computed_tokens)
        table = self._table.pop(request)
        freed = held_blocks - len(table)
        self._empty += freed
        for block in reversed(table):
            self._users[block] -= 1
            if not self._users[block]:
                self._free[block] = None
                freed += 1
        return freed

    def _forget(self, block: int) -> None:
        key = self._key.pop(block)
        self._users.pop(block)
        copies = self._found[key]
        if len(copies) == 1:
            del self._found[key]
        else:
            del copies[block]


def content_keys(requests: Requests, block_size: int) -> Callable[[int, int], Hashable]:
    """The content of block i of a request, as far as others may share it.

    A block is shared only if it lies wholly inside the shared tokens; all else is a request's own,
    or its conversation's: a prompt that continues another finds its prompt's and answer's blocks.
    Mooncake's hash ids are chained, so that equal ids after different beginnings stay different.
    """
    if requests.hash_ids is not None:
        return _hashed_keys(requests, block_size)
    group = requests.prefix_group.tolist()
    shared_blocks = (requests.shared_prefix_tokens // block_size).tolist()
    own = _beginnings(requests)

    def key(request: int, i: int) -> Hashable:
        if i < shared_blocks[request] and group[request] >= 0:
            return (group[request], i)
        return (-1 - own[request], i)

    return key


def _beginnings(requests: Requests) -> list[int]:
    """The request whose prompt each prompt begins with, over all turns of a conversation."""
    rows = list(range(len(requests)))
    if requests.follows is None:
        return rows
    history = (requests.prompt_tokens + requests.output_tokens).tolist()
    prompt = requests.prompt_tokens.tolist()
    for row, followed in enumerate(requests.follows.tolist()):  # always an earlier row
        if followed >= 0 and prompt[row] >= history[followed]:
            rows[row] = rows[followed]
    return rows


def _hashed_keys(requests: Requests, block_size: int) -> Callable[[int, int], Hashable]:
    span = requests.hash_block_tokens
    numbers: dict[tuple[int, int], int] = {}
    chains: list[list[int]] = []
    for ids in requests.hash_ids:
        chain: list[int] = []
        for hash_id in ids:
            before = chain[-1] if chain else -1
            chain.append(numbers.setdefault((before, hash_id), len(numbers)))
        chains.append(chain)
    prompt = requests.prompt_tokens.tolist()

    def key(request: int, i: int) -> Hashable:
        first, end = i * block_size, (i + 1) * block_size
        chain = chains[request]
        if end <= prompt[request] and (end - 1) // span < len(chain):
            return (chain[(end - 1) // span], first % span, end)
        return (-1 - request, i)

    return key
