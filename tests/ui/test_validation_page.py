"""The page on validation, without a browser: every section, row and word, and links to them."""

import pytest

from tests.ui.reading import numbers, text_of
from ui.evidence import published, records
from ui.evidence.records import CASES, how
from ui.language import LANGUAGES, catalogue
from validation.published import PUBLISHED
from validation.table import COMPARISONS, TOPICS


def opened(open_app, **params):
    app = open_app(page="validation", **params)
    assert not app.exception
    assert not app.error
    assert not app.warning
    return app


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", ["theory", "published", "recorded"])
def test_every_section_opens_in_both_languages(open_app, part, language):
    assert text_of(opened(open_app, part=part, lang=language))


def test_everything_agrees_or_parts_as_it_should(open_app):
    shown = [metric.value for metric in opened(open_app, lang="en", topic="all").main.metric[1:4]]
    exact = sum(one.kind == "deterministic" for one in COMPARISONS.values())
    chance, broken = len(COMPARISONS) - exact, len(CASES) - len(COMPARISONS)
    assert shown == [f"{n} of {n}" for n in (exact, chance, broken)]


def test_the_table_has_every_case(open_app):
    app = opened(open_app, lang="en", topic="all")
    frame = app.main.dataframe[0].value
    assert len(frame) == len(CASES)
    assert set(frame["Verdict"]) == {"✓ equal", "≠ apart"}


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_its_own_rows(open_app, topic):
    app = opened(open_app, topic=topic)
    rows = sum(1 + len(one.broken) for one in TOPICS[topic])
    assert len(app.main.dataframe[0].value) == rows


def test_only_the_topic_that_is_looked_at_is_simulated(open_app):
    records._kept().clear()
    opened(open_app, topic="eviction")
    assert {name for name, _ in records._kept()} == {one.name for one in TOPICS["eviction"]}


def test_only_the_result_that_is_looked_at_is_simulated(open_app):
    published._kept().clear()
    app = opened(open_app, part="published", result="P6", lang="en")
    assert set(published._kept()) == {"P6"}
    assert "800" in text_of(app)
    for name in PUBLISHED:  # the others need half a minute
        if name not in ("P13", "P14"):
            published._kept()[name] = published.finding("P6")
    app.button(key="pub.compute").click().run()
    assert not app.exception
    assert set(published._kept()) == set(PUBLISHED)
    assert not [button for button in app.main.button if button.key == "pub.compute"]
    published._kept().clear()


def test_a_link_opens_a_row(open_app):
    app = opened(open_app, lang="en", row="chunk_grid")
    assert len(app.main.dataframe[0].value) == sum(1 + len(c.broken) for c in TOPICS["chunking"])
    assert numbers(app)[4:] == ["416.0", "416.0"]
    app = opened(open_app, lang="en", row="improvement_printed.alike")
    assert numbers(app)[4:] == ["718.8", "130.0"]
    assert "only the ratio of the batches is left" in text_of(app)


def test_an_assumption_is_broken_and_met_again(open_app):
    app = opened(open_app, lang="en", row="stall")
    assumptions = next(g for g in app.main.button_group if g.key == "val.broken.stall")
    assumptions.set_value("chunked").run()
    assert app.session_state["row"] == "stall.chunked"
    assert numbers(app)[4:] == ["413.6", "204.7"]


@pytest.mark.parametrize("code", ["nonsense", "", "stall.nonsense", "验证", "...."])
def test_unknown_codes_in_a_link_are_left_out(open_app, code):
    app = opened(open_app, lang="en", row=code, topic=code, part=code)
    assert numbers(app)[4:] == ["227.7", "228.0"]


@pytest.mark.parametrize(
    "row", ["padding_lognormal", "swap.one_way", "ttft_mean.decodes", "wait_by_size.guessed"]
)
def test_every_kind_of_case_is_drawn(open_app, row):
    app = opened(open_app, row=row)
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_case_has_its_words(language):
    words = catalogue(language)
    needed = {f"val.reason.{name}.{broken or 'intact'}" for name, broken in CASES}
    needed |= {f"val.broken.{broken or 'intact'}" for _, broken in CASES}
    for name, one in COMPARISONS.items():
        needed |= {f"val.name.{name}", f"val.unit.{one.unit}", f"val.axis.{one.axis}", how(name)}
    needed |= {f"val.verdict.{verdict}" for verdict in ("agrees", "apart", "fails")}
    needed |= {f"val.topic.{topic}" for topic in ("all", *TOPICS)}
    assert needed <= words.keys()
    said = {key for key in words if key.startswith(("val.reason.", "val.name.", "val.broken."))}
    assert said <= needed
