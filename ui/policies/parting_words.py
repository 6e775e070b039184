"""Where two policies part, in the learner's language: what each did, and why, with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from model.metrics import tpot_s, ttft_s
from model.parting import Act, Memory, Parting, Refusal, Side
from model.result import SimulationResult
from ui.language import as_text, t
from ui.units import duration

__all__ = ["fate", "headline", "never", "side_sentences"]

MOST_NAMED = 4
MOST_ACTS = 4
_MOVED = ("reject", "preempt", "swap_out", "swap_in")


def headline(found: Parting, names: Sequence[str], n_engines: int) -> str:
    """How long both decided alike, and when they parted."""
    where = t("pol.part.engine", n=found.engine_id) if n_engines > 1 else ""
    return t(
        "pol.part.alike" if found.iteration else "pol.part.at_once",
        one=names[0],
        other=names[1],
        n=found.iteration,
        clock=" ".join(duration(found.time_s)),
        where=where,
    )


def never(names: Sequence[str], memory: Memory | None) -> str:
    """Both runs decide alike to the end; memory may differ all the same."""
    said = t("pol.part.never", one=names[0], other=names[1])
    if memory is None:
        return f"{said} {t('pol.part.same_memory')}"
    more = t(
        "pol.part.other_memory",
        one=names[0],
        other=names[1],
        n=memory.iteration,
        one_blocks=memory.one_blocks,
        other_blocks=memory.other_blocks,
    )
    return f"{said} {more}"


def side_sentences(side: Side, result: SimulationResult, kind: str) -> list[str]:
    """What one side did: its totals, then each act in which it differs, as Markdown."""
    said = [_totals(side, result)]
    said += [_act(act, side, result) for act in side.acts[:MOST_ACTS]]
    left = sum(len(act.requests) for act in side.acts[MOST_ACTS:])
    if left:
        said.append(t("pol.act.more", n=left))
    if kind == "padding":
        said.append(t("pol.act.padding", n=side.padding_tokens))
    elif kind == "time":
        said.append(t("pol.act.time", clock=" ".join(duration(side.start_s))))
    return said


def fate(found: Parting, names: Sequence[str], results: Sequence[SimulationResult]) -> str:
    """TTFT and TPOT, on both sides, of the request that tells them apart; empty without."""
    acts = (act for act in (*found.one.acts, *found.other.acts) if act.kind == found.kind)
    if (telling := next(acts, None)) is None:
        return ""
    row = telling.requests[0]
    halves = [_fate(row, name, result) for name, result in zip(names, results, strict=True)]
    return t("pol.part.fate", name=_names((row,), results[0]), one=halves[0], other=halves[1])


def _fate(row: int, name: str, result: SimulationResult) -> str:
    ttft, tpot = (float(latency(result.requests)[row]) for latency in (ttft_s, tpot_s))
    if isnan(ttft):
        return t("pol.fate.none", name=name)
    if isnan(tpot):
        return t("pol.fate.first", name=name, ttft=" ".join(duration(ttft)))
    ttft_words, tpot_words = (" ".join(duration(seconds)) for seconds in (ttft, tpot))
    return t("pol.fate.both", name=name, ttft=ttft_words, tpot=tpot_words)


def _totals(side: Side, result: SimulationResult) -> str:
    if not side.tokens:
        return t("pol.part.idle")
    key = "pol.part.totals" if side.budget is None else "pol.part.totals_budget"
    return t(
        key,
        decodes=side.decodes,
        prefill=f"{side.prefill_tokens:,}",
        tokens=f"{side.tokens:,}",
        budget=f"{side.budget or 0:,}",
        blocks=f"{side.blocks_used:,}",
        of=f"{result.kv_blocks:,}",
        took=" ".join(duration(side.end_s - side.start_s)),
    )


def _act(act: Act, side: Side, result: SimulationResult) -> str:
    numbers = {
        "names": _names(act.requests, result),
        "n": len(act.requests),
        "tokens": f"{act.tokens:,}",
        "needed": f"{act.blocks_needed:,}",
        "free": f"{act.blocks_free:,}",
        "budget_left": f"{act.tokens_free:,}",
    }
    if act.kind in _MOVED:
        for_whom = ""
        if act.other >= 0 and act.other != act.requests[0]:
            for_whom = t("pol.act.for", name=_names((act.other,), result))
        why = t("pol.act.why", reason=t(f"reason.{act.reason}")) if act.reason != "none" else ""
        return t(f"pol.act.{act.kind}", **numbers) + for_whom + why
    if act.kind in ("admit", "resume"):
        prompt = int(result.requests["prompt_tokens"][act.requests[0]])
        known = prompt - act.cached if act.kind == "admit" else 0
        said = t(f"pol.act.{act.kind}", **numbers)
        if known > act.tokens:
            said += t("pol.act.part_of", prompt=f"{prompt:,}")
        if act.cached:
            said += t("pol.act.cached", n=f"{act.cached:,}")
        if act.tokens_free >= 0:
            said += t("pol.act.budget", **numbers)
        reserves = getattr(result.scenario.policy, "reserves", False)
        return said + t("pol.act.reserves" if reserves else "pol.act.blocks", **numbers)
    if act.kind == "stall":
        prompts_only = side.prefills > 0 and side.decodes == 0
        return t("pol.act.stall", **numbers) + t(
            "pol.act.prompts_only" if prompts_only else "pol.act.nothing_left"
        )
    if act.kind == "wait":
        return t("pol.act.wait", **numbers) + _refused(act.refusal, act.requests, result)
    return t(f"pol.act.{act.kind}", **numbers)


def _refused(refusal: Refusal | None, waiting: Sequence[int], result: SimulationResult) -> str:
    if refusal is None:
        return t("pol.refused.unknown")
    name = _names((refusal.request,), result)
    said = ""
    if refusal.request not in waiting:
        said = t("pol.refused.behind", name=name)
    elif len(waiting) > 1:
        said = t("pol.refused.head", name=name)
    numbers = {
        "needed": f"{refusal.blocks_needed:,}",
        "free": f"{refusal.blocks_free:,}",
        "tokens": f"{refusal.tokens:,}",
        "left": f"{refusal.tokens_free:,}",
        "iteration": refusal.iteration,
    }
    if refusal.reason == "no_blocks":
        kept_back = refusal.blocks_needed <= refusal.blocks_free
        return said + t(f"pol.refused.{'watermark' if kept_back else 'no_blocks'}", **numbers)
    if refusal.reason == "no_budget" and refusal.tokens_free > 0:
        return said + t("pol.refused.no_budget", **numbers)
    return said + t("pol.act.why", reason=t(f"reason.{refusal.reason}"))


def _names(requests: Sequence[int], result: SimulationResult) -> str:
    """Requests by name as the film writes them, the first few of many."""
    ids = result.inputs.request_id
    listed = t("list.comma").join(_label(ids[row]) for row in requests[:MOST_NAMED])
    left = len(requests) - MOST_NAMED
    return t("pol.names.more", names=listed, n=left) if left > 0 else listed


def _label(name: str) -> str:
    """As the film writes it."""
    return f"r{name}" if name.isdigit() else as_text(name)
