"""Start without a browser: a film, three ways in, the course, and every preset as a card."""

import pytest

from model import catalogue
from ui.language import LANGUAGES, translate
from ui.pages import CORE, ELECTIVES, PAGES, exists


def texts(app):
    return "\n".join(block.value for block in app.main.markdown)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_opens_with_a_film_and_every_preset(open_app, language):
    app = open_app("start", lang=language)
    assert not app.exception
    assert len(app.get("bidi_component")) == 1
    labels = [button.label for button in app.button]
    for preset in catalogue.presets():
        assert f"**{translate(language, f'preset.{preset}')}**" in labels
    for way in ("lecture", "study", "interview"):
        assert translate(language, f"start.{way}.1") in labels


def test_the_core_takes_three_quarters_of_an_hour():
    assert sum(lesson.minutes for lesson in CORE) == 45


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_exists_is_a_link_and_the_rest_is_not(open_app, language):
    app = open_app("start", lang=language)
    links = [link.proto.label for link in app.get("page_link")]
    for lesson in (*CORE, *ELECTIVES):
        title = translate(language, f"page.{lesson.name}")
        assert any(title in label for label in links) == exists(lesson.name)
        assert (f" {title} ·" in texts(app)) == (not exists(lesson.name))


@pytest.mark.parametrize("preset", ["law", "preemption-storm"])
def test_a_card_opens_the_simulator_with_its_preset(open_app, preset):
    app = open_app("start")
    app.button(key=f"start.preset.{preset}").click().run()
    assert not app.exception
    assert app.main.title[0].value == translate("en", "page.simulator")
    assert app.session_state["s"].startswith(f"preset-{preset}~")


def test_a_door_opens_the_lesson_with_eight_requests(open_app):
    app = open_app("start")
    app.button(key="start.guess").click().run()
    assert not app.exception
    assert app.button(key="prediction.first.eight.0")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_title_in_both_languages(name):
    assert all(translate(language, f"page.{name}") for language in LANGUAGES)
