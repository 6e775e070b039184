"""The pages of the lab, in the order of a course: one table for the navigation and for Start.

A lesson that has no file yet is known by its name, so that Start can say what is to come, and joins
the navigation as soon as ``app_pages/NAME.py`` exists.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from ui.language import t

__all__ = ["CORE", "ELECTIVES", "PAGES", "Lesson", "exists", "file_of", "navigation"]

_ROOT = Path(__file__).resolve().parent.parent


class Lesson(NamedTuple):
    """A page of the course and the minutes it takes in a lecture."""

    name: str
    minutes: int


CORE = (
    Lesson("one_request", 10),
    Lesson("throughput", 10),
    Lesson("simulator", 8),
    Lesson("policies", 9),
    Lesson("slo", 8),
)
"""Three quarters of an hour, in this order."""

ELECTIVES = (
    Lesson("planner", 10),
    Lesson("preemption", 15),
    Lesson("prefix_caching", 10),
    Lesson("long_context", 15),
    Lesson("disaggregation", 15),
    Lesson("lora_speculation", 15),
    Lesson("hardware", 10),
    Lesson("ab_test", 15),
    Lesson("exercises", 20),
    Lesson("interview", 30),
)

DEFAULT = "start"
MENUS = {  # of the navigation by their messages; "" stands for pages without a menu
    "": (DEFAULT, *(lesson.name for lesson in CORE)),
    "nav.electives": tuple(lesson.name for lesson in ELECTIVES),
    "nav.reference": ("reference", "validation"),
}
PAGES = tuple(name for names in MENUS.values() for name in names)


def file_of(name: str) -> str:
    """The file of a page, as Streamlit wants it: relative to the entry script."""
    return f"app_pages/{name}.py"


def exists(name: str) -> bool:
    """Is there such a page already?"""
    return (_ROOT / file_of(name)).is_file()


def navigation() -> dict[str, list[st.Page]]:
    """All pages that exist, by menu, with their titles in the language of this session."""
    return {
        menu and t(menu): [
            st.Page(file_of(name), title=t(f"page.{name}"), url_path=name, default=name == DEFAULT)
            for name in names
            if exists(name)
        ]
        for menu, names in MENUS.items()
    }
