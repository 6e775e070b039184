"""What can be taken along: a file that plays without a network, a picture, a video."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.player.recordings import film_result
from ui.player.standalone import compare_html, film_html


def choose(page: Page, item: str) -> None:
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name=item).click()


def offline(browser: Browser, path: Path) -> Page:
    context = browser.new_context(viewport={"width": 1366, "height": 800})
    context.set_offline(True)
    page = context.new_page()
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    expect(page.locator(".lab .picture")).to_be_visible()
    return page


def row_of(page: Page) -> int:
    return int(page.locator(".lab .range").input_value())


def assert_plays(page: Page) -> None:
    before = row_of(page)
    page.locator(".stage").focus()
    page.keyboard.press("Space")
    page.wait_for_timeout(600)
    page.keyboard.press("Space")
    assert row_of(page) > before
    assert len(page.requests) == 1  # the file itself
    page.context.close()


def test_the_downloaded_film_plays_with_the_network_cut(
    open_player: Callable[..., Page], browser: Browser, tmp_path: Path
):
    page = open_player("/?case=v1_thrash&iteration=218&lang=zh")
    page.get_by_role("button", name="更多").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="下载影片").click()
    assert download.value.suggested_filename == "film.html"
    path = tmp_path / "film.html"
    download.value.save_as(path)
    copy = offline(browser, path)
    assert row_of(copy) == 218
    expect(copy.locator(".decisions li").first).to_contain_text("r21 被抢占")
    expect(copy.get_by_role("button", name="播放")).to_be_visible()
    assert_plays(copy)


def test_a_film_made_without_a_browser(browser: Browser, tmp_path: Path):
    path = tmp_path / "film.html"
    path.write_text(film_html(film_result("v0_tight_swap"), title="<b>swap</b>"), encoding="utf-8")
    page = offline(browser, path)
    assert page.title() == "<b>swap</b>"
    page.get_by_label("Kind of moment to jump to").select_option("swap")
    page.locator(".stage").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".decisions")).to_contain_text("is swapped out")
    assert_plays(page)


def test_a_comparison_as_a_file(browser: Browser, tmp_path: Path):
    results = [film_result("start_static"), film_result("start_continuous")]
    path = tmp_path / "compare.html"
    path.write_text(compare_html(results, titles=["Static", "Continuous"]), encoding="utf-8")
    page = offline(browser, path)
    page.locator(".stage").focus()
    page.keyboard.press("End")
    expect(page.locator(".spoken")).to_contain_text("Static: 8 of 8 finished")
    page.keyboard.press("Home")
    assert_plays(page)


def test_a_picture_of_the_frame(open_player: Callable[..., Page], tmp_path: Path):
    page = open_player("/?case=v1_thrash&iteration=220")
    page.get_by_role("button", name="More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture of this frame").click()
    data = Path(download.value.path()).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 900
    assert height > 600
    assert len(data) > 40_000  # it is not empty


def test_a_video_from_the_canvas(open_player: Callable[..., Page]):
    page = open_player("/?case=v1_thrash&iteration=100")
    choose(page, "Record video")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Stop recording").click()
    assert download.value.suggested_filename == "film.webm"
    data = Path(download.value.path()).read_bytes()
    assert data[:4] == b"\x1a\x45\xdf\xa3"  # EBML, the container of WebM
    assert len(data) > 5_000
