"""The lesson on policies in Chromium."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import settle

SIX = "policies=static,orca-oracle,v0-swap,vllm-v1,v1-512,sarathi"
VIEWS = [
    ("table", "light", "en", (1366, 768)),
    ("curves", "dark", "zh", (1366, 768)),
    ("pair", "light", "zh", (1366, 768)),
    ("table", "dark", "zh", (1920, 1080)),
]


def opened(open_page, look, theme="light", language="en", size=(1366, 768), more=SIX):
    page = open_page(
        f"/policies?s=preset-interactive-offline~v-2&lang={language}&look={look}&{more}",
        theme=theme,
        size=size,
        ready="[class*=st-key-predict] button",
    )
    page.locator("[class*=st-key-predict] button").nth(1).click()
    expect(page.get_by_test_id("stMultiSelect")).to_be_visible()
    settle(page)
    return page


@pytest.mark.parametrize(("look", "theme", "language", "size"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, look, theme, language, size):
    page = opened(open_page, look, theme, language, size)
    ready = {"table": ".il-policies", "curves": ".main-svg", "pair": "canvas"}[look]
    expect(page.locator(ready).first).to_be_visible()
    page.wait_for_timeout(300)
    # The caption of the table is for screen readers alone, and clipped on purpose.
    cut = [text for text in page.evaluate(looks.CUT_OFF) if text not in CAPTIONS]
    assert cut == []
    assert page.evaluate(looks.CHART_TEXT_OUTSIDE) == []
    assert page.evaluate(looks.CHART_TEXT_OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


CAPTIONS = ("The numbers of each policy for the same requests", "各策略在相同请求下的各项数字")


def test_a_choice_and_a_look_are_in_the_address(open_page):
    page = opened(open_page, "table")
    page.get_by_test_id("stMultiSelect").get_by_role("button", name="Remove").first.click()
    settle(page)
    expect(page).to_have_url(re.compile("policies=orca-oracle(,|%2C)v0-swap"))
    expect(page.locator(".il-policies thead th")).to_have_count(6)
    page.get_by_text("Distributions", exact=True).click()
    settle(page)
    expect(page).to_have_url(re.compile("look=curves"))
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def test_the_film_opens_where_the_two_part(open_page):
    page = opened(open_page, "pair", more=f"{SIX}&pair=orca-oracle,vllm-v1")
    expect(page.locator("canvas").first).to_be_visible()
    expect(page.get_by_text("part in the very first iteration")).to_be_visible()
    page.get_by_text("At the beginning", exact=True).click()
    settle(page)
    expect(page).to_have_url(re.compile("from=begin"))
    expect(page.locator("canvas").first).to_be_visible()
