"""The real app on a free port, and Chromium to look at it. No browser is a failure, not a skip."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.driving import settle

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without the background flags Chromium looks for its maker's servers at every start.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_TIMEOUT_S = 60

expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # A page that is still settling on a busy machine is looked at again, twice at most.
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


def browser_path() -> str:
    """Where the browser is, or a failure that says what to do."""
    named = os.environ.get("BROWSER_PATH")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found or not shutil.which(found):
        pytest.fail(
            "The browser tests need Chromium or Google Chrome and found neither: run 'make test', "
            "which installs it, or name it with BROWSER_PATH=/path/to/chrome.",
            pytrace=False,
        )
    return found


@pytest.fixture(scope="session")
def app_url() -> Iterator[str]:
    """The address of the app, started for these tests with its own settings."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_healthy(process, url, log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_healthy(process: subprocess.Popen, url: str, log) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    log.seek(0)
    pytest.fail(f"The app did not start:\n{log.read().decode(errors='replace')}", pytrace=False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # A browser from a snap sees nothing of /tmp, where its profile would be made.
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    flags = [*FLAGS, *(["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else [])]
    path = browser_path()
    environment = {**os.environ, "TMPDIR": str(folder)} if _is_snap(path) else None
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=flags, env=environment)
        yield chromium
        chromium.close()


def _is_snap(path: str) -> bool:
    return Path("/snap/bin").exists() and "chrom" in Path(path).name


@pytest.fixture
def open_page(browser: Browser, app_url: str) -> Iterator[Callable[..., Page]]:
    """A function that opens an address of the app and waits until it has drawn everything.

    What the console complained about is checked when the test ends.
    """
    contexts, complaints = [], []

    def opened(
        address: str = "/simulator",
        *,
        theme: str = "light",
        locale: str = "en-US",
        size: tuple[int, int] = (1366, 768),
        ready: str = ".js-plotly-plot .main-svg",
    ) -> Page:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=theme,
            locale=locale,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda message: complaints.append(message.text) if _is_complaint(message) else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        page.goto(app_url + address)
        expect(page.locator(ready).first).to_be_visible(timeout=40_000)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints


def _is_complaint(message: ConsoleMessage) -> bool:
    """On a deep link Streamlit first looks for its server below the page's own path: a 404."""
    return message.type == "error" and "/_stcore/" not in message.location.get("url", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """A browser test that is skipped has not been run: that is a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and "browser" in item.keywords:
        report.outcome = "failed"
        report.longrepr = f"A browser test may not be skipped: {report.longrepr}"
    return report
