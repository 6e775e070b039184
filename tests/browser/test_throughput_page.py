"""The lesson on throughput and the derivation viewer in Chromium."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.driving import figures, settle, slide, slider

PARTS = ("claim", "checks", "model", "runs")
VIEWS = [
    ("light", "en", (1366, 768)),
    ("dark", "zh", (1366, 768)),
    ("light", "zh", (1920, 1080)),
    ("dark", "en", (1920, 1080)),
]


def predicted(page):
    """Answer the lesson's question, so that it goes on."""
    page.locator("[class*=st-key-predict] button").nth(2).click()
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    settle(page)


def opened(open_page, part, theme="light", language="en", size=(1366, 768), more=""):
    page = open_page(
        f"/throughput?lang={language}&part={part}{more}", theme=theme, size=size, ready="h1"
    )
    if part == "claim":
        predicted(page)
    if part != "runs":
        expect(page.locator(".deriv math").first).to_be_visible()
    return page


@pytest.mark.parametrize(("theme", "language", "size"), VIEWS)
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_cut_off_or_written_over(open_page, part, theme, language, size):
    page = opened(open_page, part, theme, language, size)
    page.wait_for_timeout(300)
    assert looks.faults(page) == []


def test_steps_go_forward_and_back(open_page):
    page = opened(open_page, "claim")
    where, steps = page.locator(".deriv .walk .where"), page.locator(".deriv .steps li.now")
    expect(where).to_have_text("Step 1 of 17")
    page.locator(".deriv [data-do=next]").click()
    expect(where).to_have_text("Step 2 of 17")
    expect(steps).to_contain_text("Continuous batching as the text has it")
    page.locator(".deriv [data-do=back]").click()
    expect(where).to_have_text("Step 1 of 17")
    expect(page.locator(".deriv [data-do=back]")).to_be_disabled()


def test_a_symbol_says_what_it_means(open_page):
    page = opened(open_page, "claim")
    about = page.locator(".deriv [data-part=about]")
    batch = page.locator('.deriv [data-part=formula] [data-symbol="B_d"]')
    batch.hover()
    expect(about).to_contain_text("dynamic batch")
    expect(about).to_contain_text("23 request")
    expect(about).to_contain_text("slider “Dynamic batch Bd”")
    page.mouse.move(5, 5)
    expect(about).to_contain_text("Point at a symbol")


def test_symbols_are_reached_with_the_keyboard(open_page):
    page = opened(open_page, "claim")
    about = page.locator(".deriv [data-part=about]")
    page.locator(".deriv [data-do=copy]").focus()
    page.keyboard.press("Tab")
    expect(about).to_contain_text("improvement of throughput")
    page.keyboard.press("ArrowRight")
    expect(about).to_contain_text("dynamic batch")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "held" in page.locator('.deriv [data-part=formula] [data-symbol="B_d"]').get_attribute(
        "class"
    )


def test_a_goal_is_solved_for(open_page):
    page = opened(open_page, "claim")
    page.locator('.deriv [data-tab="change"]').click()
    goal = page.locator(".deriv [data-part=goal]")
    goal.fill("1.3")
    goal.press("Tab")
    expect(page.locator(".deriv table")).to_contain_text("≈ 6.461 request")
    expect(page.locator(".deriv [data-tab=change]")).to_have_attribute("aria-selected", "true")


def test_a_place_stays_while_numbers_change(open_page):
    page = opened(open_page, "claim")
    page.locator(".deriv [data-do=next]").click()
    slide(page, "Dynamic batch Bd", "ArrowRight")
    expect(page.locator(".deriv [data-part=filled]")).to_contain_text("24")
    expect(page.locator(".deriv .walk .where")).to_have_text("Step 2 of 17")


def test_latex_can_be_copied(open_page):
    page = opened(open_page, "claim")
    page.locator(".deriv [data-do=copy]").click()
    expect(page.locator(".deriv textarea")).to_have_value(
        r"\Delta = \frac{B_{d}\,\left( L_{\mathrm{in}} + L \right)}{B_{s}\,L} - 1"
    )
    expect(page.locator(".deriv [data-do=copy]")).to_have_text("Copied")


def test_screen_readers_get_mathml(open_page):
    page = opened(open_page, "claim")
    math = page.locator(".deriv [data-part=formula] math")
    assert math.evaluate("e => e.namespaceURI") == "http://www.w3.org/1998/Math/MathML"
    assert math.locator("mfrac").count() == 1


def test_a_link_reproduces_the_page(open_page):
    page = opened(open_page, "model", more="&lengths=geometric&static=16&dynamic=37")
    assert slider(page, "Static batch Bs").get_attribute("value") == "16"
    page.get_by_text("all equal", exact=True).first.click()
    settle(page)
    expect(page).to_have_url(re.compile("lengths=fixed"))
    assert figures(page)[1].startswith("+63.7")


def test_accounting_collapses_the_promise(open_page):
    page = opened(open_page, "claim")
    assert figures(page)[0].startswith("+719")
    page.get_by_text("Both sides alike", exact=True).click()
    settle(page)
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text("+130")


@pytest.mark.parametrize("part", PARTS)
def test_a_slider_move_is_answered(open_page, part):
    """Each of several moves changes what the page says; the time it took is printed."""
    page = opened(open_page, part)
    moved = slider(page, "Dynamic batch Bd")
    for _ in range(2):
        slide(page, "Dynamic batch Bd", "ArrowRight")
    found = []
    for _ in range(5):
        before = page.evaluate(STATE)
        began = time.perf_counter()
        moved.press("ArrowRight")
        page.wait_for_function(f"(before) => ({STATE})() !== before", arg=before, polling=10)
        found.append(time.perf_counter() - began)
        settle(page)
    print(part, [round(1e3 * seconds) for seconds in found], "ms")


STATE = """() => {
  const said = '[data-testid="stMetricValue"], [data-testid="stMarkdown"]';
  const main = document.querySelector('[data-testid="stMain"]');
  return [...main.querySelectorAll(said)].map(e => e.textContent).join();
}"""
