"""Films longer than a window: the player asks for what it does not have."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

ADDRESS = "/?case=v1_thrash&window_bytes=9000"


def test_the_page_sends_the_window_that_is_asked_for(open_player: Callable[..., Page]):
    page = open_player(ADDRESS)
    page.locator(".stage").focus()
    page.keyboard.press("End")
    expect(page.locator(".why-head .quiet").first).to_have_text("iteration 642")
    expect(page.get_by_text(re.compile("^iteration 642, "))).to_be_visible()
    page.locator(".stage").focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".message")).to_be_hidden()
    row = int(page.locator(".lab .range").input_value())
    assert row < 642
    expect(page.locator(".why-head .quiet").first).to_have_text(f"iteration {row}")


def test_it_plays_across_the_border(open_player: Callable[..., Page]):
    page = open_player(f"{ADDRESS}&iteration=0&speed=16")
    page.get_by_role("button", name="More").click()
    page.get_by_label("At events").select_option("play")
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Play").click()
    until = time.monotonic() + 20
    while int(page.locator(".lab .range").input_value()) < 260:  # beyond the first border
        assert time.monotonic() < until
        page.wait_for_timeout(50)
    page.get_by_role("button", name="Pause").click()
    row = int(page.locator(".lab .range").input_value())
    expect(page.locator(".why-head .quiet").first).to_have_text(f"iteration {row}")


def test_a_download_gathers_all_windows(open_player: Callable[..., Page], tmp_path):
    page = open_player(ADDRESS)
    page.get_by_role("button", name="More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download film").click()
    path = tmp_path / "film.html"
    download.value.save_as(path)
    context = page.context.browser.new_context(viewport={"width": 1366, "height": 800})
    context.set_offline(True)
    copy = context.new_page()
    copy.goto(path.as_uri())
    copy.locator(".stage").focus()
    for key, row in (("End", 642), ("Home", 0), ("End", 642)):
        copy.keyboard.press(key)
        expect(copy.locator(".why-head .quiet").first).to_have_text(f"iteration {row}")
    context.close()
