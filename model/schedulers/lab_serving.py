"""Serving the lab's running list: at once if nothing is short, else one by one with victims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.schedulers.lab_victims import VICTIMS, Served, evict

if TYPE_CHECKING:
    from model.schedulers.base import Decision
    from model.schedulers.lab import Lab
    from model.schedulers.lab_budget import TokenBudget
    from model.state import EngineState


def serve(policy: Lab, state: EngineState, decision: Decision, budget: TokenBudget) -> int:
    """Give every running request its next token or piece of prompt; return how many had to go."""
    if not state.running or _serve_all(state, decision, budget):
        return 0
    return _serve_in_order(policy, state, decision, budget)


def _serve_all(state: EngineState, decision: Decision, budget: TokenBudget) -> bool:
    """Serve everyone if nothing is short; False, with nothing changed, if something is."""
    if state.decoding > budget.left:
        return False
    need = state.decode_demand()
    if need > state.free:
        return False
    chunks: list[tuple[int, int]] = []
    if state.prefilling:
        budget.left -= state.decoding
        fits = _plan_chunks(state, budget, chunks, need)
        if not fits:
            for request, tokens in chunks:
                budget.give_back(state.computed[request], tokens)
            budget.left += state.decoding
            return False
        for request, tokens in chunks:
            state.grow_chunk(request, tokens)
    else:
        budget.left -= state.decoding
    if state.decoding:
        decision.decodes = True
        state.take(need)
    decision.chunks = chunks
    return True


def _plan_chunks(
    state: EngineState, budget: TokenBudget, chunks: list[tuple[int, int]], need: int
) -> bool:
    """Spend the budget on the prompts; False if blocks, or tokens for a later decode, run short."""
    cap = state.prefill_token_cap
    for request in state.prefilling:
        start = state.computed[request]
        wanted = min(state.known[request] - start, cap)
        tokens = budget.room(start, wanted)
        if tokens < wanted and not state.prefills_are_last():
            return False
        if tokens:
            budget.spend(start, tokens)
            chunks.append((request, tokens))
            need += max(0, state.blocks_for(start + tokens) - state.held[request])
    return need <= state.free


def _serve_in_order(
    policy: Lab, state: EngineState, decision: Decision, budget: TokenBudget
) -> int:
    """Serve the running list one by one, preempting when blocks run out."""
    served: dict[int, Served] = {}
    victims = 0
    for request in list(state.running):
        if budget.left <= 0:
            break
        if request not in state.running:
            continue  # preempted for an earlier one
        plan = _plan(state, request, budget)
        if plan.tokens == 0:
            continue
        while plan.blocks > state.free:
            victim = VICTIMS[policy.victim](state, plan.blocks - state.free, served)
            _take_back(state, budget, victim, served.pop(victim, None))
            evict(policy, state, decision, victim, policy.victim, request)
            victims += 1
            if victim == request:
                break
        if request in state.running:
            served[request] = plan
            _give(state, budget, request, plan)
    decision.chunks = [(r, given.tokens) for r, given in served.items() if not given.decodes]
    decision.decodes = len(decision.chunks) < len(served)
    decision.skipped = [
        r for r in state.running if state.is_decoding(r) and r not in served
    ]
    return victims


def _plan(state: EngineState, request: int, budget: TokenBudget) -> Served:
    """What a running request wants now, as far as tokens allow."""
    if state.is_decoding(request):
        context = state.context(request)
        full = context % state.block_size == 0 and not state.policy.reserves
        return Served(context, 1, int(full), True)
    start = state.computed[request]
    tokens = budget.room(start, min(state.known[request] - start, state.prefill_token_cap))
    blocks = max(0, state.blocks_for(start + tokens) - state.held[request])
    return Served(start, tokens, blocks, False)


def _give(state: EngineState, budget: TokenBudget, request: int, plan: Served) -> None:
    if plan.decodes:
        state.take(plan.blocks)
        budget.left -= 1
    else:
        state.grow_chunk(request, plan.tokens)
        budget.spend(plan.start, plan.tokens)


def _take_back(state: EngineState, budget: TokenBudget, victim: int, given: Served | None) -> None:
    """A victim that was served before it was chosen gives back what it got."""
    if given is None:
        return
    state.take(-given.blocks)
    if given.decodes:
        budget.left += 1
    else:
        state.held[victim] -= given.blocks
        budget.give_back(given.start, given.tokens)
