"""The player's JavaScript as one text: modules in a fixed order, imports and exports taken out.

The files under ``js/`` are ordinary ES modules. Inside the bundle they share one function scope, so
that the function's own source text is all that a downloaded film has to carry. The words of each
language (``words/*.json``) and the style sheet are part of the bundle.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

__all__ = ["LANGUAGES", "MODULES", "component_js", "player_js", "style", "words"]

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).resolve().parent
MODULES = tuple(
    line
    for line in (_FOLDER / "js" / "order.txt").read_text(encoding="utf-8").split()
    if not line.startswith("#")
)
_IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)


def words(language: str) -> dict[str, object]:
    """The player's words in a language."""
    return json.loads((_FOLDER / "words" / f"{language}.json").read_text(encoding="utf-8"))


@cache
def player_js() -> str:
    """A function expression without arguments that returns ``{mount, open, Film}``."""
    tables = {language: words(language) for language in LANGUAGES}
    parts = [
        f"const WORDS = {json.dumps(tables, ensure_ascii=False)};",
        f"const STYLE = {json.dumps(style(), ensure_ascii=False)};",
    ]
    for name in MODULES:
        text = (_FOLDER / "js" / name).read_text(encoding="utf-8")
        parts.append(_EXPORT.sub("", _IMPORT.sub("", text)))
    body = "\n".join(parts)
    if "</script" in body.lower():
        raise ValueError("the bundle would end the script element of a downloaded film")
    return f'function iterationLabPlayer() {{\n"use strict";\n{body}\nreturn entryPoints();\n}}'


@cache
def component_js() -> str:
    """The module that Streamlit loads: its default export mounts the player."""
    return (
        f"{player_js()}\n"
        "const player = iterationLabPlayer();\n"
        "export default (component) => player.component(component, iterationLabPlayer);\n"
    )


@cache
def style() -> str:
    """The style sheet."""
    return (_FOLDER / "player.css").read_text(encoding="utf-8")
