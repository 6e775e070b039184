"""How soon the simulator page answers: from a key on a slider to new numbers and to a new chart.

``python -m benchmarks.bench_simulator_page [URL]`` prints one line a preset, of the app at the URL
or of one started for it. Every value of the slider is a scenario nobody has asked for before, so
the simulation, its figures and the browser's drawing are all in the times.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from benchmarks.report import table
from tests.browser.conftest import FLAGS, browser_path
from tests.browser.driving import settle

PRESETS = ("customer-service", "preemption-storm", "law", "interactive-offline")
CHANGES = 8
PORT = 8793

WATCH = """() => {
    const text = () => [...document.querySelectorAll('[data-testid=stMetric]')]
        .map((metric) => metric.textContent).join();
    const drawn = () => [...document.querySelectorAll('.js-plotly-plot .cartesianlayer path')]
        .map((path) => path.getAttribute('d')).join().slice(0, 20000);
    const before = [text(), drawn()], began = performance.now(), found = {};
    window.waited = new Promise((done) => {
        const look = () => {
            const now = performance.now() - began;
            if (!found.numbers && text() !== before[0]) found.numbers = now;
            if (!found.chart && drawn() !== before[1]) found.chart = now;
            if ((found.numbers && found.chart) || now > 8000) done(found);
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}"""


@contextmanager
def app() -> Iterator[str]:
    """The address of an app started for the measurement."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def answers(page: Page, url: str, preset: str) -> list[dict[str, float]]:
    """Milliseconds to new numbers and to a new chart, for some moves of the slider of Lin."""
    page.goto(f"{url}/simulator?preset={preset}&lang=en")
    page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    settle(page)
    slider = page.get_by_test_id("stSidebar").get_by_role("slider").nth(2)
    slider.focus()
    found = []
    for move in range(CHANGES + 2):
        page.wait_for_timeout(400)
        page.evaluate(WATCH)
        slider.press("ArrowLeft")
        answer = page.evaluate("() => window.waited")
        settle(page)
        if move > 1 and len(answer) == 2:  # the first ones load code
            found.append(answer)
    return found


def line(preset: str, found: list[dict[str, float]]) -> tuple[str, ...]:
    """Median and worst of numbers and chart."""
    cells = [preset]
    for name in ("numbers", "chart"):
        times = [answer[name] for answer in found]
        cells += [f"{statistics.median(times):.0f} ms", f"{max(times):.0f} ms"]
    return tuple(cells)


def main(url: str) -> None:
    """Print the table."""
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=[*FLAGS, "--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        for preset in PRESETS:
            rows.append(line(preset, answers(page, url, preset)))
        browser.close()
    head = ("preset", "numbers, median", "worst", "chart, median", "worst")
    print(table("From a key on a slider to the page's answer", head, rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with app() as started:
            main(started)
