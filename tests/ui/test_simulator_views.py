"""The views of the simulator page, without a browser: charts, tables, baseline, sweep, traces."""

import io
import json
import time
from pathlib import Path

import numpy as np
import pytest

from model import catalogue
from model.bundle import read_bundle
from model.export import tables
from model.simulator import simulate
from ui.downloads import _table
from ui.language import as_text
from ui.parameter_words import changed
from ui.run_views import VIEWS

DATA = Path(__file__).resolve().parents[1] / "data"
CHARTS = {"time": 1, "latency": 1, "requests": 1, "utilization": 1}


def texts(elements):
    return " ".join(element.value for element in elements)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_from_the_address(open_app, view, language):
    app = open_app(preset="preemption-storm", view=view, lang=language)
    assert not app.exception
    assert not app.error
    assert len(app.metric) == 6
    charts = app.get("plotly_chart")
    assert len(charts) == CHARTS.get(view, 0)
    assert all(chart.proto.alt for chart in charts)


def test_an_unknown_view_is_the_first_one(open_app):
    app = open_app(view="<script>")
    assert not app.exception
    assert app.segmented_control(key="choice.view").value == "time"


def test_the_chosen_view_goes_into_the_address(open_app):
    app = open_app()
    app.segmented_control(key="choice.view").select("latency").run()
    assert app.session_state["view"] == "latency"
    app.segmented_control(key="choice.view").select("time").run()
    assert app.session_state["view"] == ""


# -- film ------------------------------------------------------------------------------------------


def test_the_same_arrivals_can_be_watched_under_two_policies(open_app):
    app = open_app(preset="preemption-storm", view="film")
    compared = app.selectbox(key="film.compare")
    assert "vLLM V1" not in compared.options, "the policy of the run is not compared with itself"
    compared.select("orca").run()
    assert not app.exception
    assert not app.error
    assert len(app.get("bidi_component")) == 1
    assert app.session_state["beside"] == "orca"  # bound to the address


@pytest.mark.parametrize(
    ("code", "chosen"), [("orca", "orca"), ("vllm-v1", None), ("<script>", None)]
)
def test_a_link_opens_the_comparison(open_app, code, chosen):
    app = open_app(preset="preemption-storm", view="film", beside=code)
    assert not app.exception
    assert app.selectbox(key="film.compare").value == chosen


# -- requests and decisions ------------------------------------------------------------------------


def test_rows_can_be_chosen_by_arrival(open_app):
    app = open_app(preset="preemption-storm", view="requests")
    before = app.get("plotly_chart")[0].proto.spec
    app.segmented_control(key="rows.how").select("window").run()
    app.slider(key="rows.from").set_value(40).run()
    assert not app.exception
    assert app.get("plotly_chart")[0].proto.spec != before


def test_the_table_of_requests_says_what_the_run_says(open_app):
    app = open_app(preset="preemption-storm", view="requests")
    frame = app.dataframe[0].value
    result = simulate(catalogue.presets()["preemption-storm"].scenario)
    assert len(frame) == 200
    assert frame["preemptions"].sum() == result.requests["preemptions"].sum()
    np.testing.assert_allclose(
        frame["ttft_s"], result.requests["first_token_s"] - result.requests["arrival_s"]
    )


def test_decisions_have_reasons_in_words(open_app):
    app = open_app(preset="preemption-storm", view="decisions", lang="zh")
    frame = app.dataframe[0].value
    assert "抢占" in set(frame["event"])
    assert all(reason for reason in frame["reason"][frame["event"] == "抢占"])
    app.text_input(key="events.request").set_value(frame["request"].iloc[0]).run()
    ours = app.dataframe[0].value
    assert 0 < len(ours) < len(frame)
    app.text_input(key="events.request").set_value("nobody").run()
    assert not app.exception
    assert app.info


# -- baseline --------------------------------------------------------------------------------------


def test_a_pinned_run_is_drawn_beside_the_next_one(open_app):
    app = open_app(preset="preemption-storm")
    app.button(key="baseline.pin").click().run()
    assert app.button(key="baseline.pin").disabled
    alone = len(json.loads(app.get("plotly_chart")[0].proto.spec)["data"])
    app.selectbox(key="choice.policy").select("vllm-v0").run()
    assert not app.exception
    chart = app.get("plotly_chart")[0].proto
    names = [trace.get("name") for trace in json.loads(chart.spec)["data"]]
    assert names.count("baseline") == 4
    assert len(names) >= alone
    assert "dashed" in chart.alt
    assert "Preemption storm" in texts(app.main.markdown)
    assert "| Preemptions |" in texts(app.main.markdown)
    app.segmented_control(key="choice.view").select("latency").run()
    assert not app.exception
    app.button(key="baseline.unpin").click().run()
    assert not app.exception
    assert "| Preemptions |" not in texts(app.main.markdown)


def test_changes_are_named_once_and_a_policy_brings_nothing_along():
    presets = catalogue.presets()
    scenario = presets["preemption-storm"].scenario
    from model.experiment import replace_at

    other = replace_at(scenario, "slo.ttft_s", 3.0)
    assert len(changed(scenario, other)) == 1
    assert len(changed(scenario, replace_at(scenario, "policy", "orca"))) == 1
    assert not changed(scenario, scenario)


# -- sweep -----------------------------------------------------------------------------------------


def values_field(app):
    return next(field for field in app.text_input if field.key.startswith("sweep.values."))


def run_out(app, limit_s=60):
    until = time.monotonic() + limit_s
    while app.session_state["sweep.job"].running and time.monotonic() < until:
        time.sleep(0.05)
    return app.run()


def test_a_sweep_finds_a_curve_for_every_metric(open_app):
    app = open_app(preset="law", view="sweep")
    values_field(app).set_value("0.1, 0.2, 0.4").run()
    app.select_slider(key="sweep.seeds").set_value(2).run()
    app.button(key="sweep.start").click().run()
    run_out(app)
    assert not app.exception
    found = app.session_state["sweep.job"].found
    assert found.runs == 6
    assert not found.cancelled
    assert app.get("plotly_chart")[0].proto.alt
    app.selectbox(key="sweep.metric").select("ttft_p50_s").run()
    app.selectbox(key="sweep.second").select("mfu_share").run()
    assert not app.exception
    assert app.session_state["sweep.job"].found is found  # another metric is another look


@pytest.mark.parametrize("path", ["policy", "policy.enable_chunked_prefill", "hardware"])
def test_a_choice_can_be_swept_and_what_cannot_run_says_why(open_app, path):
    app = open_app(preset="preemption-storm", view="sweep")
    app.selectbox(key="sweep.parameter").select(path).run()
    app.select_slider(key="sweep.seeds").set_value(1).run()
    app.button(key="sweep.start").click().run()
    run_out(app)
    assert not app.exception
    assert app.get("plotly_chart")


def test_a_cancelled_sweep_keeps_what_it_found(open_app):
    app = open_app(preset="preemption-storm", view="sweep")
    values = ", ".join(f"{n}" for n in np.round(np.linspace(1, 6, 24), 2))
    values_field(app).set_value(values).run()
    app.select_slider(key="sweep.seeds").set_value(5).run()
    app.button(key="sweep.start").click().run()
    assert app.button(key="sweep.cancel")
    time.sleep(0.3)
    app.button(key="sweep.cancel").click().run()
    run_out(app)
    assert not app.exception
    job = app.session_state["sweep.job"]
    assert job.found.cancelled
    assert 0 < job.found.runs < job.planned
    assert "Cancelled" in texts(app.info)
    assert app.get("plotly_chart")


def test_another_scenario_ends_a_sweep_and_hides_its_result(open_app):
    app = open_app(preset="law", view="sweep")
    app.button(key="sweep.start").click().run()
    run_out(app)
    app.selectbox(key="choice.policy").select("orca").run()
    assert not app.exception
    assert "changed" in texts(app.info)
    app.selectbox(key="choice.policy").select("sarathi").run()
    assert not app.exception


def test_suggestions_follow_the_scenario_and_the_form_is_kept_over_views(open_app):
    app = open_app(view="sweep")
    before = values_field(app).value
    app.selectbox(key="choice.preset").select("law").run()
    assert values_field(app).value != before
    app.selectbox(key="sweep.parameter").select("policy.max_num_seqs").run()
    values_field(app).set_value("3, 5").run()
    app.segmented_control(key="choice.view").select("time").run()
    app.segmented_control(key="choice.view").select("sweep").run()
    assert app.selectbox(key="sweep.parameter").value == "policy.max_num_seqs"
    assert values_field(app).value == "3, 5"
    app.selectbox(key="sweep.parameter").select("policy.watermark").run()
    app.selectbox(key="choice.policy").select("static").run()  # which has no watermark
    assert not app.exception


@pytest.mark.parametrize("text", ["", "a, b", "1e999", "nan", ",".join(map(str, range(99)))])
def test_values_that_are_none_get_a_sentence(open_app, text):
    app = open_app(view="sweep")
    values_field(app).set_value(text).run()
    assert not app.exception
    assert len(app.main.error) == 1
    assert app.button(key="sweep.start").disabled


# -- traces ----------------------------------------------------------------------------------------


def uploaded(app, name, data):
    app.file_uploader(key="trace.upload").upload(name, data, "text/csv").run()
    return app


SAMPLES = [
    "azure_sample.csv",
    "burstgpt_sample.csv",
    "burstgpt_sessions_sample.csv",
    "mooncake_sample.jsonl",
    "requests_sample.csv",
    "faulty_requests.csv",
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_is_understood_and_served(open_app, name, language):
    app = open_app(view="files", lang=language)
    before = [metric.value for metric in app.metric]
    uploaded(app, name, (DATA / name).read_bytes())
    assert not app.exception
    assert not app.error
    assert app.get("plotly_chart")[0].proto.alt
    app.button(key="trace.use").click().run()
    assert not app.exception
    assert [metric.value for metric in app.metric] != before
    assert app.button(key="trace.use").disabled
    app.segmented_control(key="choice.view").select("requests").run()
    assert not app.exception


def test_faults_are_said_by_line_in_the_readers_language(open_app):
    app = uploaded(
        open_app(view="files", lang="zh"),
        "faulty_requests.csv",
        (DATA / "faulty_requests.csv").read_bytes(),
    )
    said = texts(app.text)
    assert "行" in said
    assert "Line" not in said


HOSTILE = {
    "empty": b"",
    "binary": b"\x00\x01\x02" * 999,
    "zip": b"PK\x03\x04" + b"\x00" * 99,
    "gzip": b"\x1f\x8b" + b"\xff" * 99,
    "one long line": b"a" * 3_000_000,
    "unknown columns": b"![x](https://evil.example/x.png),<script>alert(1)</script>\n1,2\n",
    "formula": b"request_id,arrival_s,prompt_tokens,output_tokens\n=cmd|' /C calc'!A0,0,10,10\n",
    "markup": b"request_id,arrival_s,prompt_tokens,output_tokens,request_class\n"
    b"a,0,10,10,<b>x</b>\nb,1,10,10,[x](javascript:alert(1))\n",
    "numbers": b"arrival_s,prompt_tokens,output_tokens\nnan,1,1\n1e400,1,1\n0,-5,1\n0,1,9e99\n",
    "json bomb": b'{"timestamp": 0, "input_length": ' + b"[" * 100_000,
    "utf-16": "arrival_s,prompt_tokens,output_tokens\n0,10,10\n1,10,10\n".encode("utf-16"),
    "one request": b"arrival_s,prompt_tokens,output_tokens\n0,1,1\n",
    "too long for the model": b"arrival_s,prompt_tokens,output_tokens\n0,9999999,9999999\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_a_sentence_and_never_the_page(open_app, name):
    app = uploaded(open_app(view="files"), f"{name}<img src=x>.csv", HOSTILE[name])
    assert not app.exception
    assert len(app.metric) == 6
    if [button for button in app.button if button.key == "trace.use"]:
        app.button(key="trace.use").click().run()
        assert not app.exception
        for view in VIEWS:
            app.segmented_control(key="choice.view").select(view).run()
            assert not app.exception, view
    else:
        assert len(app.main.error) == 1
        assert "](" not in app.main.error[0].value.replace("\\]\\(", "")


def test_words_of_a_file_do_nothing_in_markdown():
    assert as_text("![x](y) `z` $a$") == "\\!\\[x\\]\\(y\\) \\`z\\` \\$a\\$"


def test_a_huge_trace_is_limited_with_a_notice(open_app):
    lines = "".join(f"{n * 0.2:.1f},20,5\n" for n in range(30_000))
    data = f"arrival_s,prompt_tokens,output_tokens\n{lines}".encode()
    app = uploaded(open_app(view="files"), "huge.csv", data)
    assert not app.exception
    assert "20,000" in texts(app.info)
    app.button(key="trace.use").click().run()
    assert not app.exception
    assert "20,000 requests" in texts(app.main.caption)


def test_a_trace_can_be_pinned_and_swept(open_app):
    app = uploaded(
        open_app(view="files"), "azure.csv", (DATA / "azure_sample.csv").read_bytes()
    )
    app.button(key="trace.use").click().run()
    app.button(key="baseline.pin").click().run()
    app.selectbox(key="choice.policy").select("orca").run()
    assert not app.exception
    app.segmented_control(key="choice.view").select("sweep").run()
    app.selectbox(key="sweep.parameter").select("policy.max_num_seqs").run()
    app.button(key="sweep.start").click().run()
    run_out(app)
    assert not app.exception
    assert app.session_state["sweep.job"].found.runs
    assert app.get("plotly_chart")


# -- downloads -------------------------------------------------------------------------------------


def test_files_hold_the_whole_run():
    result = simulate(catalogue.presets()["law"].scenario)
    for name, rows in (("requests.csv", 24), ("iterations.csv", len(result.iterations["start_s"]))):
        text = io.StringIO(_table(result, name).decode())
        assert text.readline().strip().split(",") == list(tables(result)[name][0])
        assert sum(1 for _ in text) == rows


def test_the_bundle_opens_again():
    from model.bundle import write_bundle

    scenario = catalogue.presets()["law"].scenario
    assert read_bundle(write_bundle(scenario)).scenario == scenario


# -- links -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["-5", "999999999999", "x", "1e3", ""])
def test_a_moment_that_does_not_exist_is_no_fault(open_app, at):
    app = open_app(view="film", at=at, speed="nan", follow="<b>nobody</b>")
    assert not app.exception


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_knows_several_engines(open_app, view):
    app = open_app(view=view, x="engines-2", preset="interactive-offline")
    assert not app.exception
    if view == "film":
        app.select_slider(key="film.engine").set_value(1).run()
        assert not app.exception
    if view == "requests":
        assert set(app.dataframe[0].value["engine"]) == {0, 1}
