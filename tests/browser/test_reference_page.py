"""Reference in Chromium: nothing cut off in any section, links work, the print is a sheet."""

import pytest
from playwright.sync_api import expect

from formulas import entries
from tests.browser.driving import settle
from tests.browser.looks import CUT_OFF, SIZES

READY = {
    "formulas": ".st-key-card-F1 .katex-display",
    "claims": ".st-key-card-A1 table",
    "glossary": ".st-key-wide-glossary table",
    "devices": ".st-key-wide-devices table",
    "models": ".st-key-wide-models table",
    "validation": ".st-key-wide-evidence table",
    "sources": ".st-key-wide-software table",
}
CLIPPED = """() => [...document.querySelectorAll('.katex-display')]
  .filter(e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
  .map(e => e.textContent)"""
# Indices of formulas may be smaller; words may not.
SMALL_WORDS = """() => [...document.querySelectorAll('section :is(p, td, th, li, button)')]
  .filter(e => e.getBoundingClientRect().width && parseFloat(getComputedStyle(e).fontSize) < 12)
  .map(e => e.textContent)"""


def check(page):
    page.evaluate("() => document.fonts.ready.then(() => true)")
    assert page.get_by_test_id("stException").count() == 0
    assert page.locator(".katex-error").count() == 0
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth")
    for question in (CUT_OFF, CLIPPED, SMALL_WORDS):
        assert page.evaluate(question) == []


@pytest.mark.parametrize(
    ("locale", "theme", "size"), [("en-US", "light", SIZES[0]), ("zh-CN", "dark", SIZES[1])]
)
@pytest.mark.parametrize("section", READY)
def test_every_section_is_whole(open_page, section, locale, theme, size):
    page = open_page(
        f"/reference?section={section}",
        locale=locale,
        theme=theme,
        size=size,
        ready=READY[section],
    )
    check(page)


def test_a_link_opens_a_formula_and_buttons_lead_on(open_page):
    page = open_page("/reference?section=formulas&id=F14", ready=".st-key-card-F14 .katex-display")
    assert page.locator("[class*=st-key-card-F]").count() == 1
    check(page)
    page.get_by_role("button", name="F17a", exact=True).click()
    expect(page.locator(".st-key-card-F17a .katex-display")).to_be_visible()
    settle(page)
    assert "id=F17a" in page.url
    page.locator(".st-key-card-F17a").get_by_role("button", name="A13", exact=True).click()
    expect(page.locator(".st-key-card-A13")).to_be_visible()
    settle(page)
    assert "id=A13" in page.url
    page.go_back()
    expect(page.locator(".st-key-card-F17a")).to_be_visible()
    settle(page)
    check(page)


def test_a_jump_starts_at_the_top(open_page):
    page = open_page("/reference", ready=READY["formulas"])
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.locator(".st-key-card-F1")).to_have_count(0)
    settle(page)
    expect(page.get_by_role("heading", name="Reference")).to_be_in_viewport()


def test_all_formulas_are_whole_on_screen_and_on_paper(open_page):
    page = open_page("/reference", ready=READY["formulas"])
    page.get_by_text("All on one page").click()
    expect(page.locator("[class*=st-key-card-F]")).to_have_count(len(entries()), timeout=30_000)
    settle(page)
    check(page)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})
    for gone in ("stSidebar", "stHeader", "stButton", "stTextInput"):
        expect(page.get_by_test_id(gone).first).to_be_hidden()
    assert page.evaluate(CLIPPED) == []
    expect(page.locator(".st-key-card-F14 .katex-display")).to_be_visible()
