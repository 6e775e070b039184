"""The tables of the lesson on prefix caching, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ui.language import t
from ui.prefix_caching import Kind
from ui.prefix_caching_pictures import MEMORIES, Swept
from ui.units import share, significant, time
from validation.prefix_caching import Admission, Talk, TalkTurns

__all__ = [
    "admission_table",
    "kinds_table",
    "memory_table",
    "orders_table",
    "refusals_table",
    "routers_table",
    "turns_table",
]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(heads), " | ".join(["---", *["--:"] * (len(heads) - 1)])]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def turns_table(talk: Talk, found: TalkTurns) -> str:
    """Tokens of every turn, with and without the cache."""
    heads = [t(f"pfx.turns.head.{name}") for name in ("turn", "prompt", "found", "with", "share")]
    rows = [
        [str(k + 1), f"{prompt:,}", f"{hit:,}", f"**{rest:,}**", share(hit / prompt)]
        for k, (prompt, hit, rest) in enumerate(
            zip(found.prompt, found.found, found.computed, strict=True)
        )
    ]
    total = found.prompt.sum(), found.found.sum(), found.computed.sum()
    rows.append(
        [
            t("pfx.turns.head.all"),
            f"{total[0]:,}",
            f"{total[1]:,}",
            f"**{total[2]:,}**",
            share(total[1] / total[0]),
        ]
    )
    return _table(heads, rows)


def kinds_table(found: Sequence[Kind]) -> str:
    """Engines with the cache off and on."""
    names = ("engine", "p50", "p99", "hit", "computed", "again", "recomputed", "preemptions",
             "batch")  # fmt: skip
    rows = []
    for kind in found:
        numbers = kind.numbers
        batch = numbers["mean_batch_decode_requests"] + numbers["mean_batch_prefill_requests"]
        rows.append(
            [
                f"{t(f'policy.{kind.engine}')} · {t(f'pfx.cache.{kind.setting}')}",
                time(numbers["ttft_p50_s"]),
                time(numbers["ttft_p99_s"]),
                share(numbers["prefix_hit_share"]),
                f"{kind.computed_tokens:,.0f}",
                f"{numbers['cached_again_tokens']:,}",
                f"{numbers['recomputed_tokens']:,}",
                f"{numbers['preemptions']:,}",
                significant(batch),
            ]
        )
    return _table([t(f"pfx.head.{name}") for name in names], rows)


def memory_table(found: Sequence[Swept]) -> str:
    """What is open at a time for each pause, and the memory from which on nearly all is found."""
    names = ("pause", "open", "blocks", "enough")
    rows = []
    for one in found:
        best = max(one.shares)
        enough = next(
            blocks
            for blocks, found_share in zip(MEMORIES, one.shares, strict=True)
            if found_share >= 0.95 * best
        )
        rows.append(
            [
                f"{one.pause_s:g} {t('unit.s')}",
                f"{one.histories.conversations:,}",
                f"{one.histories.blocks:,}",
                f"{enough:,}",
            ]
        )
    return _table([t(f"pfx.memory.head.{name}") for name in names], rows)


def admission_table(one: Admission) -> str:
    """The arithmetic of one admission, beside one without a cache."""
    heads = [t(f"pfx.admit.head.{name}") for name in ("what", "without", "with")]
    n, idle = one.prompt_tokens, one.idle_blocks
    rest = f"{n:,} − {one.found_tokens:,} = {n - one.found_tokens:,}"
    rows = [
        [t("pfx.admit.whole"), f"{one.whole_blocks:,}", f"{one.whole_blocks:,}"],
        [t("pfx.admit.found"), "–", f"− {one.found_blocks:,}"],
        [t("pfx.admit.idle"), "–", f"+ {idle:,}"],
        [t("pfx.admit.need"), f"**{one.whole_blocks:,}**", f"**{one.needed_blocks:,}**"],
        [t("pfx.admit.free"), "", f"{one.free_blocks:,}"],
        [t("pfx.admit.tokens"), f"{n:,}", rest],
        [t("pfx.admit.given"), "", f"{one.tokens:,} / {one.budget_tokens:,}"],
    ]  # fmt: skip
    return _table(heads, rows)


def refusals_table(found: Sequence[tuple[str, dict[str, int], Kind]]) -> str:
    """How often the queue's head had to wait, with the cache off and on."""
    heads = [t(f"pfx.refuse.head.{name}") for name in ("cache", "blocks", "budget", "p99")]
    rows = [
        [
            t(f"pfx.cache.{setting}"),
            f"{counts['no_blocks']:,}",
            f"{counts['no_budget']:,}",
            time(kind.numbers["ttft_p99_s"]),
        ]
        for setting, counts, kind in found
    ]
    return _table(heads, rows)


def orders_table(found: Sequence[Kind]) -> str:
    """SGLang's two queue orders."""
    names = ("order", "p50", "p99", "longest", "hit", "computed")
    rows = [
        [
            f"`{kind.setting}`",
            time(kind.numbers["ttft_p50_s"]),
            time(kind.numbers["ttft_p99_s"]),
            time(kind.numbers["queue_p99_s"]),
            share(kind.numbers["prefix_hit_share"]),
            f"{kind.computed_tokens:,.0f}",
        ]
        for kind in found
    ]
    return _table([t(f"pfx.head.{name}") for name in names], rows)


def routers_table(found: Sequence[Kind], busiest: Sequence[float]) -> str:
    """Routers beside each other; ``busiest`` is the share of requests of the busiest engine."""
    names = ("router", "p50", "p99", "hit", "computed", "preemptions", "busiest")
    rows = [
        [
            t(f"choice.{kind.setting}"),
            time(kind.numbers["ttft_p50_s"]),
            time(kind.numbers["ttft_p99_s"]),
            share(kind.numbers["prefix_hit_share"]),
            f"{kind.computed_tokens:,.0f}",
            f"{kind.numbers['preemptions']:,}",
            share(most),
        ]
        for kind, most in zip(found, busiest, strict=True)
    ]
    return _table([t(f"pfx.head.{name}") for name in names], rows)
