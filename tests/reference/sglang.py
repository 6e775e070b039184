"""SGLang 0.5.23, written down step by step from its rules; see the model's file for the source.

Memory is pages, some in a tree of prefixes. Pages of the tree that no running request has locked
count as free; they are evicted when pages are needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from tests.reference.common import Decision, Engine, Request, blocks_for

CLIP = 4096
FULL_QUEUE = 128


class Node:
    def __init__(self, content: list, parent: Node | None):
        self.content = content
        self.parent = parent
        self.children: list[Node] = []
        self.users: set[Request] = set()
        self.last_used = 0


class Tree:
    """Sequences of contents; equal beginnings are stored once."""

    def __init__(self):
        self.root = Node([], None)
        self.time = 0

    def find(self, wanted: list) -> tuple[Node, int]:
        """Follow ``wanted`` as far as it goes, splitting the last node if it is left midway."""
        self.time += 1
        node, found = self.root, 0
        while True:
            following = [c for c in node.children if c.content[0:1] == wanted[found : found + 1]]
            if not following:
                return node, found
            child = following[0]
            child.last_used = self.time
            equal = 0
            while (
                equal < len(child.content)
                and found + equal < len(wanted)
                and child.content[equal] == wanted[found + equal]
            ):
                equal += 1
            found += equal
            if equal < len(child.content):
                return self.split(child, equal), found
            node = child

    def split(self, node: Node, at: int) -> Node:
        upper = Node(node.content[:at], node.parent)
        upper.last_used = self.time
        upper.users = set(node.users)
        node.parent.children[node.parent.children.index(node)] = upper
        upper.children = [node]
        node.content, node.parent = node.content[at:], upper
        return upper

    def add(self, wanted: list) -> tuple[Node, int]:
        """Store ``wanted``; where it ends, and how much of it had been there."""
        node, found = self.find(wanted)
        if found < len(wanted):
            self.time += 1
            leaf = Node(wanted[found:], node)
            leaf.last_used = self.time
            node.children.append(leaf)
            node = leaf
        return node, found

    def nodes(self) -> list[Node]:
        found, to_visit = [], [self.root]
        while to_visit:
            node = to_visit.pop()
            found += node.children
            to_visit += node.children
        return found

    def free_pages(self) -> int:
        return sum(len(node.content) for node in self.nodes() if not node.users)


def path(node: Node) -> list[Node]:
    """From the root to ``node``, without the root."""
    nodes = []
    while node.parent is not None:
        nodes.insert(0, node)
        node = node.parent
    return nodes


class Pages:
    """Who owns how many pages outside of the tree, the tree, and the empty ones."""

    def __init__(self, total: int, page: int, uses_tree: bool):
        self.total = total
        self.page = page
        self.uses_tree = uses_tree
        self.tree = Tree()
        self.end: dict[Request, Node] = {}  # where a running request's part of the tree ends
        self.own: dict[Request, int] = {}  # its pages outside of the tree
        self.empty = total

    @property
    def free(self) -> int:
        return self.empty + self.tree.free_pages()

    @property
    def used(self) -> int:
        return self.total - self.free

    def content(self, request: Request, tokens: int, size: int) -> list[Hashable]:
        """What the full pages of ``size`` tokens hold of the first ``tokens`` tokens."""
        names: list[Hashable] = []
        for i in range(tokens // size):
            of_group = request.prefix_group >= 0 and (i + 1) * size <= request.shared_prefix
            owner = ("group", request.prefix_group) if of_group else ("own", request.id)
            names.append((owner, i))
        return names

    def evict(self, wanted: int) -> None:
        """Give up leaves, the least recently used first, until ``wanted`` pages are empty."""
        while self.empty < wanted:
            leaves = [n for n in self.tree.nodes() if not n.users and not n.children]
            if not leaves:
                return
            oldest = min(leaves, key=lambda node: node.last_used)
            oldest.parent.children.remove(oldest)
            self.empty += len(oldest.content)

    def take(self, request: Request, pages: int) -> None:
        self.evict(pages)
        assert pages <= self.empty, "more pages handed out than there are"
        self.empty -= pages
        self.own[request] = self.own.get(request, 0) + pages

    def in_tree(self, request: Request) -> int:
        return sum(len(node.content) for node in path(self.end[request]))

    def lock(self, request: Request, node: Node) -> None:
        if request in self.end:
            for locked in path(self.end[request]):
                locked.users.discard(request)
        self.end[request] = node
        for locked in path(node):
            locked.users.add(request)

    def keep(self, request: Request) -> None:
        """Move the full pages of a request into the tree; none is kept twice."""
        if not self.uses_tree:
            return
        before = self.in_tree(request)
        content = self.content(request, request.computed, self.page)
        node, found = self.tree.add(content)
        of_prompt = self.content(request, request.prompt, self.page)
        if 0 < len(of_prompt) < len(content):
            self.tree.find(of_prompt)
            node, _ = self.tree.find(content)
        self.own[request] -= len(content) - before
        self.empty += found - before
        self.lock(request, node)

    def release(self, request: Request, *, keep: bool) -> None:
        if keep:
            self.keep(request)
        self.empty += self.own.pop(request, 0)
        self.lock(request, self.tree.root)
        del self.end[request]


class Sglang(Engine):
    """Steps of the scheduler without overlap."""

    def __init__(self, scheduler: Mapping):
        super().__init__(scheduler)
        self.page = self.block_size
        uses_tree = not scheduler.get("disable_radix_cache", False)
        self.blocks = Pages(scheduler["kv_blocks"], self.page, uses_tree)
        size = scheduler.get("chunked_prefill_size", 8192)
        self.chunk_size = size if size > 0 else None
        self.max_prefill_tokens = scheduler.get("max_prefill_tokens", 16384)
        self.order = scheduler.get("schedule_policy", "fcfs")
        self.mixed = scheduler.get("enable_mixed_chunk", False) and self.chunk_size is not None
        self.by_priority = scheduler.get("enable_priority_scheduling", False)
        self.retracts_by_priority = scheduler.get("retraction_policy", "length") == "priority"
        self.max_new_tokens = scheduler.get("max_new_tokens", 0)
        self.first_ratio = min(0.7 * scheduler.get("schedule_conservativeness", 1.0), 1.0)
        self.ratio = self.first_ratio
        self.decode_steps = 0
        self.batch_is_full = False
        self.chunked: Request | None = None
        self.extended: list[Request] = []
        self.lookups = 0

    # what the clock tells

    def idle(self) -> None:
        self.ratio, self.decode_steps = self.first_ratio, 0

    def never_fits(self, request: Request) -> bool:
        if self.chunk_size is not None and self.chunk_size < self.page:
            return True
        return request.prompt + request.output + self.page >= self.blocks.total * self.page

    def leave(self, request: Request) -> None:
        if request in self.running:
            self.running.remove(request)
            self.blocks.release(request, keep=True)
            self.batch_is_full = False
        else:
            self.waiting.remove(request)
        if request in self.extended:
            self.extended.remove(request)
        if request is self.chunked:
            self.chunked = None

    # numbers

    def max_new(self, request: Request) -> int:
        room = (self.blocks.total - 1) * self.page - 1 - request.prompt
        return max(request.output, min(self.max_new_tokens, room))

    def may_still_write(self, request: Request) -> int:
        return min(self.max_new(request) - request.emitted, CLIP)

    def current_ratio(self) -> float:
        if self.decode_steps == 0:
            return self.ratio
        last = self.first_ratio * 0.14
        return max(self.ratio - self.decode_steps * ((self.first_ratio - last) / 600), last)

    def decoding(self) -> list[Request]:
        return [request for request in self.running if request is not self.chunked]

    def pages_for_a_decode(self, requests: list[Request]) -> int:
        return sum(1 for request in requests if request.computed % self.page == 0)

    # a step

    def decide(self) -> Decision:
        decision = Decision()
        for request in self.extended:
            self.blocks.keep(request)
        self.extended = []
        if not self.decoding():
            self.batch_is_full = False
        if self.chunked is not None or (self.waiting and not self.batch_is_full):
            self.extend(decision)
        if not decision.scheduled and self.decoding():
            self.decode(decision)
        return decision

    def extend(self, decision: Decision) -> None:
        batch = self.decoding()
        if self.chunked is None and len(batch) >= self.max_num_seqs:
            self.batch_is_full = True
            return
        self.sort_waiting()
        mixed_in = len(batch) if self.mixed else 0
        promised = self.current_ratio() * sum(map(self.may_still_write, batch)) + mixed_in
        input_left = self.max_prefill_tokens - mixed_in
        chunk_left = None if self.chunk_size is None else self.chunk_size - mixed_in
        new: dict[Request, int] = {}
        unfinished = None

        def add(request: Request, tokens: int, *, is_last: bool) -> None:
            nonlocal promised, input_left, chunk_left, unfinished
            pages = blocks_for(tokens, self.page) * self.page
            promised += pages + self.page
            if is_last:
                promised += min(self.max_new(request), CLIP)
            else:
                unfinished = request
            input_left -= pages
            if chunk_left is not None:
                chunk_left = chunk_left - pages if is_last else 0
            new[request] = tokens

        def room() -> float:
            return self.blocks.free * self.page - promised

        if self.chunked is not None and chunk_left > 0:
            request = self.chunked
            limit = min(chunk_left, int(room())) if int(room()) > 0 else chunk_left
            has = self.blocks.own[request]
            if self.blocks.uses_tree:
                has += self.blocks.in_tree(request)
            there = (has + self.blocks.free) * self.page - request.computed
            tokens = min(limit, there, request.target - request.computed)
            if tokens > 0:
                add(request, tokens, is_last=request.computed + tokens == request.target)
            else:
                self.retract(request, decision)
        while self.waiting:
            head = self.waiting[0]
            budget_spent = input_left <= 0 or (chunk_left is not None and chunk_left <= 0)
            if budget_spent and room() > 0:
                break
            if len(self.running) >= self.max_num_seqs:
                self.batch_is_full = True
                break
            node, cached = self.blocks.tree.root, 0
            if self.blocks.uses_tree:
                wanted = self.blocks.content(head, head.known - 1, self.page)
                node, pages = self.blocks.tree.find(wanted)
                cached = pages * self.page
            unlocked = sum(len(n.content) for n in path(node) if not n.users) * self.page
            extend = head.known - cached
            if extend + self.may_still_write(head) + self.page >= room() - unlocked:
                self.batch_is_full = bool(self.running)
                break
            whole = blocks_for(extend, self.page) * self.page
            tokens = extend
            if chunk_left is None:
                if new and whole >= input_left:
                    break
            elif whole > chunk_left:
                tokens = chunk_left // self.page * self.page
                if tokens <= 0:
                    break
            self.waiting.pop(0)
            self.blocks.lock(head, node)
            self.blocks.own[head] = 0
            head.computed = cached
            head.target = head.known
            if cached:
                decision.cached[head] = cached
            self.running.append(head)
            add(head, tokens, is_last=tokens == extend)
            if room() <= 0:
                self.batch_is_full = True
                break

        if not new:
            return
        for request, tokens in new.items():
            has = blocks_for(request.computed, self.page)
            self.blocks.take(request, blocks_for(request.computed + tokens, self.page) - has)
        decision.scheduled.update(new)
        self.extended = list(new)
        if not batch or unfinished is not None:
            self.batch_is_full = False
        self.chunked = unfinished
        if mixed_in:
            need = self.pages_for_a_decode(batch)
            self.blocks.evict(need)
            if need <= self.blocks.empty:
                self.run_decodes(batch, decision)
                self.batch_is_full = False
                self.running = list(new) + [r for r in self.running if r not in new]

    def run_decodes(self, batch: list[Request], decision: Decision) -> None:
        for request in batch:
            if request.computed % self.page == 0:
                self.blocks.take(request, 1)
            decision.scheduled[request] = 1

    def decode(self, decision: Decision) -> None:
        batch = self.decoding()
        self.blocks.evict(self.pages_for_a_decode(batch))
        if self.pages_for_a_decode(batch) <= self.blocks.empty:
            self.decode_steps += 1
            self.run_decodes(batch, decision)
            return

        def worth(request: Request) -> tuple:
            priority = -request.priority if self.retracts_by_priority else 0
            return (priority, request.emitted, -request.prompt)

        keep = sorted(batch, key=worth, reverse=True)
        fits = False
        while len(keep) > 1 and not fits:
            self.retract(keep.pop(), decision)
            self.blocks.evict(blocks_for(20 * len(keep), self.page))
            self.blocks.evict(self.pages_for_a_decode(keep))
            fits = self.pages_for_a_decode(keep) <= self.blocks.empty
        if not fits and self.chunked is not None:
            self.retract(self.chunked, decision)
        written = sum(request.emitted for request in keep)
        asked = sum(self.max_new(request) for request in keep)
        self.ratio = min(1.0, (written + 20 * len(keep)) / (asked + 1))
        self.decode_steps = 0
        self.batch_is_full = False
        self.run_decodes([request for request in batch if request in keep], decision)

    def retract(self, request: Request, decision: Decision) -> None:
        self.running.remove(request)
        self.blocks.release(request, keep=False)
        if request is self.chunked:
            self.chunked = None
        request.computed = 0
        self.waiting.append(request)
        decision.preempted.append(request)

    # the queue

    def sort_waiting(self) -> None:
        looks_at_tree = self.order == "lpm" and self.blocks.uses_tree
        if looks_at_tree and len(self.waiting) <= FULL_QUEUE:
            self.sort_by_prefix()
            return
        if self.order == "lof":
            if self.by_priority:
                self.waiting.sort(key=lambda r: (r.priority, -self.max_new(r)))
            else:
                self.waiting.sort(key=lambda r: -self.max_new(r))
        elif self.by_priority and not looks_at_tree:
            self.waiting.sort(key=lambda r: r.priority)
        if self.waiting and self.blocks.uses_tree:
            if self.lookups % 32 == 0:
                for request in reversed(self.waiting[:FULL_QUEUE]):
                    self.blocks.tree.find(self.blocks.content(request, request.known, self.page))
            self.lookups += 1

    def sort_by_prefix(self) -> None:
        """Longest match first; a request whose beginning is new, but that of an earlier waiting
        one too, goes behind all others.
        """
        seen: list[list] = []
        place: dict[Request, float] = {}
        for request in self.waiting:
            pages = self.blocks.content(request, request.known, self.page)
            found = self.blocks.tree.find(pages)[1] * self.page
            place[request] = -min(found, request.known - 1)
            if found <= 32:
                tokens = self.blocks.content(request, request.known, 1)
                if any(other[:32] == tokens[:32] and len(tokens) >= 32 for other in seen):
                    place[request] = float("inf")
                else:
                    seen.append(tokens)
        self.waiting.sort(key=place.get)
