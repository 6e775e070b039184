"""Links in a real browser: they follow every change, and bring it back, in any language."""

import re
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.driving import figures, open_expert, pick, settle, slide, slider

HEADING = {"en": "Simulator", "zh": "模拟器"}


def query(page: Page) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def path(page: Page) -> str:
    """The address without the server."""
    return re.sub(r"^https?://[^/]+", "", page.url)


def say(page: Page, **expected: str) -> None:
    """Wait until the address says exactly this."""
    with suppress(TimeoutError):
        page.wait_for_function(
            "wanted => { const has = [...new URLSearchParams(location.search)];"
            " return has.length === Object.keys(wanted).length &&"
            " has.every(([name, value]) => wanted[name] === value) }",
            arg=expected,
            timeout=10_000,
        )
    assert query(page) == expected


def first_figure(page: Page, number: str) -> None:
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(number)


def test_every_basic_control_changes_the_numbers_and_the_link(open_page):
    page = open_page()
    seen = [figures(page)]
    wanted: dict[str, str] = {}

    def changed(**new: str) -> None:
        wanted.update(new, v="2")
        say(page, **wanted)
        settle(page)
        seen.append(figures(page))
        assert seen[-1] != seen[-2]

    slide(page, "Bd · dynamic batch, at most", "Home", "ArrowRight", "ArrowRight")
    changed(bd="3")
    slide(page, "L · output tokens, mean", "ArrowLeft")
    changed(l="160")
    slide(page, "Lin · input tokens, mean", "ArrowRight")
    changed(lin="640")
    pick(page, "Hardware", "H100 SXM")
    changed(hardware="h100-sxm")
    pick(page, "Model", "Llama-2-13B")
    changed(model="llama-2-13b")
    pick(page, "GPUs", "2")
    changed(gpus="2")
    pick(page, "Scheduling policy", "Static batching")
    changed(policy="static")
    slide(page, "Bs · static batch", "ArrowLeft")
    changed(bs="15")

    page.reload()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    settle(page)
    assert figures(page) == seen[-1]
    cold = open_page(path(page))
    assert figures(cold) == seen[-1]

    page.get_by_role("button", name="Changed · back to the preset").click()
    say(page)
    settle(page)
    assert figures(page) == seen[0]


def test_another_preset_forgets_the_changes_to_the_old_one(open_page):
    page = open_page("/simulator?policy=static&bs=24&x=rate-9&v=2")
    before = figures(page)
    pick(page, "Preset", "Preemption storm")
    expect(page.get_by_test_id("stMetricValue").first).not_to_have_text(before[0])
    say(page, preset="preemption-storm", v="2")


def test_back_and_forward_move_every_control(open_page):
    page = open_page()
    pick(page, "Scheduling policy", "Orca")
    say(page, policy="orca", v="2")
    settle(page)
    orca = figures(page)
    slide(page, "Bd · dynamic batch, at most", "Home")
    say(page, policy="orca", bd="1", v="2")
    settle(page)
    slow = figures(page)
    assert slow != orca
    page.go_back()
    first_figure(page, orca[0])
    expect(slider(page, "Bd · dynamic batch, at most")).to_have_attribute("aria-valuetext", "256")
    page.go_back()
    expect(page.get_by_label("Scheduling policy")).to_have_value("vLLM V1")
    page.go_forward()
    first_figure(page, orca[0])
    expect(page.get_by_label("Scheduling policy")).to_have_value("Orca")
    page.go_forward()
    first_figure(page, slow[0])
    say(page, policy="orca", bd="1", v="2")


def test_quick_changes_of_different_controls_are_all_kept(open_page):
    page = open_page()
    for label in ("Bs · static batch", "Lin · input tokens, mean", "L · output tokens, mean"):
        slider(page, label).press("ArrowRight")
    say(page, bs="20", lin="640", l="256", v="2")
    settle(page)
    say(page, bs="20", lin="640", l="256", v="2")


def test_a_slider_follows_the_keyboard_without_jumping(open_page):
    page = open_page()
    handle = slider(page, "Lin · input tokens, mean")
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    say(page, lin="1536", v="2")
    expect(handle).to_be_focused()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    say(page)


def test_a_link_made_in_chinese_opens_in_english(open_page):
    chinese = open_page("/simulator?preset=interactive-offline", locale="zh-CN")
    pick(chinese, "调度策略", "静态批处理")
    say(chinese, preset="interactive-offline", policy="static", v="2")
    open_expert(chinese, "专家设置", "引擎")
    pick(chinese, "已完成的行 · finished_rows", "填充")
    say(chinese, preset="interactive-offline", policy="static", x="rows-padded", v="2")
    settle(chinese)
    english = open_page(path(chinese), locale="en-US")
    expect(english.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        HEADING["en"]
    )
    expect(english.get_by_label("Scheduling policy")).to_have_value("Static batching")
    numbers = [text.split()[0] for text in figures(english)]
    assert numbers == [text.split()[0] for text in figures(chinese)]


def test_the_language_can_be_changed_and_is_in_the_address(open_page):
    page = open_page("/simulator?preset=law&bd=32")
    pick(page, "Language · 语言", "简体中文")
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        HEADING["zh"]
    )
    say(page, preset="law", bd="32", lang="zh", v="2")


def test_a_link_of_version_1_opens_as_it_was(open_page):
    page = open_page(
        "/simulator?preset=law&policy=static&hardware=h100-sxm&gpus=4&model=llama-3.1-70b&lang=zh&v=1"
    )
    values = {
        label: page.get_by_label(label, exact=True).input_value()
        for label in ("预设", "调度策略", "硬件", "GPU 数", "模型")
    }
    assert values == {
        "预设": "法律长文",
        "调度策略": "静态批处理",
        "硬件": "H100 SXM",
        "GPU 数": "4",
        "模型": "Llama-3.1-70B",
    }
    # The static batch was as large as the preset's limit, and the link says so from now on.
    expect(slider(page, "Bs · 静态批次")).to_have_attribute("aria-valuetext", "64")
    slide(page, "Bs · 静态批次", "ArrowLeft", "ArrowRight")
    settle(page)
    assert query(page) == {
        "preset": "law",
        "policy": "static",
        "hardware": "h100-sxm",
        "gpus": "4",
        "model": "llama-3.1-70b",
        "bs": "64",
        "lang": "zh",
        "v": "2",
    }


HOSTILE = [
    "preset=%3Cscript%3Ealert(1)%3C/script%3E&policy=../../etc/passwd&bs=1e309&lin=-1",
    "x=rate-1e400*seed--1*" + "n-9*" * 1500 + "&v=2",
    "x=%5Bx%5D(javascript:alert(1))-1*weights-__import__&gpus=%F0%9F%92%A9&v=0x10",
    "preset=law&preset=code&l=%00&hardware=%E2%80%AE&model=" + "a" * 6000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_cost_a_notice_and_nothing_else(open_page, text):
    page = open_page(f"/simulator?{text}")
    assert page.get_by_test_id("stException").count() == 0
    assert len(figures(page)) == 6
    notice = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    expect(notice).to_contain_text("The link asks for something unknown")
    assert notice.locator("a, script, img").count() == 0
    pick(page, "Scheduling policy", "Orca")
    expect(notice).to_have_count(0)
    settle(page)
    assert {"policy": "orca", "v": "2"}.items() <= query(page).items()
    assert set(query(page)) <= {"preset", "policy", "v"}


def test_a_link_survives_the_way_through_other_pages(open_page):
    page = open_page("/simulator?preset=code&bd=32&x=tpot-0.03&v=2")
    before = figures(page)
    page.get_by_role("link", name="Start", exact=True).click()
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).not_to_have_text(
        HEADING["en"]
    )
    settle(page)
    assert query(page) == {"preset": "code", "bd": "32", "x": "tpot-0.03", "v": "2"}
    slide(page, "Bd · dynamic batch, at most", "ArrowRight")
    say(page, preset="code", bd="40", x="tpot-0.03", v="2")
    page.get_by_role("link", name="Simulator", exact=True).click()
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        HEADING["en"]
    )
    settle(page)
    assert query(page) == {"preset": "code", "bd": "40", "x": "tpot-0.03", "v": "2"}
    assert figures(page)[2:4] == before[2:4] or figures(page) != before
