"""No formula is cut off, in either theme: lessons with a viewer, validation, the formula sheet."""

import pytest
from playwright.sync_api import expect

from formulas import entries, get
from tests.browser.driving import settle
from ui.pages import exists

LOOKS = [("light", "en"), ("dark", "zh")]
LESSONS = {  # page: its parts that show a viewer
    "throughput": ("claim", "checks", "model"),
    "preemption": ("cost", "expected", "checkpoint"),
    "hardware": ("roof", "causes", "delta", "factor"),
    "slo": ("tension", "stability", "admission"),
}
PARTS = [(page, part) for page, parts in LESSONS.items() if exists(page) for part in parts]
# Of the page on validation: the rows with the widest formulas.
ROWS = ("improvement", "padding_geometric", "chunk_budget", "ttft_p99", "time_srpt", "goodput")

GUESSES = "[class*=st-key-predict] button"

CUT = """() => {
  const out = [];
  const host = [...document.querySelectorAll('*')].find(e => e.shadowRoot?.querySelector('.deriv'));
  if (!host) return ['no viewer'];
  const root = host.shadowRoot.querySelector('.deriv');
  const frame = root.getBoundingClientRect();
  for (const box of root.querySelectorAll('.formula')) {
    const b = box.getBoundingClientRect();
    if (!b.width) continue;
    const moves = box.classList.contains('wide') && !box.classList.contains('main');
    if (moves) out.push('moves: ' + box.textContent);
    else if (box.scrollWidth > box.clientWidth + 1) out.push('wide: ' + box.textContent);
    for (const part of box.querySelectorAll('math, mfrac, mrow, mi, mn, mo, msub')) {
      const p = part.getBoundingClientRect();
      const beyond = p.right > b.right + 1 && !moves;
      if (p.width && (p.top < b.top - 1 || p.bottom > b.bottom + 1 || beyond))
        out.push('cut: ' + part.textContent);
    }
  }
  for (const e of root.querySelectorAll('button, p, span, td, th, li')) {
    const b = e.getBoundingClientRect();
    if (b.width && (b.right > frame.right + 1 || b.bottom > frame.bottom + 1))
      out.push('outside: ' + e.textContent);
  }
  return out;
}"""

CUT_ON_THE_SHEET = """() => [...document.querySelectorAll('.katex-display')].filter(box => {
  const b = box.getBoundingClientRect();
  if (!b.width) return true;
  return box.scrollWidth > box.clientWidth + 1 ||
    [...box.querySelectorAll('.katex-html .mord')].some(part => {
      const p = part.getBoundingClientRect();
      return p.width && (p.top < b.top - 1 || p.bottom > b.bottom + 1 || p.right > b.right + 1);
    });
}).map(box => box.textContent.slice(0, 60))"""


def cut_in_the_viewer(page):
    """What of the formula that is shown is cut off, with every step and on every tab."""
    everything = page.locator(".deriv [data-do=all]")
    if everything.is_visible() and everything.get_attribute("aria-pressed") != "true":
        everything.click()
    found = []
    for tab in page.locator(".deriv [data-tab]").all():
        tab.click()
        page.wait_for_timeout(60)
        found += page.evaluate(CUT)
    return found


def cut_in_the_viewers(page):
    """The same of all formulas of a part, by name."""
    expect(page.locator(".deriv math").first).to_be_visible()
    choices = page.locator('[class*="-formula-"] [data-testid="stButtonGroup"] button')
    found = {}
    for place in range(choices.count()):
        name = choices.nth(place).inner_text().split()[0]
        choices.nth(place).click()
        settle(page)
        expect(page.locator(".deriv [data-part=id]")).to_have_text(name)
        cut = cut_in_the_viewer(page)
        if cut:
            found[name] = cut
    assert choices.count()
    return found


@pytest.mark.parametrize(("theme", "language"), LOOKS)
@pytest.mark.parametrize(("lesson", "part"), PARTS)
def test_formulas_of_a_lesson_fit(open_page, lesson, part, theme, language):
    page = open_page(
        f"/{lesson}?lang={language}&part={part}", theme=theme, ready=f"{GUESSES}, .deriv math"
    )
    guesses = page.locator(GUESSES)
    if guesses.count():
        guesses.first.click()
        settle(page)
    assert cut_in_the_viewers(page) == {}


@pytest.mark.parametrize(("theme", "language"), LOOKS)
@pytest.mark.parametrize("row", ROWS)
def test_formulas_of_the_validation_fit(open_page, row, theme, language):
    page = open_page(f"/validation?lang={language}&row={row}", theme=theme)
    assert cut_in_the_viewers(page) == {}


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_formulas_of_the_sheet_fit(open_page, theme, language):
    page = open_page(f"/reference?lang={language}", theme=theme, ready=".katex-display")
    page.locator(".st-key-tools").get_by_test_id("stCheckbox").locator("label").click()  # the whole
    expect(page.locator(".katex-display")).to_have_count(len(entries()), timeout=60_000)
    settle(page)
    assert page.evaluate(CUT_ON_THE_SHEET) == []


@pytest.mark.parametrize(("theme", "language"), LOOKS)
@pytest.mark.parametrize("name", sorted(entries(), key=lambda n: len(get(n).latex()))[-4:])
def test_the_longest_formulas_of_the_reference_fit(open_page, name, theme, language):
    page = open_page(f"/reference?lang={language}&id={name}", theme=theme, ready=".deriv math")
    assert cut_in_the_viewer(page) == []
