"""Start in Chromium: the film plays, doors lead where they say, nothing is cut off."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driving import settle
from tests.browser.looks import CUT_OFF, SIZES, TOO_SMALL, UNDER_THE_HEADER

FILM = ".lab .picture"
TITLES = {
    "en-US": "Why not let the empty seats fill at once?",
    "zh-CN": "座位空了，为什么不马上补人？",
}


def heading(page):
    return page.get_by_test_id("stMain").get_by_role("heading", level=1)


@pytest.mark.parametrize("size", SIZES, ids=["1366x768", "1920x1080"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", TITLES)
def test_the_page_fits_in_every_language_theme_and_size(open_page, locale, theme, size):
    page = open_page("/", theme=theme, locale=locale, size=size, ready=FILM)
    expect(heading(page)).to_have_text(TITLES[locale])
    main = page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(TOO_SMALL) == []
    assert page.evaluate(UNDER_THE_HEADER) == []
    # The whole film and its buttons are seen without scrolling.
    box = page.get_by_role("button", name=re.compile("Play|播放")).bounding_box()
    assert box["y"] + box["height"] <= size[1]


def test_the_film_plays_by_itself_and_can_be_paused(browser, app_url):
    page = browser.new_page(locale="en-US")
    page.goto(app_url)
    pause = page.get_by_role("button", name=re.compile("Pause"))
    expect(pause).to_be_visible(timeout=40_000)
    pause.click()
    expect(page.get_by_role("button", name=re.compile("Play"))).to_be_visible()
    page.close()


def test_a_card_opens_its_preset_and_the_link_carries_it(open_page):
    page = open_page("/?lang=zh", ready=FILM)
    page.get_by_role("button", name="法律长文").click()
    expect(heading(page)).to_have_text("模拟器")
    expect(page).to_have_url(re.compile("/simulator.*preset-law"))
    assert "lang=zh" in page.url
    link = re.sub(r"^https?://[^/]+", "", page.url).replace("lang=zh", "lang=en")
    fresh = open_page(link)
    preset = fresh.get_by_test_id("stSelectbox").get_by_label("Preset", exact=True)
    expect(preset).to_have_value("Legal documents")


def test_another_card_opens_another_preset_in_the_same_visit(open_page):
    page = open_page("/", ready=FILM)
    for name, code in (("Preemption storm", "preemption-storm"), ("Code completion", "code")):
        page.get_by_role("button", name=name, exact=True).click()
        expect(heading(page)).to_have_text("Simulator")
        expect(page).to_have_url(re.compile(f"preset-{code}"))
        page.get_by_role("link", name="Start", exact=True).click()
        expect(heading(page)).to_have_text(TITLES["en-US"])
        settle(page)


def test_the_guess_comes_first(open_page):
    page = open_page("/", ready=FILM)
    page.get_by_role("button", name="Guess first").click()
    expect(page).to_have_url(re.compile("/one_request.*requests=8"))
    expect(page.get_by_role("button", name="continuous, 40 % sooner")).to_be_visible()
    link = re.sub(r"^https?://[^/]+", "", page.url)
    fresh = open_page(link, ready="[class*=st-key-predict]")
    expect(fresh.get_by_role("button", name="continuous, 40 % sooner")).to_be_visible()
    settle(page)
