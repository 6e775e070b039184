"""One source of the field's words: complete in both languages, and used by all that speaks."""

import json
import re
from pathlib import Path

import pytest

from model.metrics import DEFINITIONS, METRICS
from ui.glossary import GROUPS, entries
from ui.language import LANGUAGES, catalogue
from ui.prose import sections

ROOT = Path(__file__).resolve().parent.parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# What DESIGN and the field's papers cannot do without.
NEEDED = (
    *("ttft", "tpot", "itl", "tbt", "e2e"),
    *("prefill", "decode", "kv_block", "kv_cache", "iteration"),
    *("batch", "preemption", "recompute", "swap_out", "swap_in"),
    *("goodput", "slo", "slo_attainment", "violation", "steady_window"),
    *("mean_batch", "residency", "mfu", "mbu", "head_of_line_blocking"),
    *("fairness", "chunked_prefill", "token_budget", "static_batching", "continuous_batching"),
    *("admission", "disaggregation", "speculation"),
)


@pytest.mark.parametrize("term_id", NEEDED)
def test_the_terms_of_the_lab_are_there(term_id):
    assert term_id in entries()


def test_every_term_is_complete_and_in_one_group():
    for term in entries().values():
        assert term.group in GROUPS, term.id
        assert term.en
        assert CHINESE.search(term.zh), term.id
        if term.word:
            assert term.word in DEFINITIONS
            assert not term.en_meaning
            assert not term.zh_meaning
        else:
            assert term.en_meaning.endswith("."), term.id
            assert term.zh_meaning.endswith("。"), term.id


def test_no_two_terms_share_an_english_name():
    names = [term.en for term in entries().values()]
    assert len(names) == len(set(names))


def test_every_word_that_the_model_defines_is_a_term():
    defined = {term.word for term in entries().values()}
    assert set(DEFINITIONS) - defined == {"warm_up"}  # a setting, explained with the window


# -- everything that speaks uses these words -------------------------------------------------------


def spoken():
    """(key, English, Chinese) of decision reasons, events, phases, states and metrics."""
    english, chinese = catalogue("en"), catalogue("zh")
    kinds = ("reason.", "event.", "phase.", "status.", "queue.", "kv.", "policy.", "engine.")
    for key, text in english.items():
        if key.startswith(kinds) and isinstance(text, str):
            yield key, text, chinese[key]
    for name, metric in METRICS.items():
        yield f"metric.{name}", metric.definition, chinese[f"metric.{name}"]
    for name, text in DEFINITIONS.items():
        yield f"word.{name}", text, chinese[f"word.{name}"]


def film_sentences():
    """(key, English, Chinese) of the film's decisions."""
    words = {
        language: json.loads((ROOT / f"ui/player/words/{language}.json").read_text("utf-8"))
        for language in LANGUAGES
    }
    for key, text in words["en"].items():
        english, chinese = _flat(text), _flat(words["zh"].get(key, ""))
        if english and chinese:
            yield f"film.{key}", english, chinese


def _flat(text):
    return " ".join(text.values()) if isinstance(text, dict) else text


def prose():
    """(key, English, Chinese) of the lessons' sections."""
    for path in sorted((ROOT / "content/en").glob("*.md")):
        english, chinese = sections("en", path.stem), sections("zh", path.stem)
        for name, section in english.items():
            other = chinese[name]
            yield (
                f"{path.stem}#{name}",
                f"{section.title}\n{section.text}",
                f"{other.title}\n{other.text}",
            )


# Words that are terms here and everyday words elsewhere are checked where they can only be terms.
EVERYDAY = {"request", "output", "context", "queue", "batch", "engine", "arrival", "slot", "trace"}
EVERYDAY |= {"padding", "priority", "rejection", "reservation", "admission", "prompt"}
TECHNICAL = [term for term in entries().values() if term.id not in EVERYDAY]


# Where the Chinese says the same without the word: term, beginning of the keys.
REPHRASED = (
    ("iteration", "metric.queue_"),  # "first scheduled"
    ("watermark", "film.refuse.watermark"),  # "must stay free for decodes"
    ("host_memory", "film.refuse.swapped_first"),  # "those swapped out"
)


def misses(key, english, chinese):
    for term in TECHNICAL:
        if any(term.id == name and key.startswith(begin) for name, begin in REPHRASED):
            continue
        names = [term.en, *filter(None, [term.abbreviation.split(",")[0]])]
        said = any(re.search(rf"(?<![\w_]){re.escape(name)}s?(?![\w_])", english) for name in names)
        accepted = (term.zh, term.abbreviation, *term.zh_also)
        if said and not any(form and form in chinese for form in accepted):
            yield term.id


@pytest.mark.parametrize("source", [spoken, film_sentences, prose])
def test_the_chinese_words_are_those_of_the_glossary(source):
    wrong = {key: found for key, en, zh in source() if (found := list(misses(key, en, zh)))}
    assert not wrong
