"""The page on validation in Chromium: looks, the table, and what a link keeps."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import figures, settle

VIEWS = [
    ("light", "en", (1366, 768), "ttft_mean.bursty"),
    ("dark", "zh", (1920, 1080), "wait_by_size.guessed"),
]


def opened(open_page, more="", theme="light", language="en", size=(1366, 768)):
    return open_page(f"/validation?lang={language}{more}", theme=theme, size=size)


@pytest.mark.parametrize(("theme", "language", "size", "row"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, theme, language, size, row):
    page = opened(open_page, f"&row={row}", theme, language, size)
    expect(page.locator(".deriv math").first).to_be_visible()
    page.wait_for_timeout(300)
    assert looks.faults(page) == []


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
def test_the_recorded_schedules_are_whole(open_page, theme, language):
    page = open_page(f"/validation?lang={language}&part=recorded", theme=theme, ready="table")
    assert page.evaluate(looks.CUT_OFF) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_row_of_the_table_is_chosen_and_kept_in_the_address(open_page):
    page = opened(open_page, "&topic=chunking")
    assert figures(page)[4].startswith("429.6")
    table = page.get_by_test_id("stDataFrame")
    table.click(position={"x": 200, "y": 35 * 6 + 17})  # the sixth row below the head
    expect(page).to_have_url(re.compile(r"row=stall\.chunked"))
    settle(page)
    assert [number.split()[0] for number in figures(page)[4:]] == ["413.6", "204.7"]


def test_an_assumption_is_broken(open_page):
    page = opened(open_page, "&row=queue_cap")
    page.get_by_role("radio", name="fixed time on top", exact=True).click()
    expect(page).to_have_url(re.compile(r"row=queue_cap\.overhead"))
    settle(page)
    assert [number.split()[0] for number in figures(page)[4:]] == ["10,000", "7,000"]
