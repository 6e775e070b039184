"""Links in a real browser: they follow every change, and bring it back, in any language."""

import re
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.driving import figures, open_expert, pick, settle, slide, slider

SERVICE = "preset-customer-service"
BS, BD = "Bs · static batch", "Bd · dynamic batch, at most"
LIN, L = "Lin · input tokens, mean", "L · output tokens, mean"


def query(page: Page) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def path(page: Page) -> str:
    """The address without the server."""
    return re.sub(r"^https?://[^/]+", "", page.url)


def says(page: Page, text: str, **others: str) -> None:
    """Wait until the address has exactly this scenario, and these parameters beside it."""
    expected = {"s": text, **others} if text else others
    with suppress(TimeoutError):
        page.wait_for_function(
            "wanted => { const has = [...new URLSearchParams(location.search)];"
            " return has.length === Object.keys(wanted).length &&"
            " has.every(([name, value]) => wanted[name] === value) }",
            arg=expected,
            timeout=15_000,
        )
    assert query(page) == expected
    settle(page)


def heading(page: Page) -> object:
    return page.get_by_test_id("stMain").get_by_role("heading", level=1)


def first_figure(page: Page, number: str) -> None:
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(number)


def test_every_basic_control_changes_the_numbers_and_the_link(open_page):
    page = open_page()
    seen = [figures(page)]

    def changed(text: str) -> None:
        says(page, text)
        seen.append(figures(page))
        assert seen[-1] != seen[-2]

    slide(page, BD, "Home", "ArrowRight", "ArrowRight")
    changed(f"{SERVICE}~bd-3~v-2")
    slide(page, L, "ArrowLeft")
    changed(f"{SERVICE}~bd-3~l-160~v-2")
    slide(page, LIN, "ArrowRight")
    changed(f"{SERVICE}~bd-3~lin-640~l-160~v-2")
    pick(page, "Hardware", "H100 SXM")
    changed(f"{SERVICE}~bd-3~lin-640~l-160~hardware-h100-sxm~v-2")
    pick(page, "Model", "Llama-2-13B")
    changed(f"{SERVICE}~bd-3~lin-640~l-160~hardware-h100-sxm~model-llama-2-13b~v-2")
    pick(page, "GPUs", "2")
    machine = "hardware-h100-sxm~gpus-2~model-llama-2-13b"
    changed(f"{SERVICE}~bd-3~lin-640~l-160~{machine}~v-2")
    pick(page, "Scheduling policy", "Static batching")
    changed(f"{SERVICE}~policy-static~bd-3~lin-640~l-160~{machine}~v-2")
    slide(page, BS, "ArrowLeft")
    changed(f"{SERVICE}~policy-static~bs-15~bd-3~lin-640~l-160~{machine}~v-2")

    page.reload()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    settle(page)
    assert figures(page) == seen[-1]
    cold = open_page(path(page))
    assert figures(cold) == seen[-1]

    page.get_by_role("button", name="Changed · back to the preset").click()
    says(page, "")
    assert figures(page) == seen[0]


def test_another_preset_forgets_the_changes_to_the_old_one(open_page):
    page = open_page("/simulator?policy=static&bs=24&x=rate-9&v=2")
    before = figures(page)
    pick(page, "Preset", "Preemption storm")
    expect(page.get_by_test_id("stMetricValue").first).not_to_have_text(before[0])
    says(page, "preset-preemption-storm~v-2")


def test_back_and_forward_are_one_step_a_change(open_page):
    page = open_page()
    plain = figures(page)
    pick(page, "Scheduling policy", "Orca")
    says(page, f"{SERVICE}~policy-orca~v-2")
    orca = figures(page)
    slide(page, BD, "Home")
    says(page, f"{SERVICE}~policy-orca~bd-1~v-2")
    slow = figures(page)
    pick(page, "Preset", "Legal documents")
    says(page, "preset-law~v-2")
    law = figures(page)
    assert len({plain[0], slow[0], law[0]}) == 3

    page.go_back()
    first_figure(page, slow[0])
    expect(slider(page, BD)).to_have_attribute("aria-valuetext", "1")
    page.go_back()
    first_figure(page, orca[0])
    expect(slider(page, BD)).to_have_attribute("aria-valuetext", "256")
    page.go_back()
    expect(page.get_by_label("Scheduling policy", exact=True)).to_have_value("vLLM V1")
    says(page, "")
    page.go_forward()
    expect(page.get_by_label("Scheduling policy", exact=True)).to_have_value("Orca")
    page.go_forward()
    page.go_forward()
    first_figure(page, law[0])
    says(page, "preset-law~v-2")


def test_quick_changes_of_different_controls_are_all_kept(open_page):
    page = open_page()
    for label in (BS, LIN, L):
        slider(page, label).press("ArrowRight")
    says(page, f"{SERVICE}~bs-20~lin-640~l-256~v-2")
    page.wait_for_timeout(500)
    says(page, f"{SERVICE}~bs-20~lin-640~l-256~v-2")


def test_a_slider_follows_the_keyboard_without_jumping(open_page):
    page = open_page()
    handle = slider(page, LIN)
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    says(page, f"{SERVICE}~lin-1536~v-2")
    expect(handle).to_be_focused()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    says(page, "")
    expect(handle).to_be_focused()


def test_a_link_made_in_chinese_opens_in_english(open_page):
    chinese = open_page("/simulator?preset=interactive-offline", locale="zh-CN")
    pick(chinese, "调度策略", "静态批处理")
    says(chinese, "preset-interactive-offline~policy-static~v-2")
    open_expert(chinese, "专家设置", "引擎")
    pick(chinese, "已完成的行 · finished_rows", "填充")
    says(chinese, "preset-interactive-offline~policy-static~rows-padded~v-2")
    english = open_page(path(chinese), locale="en-US")
    expect(heading(english)).to_have_text("Simulator")
    expect(english.get_by_label("Scheduling policy", exact=True)).to_have_value("Static batching")
    numbers = [text.split()[0] for text in figures(english)]
    assert numbers == [text.split()[0] for text in figures(chinese)]


def test_the_language_can_be_changed_and_is_in_the_address(open_page):
    page = open_page("/simulator?preset=law&bd=32")
    pick(page, "Language · 语言", "简体中文")
    expect(heading(page)).to_have_text("模拟器")
    says(page, "preset-law~bd-32~v-2", lang="zh")


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
    machine = "hardware-h100-sxm~gpus-4~model-llama-3.1-70b"
    says(page, f"preset-law~policy-static~bs-64~{machine}~v-2", lang="zh")


HOSTILE = [
    "preset=%3Cscript%3Ealert(1)%3C/script%3E&policy=../../etc/passwd&bs=1e309&lin=-1",
    "s=rate-1e400~seed--1~" + "n-9~" * 1500,
    "s=%5Bx%5D(javascript:alert(1))-1~weights-__import__~gpus-%F0%9F%92%A9~v-0x10",
    "preset=law&preset=tax&l=%00&hardware=%E2%80%AE&model=" + "a" * 6000,
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
    says(page, f"{SERVICE}~policy-orca~v-2")


def test_a_link_survives_the_way_through_other_pages(open_page):
    page = open_page("/simulator?preset=code&bd=32&x=tpot-0.03&v=2")
    page.get_by_role("link", name="Start", exact=True).click()
    expect(heading(page)).not_to_have_text("Simulator")
    says(page, "preset-code~bd-32~tpot-0.03~v-2")
    slide(page, BD, "ArrowRight")
    says(page, "preset-code~bd-40~tpot-0.03~v-2")
    page.get_by_role("link", name="Simulator", exact=True).click()
    expect(heading(page)).to_have_text("Simulator")
    says(page, "preset-code~bd-40~tpot-0.03~v-2")
    expect(slider(page, BD)).to_have_attribute("aria-valuetext", "40")
