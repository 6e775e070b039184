"""vLLM V1's block pool with prefix caching: blocks that remember what they hold."""

from __future__ import annotations

from collections.abc import Hashable

from tests.reference.common import Request, blocks_for


class PrefixCache:
    """Blocks 0, 1, ... with users and content. A block nobody uses is free, but keeps its content
    until it is handed out again.
    """

    def __init__(self, total: int, block_size: int):
        self.total = total
        self.block_size = block_size
        self.free_list: list[int] = list(range(total))  # handed out from the front
        self.users: list[int] = [0] * total
        self.content: list[tuple | None] = [None] * total
        self.cached: list[int] = []  # blocks with content, the one cached first in front
        self.table: dict[Request, list[int]] = {}

    @property
    def free(self) -> int:
        return len(self.free_list)

    @property
    def used(self) -> int:
        return self.total - self.free

    def content_of(self, request: Request, block: int) -> tuple[Hashable, ...]:
        """What the ``block``-th full block of ``request`` holds.

        It is the group's if it lies wholly inside the shared tokens, else the request's alone.
        """
        end = (block + 1) * self.block_size
        if request.prefix_group >= 0 and end <= request.shared_prefix:
            return ("group", request.prefix_group, block)
        return ("request", request.id, block)

    def lookup(self, request: Request) -> list[int]:
        """The longest run of leading blocks found; the last known token is always computed."""
        hits: list[int] = []
        for block in range((request.known - 1) // self.block_size):
            wanted = self.content_of(request, block)
            found = [b for b in self.cached if self.content[b] == wanted]
            if not found:
                break
            hits.append(found[0])
        return hits

    def need(self, request: Request, tokens: int, hits: list[int]) -> int:
        """Blocks that leave the free list if ``request`` gets its first ``tokens`` tokens."""
        held = len(self.table.get(request, []))
        unused_hits = sum(1 for block in hits if self.users[block] == 0)
        return blocks_for(tokens, self.block_size) - held - len(hits) + unused_hits

    def allocate(self, request: Request, tokens: int, hits: list[int]) -> None:
        """Adopt ``hits``, take new blocks up to ``tokens``, make the full ones findable."""
        table = self.table.setdefault(request, [])
        for block in hits:
            if self.users[block] == 0:
                self.free_list.remove(block)
            self.users[block] += 1
            table.append(block)
        while len(table) < blocks_for(tokens, self.block_size):
            block = self.free_list.pop(0)
            if self.content[block] is not None:
                self.content[block] = None
                self.cached.remove(block)
            self.users[block] = 1
            table.append(block)
        for place in range(tokens // self.block_size):
            block = table[place]
            if self.content[block] is None:
                self.content[block] = self.content_of(request, place)
                self.cached.append(block)

    def release(self, request: Request) -> int:
        """From last to first: full blocks to the back of the free list, others to its front."""
        table = self.table.pop(request, [])
        for block in reversed(table):
            self.users[block] -= 1
            if self.users[block] == 0:
                if self.content[block] is None:
                    self.free_list.insert(0, block)
                else:
                    self.free_list.append(block)
        return len(table)
