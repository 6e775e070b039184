"""The planner in Chromium: its looks, a check that runs, a plan that goes into the panel."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import settle

VIEWS = [
    ("plan", "light", "en", (1366, 768)),
    ("pools", "dark", "zh", (1366, 768)),
    ("load", "light", "zh", (1920, 1080)),
]


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(
        f"/planner?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1"
    )
    settle(page)
    if part == "plan":
        page.locator("[class*=st-key-predict] button").nth(2).click()
        settle(page)
    return page


@pytest.mark.parametrize(("part", "theme", "language", "size"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, part, theme, language, size):
    page = opened(open_page, part, theme, language, size)
    expect(page.locator(".deriv math").first).to_be_visible()
    if part == "load":
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    page.wait_for_timeout(300)
    assert looks.faults(page, looks.TOO_SMALL) == []


def test_a_check_runs_and_the_plan_goes_into_the_panel(open_page):
    page = opened(open_page, "check", more="&rate=12")
    main = page.get_by_test_id("stMain")
    main.locator(".st-key-plan-check button").click()
    expect(main.get_by_text("The plan holds")).to_be_visible(timeout=60_000)
    expect(main.get_by_role("cell", name="keeps it").first).to_be_visible()
    main.get_by_text("1 · Plan").click()
    settle(page)
    page.locator("[class*=st-key-predict] button").nth(1).click()
    settle(page)
    expect(main.get_by_role("cell", name=re.compile("attainment 100 %"))).to_be_visible()
    main.locator(".st-key-plan-adopt button").click()
    settle(page)
    expect(main.get_by_text("The panel has this plan.")).to_be_visible()
    expect(page).to_have_url(re.compile("s=preset-customer-service~bd-"))
