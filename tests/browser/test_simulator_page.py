"""The simulator page as a person sees it: languages, themes, links, and nothing cut off."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.looks import (
    CHART_TEXT_OUTSIDE,
    CHART_TEXT_OVERLAPS,
    CUT_OFF,
    SIZES,
    TOO_SMALL,
)

WORDS = {"en-US": "Simulator", "zh-CN": "模拟器"}


@pytest.mark.parametrize("size", SIZES, ids=["1366x768", "1920x1080"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", WORDS)
def test_the_page_fits_in_every_language_theme_and_size(open_page, locale, theme, size):
    page = open_page("/simulator?preset=preemption-storm", theme=theme, locale=locale, size=size)
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        WORDS[locale]
    )
    assert page.get_by_test_id("stException").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth <= m.clientWidth }"
    )
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(CHART_TEXT_OUTSIDE) == []
    assert page.evaluate(CHART_TEXT_OVERLAPS) == []


@pytest.mark.parametrize("preset", ["law", "customer-service", "interactive-offline"])
@pytest.mark.parametrize("policy", ["orca", "vllm-v0"])
def test_other_runs_fit_as_well(open_page, preset, policy):
    page = open_page(f"/simulator?preset={preset}&policy={policy}&lang=en")
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(CHART_TEXT_OUTSIDE) == []
    assert page.evaluate(CHART_TEXT_OVERLAPS) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_text_is_smaller_than_twelve_pixels(open_page, theme):
    page = open_page(theme=theme)
    assert page.evaluate(TOO_SMALL) == []


def test_the_chart_is_described_to_those_who_do_not_see_it(open_page):
    page = open_page("/simulator?preset=preemption-storm")
    chart = page.get_by_role("figure")
    expect(chart).to_have_attribute("aria-label", re.compile("1,687 blocks"))


def test_nothing_is_asked_of_another_server(browser, app_url):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(app_url + "/simulator")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=40_000)
    page.close()
    foreign = [url for url in asked if not url.startswith((app_url, "data:", "blob:"))]
    assert foreign == []
