"""The film player: a canvas that plays a simulation, and an inspector that says why.

``show`` puts a film on a page, ``compare`` two films on one clock; ``film_html`` makes the file
that plays offline. Encoding lives in :mod:`model.film`, drawing in the JavaScript modules beside
this file. Streamlit is loaded only when a page asks for ``show`` or ``compare``.
"""

from __future__ import annotations

from importlib import import_module

_HOME = {
    "CompareView": "component",
    "View": "component",
    "compare": "component",
    "film_html": "standalone",
    "compare_html": "standalone",
    "show": "component",
}

__all__ = ["CompareView", "View", "compare", "compare_html", "film_html", "show"]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(name)
    return getattr(import_module(f"ui.player.{_HOME[name]}"), name)
