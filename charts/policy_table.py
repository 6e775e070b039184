"""Several runs side by side as an HTML table: one column a policy, one row a number.

The best and the worst of a row carry a sign and a word for screen readers, not only a color. A row
has no signs where neither direction is better; and a number that several share as it is shown is
neither best nor worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from charts.numbers import shown, significant
from charts.palette import COLORS
from model.metrics import METRICS

__all__ = ["MARKS", "Head", "Row", "marks", "table"]

MARKS = {"best": "▲", "worst": "▽"}
_BAR_PX = 60  # of the page's own bar, below which the heads stay in sight

Translator = Callable[..., str]


class Head(NamedTuple):
    """A policy: its name, a quieter line under it, and whether the panel has chosen it."""

    name: str
    more: str = ""
    is_panel: bool = False


class Row(NamedTuple):
    """A number of each policy; ``metric`` is the key of METRICS that says how to read it."""

    group: str
    metric: str
    label: str
    help: str
    values: tuple[float, ...]


def marks(values: Sequence[float], better: str) -> tuple[str, ...]:
    """ "best", "worst" or "" of each value, ``better`` as in METRICS; nan takes no part.

    Values that agree to the three digits that are shown share a place, and a place that is shared
    has no mark.
    """
    shown_as = [significant(value) for value in values]
    defined = [value for value in values if not math.isnan(value)]
    if not better or len({significant(value) for value in defined}) < 2:
        return ("",) * len(values)
    ends = (max, min) if better == "higher" else (min, max)
    found = [""] * len(values)
    for name, end in zip(MARKS, ends, strict=True):
        here = [i for i, text in enumerate(shown_as) if text == significant(end(defined))]
        if len(here) == 1:
            found[here[0]] = name
    return tuple(found)


def table(heads: Sequence[Head], rows: Sequence[Row], t: Translator, theme: str) -> str:
    """The whole table; groups of rows stand together under their name."""
    cells = "".join(_head(head, t) for head in heads)
    body, group = [], None
    for row in rows:
        if row.group != group:
            group = row.group
            body.append(
                f'<tr class="il-group"><th scope="colgroup" colspan="{len(heads) + 1}">'
                f"{escape(group)}</th></tr>"
            )
        body.append(_row(row, heads, t))
    return (
        f"<style>{_style(theme)}</style><table class='il-policies'>"
        f"<caption>{escape(t('pol.table.caption'))}</caption>"
        f"<thead><tr><th scope='col'></th>{cells}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _head(head: Head, t: Translator) -> str:
    more = f"<small>{escape(head.more)}</small>" if head.more else ""
    panel = f"<em>{escape(t('pol.panel'))}</em>" if head.is_panel else ""
    return f"<th scope='col'>{escape(head.name)}{more}{panel}</th>"


def _row(row: Row, heads: Sequence[Head], t: Translator) -> str:
    cells = []
    found = marks(row.values, METRICS[row.metric].better)
    for head, value, mark in zip(heads, row.values, found, strict=True):
        kind = " ".join(filter(None, (mark and f"il-{mark}", head.is_panel and "il-panel")))
        sign = ""
        if mark:
            word = escape(t(f"pol.{mark}"))
            sign = f"<i role='img' aria-label='{word}' title='{word}'>{MARKS[mark]}</i>"
        text = escape(shown(row.metric, value, t))
        cells.append(f"<td class='{kind}'>{sign}{text}</td>")
    name = f"<th scope='row' title='{escape(row.help, quote=True)}'>{escape(row.label)}</th>"
    return f"<tr>{name}{''.join(cells)}</tr>"


def _style(theme: str) -> str:
    color = COLORS[theme]
    return f"""
.il-policies {{ border-collapse: collapse; width: 100%; font-size: 14px; color: {color["ink"]};
  font-variant-numeric: tabular-nums; table-layout: fixed }}
.il-policies caption {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%) }}
.il-policies th, .il-policies td {{ padding: 3px 8px; text-align: right; vertical-align: bottom;
  overflow-wrap: anywhere; border-bottom: 1px solid {color["track"]} }}
.il-policies th:first-child {{ text-align: left; font-weight: 400; width: 12.5rem }}
.il-policies thead th {{ font-weight: 650; border-bottom: 2px solid {color["free"]};
  position: sticky; top: {_BAR_PX}px; background: {color["ground"]} }}
.il-policies small, .il-policies em {{ display: block; font-size: 12px; font-weight: 400;
  font-style: normal; color: {color["muted"]} }}
.il-policies em {{ color: {color["ink"]}; border: 1px solid {color["muted"]}; border-radius: 8px;
  padding: 0 6px; margin: 2px 0 0 auto; width: fit-content }}
.il-policies .il-group th {{ font-weight: 650; font-size: 13px; color: {color["muted"]};
  padding-top: 10px }}
.il-policies .il-best {{ font-weight: 700 }}
.il-policies .il-panel {{ background: {color["panel"]} }}
.il-policies i {{ font-style: normal; margin-right: 5px; font-size: 12px }}
.il-policies .il-worst i {{ color: {color["muted"]} }}
"""
