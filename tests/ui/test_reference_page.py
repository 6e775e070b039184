"""The Reference page without a browser: every section, every entry, links and evidence."""

import re

import pytest

from formulas import claims, entries
from model import catalogue
from model.schedulers import POLICIES
from ui.glossary import entries as terms
from ui.language import LANGUAGES, translate
from ui.reference import marks
from ui.reference.finding import VERDICTS, claims_found, formulas_found, known, terms_found
from ui.reference.recordings import COUNTED, GOLDEN, Evidence, _last, counted
from ui.reference.sheet import full_size

SECTIONS = ("formulas", "claims", "glossary", "devices", "models", "validation", "sources")


def texts(app):
    return "\n".join(block.value for block in app.main.markdown)


def cards(app):
    """The ids that the cards begin with."""
    return re.findall(r"^\*\*([ABF]\d+[a-z]*)\*\*", texts(app), re.M)


def press(app, words):
    next(b for b in app.button if words in b.label and not b.disabled).click().run()
    assert not app.exception


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_opens_by_address(open_app, section, language):
    app = open_app("reference", section=section, lang=language)
    assert not app.exception
    assert app.main.markdown


def test_a_first_visit_shows_a_page_of_formulas(open_app):
    app = open_app("reference")
    first = list(entries())[:20]
    assert cards(app) == first
    assert len(app.latex) == 20
    press(app, translate("en", "ref.page.next"))
    assert cards(app) == list(entries())[20:40]


def test_all_formulas_can_be_had_at_once(open_app):
    app = open_app("reference")
    app.toggle(key="ref.formulas.whole").set_value(True).run()
    assert not app.exception
    assert cards(app) == list(entries())


def test_search_and_filters_narrow_the_sheet(open_app):
    app = open_app("reference")
    app.selectbox(key="ref.formulas.status").set_value("printed").run()
    assert cards(app) == [name for name, row in entries().items() if row.status == "printed"]
    app.text_input(key="ref.formulas.query").set_value("F14").run()
    assert cards(app) == ["F14"]
    app.text_input(key="ref.formulas.query").set_value("nonsense").run()
    assert not cards(app)
    assert app.info[0].value == translate("en", "ref.nothing")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_link_opens_a_formula_and_the_ways_on_work(open_app, language):
    app = open_app("reference", section="formulas", id="f14", lang=language)
    assert cards(app) == ["F14"]
    said = texts(app)
    assert marks.plain(entries()["F14"].reason(language)) in said
    assert translate(language, "ref.verdict.wrong") in said
    press(app, "F17a")
    assert cards(app) == ["F17a"]
    press(app, "A13")
    assert cards(app) == ["A13"]
    press(app, translate(language, "ref.back.claims"))
    assert len(cards(app)) == 15


def test_an_unknown_id_says_so_and_shows_the_list(open_app):
    app = open_app("reference", section="formulas", id="F999")
    assert "F999" in app.info[0].value
    assert len(cards(app)) == 20


def test_the_entry_decides_the_section(open_app):
    app = open_app("reference", section="formulas", id="A13")
    assert cards(app) == ["A13"]
    app.button_group(key="choice.section").set_value("devices").run()
    assert not cards(app)
    assert catalogue.devices()["h20"].name in texts(app)


def test_an_unknown_section_is_the_first(open_app):
    assert cards(open_app("reference", section="nowhere"))


@pytest.mark.parametrize("name", claims())
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_has_its_texts(name, language):
    claim = claims()[name]
    assert claim.claim(language)
    assert claim.corrected(language)
    assert claim.reason(language)
    assert set(claim.verdicts) <= set(VERDICTS)


def test_claims_by_verdict_show_the_verdict_in_words(open_app):
    app = open_app("reference", section="claims")
    app.button_group(key="ref.claims.verdict").set_value("unverified").run()
    assert not app.exception
    wanted = [name for name, claim in claims().items() if claim.is_unverified]
    assert cards(app) == wanted
    assert texts(app).count(translate("en", "ref.verdict.unverified")) >= len(wanted)


def test_tables_are_whole(open_app):
    for section, names in (
        ("devices", [row.name for row in catalogue.devices().values()]),
        ("models", [row.name for row in catalogue.models().values()]),
        ("glossary", [marks.plain(row.zh) for row in terms().values()]),
    ):
        said = texts(open_app("reference", section=section))
        assert not [name for name in names if name not in said]


# -- words for every code --------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_of_the_tables_has_a_word(language):
    topics = {row.topic for row in entries().values()}
    codes = {row.confidence for row in catalogue.devices().values()}
    codes |= {row.confidence for row in catalogue.models().values()}
    assert codes <= marks.CONFIDENCES.keys()
    keys = [f"ref.topic.{topic}" for topic in topics]
    keys += [f"ref.confidence.{code}{more}" for code in codes for more in ("", ".means")]
    assert all(translate(language, key) for key in keys)


# -- searching -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first"),
    [("F1", "F1"), ("f17a", "F17a"), ("Δ", "F14"), ("重算", "F23p"), ("critical batch", "F6")],
)
def test_the_best_match_comes_first(query, first):
    assert formulas_found(query)[0] == first


def test_a_symbol_finds_the_formulas_that_need_it():
    assert "F14" in formulas_found("B_d")
    assert "F28" in formulas_found("rho") or "F26" in formulas_found("λ")
    assert set(formulas_found("lambda")) >= set(formulas_found("λ"))


def test_all_words_have_to_be_found():
    both = set(formulas_found("static batching"))
    assert both
    assert both < set(formulas_found("static"))


def test_a_number_finds_its_family_only():
    assert {entries()[name].number for name in formulas_found("F2")} == {2}


@pytest.mark.parametrize("query", ["TTFT", "首词元时延", "time to first"])
def test_terms_are_found_in_both_languages(query):
    assert terms_found(query)[0] == "ttft"


def test_claims_are_found_by_formula():
    assert {"A4", "A12", "A13"} <= set(claims_found("F14"))


@pytest.mark.parametrize("query", ["[", "(", "\\", "*", "$x$", "%s", "{n}", "F", "9" * 400])
def test_no_query_is_an_error(query):
    formulas_found(query)
    claims_found(query)
    terms_found(query)


def test_ids_are_known_in_any_case():
    assert known("formulas", " f14 ") == "F14"
    assert known("claims", "b21") == "B21"
    assert known("glossary", "x") == known("formulas", "") == ""


def test_only_fractions_that_are_large_anyway_grow():
    assert full_size(r"\frac{\frac{a}{b}}{c}") == r"\dfrac{\dfrac{a}{b}}{c}"
    assert full_size(r"x^{\frac{a}{b}} \frac{a}{b}") == r"x^{\frac{a}{b}} \dfrac{a}{b}"
    bound = r"\sum_{k}^{\{\frac{t}{D}\}} "
    assert full_size(bound + r"\frac{a}{b}") == bound + r"\dfrac{a}{b}"


# -- evidence --------------------------------------------------------------------------------------


def test_the_counts_are_those_of_the_recordings():
    rows = counted(GOLDEN)
    assert rows == tuple(_last()), f"write {COUNTED.name} anew: {rows}"
    assert {row.policy for row in rows} <= POLICIES.keys()


def test_without_recordings_the_last_count_is_shown(tmp_path):
    assert counted(tmp_path) == ()
    assert all(isinstance(row, Evidence) and row.iterations > 0 for row in _last())


@pytest.mark.parametrize("policy", ["static", "orca", "vllm-v0", "vllm-v1", "sarathi", "sglang"])
def test_what_is_modelled_from_source_is_said(policy):
    says_so = "modelled from source" in POLICIES[policy].source
    for language in LANGUAGES:
        assert (translate(language, f"ref.modelled.{policy}") != "–") == says_so
