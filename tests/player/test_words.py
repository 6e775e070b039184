"""The player's words: both languages say the same, with the same numbers; the bundle is sound."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from charts.palette import COLORS
from model.events import EVENTS, REASONS
from model.film import MARKS
from model.schedulers.lab_victims import VICTIMS
from ui.player import bundle

FOLDER = Path(bundle.__file__).parent
PLACEHOLDER = re.compile(r"\{(\w+)(?::(\w+))?\}")


def forms(message: str | dict[str, str]) -> list[str]:
    return list(message.values()) if isinstance(message, dict) else [message]


def placeholders(message: str | dict[str, str]) -> set[tuple[str, str]]:
    return {found for text in forms(message) for found in PLACEHOLDER.findall(text)}


def test_both_languages_have_the_same_messages():
    english, chinese = map(bundle.words, bundle.LANGUAGES)
    assert english.keys() == chinese.keys()


@pytest.mark.parametrize("key", bundle.words("en"))
def test_both_languages_give_the_same_numbers(key):
    english, chinese = (bundle.words(language)[key] for language in bundle.LANGUAGES)
    count = {("n", "")}  # "one request" needs no number
    name = {("r", "")}
    assert placeholders(english) - count - name == placeholders(chinese) - count - name
    for text in forms(english) + forms(chinese):
        assert text.count("**") % 2 == 0
        assert {form for _, form in PLACEHOLDER.findall(text)} <= {"", "time"}


def test_a_language_file_has_no_key_twice():
    for language in bundle.LANGUAGES:
        text = (FOLDER / "words" / f"{language}.json").read_text(encoding="utf-8")
        json.loads(text, object_pairs_hook=_once)


def _once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), sorted(k for k in keys if keys.count(k) > 1)
    return dict(pairs)


def test_there_are_words_for_every_reason():
    words = bundle.words("en")
    refusals = ("no_blocks", "no_budget", "no_slot", "after_preemption", "swapped_first")
    for reason in (*refusals, "batch_running", "no_reservation", "batch_full"):
        assert reason in REASONS
        assert f"refuse.{reason}" in words
        assert f"legend.{reason}" in words
    for reason in ("outranked", "itself", *VICTIMS):
        assert reason in REASONS
        assert f"why.{reason}" in words
    never = ("never_fits", "exceeds_context", "exceeds_budget")
    on_arrival = ("no_free_slot", "no_free_blocks", "queue_full", "queued_tokens", "system_full")
    for reason in (*never, *on_arrival, "ttft_hopeless"):
        assert reason in REASONS
        assert f"reject.{reason}" in words
    assert all(f"kind.{mark}" in words for mark in MARKS)
    assert "swap_out" in EVENTS


def test_messages_named_in_the_code_exist():
    words = bundle.words("en")
    named = set()
    for name in bundle.MODULES:
        text = (FOLDER / "js" / name).read_text(encoding="utf-8")
        named |= set(re.findall(r'words\.(?:text|spans)\("([\w.]+)"', text))
    assert len(named) > 60
    assert named <= words.keys(), sorted(named - words.keys())


def test_modules_share_one_scope_without_clashes():
    declared = re.compile(
        r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE
    )
    names: dict[str, str] = {}
    for module in bundle.MODULES:
        text = (FOLDER / "js" / module).read_text(encoding="utf-8")
        for name in declared.findall(text):
            assert name not in names, f"{name} is in {module} and {names[name]}"
            names[name] = module
    assert {path.name for path in (FOLDER / "js").glob("*.js")} == set(bundle.MODULES)


def test_imports_come_from_earlier_modules_and_exist():
    for module in bundle.MODULES:
        text = (FOLDER / "js" / module).read_text(encoding="utf-8")
        for names, source in re.findall(r'^import \{([^}]*)\} from "\./([\w.]+)";', text, re.M):
            exported = (FOLDER / "js" / source).read_text(encoding="utf-8")
            for name in filter(None, map(str.strip, names.split(","))):
                assert re.search(
                    rf"^export (?:async )?(?:function|class|const) {name}\b", exported, re.M
                )


def test_text_enters_the_page_only_as_text():
    for module in bundle.MODULES:
        text = (FOLDER / "js" / module).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_are_those_of_the_charts(theme):
    text = (FOLDER / "js" / "theme.js").read_text(encoding="utf-8")
    part = text[text.index(f"  {theme}: {{") :]
    found = dict(re.findall(r"(\w+): \"(#\w{6})\"", part[: part.index("  },")]))
    shared = found.keys() & COLORS[theme].keys()
    assert len(shared) >= 10
    assert {name: found[name] for name in shared} == {name: COLORS[theme][name] for name in shared}
