"""The film as one HTML file that plays offline, made without a browser."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

from model.film import Film, film
from model.result import SimulationResult
from ui.player.bundle import player_js, style
from ui.player.packing import COMPARED_BYTES, pack_data

__all__ = ["compare_html", "film_html"]


def film_html(
    result: SimulationResult,
    *,
    language: str = "en",
    theme: str | None = None,
    engine_id: int = 0,
    iteration: int = 0,
    speed: float = 1,
    title: str = "Iteration Lab",
) -> str:
    """The film of a result, whole; ``theme`` None follows the reader's system."""
    whole = film(result, engine_id)
    options = {
        "mode": "run",
        "language": language,
        "theme": theme,
        "iteration": iteration,
        "speed": speed,
        "title": title,
        "digests": [whole.digest],
    }
    return _page(options, whole.windows, language, title)


def compare_html(
    results: Sequence[SimulationResult],
    *,
    titles: Sequence[str],
    subtitles: Sequence[str] = ("", ""),
    language: str = "en",
    theme: str | None = None,
    film_s: float | None = 30.0,
    title: str = "Iteration Lab",
) -> str:
    """Two films on one clock as a file."""
    films: list[Film] = [film(result, window_bytes=COMPARED_BYTES) for result in results]
    options = {
        "mode": "compare",
        "language": language,
        "theme": theme,
        "film_s": film_s,
        "at_events": "play",
        "title": title,
        "sides": [
            {"title": name, "subtitle": subtitle, "short": name}
            for name, subtitle in zip(titles, subtitles, strict=True)
        ],
        "digests": [one.digest for one in films],
    }
    return _page(options, [one.windows[0] for one in films], language, title)


def _page(options: dict, films: Sequence[bytes], language: str, title: str) -> str:
    data = base64.b64encode(pack_data(options, films)).decode()
    return "\n".join(
        (
            f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>\nbody {{ margin: 0; padding: 20px }}\n{style()}\n</style>\n</head>\n<body>",
            '<main id="film"></main>',
            f"<script>\n{player_js()}",
            'iterationLabPlayer().standalone(document.getElementById("film"), '
            f'"{data}", iterationLabPlayer);',
            "</script>\n</body>\n</html>\n",
        )
    )
