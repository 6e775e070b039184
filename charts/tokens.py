"""A few requests token by token, as HTML: what an iteration computes, and where it is kept.

Words stand in for tokens. A frame around four of them is a KV block. Patterns go with the colors,
as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from charts.moments import Moment, Stand
from charts.palette import COLORS, translucent
from model.result import SimulationResult

__all__ = ["jobs", "lanes", "rows"]

Translator = Callable[..., str]

_STYLE = Path(__file__).with_name("tokens.css").read_text(encoding="utf-8")


def _variables(theme: str) -> str:
    color = COLORS[theme]
    own = {
        "prefill-tint": translucent(color["prefill"], 0.22),
        "prefill-stripe": translucent(color["prefill"], 0.5),
        "prefill-dark": translucent("#17202B", 0.55),
        "decode-tint": translucent(color["decode"], 0.22),
    }
    names = ("ink", "muted", "track", "free", "panel", "ground", "waiting", "decode", "prefill")
    values = {name: color[name] for name in names} | own
    return ";".join(f"--{name}:{value}" for name, value in values.items())


def _frame(body: str, theme: str, label: str) -> str:
    return (
        f'<style>{_STYLE}</style><section class="il-tokens" style="{_variables(theme)}" '
        f'role="group" aria-label="{escape(label)}">{body}</section>'
    )


# -- the tokens of each request -------------------------------------------------------------------


def rows(
    now: Moment,
    words: Mapping[str, Sequence[str]],
    block_size: int,
    said: str,
    t: Translator,
    theme: str,
) -> str:
    """Each request that has arrived as a row of words, and what is ``said`` of the iteration.

    ``words`` are the words of prompt and answer by the name of the request.
    """
    body = "".join(
        _row(stand, words[stand.name], block_size, t)
        for stand in now.requests
        if stand.phase != "away"
    )
    body += f'<p role="status">{escape(said)}</p>'
    return _frame(body, theme, t("tokens.label", n=now.iteration))


def _row(stand: Stand, words: Sequence[str], block_size: int, t: Translator) -> str:
    phase = "leaves" if stand.leaves else stand.phase
    return (
        f'<div class="il-row"><div class="il-name"><b>{escape(stand.name)}</b>'
        f"<small>{escape(t(f'tokens.{phase}'))}</small></div>"
        f'<div class="il-line">{_line(stand, words, block_size, t)}</div></div>'
    )


def _line(stand: Stand, words: Sequence[str], block_size: int, t: Translator) -> str:
    known = stand.prompt_tokens + stand.emitted_tokens
    kept = stand.had_tokens + stand.tokens
    if stand.phase == "waiting":
        return "".join(_token(word, "il-loose il-asked") for word in words[: stand.prompt_tokens])
    if stand.phase == "finished":
        return "".join(_token(word, "il-loose") for word in words[:known])
    blocks = []
    for block in range(stand.blocks):
        places = []
        for place in range(block * block_size, (block + 1) * block_size):
            if place < stand.had_tokens:
                places.append(_token(words[place]))
            elif place < kept:
                places.append(_token(words[place], f"il-{stand.phase}"))
            else:
                places.append(_token("", "il-place"))
        is_new = block >= stand.blocks - stand.new_blocks
        blocks.append(
            f'<div class="il-block{" il-new" if is_new else ""}">{"".join(places)}'
            f"<i>{escape(t('tokens.block', n=block + 1))}</i></div>"
        )
    # The newest word is out, but its keys and values are computed in the next iteration only.
    return "".join(blocks) + _token(words[known - 1], "il-loose il-said")


def _token(word: str, kind: str = "") -> str:
    return f'<span class="il-token {kind}">{escape(word)}</span>'


# -- who was computed in which iteration -----------------------------------------------------------


def lanes(
    engines: Sequence[tuple[str, SimulationResult, int]], t: Translator, theme: str
) -> str:
    """A lane a request, on one time axis; each engine with its title and the iterations to show."""
    last_s = max(float(result.iterations["end_s"][-1]) for _, result, _ in engines)
    body = "".join(_engine(title, result, until, last_s, t) for title, result, until in engines)
    ticks = [(0.0, f"0 {t('unit.ms')}"), (last_s, f"{last_s * 1e3:.1f} {t('unit.ms')}")]
    axis = "".join(
        f'<span style="left:{at / last_s:.2%}">{escape(text)}</span>' for at, text in ticks
    )
    legend = "".join(
        f'<i class="{kind}"></i>{escape(t(f"phase.{phase}"))}'
        for phase, kind in (("prefill", "il-p"), ("decode", "il-d"), ("waiting", "il-w"))
    )
    legend = f'<div class="il-legend">{legend}<span>{escape(t("lanes.note"))}</span></div>'
    return _frame(
        f'{legend}{body}<div class="il-axis">{axis}</div>', theme, t("lanes.label")
    )


def _engine(title: str, result: SimulationResult, until: int, last_s: float, t: Translator) -> str:
    columns, schedule = result.iterations, result.scheduled()
    start_s, end_s = columns["start_s"], columns["end_s"]
    now_s = float(end_s[until - 1]) if until else 0.0
    cursor = _box(start_s[until - 1], now_s, last_s, "il-cursor") if until else ""
    body = []
    for request, name in enumerate(result.requests["request_id"]):
        mine = (schedule["request"] == request) & (schedule["row"] < until)
        first_s = float(result.requests["first_scheduled_s"][request])
        arrival_s = float(result.requests["arrival_s"][request])
        boxes = []
        if arrival_s < min(first_s, now_s):
            boxes.append(_box(arrival_s, min(first_s, now_s), last_s, "il-w"))
        computed = 0
        for row, tokens in zip(schedule["row"][mine], schedule["tokens"][mine], strict=True):
            is_prefill = computed < int(result.requests["prompt_tokens"][request])
            kind = "il-p" if is_prefill else "il-d"
            boxes.append(_box(start_s[row], end_s[row], last_s, kind, f"<b>{tokens}</b>"))
            computed += int(tokens)
        body.append(
            f'<div class="il-lane"><span>{escape(str(name))}</span>'
            f'<div class="il-track">{"".join(boxes)}{cursor}</div></div>'
        )
    if not title:
        return "".join(body)
    note = escape(t("lanes.iteration", n=until))
    return f'<div class="il-head">{escape(title)}<small>{note}</small></div>{"".join(body)}'


def _box(start_s: float, end_s: float, last_s: float, kind: str, inside: str = "") -> str:
    return (
        f'<div class="{kind}" style="left:{start_s / last_s:.3%};'
        f'width:{(end_s - start_s) / last_s:.3%}">{inside}</div>'
    )


# -- answers still to come -------------------------------------------------------------------------


def jobs(result: SimulationResult, t: Translator, theme: str) -> str:
    """How long each answer will be: what a learner needs for a guess, and no engine knows."""
    outputs = result.requests["output_tokens"]
    longest = int(np.max(outputs))
    body = "".join(
        f'<div class="il-job"><b>{escape(str(name))}</b>'
        f'<div style="width:{tokens / longest:.1%}"></div>'
        f"<span>{escape(t('jobs.tokens', n=int(tokens)))}</span></div>"
        for name, tokens in zip(result.requests["request_id"], outputs, strict=True)
    )
    return _frame(body, theme, t("jobs.label"))
