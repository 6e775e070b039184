"""Prefill engines hand requests over to decode engines, with their KV (DistServe, Splitwise).

1. A request is prefilled, and emits its first token, on a prefill engine. Its KV stays in that
   engine's memory, which is the buffer, until it has been sent.
2. At the start of each of its steps the decode engine fetches what waits for it, first come first
   served: it needs a free place (``max_num_seqs``, those on the way counted) and free blocks for
   the prompt and one token, and nobody of its own may wait there after a preemption.
3. The blocks are taken when the transfer is asked for. A prefill engine's link sends one request
   at a time; what is sent during the prefill, layer by layer, does not occupy it here.
4. When the last byte is there the request decodes, under the policy of the scenario: a decode
   engine that runs out of blocks preempts as it always does, and computes the prompt again itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.cluster import Cluster, Link
from model.events import EVENT
from model.routers import Ledger
from model.state import EngineState

if TYPE_CHECKING:
    from model.engine import Engine
    from model.requests import Requests


class Outbox:
    """Requests whose prefill has ended on an engine and whose KV still lies in its memory."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        emitted_here = [prompt + 1 for prompt in state.prompt]
        self._goes_on = [
            last > here for last, here in zip(state.last_token, emitted_here, strict=True)
        ]
        state.last_token = emitted_here
        self.kept: set[int] = set()
        self.ended: list[tuple[float, int]] = []  # prefills since the kernel last looked

    def take(self, request: int) -> bool:
        """Take a request that has its first token out of the batch, unless that was its last."""
        if not self._goes_on[request]:
            return False
        state = self._state
        del state.running[request]
        held = state.held[request]
        state.log.add(
            state.clock_s,
            EVENT["hand_over"],
            state.iteration - 1,
            request,
            0,
            held,
            state.free,
            state.prompt[request],
        )
        self.kept.add(request)
        self.ended.append((state.clock_s, request))
        return True

    def release(self, request: int, time_s: float) -> None:
        """The KV has been sent, or is not needed any more."""
        state = self._state
        state.log.add(
            time_s,
            EVENT["kv_sent"],
            state.iteration,
            request,
            0,
            state.held[request],
            state.free,
            state.prompt[request],
        )
        self.kept.remove(request)
        state.release(request)


class Inbox:
    """Requests that wait to be fetched by a decode engine, and those on their way to it."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self.waiting: dict[int, None] = {}
        self.coming: dict[int, int] = {}  # request -> blocks
        self.fetched: list[tuple[float, int]] = []  # since the kernel last looked

    def fetch(self) -> bool:
        """Ask for as many of the waiting requests as there is room for; was there any?"""
        state, policy = self._state, self._state.policy
        if state.waiting or state.swapped:
            return False
        before = len(self.coming)
        while self.waiting and len(state.running) + len(self.coming) < policy.max_num_seqs:
            request = next(iter(self.waiting))
            prompt = state.prompt[request]
            if policy.reserves:
                blocks = need = policy.blocks_for_life(state, request)
            else:
                blocks, need = state.blocks_for(prompt), state.blocks_for(prompt + 1)
            if need > state.free:
                break
            del self.waiting[request]
            state.log.add(
                state.clock_s,
                EVENT["transfer_start"],
                state.iteration,
                request,
                0,
                blocks,
                state.free,
                prompt,
            )
            if state.cache is not None:  # it brings its own KV: nothing is looked up
                state.cache.adopt(request, state.cache.lookup(request, 1)[0])
            state.take(blocks)
            self.coming[request] = blocks
            self.fetched.append((state.clock_s, request))
        return len(self.coming) > before

    def join(self, request: int, time_s: float) -> None:
        """The KV of a request is there: from the next decision on it decodes."""
        state = self._state
        blocks = self.coming.pop(request)
        prompt = state.prompt[request]
        state.log.add(
            time_s,
            EVENT["transfer_end"],
            state.iteration,
            request,
            0,
            blocks,
            state.free,
            prompt,
        )
        state.held[request] = blocks
        state.computed[request] = prompt
        state.known[request] = prompt + 1
        state.running[request] = None
        if state.cache is not None:
            state.cache.fill(request, prompt)
        state.start_decoding(request)

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def drop(self, request: int) -> None:
        """A request will not come: its client has given up."""
        if request in self.waiting:
            del self.waiting[request]
        else:
            state = self._state
            state.held[request] = self.coming.pop(request)
            state.release(request)


class Pools:
    """Which engines a request goes to, and the links between them."""

    def __init__(
        self, engines: list[Engine], requests: Requests, cluster: Cluster, link: Link
    ) -> None:
        n, first = len(requests), cluster.prefill_engines
        self.engines = engines
        self._prefill, self._decode = range(first), range(first, len(engines))
        for engine in self._decode:
            engines[engine].state.inbox = Inbox(engines[engine].state)
        for engine in self._prefill:
            engines[engine].state.outbox = Outbox(engines[engine].state)
        self._splitwise = cluster.dispatch == "splitwise"
        self._link = link
        self._link_free_s = [0.0] * first
        self._prefills = Ledger(self._prefill, requests.prompt_tokens.tolist())
        self._decodes = Ledger(self._decode, requests.output_tokens.tolist())
        self.prefill_engine = [-1] * n
        self._prefilling: set[int] = set()
        self.decode_engine = [-1] * n
        self.prefill_end_s: dict[int, float] = {}  # of requests that are neither here nor there
        self.transfer_start_s = [float("nan")] * n
        self.transfer_end_s = [float("nan")] * n
        self.bytes_per_token = link.bytes_per_token

    def route(self, request: int) -> int:
        """The prefill engine of an arriving request (and with "splitwise" its decode engine)."""
        if self._splitwise:
            engine = self._prefills.fewest_tokens()
            self._choose_decode(request, self._decodes.fewest_tokens())
        else:
            engine = self._prefills.fewest_requests()
        self._prefills.add(request, engine)
        self.prefill_engine[request] = engine
        self._prefilling.add(request)
        return engine

    @property
    def any_decode_state(self) -> EngineState:
        """Of a decode engine: what one of them can never take, none can."""
        return self.engines[self._decode[0]].state

    def prefilled(self, request: int, time_s: float) -> None:
        """A prefill has ended: the request waits to be fetched by its decode engine."""
        self._end_prefill(request)
        if not self._splitwise:
            self._choose_decode(request, self._decodes.fewest_requests())
        self.prefill_end_s[request] = time_s
        engine = self.engines[self.decode_engine[request]]
        engine.wait_until(time_s)
        engine.state.inbox.waiting[request] = None

    def start(self, request: int, time_s: float) -> float:
        """A decode engine asks for a request at `time_s`; when its last byte is there."""
        sender = self.prefill_engine[request]
        state = self.engines[sender].state
        prefill_s = self.prefill_end_s[request] - state.admitted_s[request]
        start_s = max(time_s, self._link_free_s[sender])
        end_s = start_s + self._link.transfer_s(state.prompt[request], prefill_s)
        self._link_free_s[sender] = end_s
        self.transfer_start_s[request], self.transfer_end_s[request] = start_s, end_s
        return end_s

    def arrived(self, request: int, time_s: float) -> None:
        """The last byte is there: the decode engine has the request from now on."""
        self._let_go(request, time_s)
        engine = self.decode_engine[request]
        self.engines[engine].wait_until(time_s)
        self.engines[engine].state.inbox.join(request, time_s)

    def cancel(self, request: int, time_s: float) -> bool:
        """Take a request out that is between the engines; False if it is not.

        One whose prefill is in its last iteration leaves when that ends, by another call.
        """
        if request not in self.prefill_end_s:
            return request in self.engines[self.prefill_engine[request]].state.outbox.kept
        sender = self.engines[self.prefill_engine[request]]
        receiver = self.engines[self.decode_engine[request]]
        receiver.wait_until(time_s)
        receiver.state.inbox.drop(request)
        self._let_go(request, time_s)
        sender.state.cancel_outside(request, time_s)
        return True

    def ended(self, request: int) -> None:
        """A request has finished, was refused or cancelled, wherever it was."""
        self._end_prefill(request)
        if self.decode_engine[request] >= 0:
            self._decodes.remove(request, self.decode_engine[request])

    def _end_prefill(self, request: int) -> None:
        if request in self._prefilling:
            self._prefilling.remove(request)
            self._prefills.remove(request, self.prefill_engine[request])

    def _choose_decode(self, request: int, engine: int) -> None:
        self._decodes.add(request, engine)
        self.decode_engine[request] = engine

    def _let_go(self, request: int, time_s: float) -> None:
        sender = self.engines[self.prefill_engine[request]]
        sender.wait_until(time_s)
        sender.state.outbox.release(request, time_s)
        del self.prefill_end_s[request]
