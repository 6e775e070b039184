"""Play, pause, step, scrub and jump on a page, and what the page learns of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

THRASH = "/?case=v1_thrash"
PREEMPTIONS = (205, 218)  # of the recording; the first two moments of any kind are in 205 and 217


def position(page: Page) -> int:
    return int(page.locator(".lab .range").input_value())


def expect_position(page: Page, row: int) -> None:
    expect(page.locator(".lab .range")).to_have_value(str(row))


def wait_until(page: Page, holds: Callable[[int], bool], timeout_s: float = 20) -> int:
    """The position as soon as it satisfies a condition, however slow the machine is."""
    until = time.monotonic() + timeout_s
    while not holds(row := position(page)):
        assert time.monotonic() < until, f"still at {row}"
        page.wait_for_timeout(30)
    return row


def expect_told(page: Page, row: int) -> None:
    """The inspector and the page show the same iteration."""
    expect(page.locator(".why-head .quiet").first).to_contain_text(re.compile(rf"\b{row:,}$"))
    expect(page.get_by_text(re.compile(rf"^iteration {row}, "))).to_be_visible()


def press(page: Page, *keys: str) -> None:
    page.locator(".lab .stage").focus()
    for key in keys:
        page.keyboard.press(key)


def test_play_advances_and_pause_tells_the_page(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    expect_told(page, 100)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    wait_until(page, lambda row: row > 103)
    page.get_by_role("button", name="Pause").click()
    expect_told(page, position(page))


def test_buttons_step_forward_and_back(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    page.get_by_role("button", name="One iteration forward").click()
    expect_told(page, 101)
    page.get_by_role("button", name="One iteration back").click()
    page.get_by_role("button", name="One iteration back").click()
    expect_told(page, 99)


def test_keyboard(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    press(page, "ArrowRight", "ArrowRight", "ArrowLeft")
    expect_told(page, 101)
    press(page, "Home")
    expect_told(page, 0)
    press(page, "ArrowLeft")
    expect_position(page, 0)
    press(page, "End")
    expect_told(page, 642)
    press(page, "?")
    expect(page.get_by_role("dialog")).to_contain_text("previous or next event")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    press(page, "Home", "Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    press(page, "Space")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_space_plays_wherever_the_focus_is(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    play, pause = (page.get_by_role("button", name=name) for name in ("Play", "Pause"))
    page.keyboard.press("Space")  # nothing has been clicked
    expect(pause).to_be_visible()
    page.keyboard.press("Space")
    expect(play).to_be_visible()
    page.get_by_label("Kind of moment to jump to").select_option("preempt")
    page.get_by_role("button", name="Next preemption").click()
    expect_told(page, PREEMPTIONS[0])
    page.keyboard.press("Space")  # the button that was clicked still has the focus
    expect(pause).to_be_visible()
    page.keyboard.press("Space")
    expect(play).to_be_visible()


def test_space_stays_the_key_of_what_the_keyboard_reached(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    page.locator(".lab .range").focus()
    page.keyboard.press("Tab")  # the first button: one iteration back
    page.keyboard.press("Space")
    expect_told(page, 99)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_label("Speed").focus()
    page.keyboard.press("Space")  # opens the choices
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect_position(page, 99)


def test_the_native_range_scrubs_to_the_exact_iteration(open_player: Callable[..., Page]):
    page = open_player(THRASH)
    page.locator(".lab .range").fill("417")
    page.locator(".lab .range").dispatch_event("change")
    expect_told(page, 417)
    page.locator(".lab .range").focus()
    page.keyboard.press("ArrowRight")
    expect_told(page, 418)


def test_dragging_the_bar_lands_where_the_pointer_is(open_player: Callable[..., Page]):
    page = open_player(THRASH)
    bar = page.locator(".lab .range").bounding_box()
    x, y = bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2
    page.mouse.move(x - 200, y)
    page.mouse.down()
    page.mouse.move(x, y, steps=4)
    page.mouse.up()
    row = position(page)
    assert 250 < row < 450  # the bar is even in time, not in iterations
    expect_told(page, row)


def test_jumps_to_moments_of_a_kind(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=100")
    page.get_by_label("Kind of moment to jump to").select_option("preempt")
    press(page, "Shift+ArrowRight")
    expect_told(page, PREEMPTIONS[0])
    page.get_by_role("button", name="Next preemption").click()
    expect_told(page, PREEMPTIONS[1])
    page.get_by_role("button", name="Previous preemption").click()
    expect_told(page, PREEMPTIONS[0])
    page.get_by_role("button", name="Previous preemption").click()
    expect(page.locator(".spoken")).to_contain_text("No further preemption")


@pytest.mark.parametrize(("at_events", "stays"), [("slow", True), ("pause", True), ("play", False)])
def test_events_slow_the_film_down(open_player: Callable[..., Page], at_events: str, stays: bool):
    page = open_player(f"{THRASH}&iteration={PREEMPTIONS[0] - 2}")
    page.get_by_label("Kind of moment to jump to").select_option("preempt")
    page.get_by_role("button", name="More").click()
    page.get_by_label("At events").select_option(at_events)
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Play").click()
    if not stays:
        wait_until(page, lambda row: row > PREEMPTIONS[0])
        return
    wait_until(page, lambda row: row == PREEMPTIONS[0])
    page.wait_for_timeout(500)
    assert position(page) == PREEMPTIONS[0]
    if at_events == "pause":
        expect(page.get_by_role("button", name="Play")).to_be_visible()
    else:  # it goes on by itself
        wait_until(page, lambda row: row > PREEMPTIONS[0])


def test_speed_and_pace(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&speed=16")
    expect(page.get_by_label("Speed")).to_have_value("16")
    page.get_by_role("button", name="More").click()
    page.get_by_label("At events").select_option("play")
    page.get_by_role("button", name="More").click()
    press(page, "Space")
    wait_until(page, lambda row: row > 50)
    press(page, "Space")
    press(page, "ArrowDown")
    expect(page.get_by_label("Speed")).to_have_value("8")
    expect(page.get_by_text(re.compile(r"speed 8,"))).to_be_visible()
    page.get_by_role("button", name="More").click()
    page.get_by_label("Pace").select_option("time")
    expect(page.get_by_label("Speed")).to_contain_text("× time")


def test_a_changed_parameter_keeps_the_position(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&slider=1")
    page.locator(".lab .range").fill("300")
    page.locator(".lab .range").dispatch_event("change")
    expect_told(page, 300)
    before = page.locator(".lab .picture").element_handle()
    slider = page.locator("[data-testid=stSlider] input, [data-testid=stSlider] [role=slider]")
    slider.first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("401")).to_be_visible()
    page.wait_for_timeout(500)
    expect_told(page, 300)
    assert before.evaluate("(node) => node.isConnected")


def test_click_follows_a_request(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=220")
    stage = page.locator(".lab .picture").bounding_box()
    page.mouse.click(stage["x"] + 40, stage["y"] + 128)  # the head of the queue
    expect(page.locator(".life h3")).to_have_text("r23 so far")
    expect(page.get_by_text(re.compile(r"request r23$"))).to_be_visible()
    page.get_by_role("button", name="Stop following").click()
    expect(page.locator(".life")).to_contain_text("Click a request")


def test_lecture_mode_fills_the_window(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=220")
    press(page, "l")
    lab = page.locator(".lab.lecture")
    expect(lab).to_be_visible()
    box = lab.bounding_box()
    assert (box["x"], box["y"]) == (0, 0)
    assert box["width"] == pytest.approx(1366, abs=1)
    expect(page.locator(".why")).to_be_hidden()
    # what the line on the stage says is read aloud as well
    expect(page.locator(".spoken")).to_contain_text("r22 is admitted: Its prompt of 143 tokens")
    page.keyboard.press("Escape")
    expect(page.locator(".lab.lecture")).to_have_count(0)
    expect(page.locator(".why")).to_be_visible()


def test_theme_follows_the_page(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=220")
    expect(page.locator(".lab")).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".lab")).to_have_attribute("data-theme", "dark")


def test_screen_readers_hear_the_frame(open_player: Callable[..., Page]):
    page = open_player(f"{THRASH}&iteration=220&lang=zh")
    sentence = "迭代 220，共到 642"
    expect(page.locator(".spoken")).to_contain_text(sentence)
    expect(page.locator(".lab .picture")).to_have_attribute("aria-label", re.compile(sentence))
    expect(page.locator(".lab .range")).to_have_attribute("aria-valuetext", re.compile(sentence))
    for name in ("播放", "后退一次迭代", "前进一次迭代", "更多"):
        expect(page.get_by_role("button", name=name)).to_be_visible()


def test_chinese_is_drawn_with_glyphs_of_its_own(open_player: Callable[..., Page]):
    """A missing glyph is a box, the same for every character: these are all different."""
    page = open_player(f"{THRASH}&lang=zh")
    different = page.locator(".lab .picture").evaluate(
        """(canvas) => {
            const font = canvas.getContext("2d").font.replace(/^.*?px/, "");
            const picture = (text) => {
                const probe = document.createElement("canvas");
                probe.width = probe.height = 48;
                const c = probe.getContext("2d");
                c.font = `32px ${font}`;
                c.fillText(text, 4, 36);
                return probe.toDataURL();
            };
            const pictures = [..."迭代抢占词元块", "\\u{10FFFE}"].map(picture);
            return new Set(pictures).size === pictures.length;
        }"""
    )
    assert different


def test_the_start_film_plays_at_once_unless_motion_is_unwelcome(open_player: Callable[..., Page]):
    page = open_player("/?case=start&play=1")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    wait_until(page, lambda row: row > 0)
    still = open_player("/?case=start&play=1", motion="reduce")
    expect(still.get_by_role("button", name="Play")).to_be_visible()
    assert position(still) == 0
    still.get_by_role("button", name="One iteration forward").click()
    expect(still.locator(".lab .range")).to_have_value("1")
    expect(still.locator(".spoken")).to_contain_text("Static batching: 0 of 8 finished")
