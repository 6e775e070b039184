"""The lesson on preemption in Chromium."""

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import figures, settle, slide

PARTS = ("cost", "which", "expected", "victim", "checkpoint", "exercise")
VIEWS = [
    ("light", "en", (1366, 768), "&pick=F"),
    ("dark", "zh", (1366, 768), "&pick=B&lines=printed&shared=4"),
]


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(
        f"/preemption?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1"
    )
    if part == "cost":
        page.locator("[class*=st-key-predict] button").nth(1).click()
        expect(page.get_by_test_id("stMetric").first).to_be_visible()
    if part != "exercise":
        expect(page.locator(".deriv math").first).to_be_visible()
    settle(page)
    return page


@pytest.mark.parametrize(("theme", "language", "size", "more"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, theme, language, size, more):
    for part in PARTS:
        page = opened(open_page, part, theme, language, size, more)
        page.wait_for_timeout(300)
        assert looks.faults(page) == [], part
        page.close()


def test_a_slider_moves_the_border_and_a_link_reproduces_it(open_page):
    page = opened(open_page, "cost", more="&copy=0")
    assert figures(page)[3] == "54"
    slide(page, "Fixed cost of a swap Fs, ms", *["ArrowLeft"] * 8)
    expect(page.get_by_test_id("stMetricValue").nth(3)).to_have_text("11")
    assert "fs=1" in page.url
    again = opened(open_page, "cost", more="&copy=0&fs=1")
    assert figures(again)[3] == "11"


def test_the_learners_victim_is_part_of_the_link(open_page):
    page = opened(open_page, "victim")
    page.get_by_role("button", name="B", exact=True).click()
    expect(page.get_by_text("7 more than asked")).to_be_visible()
    assert "pick=B" in page.url
