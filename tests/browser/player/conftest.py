"""The player in Chromium: alone in an empty page, and on a small Streamlit page of its own."""

from __future__ import annotations

import base64
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import ROOT
from ui.player.bundle import player_js

START_TIMEOUT_S = 60


@pytest.fixture(scope="session")
def player_page(browser: Browser) -> Iterator[Page]:
    """A page whose `lab` is the player's bundle and whose `film` is the last one opened."""
    page = browser.new_page()
    page.set_content("<!doctype html><meta charset=utf-8>")
    page.evaluate(f"() => {{ window.lab = ({player_js()})(); }}")
    page.evaluate(
        """() => {
            window.openFilm = (text) => {
                const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
                window.film = new window.lab.Film(bytes);
            };
        }"""
    )
    yield page
    page.close()


@pytest.fixture
def open_film(player_page: Page) -> Callable[[bytes], Page]:
    """Open a window of a film in that page."""

    def opened(data: bytes) -> Page:
        player_page.evaluate("(text) => openFilm(text)", base64.b64encode(data).decode())
        return player_page

    return opened


@pytest.fixture(scope="session")
def film_url() -> Iterator[str]:
    """The address of the page with nothing but the player."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "tests/browser/player/film_app.py"]
    process = subprocess.Popen(
        [*command, "--server.port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until and process.poll() is None:
            try:
                with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1):
                    break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def open_player(browser: Browser, film_url: str) -> Iterator[Callable[..., Page]]:
    """Open the page of the player; complaints of the console fail the test at its end."""
    contexts, complaints = [], []

    def opened(
        address: str,
        *,
        theme: str = "light",
        size: tuple[int, int] = (1366, 800),
        motion: str = "no-preference",
    ) -> Page:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=theme,
            reduced_motion=motion,
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: complaints.append(message.text) if message.type == "error" else None,
        )
        page.goto(film_url + address)
        expect(page.locator(".lab .picture")).to_be_visible(timeout=40_000)
        expect(page.locator(".lab .range")).to_have_attribute("style", re.compile("width"))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints
