"""Prefix caching as SGLang does it: a radix tree of pages, evicted leaf by leaf, oldest first.

A node stands for a run of pages of one request; requests with equal beginnings share the nodes from
the root on, and a node is split where they part. A run is a request and two page numbers, so that a
prompt of any length costs one node, and where two requests part is found by bisection: the pages of
two requests are equal from the first one on or not at all.

What a request computes is put into the tree after the iteration (:meth:`RadixCache.settle`), its
outputs when it ends. Nodes on the path of a running request are locked; all others count as free
memory, and the least recently used leaf is given up whole when pages run short.

Source: SGLang 0.5.23 `mem_cache/radix_cache.py`, `mem_cache/common.py`. The tree evicts what an
iteration takes; the engine's paged allocator may evict up to a page a request earlier.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from itertools import count


class Node:
    """Pages `start` to `end` of whoever shares them; `owner` is one such request."""

    __slots__ = ("children", "end", "locks", "owner", "parent", "start", "used")

    def __init__(self, owner: int, start: int, end: int, parent: Node | None, used: int) -> None:
        self.owner = owner
        self.start = start
        self.end = end
        self.parent = parent
        self.used = used
        self.locks = 0
        self.children: dict[Hashable, Node] = {}


class RadixTree:
    """The tree alone. `content_key(request, i)` names the content of page i of a request.

    Equal keys mean equal tokens from the first one on.
    """

    __slots__ = ("_clock", "_content_key", "root")

    def __init__(self, content_key: Callable[[int, int], Hashable]) -> None:
        self._content_key = content_key
        self._clock = count(1)
        self.root = Node(-1, 0, 0, None, 0)

    def walk(self, request: int, pages: int) -> Node:
        """The node at which the first `pages` pages of a request stop being found.

        Everything on the way counts as used; a node that is found in part is split.
        """
        now = next(self._clock)
        key = self._content_key
        node = self.root
        while node.end < pages:
            child = node.children.get(key(request, node.end))
            if child is None:
                break
            child.used = now
            common = self._common(child, request, pages)
            if common < child.end:
                return self._split(child, common, now)
            node = child
        return node

    def insert(self, request: int, pages: int) -> tuple[Node, int]:
        """Put the first `pages` pages in; the last node, and how many had been there already."""
        node = self.walk(request, pages)
        found = node.end
        if found < pages:
            leaf = Node(request, found, pages, node, next(self._clock))
            node.children[self._content_key(request, found)] = leaf
            node = leaf
        return node, found

    def remove(self, leaf: Node) -> None:
        """Take a leaf out."""
        del leaf.parent.children[self._content_key(leaf.owner, leaf.start)]

    def _common(self, node: Node, request: int, pages: int) -> int:
        """The page at which a request parts from a node whose first page it shares."""
        low, high = node.start + 1, min(node.end, pages)
        owner, key = node.owner, self._content_key
        if owner == request:
            return high
        while low < high:
            middle = (low + high + 1) // 2
            if key(owner, middle - 1) == key(request, middle - 1):
                low = middle
            else:
                high = middle - 1
        return low

    def _split(self, child: Node, at: int, now: int) -> Node:
        upper = Node(child.owner, child.start, at, child.parent, now)
        upper.locks = child.locks
        upper.parent.children[self._content_key(child.owner, child.start)] = upper
        upper.children[self._content_key(child.owner, at)] = child
        child.start, child.parent = at, upper
        return upper


class RadixCache:
    """Content of the KV pages of one engine.

    `prompt_tokens` are those of all requests; `token_key` names the content of single tokens.
    """

    __slots__ = (
        "_block_size",
        "_empty",
        "_evictable",
        "_held",
        "_leaves",
        "_not_kept",
        "_order",
        "_pending",
        "_prompt",
        "_tree",
        "token_key",
    )

    def __init__(
        self,
        blocks: int,
        block_size: int,
        content_key: Callable[[int, int], Hashable],
        prompt_tokens: Sequence[int],
        token_key: Callable[[int, int], Hashable],
    ) -> None:
        self._block_size = block_size
        self._tree = RadixTree(content_key)
        self._prompt = prompt_tokens
        self.token_key = token_key
        self._empty = blocks  # pages that hold nothing
        self._evictable = 0  # pages of the tree that nobody holds
        self._held: dict[int, Node] = {}  # running request -> last locked node
        self._pending: dict[int, int] = {}  # request -> tokens it will have computed
        self._not_kept: set[int] = set()  # requests whose pages must not go into the tree
        self._leaves: list[tuple[int, int, Node]] = []  # heap by last use; entries may be stale
        self._order = count()

    def take(self, blocks: int) -> None:
        """Take pages, evicting as many leaves as are needed for them."""
        self.make_room(blocks)
        self._empty -= blocks

    def make_room(self, blocks: int) -> None:
        """Evict the least recently used leaves until `blocks` pages are empty, or none is left."""
        leaves = self._leaves
        while self._empty < blocks and leaves:
            used, _, node = heapq.heappop(leaves)
            if node.locks or node.children or node.parent is None:
                continue
            if used != node.used:
                self._offer(node)
                continue
            self._tree.remove(node)
            parent, node.parent = node.parent, None
            self._empty += node.end - node.start
            self._evictable -= node.end - node.start
            self._offer(parent)

    def lookup(self, request: int, known_tokens: int) -> tuple[Node, int]:
        """Where the cached beginning of a request ends, and how many of its pages nobody holds.

        The last known token is always computed again.
        """
        node = self._tree.walk(request, (known_tokens - 1) // self._block_size)
        unused, upper = 0, node
        while upper.locks == 0 and upper.parent is not None:
            unused += upper.end - upper.start
            upper = upper.parent
        return node, unused

    def touch(self, request: int, known_tokens: int) -> Node:
        """Count the cached beginning of a waiting request as used; the node where it ends."""
        return self._tree.walk(request, known_tokens // self._block_size)

    def adopt(self, request: int, node: Node) -> None:
        """Let a request hold what :meth:`lookup` found."""
        self._lock(node)
        self._held[request] = node

    def fill(self, request: int, computed_tokens: int) -> None:
        """A request will have computed so much when the iteration is over."""
        self._pending[request] = computed_tokens

    def settle(self) -> int:
        """The iteration is over: put into the tree what it computed; pages that became free.

        A page becomes free where another request had put the same content in first.
        """
        before = self._empty + self._evictable
        for request, tokens in self._pending.items():
            self._keep(request, tokens)
        self._pending.clear()
        return self._empty + self._evictable - before

    def forget(self, request: int) -> None:
        """The next release of this request gives its own pages back instead of keeping them."""
        self._not_kept.add(request)

    def release(self, request: int, computed_tokens: int, held_blocks: int) -> int:
        """Take back the pages of a request that leaves; how many became free or evictable."""
        before = self._empty + self._evictable
        self._pending.pop(request, None)
        if request in self._not_kept:
            self._not_kept.remove(request)
        else:
            self._keep(request, computed_tokens)
        node = self._held.pop(request)
        self._empty += held_blocks - node.end
        self._unlock(node)
        return self._empty + self._evictable - before

    def _keep(self, request: int, computed_tokens: int) -> None:
        """Put the full pages of a running request into the tree and lock them there.

        The leaf is split where the prompt ends, so that outputs can be evicted without it.
        """
        pages = computed_tokens // self._block_size
        tree, old = self._tree, self._held[request]
        node, found = tree.insert(request, pages)
        prompt_pages = self._prompt[request] // self._block_size
        if 0 < prompt_pages < pages:
            tree.walk(request, prompt_pages)
            node = tree.walk(request, pages)
        self._empty += found - old.end
        self._evictable += pages - found
        self._lock(node)
        self._unlock(old)
        self._held[request] = node

    def _lock(self, node: Node) -> None:
        while node.parent is not None:
            if node.locks == 0:
                self._evictable -= node.end - node.start
            node.locks += 1
            node = node.parent

    def _unlock(self, node: Node) -> None:
        leaf = node
        while node.parent is not None:
            node.locks -= 1
            if node.locks == 0:
                self._evictable += node.end - node.start
            node = node.parent
        self._offer(leaf)

    def _offer(self, node: Node) -> None:
        """Make a node known to the eviction if it is a leaf that nobody holds."""
        if node.parent is not None and node.locks == 0 and not node.children:
            heapq.heappush(self._leaves, (node.used, next(self._order), node))
