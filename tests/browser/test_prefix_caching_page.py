"""The lesson on prefix caching in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import settle, slide

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "mooncake_sample.jsonl"
VIEWS = [
    ("turns", "light", "en", (1366, 768)),
    ("memory", "dark", "zh", (1366, 768)),
    ("replicas", "dark", "en", (1920, 1080)),
    ("trace", "light", "zh", (1366, 768)),
]


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(
        f"/prefix_caching?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1"
    )
    if part == "turns":
        page.locator("[class*=st-key-predict] button").nth(3).click()
        settle(page)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=30_000)
    expect(page.locator(".deriv math").first).to_be_visible()
    return page


@pytest.mark.parametrize(("part", "theme", "language", "size"), VIEWS)
def test_nothing_is_cut_off_or_written_over(open_page, part, theme, language, size):
    page = opened(open_page, part, theme, language, size)
    page.wait_for_timeout(300)
    assert looks.faults(page, looks.TOO_SMALL) == []


def test_a_longer_message_moves_picture_and_address(open_page):
    page = opened(open_page, "turns")
    slide(page, "Further message (tokens)", "ArrowRight")
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text("1,905")
    expect(page).to_have_url(re.compile("tmessage=61"))


def test_an_uploaded_trace_takes_the_place_of_the_sample(open_page):
    page = open_page("/simulator?view=files&lang=en", ready="h1")
    file = {"name": SAMPLE.name, "mimeType": "text/plain", "buffer": SAMPLE.read_bytes()}
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)
    page.get_by_role("button", name="Use these requests").click()
    expect(page.get_by_role("button", name="In use")).to_be_visible()
    page.get_by_text("More lessons").click()
    page.get_by_text("Prefix caching", exact=True).click()
    page.get_by_role("radio", name="6 · A trace").click()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(f"Your file: {SAMPLE.name}")).to_be_visible()
    expect(main.locator(".js-plotly-plot .main-svg").first).to_be_visible()
