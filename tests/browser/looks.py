"""Questions to a page about its looks, in the browser's language: each answers what is wrong."""

from playwright.sync_api import Page

SIZES = [(1366, 768), (1920, 1080)]

CUT_OFF = """() => {
  const cut = [];
  const seen = '[data-testid="stMain"] *, [data-testid="stSidebar"] *';
  for (const e of document.querySelectorAll(seen)) {
    const says = n => n.nodeType === 3 && /[\\p{L}\\p{N}]/u.test(n.data);
    if (![...e.childNodes].some(says)) continue;
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!box.width || style.visibility === 'hidden' || e.closest('svg')) continue;
    if (e.closest('.katex-mathml')) continue;  // for screen readers, clipped on purpose
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

TOO_SMALL = """() => [...document.querySelectorAll('svg text, p, label, button, span, i, small, b')]
  .filter(e => e.getBoundingClientRect().width
    && /[\\p{L}\\p{N}]/u.test(e.textContent)
    && parseFloat(getComputedStyle(e).fontSize) < 12)
  .map(e => e.textContent)"""

UNDER_THE_HEADER = """() => {
  const bar = document.querySelector('[data-testid="stHeader"]').getBoundingClientRect();
  const title = document.querySelector('[data-testid="stMain"] h1');
  const box = title.getBoundingClientRect(), top = parseFloat(getComputedStyle(title).paddingTop);
  return box.top + top < bar.bottom ? [title.textContent] : [];
}"""

WIDER_THAN_THE_WINDOW = """() => document.documentElement.scrollWidth > innerWidth
  ? [document.documentElement.scrollWidth] : []"""


def faults(page: Page, *more: str) -> list[tuple[str, list]]:
    """What is cut off, written over or too wide, by its question; and what ``more`` asks."""
    questions = (CUT_OFF, CHART_TEXT_OUTSIDE, CHART_TEXT_OVERLAPS, WIDER_THAN_THE_WINDOW, *more)
    return [(question, found) for question in questions if (found := page.evaluate(question))]
