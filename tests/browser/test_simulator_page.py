"""The simulator page as a person sees it: languages, themes, links, and nothing cut off."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.driving import figures, pick, settle

SIZES = [(1366, 768), (1920, 1080)]
WORDS = {"en-US": "Simulator", "zh-CN": "模拟器"}

CUT_OFF = """() => {
  const cut = [];
  const seen = '[data-testid="stMain"] *, [data-testid="stSidebar"] *';
  for (const e of document.querySelectorAll(seen)) {
    if (!e.childNodes.length || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
      continue;
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!box.width || style.visibility === 'hidden' || e.closest('svg')) continue;
    const hides = style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1;
    let clipper = e.parentElement, clipped = false;
    while (clipper && clipper !== document.body) {
      const s = getComputedStyle(clipper), b = clipper.getBoundingClientRect();
      if (s.overflowX !== 'visible' && (box.right > b.right + 1 || box.left < b.left - 1))
        clipped = true;
      clipper = clipper.parentElement;
    }
    if (hides || clipped) cut.push(e.textContent.trim().slice(0, 60));
  }
  return cut;
}"""

CHART_TEXT_OUTSIDE = """() => {
  const out = [];
  for (const chart of document.querySelectorAll('.js-plotly-plot')) {
    const frame = chart.getBoundingClientRect();
    for (const text of chart.querySelectorAll('svg text')) {
      const b = text.getBoundingClientRect();
      if (!b.width) continue;
      if (b.left < frame.left - 1 || b.right > frame.right + 1 ||
          b.top < frame.top - 1 || b.bottom > frame.bottom + 1) out.push(text.textContent);
    }
  }
  return out;
}"""

CHART_TEXT_OVERLAPS = """() => {
  const out = [];
  for (const chart of document.querySelectorAll('.js-plotly-plot')) {
    const texts = [...chart.querySelectorAll('svg text')].filter(t => t.textContent.trim());
    const boxes = texts.map(t => t.getBoundingClientRect());
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const a = boxes[i], b = boxes[j];
      if (!a.width || !b.width) continue;
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 2 && y > 4) out.push(texts[i].textContent + ' | ' + texts[j].textContent);
    }
  }
  return out;
}"""


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
    small = page.evaluate(
        """() => [...document.querySelectorAll('svg text, p, label, button, span')]
            .filter(e => e.getBoundingClientRect().width && e.textContent.trim()
                && parseFloat(getComputedStyle(e).fontSize) < 12)
            .map(e => e.textContent)"""
    )
    assert small == []


def test_another_policy_and_preset_change_the_numbers(open_page):
    page = open_page()
    before = figures(page)
    pick(page, "Scheduling policy", "Static batching")
    expect(page.get_by_test_id("stMetricValue").first).not_to_have_text(before[0])
    static = figures(page)
    pick(page, "Preset", "Preemption storm")
    expect(page.get_by_test_id("stMetricValue").first).not_to_have_text(static[0])
    assert len({tuple(before), tuple(static), tuple(figures(page))}) == 3
    # The new preset begins with its own policy, and the address says only what differs.
    expect(page).to_have_url(re.compile("preset=preemption-storm"))
    assert parse_qs(urlsplit(page.url).query) == {"preset": ["preemption-storm"], "v": ["1"]}


def test_reload_back_and_forward_keep_the_choices(open_page):
    page = open_page()
    pick(page, "Scheduling policy", "Orca")
    expect(page).to_have_url(re.compile("policy=orca"))
    orca = figures(page)
    page.reload()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    settle(page)
    assert figures(page) == orca
    pick(page, "Scheduling policy", "Sarathi-Serve")
    expect(page).to_have_url(re.compile("policy=sarathi"))
    page.go_back()
    expect(page).to_have_url(re.compile("policy=orca"))
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(orca[0])
    page.go_forward()
    expect(page).to_have_url(re.compile("policy=sarathi"))


def test_a_link_made_in_chinese_opens_in_english(open_page):
    chinese = open_page(locale="zh-CN")
    pick(chinese, "调度策略", "静态批处理")
    expect(chinese).to_have_url(re.compile("policy=static"))
    address = re.sub(r"^https?://[^/]+", "", chinese.url)
    english = open_page(address, locale="en-US")
    expect(english.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        "Simulator"
    )
    assert figures(english)[0].split()[0] == figures(chinese)[0].split()[0]


def test_the_language_can_be_changed_and_is_in_the_link(open_page):
    page = open_page("/simulator?preset=law")
    pick(page, "Language · 语言", "简体中文")
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text("模拟器")
    expect(page).to_have_url(re.compile("lang=zh"))
    assert "preset=law" in page.url


def test_a_link_with_every_choice_opens_cold(open_page):
    page = open_page(
        "/simulator?preset=law&policy=sarathi&hardware=h100-sxm&gpus=4&model=llama-3.1-70b&lang=zh&v=1"
    )
    chosen = page.get_by_test_id("stSelectbox").locator("input").all()
    assert [field.input_value() for field in chosen] == [
        "法律长文",
        "Sarathi-Serve",
        "H100 SXM",
        "4",
        "Llama-3.1-70B",
        "简体中文",
    ]


def test_a_model_that_does_not_fit_is_explained_beside_the_control(open_page):
    page = open_page("/simulator?model=llama-3-70b", ready="[data-testid=stAlert]")
    expect(page.get_by_test_id("stSidebar").get_by_test_id("stAlert")).to_contain_text(
        "use 4 GPUs"
    )
    assert page.get_by_test_id("stException").count() == 0
    assert page.evaluate(CUT_OFF) == []


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
