"""The catalogue is complete: F1–F42, words in every language, verdicts, claims, symbols."""

import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

import formulas
from formulas.claims import VERDICTS
from formulas.entry import STATUSES, entries, entry
from formulas.symbols import DOMAINS, quantities
from formulas.texts import LANGUAGES, table

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted(path.stem for path in (ROOT / "formulas" / "texts").glob("*.csv"))
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def test_all_numbers_are_there():
    assert {row.number for row in entries().values()} == set(range(1, 43))


def test_ids_are_in_order():
    numbers = [row.number for row in entries().values()]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("formula_id", entries())
def test_a_formula_has_words_in_every_language(formula_id):
    formula = formulas.get(formula_id)
    for language in LANGUAGES:
        assert formula.name(language)
        assert len(formula.assumption_texts(language)) == len(formula.assumptions)
        assert all(formula.step_reason(step, language) for step in formula.steps)
        assert formula.entry.source_texts(language)


@pytest.mark.parametrize("formula_id", entries())
def test_verdicts(formula_id):
    """What a source text prints is judged, explained and corrected; the rest is not."""
    row = entry(formula_id)
    assert row.status in STATUSES
    assert (row.status == "printed") is bool(row.verdict) is bool(row.corrected_by)
    if row.status == "printed":
        assert row.verdict in VERDICTS
        assert all(entry(key).status == "correct" for key in row.corrected_by)
        assert all(row.reason(language) for language in LANGUAGES)
        assert row.sources[0][0] in ("text-a", "text-b")


def test_an_algorithm_says_how_it_computes():
    for formula in formulas.all():
        if formula.algorithm is not None:
            assert formula.reason("en"), formula.id
            assert formula.reason("zh"), formula.id


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_complete(name):
    for key, row in table(name).items():
        assert all(row.values()), key
        assert not CHINESE.search(row["en"]), key
        if name not in ("sources", "symbols"):
            assert CHINESE.search(row["zh"]), key


@pytest.mark.parametrize("name", TABLES)
def test_placeholders_are_the_same(name):
    for key, row in table(name).items():
        if name == "errors":
            names = {
                frozenset(field for _, field, _, _ in string.Formatter().parse(text) if field)
                for text in row.values()
            }
            assert len(names) == 1, key


def test_no_text_is_left_over():
    used = {"steps": {"algebra.result", "solved.result"}}
    for row in entries().values():
        formula = formulas.get(row.id)
        keys = used.setdefault(row.topic, set())
        keys |= {f"{row.id}.name", f"{row.id}.reason"}
        keys |= {f"{row.id}.{step.id}" for step in formula.steps}
        used.setdefault("assumptions", set()).update(formula.assumptions)
        used.setdefault("sources", set()).update(key for key, _ in row.sources)
    used["symbols"] = set(quantities())
    for name, keys in used.items():
        assert set(table(name)) <= keys, name


def test_every_symbol_has_a_meaning():
    assert list(table("symbols")) == list(quantities())
    for symbol in quantities().values():
        assert symbol.domain in DOMAINS
        assert symbol.low <= symbol.high


def test_every_symbol_is_used():
    used = {"one_token", "one_request", "one_flop", "one_gpu"}
    for formula in formulas.all():
        used |= {symbol.id for symbol in formula.symbols}
        for step in formula.steps:
            for side in (step.relation.lhs, step.relation.rhs):
                used |= {s.name for s in side.atoms() if hasattr(s, "name")}
    assert set(quantities()) <= used


def test_usual_values_lie_in_the_domain():
    for symbol in quantities().values():
        assert symbol.allows(symbol.low) or symbol.domain == "positive"
        assert symbol.allows(symbol.high)


def test_two_alphas_are_kept_apart():
    acceptance, significance = (quantities()[key] for key in ("alpha_acc", "alpha_sig"))
    assert acceptance.symbol != significance.symbol
    assert acceptance.latex != significance.latex


def test_claims():
    claims = formulas.claims()
    assert list(claims) == [f"A{n}" for n in range(1, 26)] + [f"B{n}" for n in range(1, 22)]
    for claim in claims.values():
        assert claim.verdicts
        assert set(claim.verdicts) <= set(VERDICTS)
        for language in LANGUAGES:
            assert claim.claim(language)
            assert claim.corrected(language)
            assert claim.reason(language)
        assert all(key in entries() for key in claim.formulas)


def test_unverified_claims_are_marked():
    marked = {key for key, claim in formulas.claims().items() if claim.is_unverified}
    assert marked == {"A6", "A11", "A14", "A16", "A18", "A22", "A25"}


def test_formulas_name_known_claims():
    for row in entries().values():
        assert set(row.claims) <= set(formulas.claims())


def test_claims_without_a_formula():
    """The rest is about facts, not quantities."""
    bare = {key for key, claim in formulas.claims().items() if not claim.formulas}
    assert bare == {"A14", "A17"}


def test_the_index_needs_no_sympy():
    code = (
        "import sys, formulas; formulas.entries(); formulas.claims()['A1'].formulas;"
        "print('sympy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_topics_load_when_asked_for():
    code = (
        "import sys, formulas; formulas.get('F14');"
        "print(*sorted(m for m in sys.modules if m.startswith('formulas.topics.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["formulas.topics.throughput"]


def test_a_formula_is_derived_once():
    assert formulas.get("F14") is formulas.get("F14")


def test_family():
    assert [formula.id for formula in formulas.family(25)][:2] == ["F25p", "F25"]
    assert {f.id for f in formulas.family(16)} == {"F16", "F16a", "F16b", "F16c", "F16d"}


def test_unknown_formula():
    with pytest.raises(formulas.FormulaError, match="no formula 'F99'"):
        formulas.get("F99")
