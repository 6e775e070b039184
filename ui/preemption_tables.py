"""The tables and cards of the lesson on preemption, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from formulas import get
from model import catalogue
from ui.language import sentences, t
from ui.preemption import seconds
from ui.reference import marks
from ui.units import signed, significant
from validation.preemption import CASES, Borders, Costs
from validation.preemption_runs import Eviction
from validation.preemption_victims import RULES, Bill, Running, bill, blocks_of, victims

__all__ = [
    "LINKS",
    "cases_table",
    "evictions_table",
    "link_bytes_per_s",
    "link_name",
    "rules_table",
    "running_table",
    "tokens_table",
]

LINKS = (
    ("a100-80g-sxm", "host"), ("h100-sxm", "host"), ("a800-80g-sxm", "gpu"),
    ("a100-80g-sxm", "gpu"),
)  # fmt: skip
"""Links of the catalogue over which a checkpoint may go: (device, kind)."""
LINK_MODELS = ("llama-2-7b", "llama-3-8b", "llama-3-70b", "gpt-3-175b", "deepseek-v3")


def cases_table(found: Borders) -> str:
    """The four cases, the present one marked."""
    cells = {
        case: f"**▶ {t(f'pre.case.{case}')}**" if case == found.case else t(f"pre.case.{case}")
        for case in CASES
    }
    heads = ["", t("pre.case.fs_small"), t("pre.case.fs_large")]
    return marks.table(
        heads,
        (
            (f"**{t('pre.case.slope_small')}**", cells["swap_always"], cells["fixed"]),
            (f"**{t('pre.case.slope_large')}**", cells["window"], cells["long"]),
        ),
    )


def evictions_table(recomputed: Eviction, swapped: Eviction) -> str:
    """The formula beside the simulated eviction, and why they differ."""
    heads = [t(f"pre.run.{name}") for name in ("what", "formula", "event", "run", "gap", "why")]
    rows = [_eviction_row(recomputed), _eviction_row(swapped), _end_row(recomputed, swapped)]
    return marks.table(heads, rows, numbers=(1, 2, 3, 4))


def _eviction_row(one: Eviction) -> list[str]:
    formula_id = {"recompute": "F23a", "swap": "F24"}[one.mode]
    return [
        f"**{formula_id}** {t(f'pre.run.{one.mode}')}",
        seconds(one.formula_s),
        seconds(one.event_s),
        f"**{seconds(one.iterations_s)}**",
        signed(one.difference, 2),
        sentences(*(t(f"pre.reason.{reason}") for reason in one.reasons)),
    ]


def _end_row(recomputed: Eviction, swapped: Eviction) -> list[str]:
    """How much later the recomputed request ends than the swapped one."""
    formula = recomputed.formula_s - swapped.formula_s
    simulated = recomputed.end_s - swapped.end_s
    return [
        t("pre.run.end"),
        seconds(formula),
        seconds(recomputed.event_s - swapped.event_s),
        f"**{seconds(simulated)}**",
        signed(simulated / formula - 1, 2),
        t("pre.reason.end"),
    ]


def running_table(running: Sequence[Running], costs: Costs, decode_s: float) -> str:
    """Who runs: what an engine knows, what it does not, and what evicting each would bring."""
    names = ("name", "prompt", "generated", "arrived", "admitted", "priority", "blocks", "left",
             "recompute", "benefit")  # fmt: skip
    rows = []
    for request in running:
        one = bill((request,), 0, costs, decode_s)
        rows.append(
            [
                f"**{request.name}**",
                f"{request.prompt_tokens:,}",
                f"{request.generated_tokens:,}",
                str(request.arrived),
                str(request.admitted),
                str(request.priority),
                f"**{blocks_of(request, costs.block_size):,}**",
                f":gray[{request.left_tokens:,}]",
                seconds(one.recompute_s),
                significant(one.block_seconds_per_flop * 1e12),
            ]
        )
    heads = [t(f"pre.running.{name}") for name in names]
    return marks.table(heads, rows, numbers=range(1, len(heads)))


def rules_table(
    running: Sequence[Running],
    chosen: Sequence[Running],
    blocks: int,
    costs: Costs,
    decode_s: float,
) -> str:
    """What the learner and each engine would do for the blocks needed."""
    names = ("rule", "victims", "freed", "spare", "recompute", "benefit", "order")
    heads = [t(f"pre.rules.{name}") for name in names]
    rows = [_rule_row(t("pre.rule.you"), chosen, bill(chosen, blocks, costs, decode_s), "")]
    for rule in RULES:
        gone = victims(rule, running, blocks, costs)
        found = bill(gone, blocks, costs, decode_s)
        rows.append(_rule_row(t(f"pre.rule.{rule}"), gone, found, t(f"pre.rule.{rule}.order")))
    return marks.table(heads, rows, numbers=(2, 3, 4, 5))


def _rule_row(name: str, gone: Sequence[Running], found: Bill, order: str) -> list[str]:
    spare = f"{found.spare_blocks:,}" if found.spare_blocks >= 0 else t("pre.rules.too_few")
    return [
        f"**{name}**",
        " ".join(request.name for request in gone) or "–",
        f"{found.freed_blocks:,}",
        spare,
        seconds(found.recompute_s) if gone else "–",
        significant(found.block_seconds_per_flop * 1e12),
        order,
    ]


def link_bytes_per_s(device_id: str, kind: str) -> float:
    """One direction of a link of the catalogue, as reached where that is known."""
    device = catalogue.device(device_id)
    return device.host_link_effective_bytes_per_s if kind == "host" else device.gpu_link_bytes_per_s


def link_name(device_id: str, kind: str) -> str:
    """For people."""
    return t(f"pre.link.{kind}", device=catalogue.device(device_id).name,
             link=significant(link_bytes_per_s(device_id, kind) / 1e9))  # fmt: skip


def tokens_table(deadline_s: float) -> str:
    """Tokens that get through each link within the deadline (F40)."""
    formula = get("F40")
    rows = []
    for link in LINKS:
        row = [link_name(*link)]
        for model_id in LINK_MODELS:
            given = {
                "kappa": catalogue.model(model_id).kv_bytes_per_token(),
                "g": 1.0,
                "beta_link": link_bytes_per_s(*link),
                "t_dead": deadline_s,
            }
            row.append(f"{int(formula.evaluate(given)):,}")
        rows.append(row)
    heads = [t("pre.link"), *(catalogue.model(name).name for name in LINK_MODELS)]
    return marks.table(heads, rows, numbers=range(1, len(heads)))
