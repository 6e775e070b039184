"""The scenario panel in a real browser: expert settings, errors with a way out, vLLM, bundles."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from model.bundle import write_bundle
from model.catalogue import presets
from model.parameters import replace_at
from model.requests import Requests
from model.scenario import TraceReference
from tests.browser.driving import figures, open_expert, pick, settle, slide, slider
from tests.browser.looks import CUT_OFF
from tests.browser.test_links import BD, LIN, SERVICE, L, first_figure, path, says

SIZES = [(1366, 768), (1920, 1080)]


def sidebar(page: Page):
    return page.get_by_test_id("stSidebar")


def dialog(page: Page):
    return page.get_by_role("dialog")


# -- expert settings -------------------------------------------------------------------------------


def test_an_expert_setting_changes_the_numbers_and_goes_back(open_page):
    page = open_page()
    before = figures(page)
    open_expert(page, "Expert settings", "Workload")
    rate = sidebar(page).get_by_label("Arrival rate, requests/s", exact=True)
    rate.fill("12")
    rate.press("Enter")
    says(page, f"{SERVICE}~rate-12~v-2")
    assert figures(page) != before
    expect(sidebar(page).get_by_role("radio", name="Changed: 1")).to_be_visible()
    sidebar(page).get_by_role("button", name="back to 6 requests/s").click()
    says(page, "")
    assert figures(page) == before


def test_the_search_finds_a_setting_by_its_other_names(open_page):
    page = open_page("/simulator?lang=zh", locale="zh-CN")
    open_expert(page, "专家设置", "运行")
    search = sidebar(page).get_by_label("搜索全部设置", exact=True)
    for text in ("max_model_len", "context limit", "上下文上限"):
        search.fill(text)
        search.press("Enter")
        settle(page)
        expect(sidebar(page).get_by_label("上下文上限 · max_model_len", exact=True)).to_be_visible()
    search.fill("")
    search.press("Enter")
    settle(page)
    expect(sidebar(page).get_by_label("随机种子", exact=True)).to_be_visible()


def test_an_open_setting_shows_what_holds_and_can_be_left_open_again(open_page):
    page = open_page("/simulator?preset=code")
    open_expert(page, "Expert settings", "Memory")
    context = sidebar(page).get_by_label("Context limit · max_model_len", exact=True)
    expect(context).to_have_value("16384")
    context.fill("")
    context.press("Enter")
    says(page, "preset-code~ctx-none~v-2")
    expect(context).to_have_attribute("placeholder", "automatic: 131,072")


def test_the_expert_part_stays_open_while_settings_change(open_page):
    page = open_page()
    open_expert(page, "Expert settings", "SLO")
    for value in ("70", "80"):
        tpot = sidebar(page).get_by_label("TPOT at most, ms", exact=True)
        tpot.fill(value)
        tpot.press("Enter")
        says(page, f"{SERVICE}~tpot-0.0{value[0]}~v-2")
    pick(page, "Scheduling policy", "Orca")
    expect(sidebar(page).get_by_label("TPOT at most, ms", exact=True)).to_have_value("80")


# -- errors and advice -----------------------------------------------------------------------------


def test_an_error_stands_beside_its_control_and_one_click_mends_it(open_page):
    page = open_page()
    before = figures(page)
    pick(page, "Model", "Llama-3-70B")
    error = sidebar(page).get_by_test_id("stAlert")
    expect(error).to_contain_text("Llama-3-70B needs 141 GB for weights")
    model = page.get_by_label("Model", exact=True).bounding_box()
    box = error.bounding_box()
    assert 0 < box["y"] - model["y"] < 120
    expect(page.get_by_test_id("stMain")).to_contain_text("cannot run")
    sidebar(page).get_by_role("button", name="Use 4 GPUs").click()
    says(page, f"{SERVICE}~gpus-4~model-llama-3-70b~v-2")
    expect(error).to_have_count(0)
    assert figures(page) != before


def test_nothing_entered_is_lost_while_the_scenario_cannot_run(open_page):
    page = open_page("/simulator?model=llama-3-70b", ready="[data-testid=stAlert]")
    slide(page, BD, "ArrowLeft")
    pick(page, "Scheduling policy", "Sarathi-Serve")
    says(page, f"{SERVICE}~policy-sarathi~bd-224~model-llama-3-70b~v-2")
    pick(page, "Hardware", "B200 SXM")
    expect(sidebar(page).get_by_test_id("stAlert")).to_have_count(0)
    says(page, f"{SERVICE}~policy-sarathi~bd-224~hardware-b200-sxm~model-llama-3-70b~v-2")
    expect(page.get_by_test_id("stMetricValue")).to_have_count(6)


def test_lengths_beyond_the_context_get_advice_and_a_model_that_has_it(open_page):
    page = open_page("/simulator?lin=20480")
    advice = sidebar(page).get_by_test_id("stAlert")
    expect(advice).to_contain_text("400 of 400 requests are rejected")
    sidebar(page).get_by_role("button", name=re.compile("Use Llama-3.1-8B")).click()
    expect(advice).to_have_count(0)
    expect(page.get_by_label("Model", exact=True)).to_have_value("Llama-3.1-8B")
    settle(page)
    assert figures(page)[0] != "0 tokens/s"


# -- the vLLM command line -------------------------------------------------------------------------

COMMAND = (
    "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 8 --max-num-batched-tokens 4k "
    "--max-model-len 16k --max-modl-len 9 --port 8000 --scheduling-policy priority"
)


def test_a_pasted_vllm_line_becomes_the_scenario(open_page):
    page = open_page()
    before = figures(page)
    page.get_by_role("button", name="vLLM", exact=True).click()
    box = dialog(page).get_by_label("A line that starts a vLLM server", exact=True)
    box.fill(COMMAND)
    dialog(page).get_by_role("button", name="Read", exact=True).click()
    report = dialog(page)
    expect(report).to_contain_text("Read as vLLM 0.33.0 reads it")
    expect(report).to_contain_text("--max-num-batched-tokens")
    expect(report).to_contain_text("4,000")
    expect(report).to_contain_text("perhaps --max-model-len")
    expect(report).to_contain_text("--port")
    expect(report).to_contain_text("--gpu-memory-utilization")
    report.get_by_role("button", name="Use these settings").click()
    expect(dialog(page)).to_have_count(0)
    settle(page)
    expect(page.get_by_label("Model", exact=True)).to_have_value("Llama-3.1-8B")
    expect(slider(page, BD)).to_have_attribute("aria-valuetext", "8")
    for pair in ("budget-4000", "ctx-16000", "order-priority", "util-0.92", "prefixcache-1"):
        assert pair in page.url
    cold = open_page(path(page))
    assert figures(cold) == figures(page)
    assert figures(cold) != before


def test_the_scenario_is_written_as_a_vllm_line(open_page):
    page = open_page("/simulator?preset=code&x=prefixcache-1")
    page.get_by_role("button", name="vLLM", exact=True).click()
    dialog(page).get_by_role("tab", name="This scenario as a command").click()
    expect(dialog(page)).to_contain_text("vllm serve meta-llama/Llama-3.1-8B-Instruct")
    expect(dialog(page)).to_contain_text("--enable-prefix-caching")
    expect(dialog(page)).to_contain_text("A command cannot say")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_that_is_no_command_gets_a_sentence(open_page):
    page = open_page(locale="zh-CN")
    page.get_by_role("button", name="vLLM", exact=True).click()
    box = dialog(page).get_by_label("启动 vLLM 服务的命令", exact=True)
    box.fill("rm -rf / && echo **<img src=x onerror=alert(1)>**")
    dialog(page).get_by_role("button", name="解析", exact=True).click()
    expect(dialog(page).get_by_test_id("stAlert")).to_contain_text("不会启动 vLLM 服务")
    assert dialog(page).locator("img").count() == 0


# -- links and bundles -----------------------------------------------------------------------------


def test_the_link_to_copy_opens_the_same_in_another_language(open_page):
    page = open_page("/simulator?preset=law&bd=32&lang=zh", locale="zh-CN")
    page.get_by_role("button", name="分享", exact=True).click()
    link = dialog(page).get_by_test_id("stCode").locator("code").inner_text()
    assert link == page.url.split("?")[0] + "?s=preset-law~bd-32~v-2&lang=zh"
    copy = dialog(page).get_by_test_id("stCode").get_by_role("button")
    dialog(page).get_by_test_id("stCode").hover()
    expect(copy).to_be_visible()
    english = open_page(re.sub(r"^https?://[^/]+", "", link).removesuffix("&lang=zh"))
    expect(english.get_by_test_id("stMain").get_by_role("heading", level=1)).to_have_text(
        "Simulator"
    )
    assert figures(english)[0].split()[0] == figures(page)[0].split()[0]


def bundle_with_trace(folder: Path) -> Path:
    """A bundle as somebody else would send it: 60 requests that no preset has."""
    requests = Requests.from_columns(
        arrival_s=[i / 4 for i in range(60)],
        prompt_tokens=[100 + 13 * (i % 7) for i in range(60)],
        output_tokens=[20 + 5 * (i % 9) for i in range(60)],
    )
    reference = TraceReference("sixty", "0" * 64, 60)
    scenario = replace_at(presets()["customer-service"].scenario, "workload", reference)
    file = folder / "sixty.zip"
    file.write_bytes(write_bundle(scenario, requests))
    return file


def upload(page: Page, file: Path) -> None:
    page.locator("input[type=file]").first.set_input_files(file)


def test_a_bundle_goes_down_and_up_and_the_link_names_it(open_page, tmp_path):
    page = open_page()
    page.get_by_role("button", name="Share", exact=True).click()
    upload(page, bundle_with_trace(tmp_path))
    expect(dialog(page)).to_have_count(0)
    settle(page)
    expect(page.get_by_label("Preset", exact=True)).to_have_value("File: sixty")
    assert re.fullmatch(r"preset-bundle-[0-9a-f]{16}~v-2", page.url.split("s=")[1])
    expect(slider(page, LIN)).to_be_disabled()
    slide(page, BD, "Home")
    expect(page).to_have_url(re.compile("~bd-1~"))
    settle(page)
    slow = figures(page)

    # What is shared is the scenario with this change; link and file name each other.
    page.get_by_role("button", name="Share", exact=True).click()
    expect(dialog(page)).to_contain_text("send the file below along")
    link = dialog(page).get_by_test_id("stCode").locator("code").inner_text()
    with page.expect_download() as waiting:
        dialog(page).get_by_role("button", name="Download the bundle").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert {"scenario.json", "requests.csv"} <= set(zipfile.ZipFile(file).namelist())
    name = re.search(r"bundle-[0-9a-f]{16}", link)[0]
    assert name in file.name

    # Somebody else opens the link without the file, then with it.
    other = open_page(re.sub(r"^https?://[^/]+", "", link), ready="[data-testid=stAlert]")
    expect(sidebar(other)).to_contain_text(name.removeprefix("bundle-"))
    expect(other.get_by_test_id("stMain")).to_contain_text("needs a file that it cannot hold")
    upload(other, file)
    expect(other.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    settle(other)
    assert figures(other) == slow
    assert name in other.url
    # A preset leads out of it.
    pick(other, "Preset", "Customer service")
    first_figure(other, figures(open_page())[0])


def test_a_file_that_is_no_bundle_gets_a_sentence(open_page, tmp_path):
    page = open_page()
    page.get_by_role("button", name="Share", exact=True).click()
    broken = tmp_path / "broken.zip"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../evil.txt", "x")
    broken.write_bytes(packed.getvalue())
    upload(page, broken)
    expect(dialog(page).get_by_test_id("stAlert")).to_contain_text("which does not belong there")
    assert page.get_by_test_id("stException").count() == 0


# -- looks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=["1366x768", "1920x1080"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("locale", "title", "groups"),
    [
        ("en-US", "Expert settings", ("Workload", "Engine", "Memory", "Time", "SLO", "Run")),
        ("zh-CN", "专家设置", ("负载", "引擎", "显存", "时间", "SLO", "运行")),
    ],
)
def test_no_label_of_the_panel_is_cut_off(open_page, locale, title, groups, theme, size):
    page = open_page(
        "/simulator?preset=interactive-offline&policy=vllm-v1&hardware=a100-80g-pcie",
        locale=locale,
        theme=theme,
        size=size,
    )
    for group in groups if theme == "light" else groups[:1]:
        if group == groups[0]:
            open_expert(page, title, group)
        else:
            sidebar(page).get_by_role("radio", name=group, exact=True).click()
            settle(page)
        assert page.evaluate(CUT_OFF) == []


def test_every_control_of_the_panel_has_a_name(open_page):
    page = open_page()
    open_expert(page, "Expert settings", "Engine")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('[data-testid=stSidebar] :is(input, button)')]
            .filter(e => e.getBoundingClientRect().width && e.type !== 'checkbox')
            .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('title') ||
                           e.textContent.trim() || e.labels?.length))
            .map(e => e.outerHTML.slice(0, 200))"""
    )
    assert nameless == []
    marked = page.evaluate(
        """() => [...document.querySelectorAll('[data-testid=stSidebar] [aria-label]')]
            .map(e => e.getAttribute('aria-label')).filter(text => /[*`]|:\\w+\\[/.test(text))"""
    )
    assert marked == []


def test_keys_reach_the_basic_controls_in_their_order(open_page):
    page = open_page()
    slider(page, BD).focus()
    page.keyboard.press("Tab")
    for _ in range(8):
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == LIN:
            break
        page.keyboard.press("Tab")
    expect(slider(page, LIN)).to_be_focused()
    page.keyboard.press("ArrowRight")
    says(page, f"{SERVICE}~lin-640~v-2")
    assert L  # the last of the four stands below
