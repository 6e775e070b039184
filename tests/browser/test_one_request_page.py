"""Lesson 0 in Chromium: clicks and arrow keys lead through it, and every step fits the screen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driving import settle
from tests.browser.looks import CUT_OFF, SIZES, TOO_SMALL, UNDER_THE_HEADER

WORDS = {
    "en-US": {
        "guess": ("13: one for each token", "hardly longer", "continuous, 40 % sooner"),
        "more": ("A second request comes", "Now eight of them"),
        "next": "Next iteration",
    },
    "zh-CN": {
        "guess": ("13：每个词元一次", "几乎一样", "连续批处理，早 40%"),
        "more": ("第二个请求来了", "现在来八个"),
        "next": "下一次迭代",
    },
}
READY = "[class*=st-key-predict]"


def check(page):
    assert page.get_by_test_id("stException").count() == 0
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(TOO_SMALL) == []


def press(page, name):
    page.get_by_role("button", name=re.compile(re.escape(name))).click()
    settle(page)


@pytest.mark.parametrize("size", SIZES, ids=["1366x768", "1920x1080"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", WORDS)
def test_a_dozen_clicks_lead_from_one_request_to_eight(open_page, locale, theme, size):
    words = WORDS[locale]
    page = open_page("/one_request", theme=theme, locale=locale, size=size, ready=READY)
    assert page.evaluate(UNDER_THE_HEADER) == []
    check(page)
    for stage, begins in enumerate((1, 3)):
        press(page, words["guess"][stage])
        for done in range(begins, 7):
            expect(page.get_by_test_id("stMetricValue").first).to_have_text(str(done))
            if done < 6:
                press(page, words["next"])
        expect(page.locator(".katex-display")).to_be_visible()
        check(page)
        press(page, words["more"][stage])
    press(page, words["guess"][2])
    expect(page.locator(".lab .picture")).to_be_visible()
    settle(page)
    check(page)


def test_the_picture_is_on_one_screen(open_page):
    page = open_page("/one_request?requests=2", ready=READY)
    press(page, "hardly longer")
    box = page.get_by_test_id("stMetricValue").last.bounding_box()
    assert box["y"] + box["height"] <= 768


def test_arrow_keys_step(open_page):
    page = open_page("/one_request", ready=READY)
    press(page, "6: one for each token of the answer")
    first = page.get_by_test_id("stMetricValue").first
    expect(first).to_have_text("1")
    page.keyboard.press("ArrowRight")
    expect(first).to_have_text("2")
    page.keyboard.press("ArrowLeft")
    expect(first).to_have_text("1")


def test_the_number_of_requests_is_in_the_link_and_back_goes_back(open_page):
    page = open_page("/one_request?requests=2", ready=READY)
    expect(page.get_by_role("button", name="hardly longer")).to_be_visible()
    page.get_by_role("radio", name="8", exact=True).click()
    expect(page).to_have_url(re.compile("requests=8"))
    expect(page.get_by_role("button", name="continuous, 40 % sooner")).to_be_visible()


def test_a_guess_stays_over_other_pages(open_page):
    page = open_page("/one_request", ready=READY)
    press(page, "13: one for each token")
    page.get_by_role("link", name="Start", exact=True).click()
    expect(page.locator(".lab .picture")).to_be_visible()
    page.get_by_role("link", name="One request", exact=True).first.click()
    expect(page.get_by_text("You said:")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("1")
