"""The player as a Streamlit component: what pages call."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from model.film import MARKS, WINDOW_BYTES, Film, film
from model.result import SimulationResult
from ui.player.bundle import LANGUAGES, component_js, style
from ui.player.packing import COMPARED_BYTES, pack_data

__all__ = [
    "AT_EVENTS",
    "KINDS",
    "PACES",
    "SPEEDS",
    "CompareView",
    "View",
    "compare",
    "film_of",
    "show",
]

SPEEDS = (0.25, 0.5, 1, 2, 4, 8, 16)
PACES = ("iterations", "time")
AT_EVENTS = ("slow", "pause", "play")
KINDS = ("any", *MARKS)

# result -> (engine, window size) -> film; a film goes when its result does
_films: weakref.WeakKeyDictionary[SimulationResult, dict[tuple[int, int], Film]] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class View:
    """Where a learner has paused: what a link needs, and what other figures may follow."""

    iteration: int = 0
    speed: float = 1
    pace: str = "iterations"
    request: str | None = None  # the label of the request followed, as the film writes it


@dataclass(frozen=True, slots=True)
class CompareView:
    """The same for a comparison, whose position is a moment (seconds of simulated time)."""

    at_s: float = 0.0
    speed: float = 1
    pace: str = "time"


def film_of(result: SimulationResult, engine_id: int = 0, window_bytes: int = WINDOW_BYTES) -> Film:
    """The film of a result, made once for all sessions that share it."""
    key = (engine_id, window_bytes)
    with _lock:
        made = _films.setdefault(result, {})
    if key not in made:
        made[key] = film(result, engine_id, window_bytes=window_bytes)
    return made[key]


def show(
    result: SimulationResult,
    *,
    key: str,
    language: str = "en",
    theme: str | None = None,
    engine_id: int = 0,
    iteration: int | None = None,
    move_to: int | None = None,
    speed: float | None = None,
    pace: str | None = None,
    at_events: str | None = None,
    kind: str | None = None,
    request: str | None = None,
    inspector: bool = True,
    lecture: bool = False,
    autoplay: bool = False,
    title: str = "",
    window_bytes: int = WINDOW_BYTES,
) -> View:
    """Show the film of a result; returns where the learner last paused.

    The player keeps its place while the page reruns; with another result it stays at the same
    iteration where that still exists. ``iteration``, ``speed`` (one of SPEEDS), ``pace``
    (PACES), ``at_events`` (AT_EVENTS), ``kind`` of moments to jump to (KINDS) and ``request`` (a
    label) are where it starts, as in a link; what does not exist is left out. After that they are
    the learner's. ``move_to`` moves it whenever it is another than before.
    ``language``, ``theme`` ("light", "dark", None: as the page) and ``lecture`` follow the page.
    ``title`` names downloaded files.
    A long film is sent in windows of ``window_bytes``; the player asks for the one it needs.
    """
    whole = film_of(result, engine_id, window_bytes)
    state = st.session_state.get(key) or {}
    index = whole.window_at(_wanted(state, iteration))
    options = {
        "mode": "run",
        "language": language if language in LANGUAGES else "en",
        "theme": theme,
        "iteration": iteration,
        "speed": _one_of(SPEEDS, speed),
        "pace": _one_of(PACES, pace),
        "at_events": _one_of(AT_EVENTS, at_events),
        "kind": _one_of(KINDS, kind),
        "request": request,
        "inspector": inspector,
        "lecture": lecture,
        "autoplay": autoplay,
        "title": title,
        "digests": [whole.digest],
        "first": whole.bounds[index],
        "move_to": move_to,
    }
    found = _mount(
        key=key,
        data=pack_data(options, [whole.windows[index]]),
        height="content",
        on_view_change=_nothing,
        on_want_change=_nothing,
    )
    view = found.view or {}
    return View(
        iteration=int(view.get("iteration", iteration or 0)),
        speed=view.get("speed", options["speed"] or 1),
        pace=view.get("pace", options["pace"] or "iterations"),
        request=view.get("request", request),
    )


def compare(
    results: Sequence[SimulationResult],
    *,
    key: str,
    titles: Sequence[str],
    subtitles: Sequence[str] = ("", ""),
    short_titles: Sequence[str] | None = None,
    language: str = "en",
    theme: str | None = None,
    at_s: float | None = None,
    speed: float | None = None,
    film_s: float | None = 30.0,
    autoplay: bool = False,
    loop: bool = False,
    lecture: bool = False,
    title: str = "",
) -> CompareView:
    """Show two films on one clock: two cards with the state now, one shared timeline.

    At speed 1 the whole takes ``film_s`` seconds (None: as long as the simulated time). Returns
    where the learner last paused. Up to eight slots each slot is a row of the timeline, above that
    the batch is drawn as a strip.
    """
    if len(results) != 2 or len(titles) != 2:
        raise ValueError("a comparison has two sides")
    films = [film_of(result, 0, COMPARED_BYTES) for result in results]
    shorts = short_titles or titles
    options = {
        "mode": "compare",
        "language": language if language in LANGUAGES else "en",
        "theme": theme,
        "at_s": at_s,
        "speed": _one_of(SPEEDS, speed),
        "film_s": film_s,
        "at_events": "play",
        "autoplay": autoplay,
        "loop": loop,
        "lecture": lecture,
        "title": title,
        "sides": [
            {"title": name, "subtitle": subtitle, "short": short}
            for name, subtitle, short in zip(titles, subtitles, shorts, strict=True)
        ],
        "digests": [one.digest for one in films],
    }
    found = _mount(
        key=key,
        data=pack_data(options, [one.windows[0] for one in films]),
        height="content",
        on_view_change=_nothing,
        on_want_change=_nothing,
    )
    view = found.view or {}
    return CompareView(
        at_s=float(view.get("at_s", at_s or 0.0)),
        speed=view.get("speed", options["speed"] or 1),
        pace=view.get("pace", "time"),
    )


def _wanted(state: Mapping[str, object], iteration: int | None) -> int:
    """The iteration whose window the browser needs: the one it asked for last."""
    wanted = state.get("want")
    if wanted is None:
        wanted = (state.get("view") or {}).get("iteration", iteration)
    return int(wanted or 0)


def _one_of(allowed: Sequence, value: object) -> object:
    """A value from a link, None where there is no such choice."""
    return value if value in allowed else None


def _nothing() -> None:
    """State changes need a rerun only."""


def _mount(**arguments):
    return _component()(**arguments)


@st.cache_resource(show_spinner=False)
def _component():
    """Registered once a process: every registration would make the browser load the code anew."""
    return st.components.v2.component("iteration_lab_film", css=style(), js=component_js())
