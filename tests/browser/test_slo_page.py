"""The lesson on SLOs and admission in Chromium: its looks, and a measurement beside the page."""

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import settle, slide

PARTS = ("tension", "goodput", "little", "stability", "admission", "exercise")
VIEWS = [("light", "en", (1366, 768)), ("dark", "zh", (1920, 1080))]


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(f"/slo?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1")
    settle(page)
    answers = page.locator("[class*=st-key-predict] button")
    if part != "exercise":
        answers.nth(1).click()
    expect(page.locator(".deriv math").first).to_be_visible(timeout=30_000)
    settle(page)
    return page


@pytest.mark.parametrize(("theme", "language", "size"), VIEWS)
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_cut_off_or_written_over(open_page, part, theme, language, size):
    page = opened(open_page, part, theme, language, size)
    page.wait_for_timeout(300)
    assert looks.faults(page) == []


def test_a_measurement_shows_a_rough_curve_and_can_be_stopped(open_page):
    page = opened(open_page, "goodput")
    page.locator(".st-key-slo-start button").click()
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=60_000)
    expect(page.get_by_text("rough so far").first).to_be_visible()
    stop = page.locator(".st-key-slo-cancel button")
    if stop.is_visible():  # it may have been faster
        stop.click()
        expect(page.get_by_text("what was measured is kept")).to_be_visible(timeout=30_000)
    expect(page.locator(".js-plotly-plot").first).to_be_visible()


def test_a_knob_is_in_the_address(open_page):
    page = opened(open_page, "exercise")
    slide(page, "5 · Engines (one GPU each)", "ArrowRight")
    page.wait_for_url("**engines=2**")
    expect(page.get_by_test_id("stAlert").first).to_contain_text("2 × A100")
