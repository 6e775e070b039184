"""Both languages are complete and say the same: keys, placeholders, headings, every code."""

import ast
import re
import string
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from model import catalogue
from model.errors import MESSAGES
from model.events import EVENTS, REASONS
from model.metrics import DEFINITIONS, METRICS
from model.schedulers import POLICIES
from model.state import STATUS
from ui.language import LANGUAGES, po_path, translate
from ui.prose import sections

ROOT = Path(__file__).resolve().parent.parent
# English keeps its one source for these: the model's own sentences.
SPOKEN_BY_THE_MODEL = ("error.", "metric.", "word.")


def messages(language):
    with po_path(language).open("rb") as file:
        po = read_po(file)
    return {
        (m.id[0] if isinstance(m.id, tuple) else m.id): (
            m.string if isinstance(m.string, tuple) else (m.string,)
        )
        for m in po
        if m.id
    }


def placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def own(language):
    return {k: v for k, v in messages(language).items() if not k.startswith(SPOKEN_BY_THE_MODEL)}


def test_both_languages_have_the_same_keys():
    assert own("en").keys() == own("zh").keys()


def test_english_sentences_of_the_model_are_not_repeated():
    assert own("en").keys() == messages("en").keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_message_is_empty(language):
    empty = [key for key, forms in messages(language).items() if not all(forms)]
    assert not empty


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_key_is_written_twice(language):
    keys = re.findall(r'^msgid "(.+)"$', po_path(language).read_text(encoding="utf-8"), re.M)
    assert len(keys) == len(set(keys))


def test_placeholders_are_the_same():
    chinese = messages("zh")
    for key, forms in own("en").items():
        names = {frozenset(placeholders(form)) for form in (*forms, *chinese[key])}
        # A singular may say "one" instead of the number.
        assert len({n - {"n"} for n in names}) == 1, key


@pytest.mark.parametrize(
    "key", [*(f"metric.{key}" for key in METRICS), *(f"word.{key}" for key in DEFINITIONS)]
)
def test_every_metric_is_defined_in_both_languages(key):
    assert messages("zh")[key][0]


@pytest.mark.parametrize("code", MESSAGES)
def test_every_error_is_translated_with_its_numbers(code):
    translated = messages("zh")[f"error.{code}"][0]
    assert placeholders(translated) == placeholders(MESSAGES[code])


def test_no_translation_without_an_error_or_metric():
    known = {
        *(f"error.{code}" for code in MESSAGES),
        *(f"metric.{key}" for key in METRICS),
        *(f"word.{key}" for key in DEFINITIONS),
    }
    assert {k for k in messages("zh") if k.startswith(SPOKEN_BY_THE_MODEL)} <= known


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "key",
    [
        *(f"reason.{name}" for name in REASONS),
        *(f"event.{name}" for name in EVENTS),
        *(f"status.{name}" for name in STATUS),
        *(f"policy.{name}" for name in POLICIES),
        *(f"preset.{name}" for name in catalogue.presets()),
        *(f"preset.{name}.about" for name in catalogue.presets()),
    ],
)
def test_every_code_has_a_word(language, key):
    assert translate(language, key)


def used_keys():
    """Every key that stands literally in a call t("...")."""
    folders = (ROOT / name for name in ("ui", "charts", "app_pages"))
    for path in (ROOT / "app.py", *(p for folder in folders for p in folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "t"
            if is_call and node.args and isinstance(node.args[0], ast.Constant):
                yield path.name, node.args[0].value


@pytest.mark.parametrize(("path", "key"), sorted(set(used_keys())))
def test_every_key_in_the_code_exists(path, key):
    assert key in messages("en")


def content_pages():
    return sorted(path.stem for path in (ROOT / "content" / "en").glob("*.md"))


def test_both_languages_have_the_same_prose_files():
    assert content_pages() == sorted(path.stem for path in (ROOT / "content" / "zh").glob("*.md"))


@pytest.mark.parametrize("page", content_pages())
def test_prose_has_the_same_sections_lists_and_formulas(page):
    english, chinese = sections("en", page), sections("zh", page)
    assert list(english) == list(chinese)
    for name, section in english.items():
        other = chinese[name]
        assert section.title
        assert other.title
        assert bool(section.text) == bool(other.text)
        for mark in (r"^- ", r"^\d+\. ", r"\$\$"):
            count = len(re.findall(mark, section.text, re.M))
            assert count == len(re.findall(mark, other.text, re.M)), (name, mark)
