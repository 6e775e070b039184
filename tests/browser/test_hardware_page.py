"""The lesson on hardware in Chromium."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import settle, slide

VIEWS = [
    ("roof", "light", "en", (1366, 768)),
    ("batch", "dark", "zh", (1366, 768)),
    ("causes", "light", "zh", (1366, 768)),
    ("delta", "dark", "en", (1366, 768)),
    ("block", "light", "en", (1920, 1080)),
    ("factor", "dark", "zh", (1920, 1080)),
]


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(
        f"/hardware?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1"
    )
    if part == "roof":
        page.locator("[class*=st-key-predict] button").nth(1).click()
        settle(page)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.locator(".deriv math").first).to_be_visible()
    return page


@pytest.mark.parametrize(("part", "theme", "language", "size"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, part, theme, language, size):
    page = opened(open_page, part, theme, language, size)
    page.wait_for_timeout(300)
    assert looks.faults(page, looks.TOO_SMALL) == []


def test_devices_are_kept_in_the_address(open_page):
    page = opened(open_page, "batch", more="&devices=h20,l40s")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("cell", name="L40S")).to_be_visible()
    main.get_by_test_id("stMultiSelect").get_by_label("Remove L40S").or_(
        main.locator('[data-baseweb="tag"]:has-text("L40S") [role="presentation"]')
    ).first.click()
    settle(page)
    expect(page).to_have_url(re.compile("devices=h20(&|$)"))
    expect(main.get_by_role("cell", name="L40S")).to_have_count(0)


def test_the_block_moves_its_numbers(open_page):
    page = opened(open_page, "block")
    slide(page, "Attention block b (tokens)", "ArrowRight")
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text("53.3")
    expect(page).to_have_url(re.compile("blk=80"))
