"""A browser page with the player's bundle in it; bytes go in as base64, JSON comes back."""

from __future__ import annotations

import base64
import shutil

import pytest
from playwright.sync_api import sync_playwright

from ui.player.bundle import player_js

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def player_page(chromium):
    """A page whose `lab` is the player and whose `film` is the last one opened."""
    page = chromium.new_page()
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
    return page


@pytest.fixture
def open_film(player_page):
    """Open a window of a film in the page."""

    def opener(data: bytes):
        player_page.evaluate("(text) => openFilm(text)", base64.b64encode(data).decode())
        return player_page

    return opener
