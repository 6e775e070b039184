"""The views of the simulator page in a real browser: traces, baseline, sweep, film, downloads."""

import csv
import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.driving import figures, pick, settle
from tests.browser.looks import CHART_TEXT_OUTSIDE, CHART_TEXT_OVERLAPS, CUT_OFF

DATA = Path(__file__).resolve().parents[1] / "data"
VIEWS = ("time", "film", "latency", "requests", "utilization", "decisions", "sweep", "files")
READY = "[data-testid=stMetricValue]"
LOOKS = [
    ("en-US", "light", (1366, 768)),
    ("zh-CN", "dark", (1366, 768)),
    ("en-US", "dark", (1920, 1080)),
    ("zh-CN", "light", (1920, 1080)),
]


def opened(open_page, view, more="", **look):
    return open_page(f"/simulator?view={view}{more}", ready=READY, **look)


def upload(page, name, data):
    place = page.get_by_test_id("stFileUploaderDropzoneInput")
    place.set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})
    size = re.compile(r"\d\.\d ?[KM]?B")  # of the file, beside its name
    expect(page.get_by_test_id("stFileUploader")).to_contain_text(size)
    settle(page)


def choose(page, view):
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name=view, exact=True).click()
    settle(page)


def fill_values(page, text):
    field = page.get_by_role("textbox", name="Values (requests/s)")
    field.fill(text)
    field.press("Enter")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look[:2])))
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits(open_page, view, look):
    locale, theme, size = look
    page = opened(
        open_page, view, "&preset=interactive-offline", locale=locale, theme=theme, size=size
    )
    assert page.get_by_test_id("stException").count() == 0
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth <= m.clientWidth }"
    )
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(CHART_TEXT_OUTSIDE) == []
    assert page.evaluate(CHART_TEXT_OVERLAPS) == []


def test_the_view_is_in_the_address_and_opens_from_there(open_page):
    first = opened(open_page, "time")
    choose(first, "Utilization")
    expect(first).to_have_url(re.compile("view=utilization"))
    page = open_page(re.sub(r"^https?://[^/]+", "", first.url), ready=READY)
    expect(page.get_by_role("radio", name="Utilization")).to_be_checked()
    choose(page, "Over time")
    expect(page).not_to_have_url(re.compile("view="))


# -- film ------------------------------------------------------------------------------------------


def test_a_link_opens_the_film_at_its_moment_and_a_change_keeps_it(open_page):
    page = opened(open_page, "film", "&at=321&preset=preemption-storm&lang=en")
    moment = page.get_by_text("iteration 321", exact=True)  # over the reasons, beside the film
    expect(moment).to_be_visible()
    pick(page, "Scheduling policy", "vLLM V0")
    expect(moment).to_be_visible()
    page.get_by_text("Link to this moment").click()
    expect(page.get_by_test_id("stCode")).to_contain_text("at=321")


# -- baseline --------------------------------------------------------------------------------------


def test_a_pinned_run_shows_ghosts_and_differences_until_it_is_unpinned(open_page):
    page = opened(open_page, "time", "&preset=preemption-storm&lang=en")
    before = figures(page)
    page.get_by_role("button", name="Pin as baseline").click()
    settle(page)
    pick(page, "Scheduling policy", "Static batching")
    expect(page.locator(".js-plotly-plot .legendtext", has_text="baseline")).to_be_visible()
    page.get_by_text("Differences from the baseline").click()
    row = page.get_by_role("row").filter(has_text="Throughput, output tokens")
    expect(row).to_contain_text(before[0].split()[0])
    expect(row).to_contain_text("worse")
    assert page.evaluate(CUT_OFF) == []
    page.get_by_role("button", name="Unpin").click()
    settle(page)
    expect(page.locator(".js-plotly-plot .legendtext", has_text="baseline")).to_have_count(0)


# -- sweep -----------------------------------------------------------------------------------------


def test_a_sweep_runs_to_its_end_and_can_be_downloaded(open_page):
    page = opened(open_page, "sweep", "&preset=law&lang=en")
    fill_values(page, "0.1, 0.2, 0.4")
    page.get_by_role("button", name="Run 9 simulations").click()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=60_000)
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.reader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()))
    assert rows[0][:2] == ["workload.rate_per_s", "seed"]
    assert len(rows) == 1 + 9
    assert page.evaluate(CUT_OFF) == []


def test_a_sweep_can_be_cancelled_and_keeps_what_it_found(open_page):
    page = opened(open_page, "sweep", "&preset=customer-service&lang=en")
    fill_values(page, ", ".join(f"{8 + n / 8:g}" for n in range(24)))
    page.get_by_role("button", name="Run 72 simulations").click()
    expect(page.get_by_role("progressbar").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"^[1-9]\d* of 72 simulations"))).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("Cancelled after .* of 72"))).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


# -- traces ----------------------------------------------------------------------------------------


def test_a_good_trace_is_previewed_and_served(open_page):
    page = opened(open_page, "files", "&lang=en")
    before = figures(page)
    upload(page, "azure.csv", (DATA / "azure_sample.csv").read_bytes())
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    page.get_by_role("button", name="Use these requests").click()
    expect(page.get_by_role("button", name="In use")).to_be_visible()
    settle(page)
    assert figures(page) != before
    choose(page, "Over time")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def test_a_broken_trace_says_line_by_line_what_is_wrong(open_page):
    page = opened(open_page, "files", locale="zh-CN")
    upload(page, "faulty.csv", (DATA / "faulty_requests.csv").read_bytes())
    expect(page.get_by_text(re.compile("^第 3 行"))).to_be_visible()


def test_a_huge_trace_is_cut_with_a_notice_and_a_larger_one_is_refused(open_page):
    page = opened(open_page, "files", "&lang=en")
    lines = "".join(f"{n * 0.2:.1f},20,5\n" for n in range(40_000))
    upload(page, "huge.csv", f"arrival_s,prompt_tokens,output_tokens\n{lines}".encode())
    expect(page.get_by_text("Only the first 20,000 requests are used")).to_be_visible()
    too_large = b"arrival_s,prompt_tokens,output_tokens\n" + b"1,20,5\n" * 3_200_000
    upload(page, "larger.csv", too_large)
    expect(page.get_by_text(re.compile("20.*MB or smaller"))).to_be_visible()
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02" * 999,
        b"PK\x03\x04" + b"\x00" * 99,
        b"![x](http://127.0.0.1:9/x.png),<img src=x onerror=alert(1)>\n1,2\n",
        b'{"timestamp": 0, "input_length": ' + b"[" * 100_000,
    ],
    ids=["binary", "zip", "markup", "nested"],
)
def test_a_hostile_file_costs_a_sentence(open_page, data):
    page = opened(open_page, "files", "&lang=en")
    page.on("dialog", lambda dialog: pytest.fail("a script of the file ran"))
    upload(page, "<img src=x onerror=alert(1)>.csv", data)
    expect(page.get_by_test_id("stMain").get_by_test_id("stAlert")).to_be_visible()
    assert page.locator("[data-testid=stAlert] img").count() == 0
    assert page.get_by_test_id("stException").count() == 0
    assert len(figures(page)) == 6


# -- downloads -------------------------------------------------------------------------------------


def test_every_file_can_be_downloaded(open_page):
    page = opened(open_page, "files", "&preset=law&lang=en")
    found = {}
    for name in ("requests.csv", "iterations.csv", "events.csv", "summary.json", "scenario.zip"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        assert waiting.value.suggested_filename == name
        found[name] = Path(waiting.value.path())
    lines = found["requests.csv"].read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(lines))
    assert len(rows) == 24
    summary = json.loads(found["summary.json"].read_text(encoding="utf-8"))
    assert summary["requests"] == 24
    assert "scenario.json" in zipfile.ZipFile(found["scenario.zip"]).namelist()
