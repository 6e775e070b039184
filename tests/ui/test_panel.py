"""The scenario panel in Streamlit's harness: every control, errors beside them, files, commands."""

from dataclasses import fields, replace
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from model import catalogue
from model.bundle import read_bundle, write_bundle
from model.iteration_time import Linear
from model.requests import Requests
from model.scenario import TraceReference
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Workload
from ui.language import LANGUAGES, translate
from ui.panel.settings import GROUPS


def figures(app):
    return [metric.value for metric in app.metric]


def said(app):
    """The scenario in the address."""
    return app.session_state["address"]["s"]


def open_group(app, group):
    """Open the expert part at a group."""
    app.session_state["panel.expert"] = True
    app.session_state["panel.group"] = group
    return app.run()


# -- basic -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("control", "value", "said_then"),
    [("bd", 4, "bd-4"), ("lin", 64, "lin-64"), ("l", 64, "l-64")],
)
def test_a_slider_changes_the_numbers(open_app, control, value, said_then):
    app = open_app()
    before = figures(app)
    app.select_slider(key=f"choice.{control}").set_value(value).run()
    assert not app.exception
    assert figures(app) != before
    assert said(app) == f"preset-customer-service~{said_then}~v-2"


def test_bs_changes_nothing_but_the_link_while_a_dynamic_policy_runs(open_app):
    app = open_app()
    before = figures(app)
    app.select_slider(key="choice.bs").set_value(4).run()
    assert figures(app) == before
    assert said(app) == "preset-customer-service~bs-4~v-2"
    app.selectbox(key="choice.policy").select("static").run()
    four = figures(app)
    app.select_slider(key="choice.bs").set_value(32).run()
    assert figures(app) != four


def test_a_number_of_a_link_is_a_step_of_its_slider(open_app):
    app = open_app(bd="37", lin="777", l="1000000")
    assert not app.exception
    values = {s.key: s.value for s in app.select_slider}
    assert (values["choice.bd"], values["choice.lin"], values["choice.l"]) == (37, 777, 1_000_000)


@pytest.mark.parametrize("preset", catalogue.presets())
def test_a_preset_s_own_means_are_steps_and_do_not_count_as_changes(open_app, preset):
    app = open_app(preset=preset)
    assert not [b for b in app.button if b.key == "panel.reset"]
    slider = app.select_slider(key="choice.lin")
    own = slider.value
    slider.set_value(64).run()
    assert [b for b in app.button if b.key == "panel.reset"]
    app.select_slider(key="choice.lin").set_value(own).run()
    assert "~lin-" not in said(app)
    assert not [b for b in app.button if b.key == "panel.reset"]


def test_reset_goes_back_to_the_preset(open_app):
    app = open_app(s="preset-code~policy-orca~bd-3~rate-9~measured-1")
    assert "Code completion" not in app.main.caption[0].value
    app.button(key="panel.reset").click().run()
    assert said(app) == "preset-code~v-2"
    assert app.main.caption[0].value.startswith("Code completion")


def test_the_measured_batch_stands_beside_bd(open_app):
    app = open_app()
    switch = app.toggle(key="choice.panel.measured")
    shown = next(m.value for m in app.metric if "requests" in m.value and "/s" not in m.value)
    assert shown.split()[0] in switch.label
    switch.set_value(True).run()
    assert said(app) == "preset-customer-service~measured-1~v-2"
    app.selectbox(key="choice.policy").select("static").run()
    assert not [t for t in app.toggle if t.key == "choice.panel.measured"]
    assert any("Mean batch as simulated" in c.value for c in app.sidebar.caption)


def _numbers_of_a_page():
    import streamlit as st

    from ui.language import set_language
    from ui.scenario import (
        current_scenario,
        dynamic_batch,
        measured_batch,
        open_panel,
        preset_name,
        scenario_panel,
        scenario_under,
        static_batch,
    )

    with st.sidebar:
        open_panel()
        set_language("en")
        scenario_panel()
    current_scenario()
    st.session_state["numbers"] = {
        "bs": static_batch(),
        "bd": dynamic_batch(),
        "measured": measured_batch(),
        "preset": preset_name(),
        "static": scenario_under("static").policy.max_num_seqs,
        "orca": scenario_under("orca").policy.max_num_seqs,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"bs": 16, "bd": 256, "preset": "Customer service", "static": 16, "orca": 256}),
        ("bs-8~bd-40", {"bs": 8, "bd": 40, "preset": None, "static": 8, "orca": 40}),
        ("policy-static~bs-8", {"bs": 8, "bd": 256, "measured": None, "static": 8, "orca": 256}),
    ],
)
def test_pages_ask_for_bs_and_bd(text, expected):
    app = AppTest.from_function(_numbers_of_a_page, default_timeout=30)
    app.query_params["s"] = text
    app.run()
    assert not app.exception
    assert expected.items() <= app.session_state["numbers"].items()


def test_formulas_take_the_measured_batch_where_that_is_asked_for():
    app = AppTest.from_function(_numbers_of_a_page, default_timeout=30)
    app.query_params["s"] = "measured-1"
    numbers = app.run().session_state["numbers"]
    assert numbers["bd"] == numbers["measured"] == pytest.approx(20.5, abs=0.5)
    assert numbers["preset"] is None


# -- expert ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("group", GROUPS)
def test_every_group_opens_in_both_languages(open_app, group, language):
    app = open_group(open_app(preset="interactive-offline", lang=language), group)
    assert not app.exception
    inputs = [w for w in (*app.number_input, *app.toggle, *app.selectbox) if _is_setting(w)]
    assert inputs
    for control in inputs:
        assert control.label
        assert control.help


def _is_setting(widget):
    return (widget.key or "").startswith("setting.")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_parameters_of_each_engine_are_there(open_app, policy):
    app = open_group(open_app(policy=policy), "engine")
    labels = " ".join(w.label for w in (*app.number_input, *app.toggle, *app.selectbox))
    for field in fields(POLICIES[policy]):
        if field.name != "max_num_seqs":
            assert field.name in labels.replace("\u200b", "")


def test_a_setting_changes_the_numbers_and_goes_back(open_app):
    app = open_group(open_app(), "workload")
    before = figures(app)
    app.number_input(key="setting.rate").set_value(12.0).run()
    assert figures(app) != before
    assert said(app) == "preset-customer-service~rate-12~v-2"
    app.button(key="back.rate").click().run()
    assert figures(app) == before
    assert said(app) == ""


def test_units_are_those_of_people(open_app):
    app = open_group(open_app(), "slo")
    tpot = app.number_input(key="setting.tpot")
    assert (tpot.label, tpot.value) == ("TPOT at most, ms", 50)
    tpot.set_value(30.0).run()
    assert said(app) == "preset-customer-service~tpot-0.03~v-2"


def test_a_setting_can_be_left_open(open_app):
    app = open_group(open_app(preset="code"), "memory")
    app.number_input(key="setting.ctx").set_value(None).run()
    assert said(app) == "preset-code~ctx-none~v-2"
    assert not app.exception
    app.number_input(key="setting.kvblocks").set_value(9000).run()
    app.number_input(key="setting.kvgib").set_value(20.0).run()
    assert said(app) == "preset-code~ctx-none~kvgib-20~v-2"


def test_the_changed_settings_are_a_group_of_their_own(open_app):
    app = open_group(open_app(s="rate-9~tpot-0.03~seed-4"), "changed")
    keys = {w.key for w in app.number_input if _is_setting(w)}
    assert keys == {"setting.rate", "setting.tpot", "setting.seed"}
    for code in ("rate", "tpot", "seed"):
        app.button(key=f"back.{code}").click().run()
    assert said(app) == ""
    assert not app.exception  # the group is gone, and another one is shown


@pytest.mark.parametrize(
    ("language", "text", "code"),
    [
        ("en", "chunked prefill", "chunked"),
        ("en", "max_num_batched", "budget"),
        ("en", "水位线", "watermark"),
        ("zh", "watermark", "watermark"),
        ("zh", "种子", "seed"),
        ("zh", "turns.think_s", "turnthink"),
        ("zh", "nothing of that name", None),
    ],
)
def test_the_search_knows_every_name(open_app, language, text, code):
    app = open_group(open_app(lang=language), "run")
    app.text_input(key="panel.search").set_value(text).run()
    keys = [w.key for w in (*app.number_input, *app.toggle, *app.selectbox) if _is_setting(w)]
    assert keys == [] if code is None else f"setting.{code}" in keys
    app.text_input(key="panel.search").set_value("").run()
    assert app.number_input(key="setting.seed")


def test_two_streams_are_shown_one_at_a_time(open_app):
    app = open_group(open_app(preset="interactive-offline"), "workload")
    assert app.number_input(key="setting.rate").value == 2
    assert app.number_input(key="setting.inmean").value == 400
    app.session_state["panel.stream"] = 1
    app.run()
    assert app.number_input(key="setting.inmean.1").value == 2500
    app.text_input(key="panel.search").set_value("requests").run()
    labels = [n.label for n in app.number_input if n.key in ("setting.n", "setting.n.1")]
    assert labels == ["Requests · interactive", "Requests · offline"]


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_is_mended_with_one_click(open_app):
    app = open_app(model="llama-3-70b")
    assert "Llama-3-70B needs 141 GB" in app.sidebar.error[0].value
    labels = [b.label for b in app.button if (b.key or "").startswith("fix.")]
    assert labels == ["Use 4 GPUs", "weight_dtype = int4"]
    app.button(key="fix.0").click().run()
    assert not app.error
    assert said(app) == "preset-customer-service~gpus-4~model-llama-3-70b~v-2"


def test_an_error_of_a_setting_that_is_not_seen_is_said_all_the_same(open_app):
    app = open_app(s="whole-64~chunked-0")
    assert "vLLM refuses to start" in app.sidebar.error[0].value
    app = open_group(app, "engine")
    assert len(app.sidebar.error) == 1


def test_controls_still_work_while_nothing_can_run(open_app):
    app = open_app(model="llama-3-70b")
    for control, value in (("bd", 32), ("lin", 1024), ("bs", 8)):
        app.select_slider(key=f"choice.{control}").set_value(value).run()
        assert not app.exception
    open_group(app, "memory")
    app.selectbox(key="setting.weights").select("int4").run()
    assert not app.error
    assert said(app) == (
        "preset-customer-service~bs-8~bd-32~lin-1024~model-llama-3-70b~weights-int4~v-2"
    )


def test_no_simulation_of_a_million_requests_can_be_asked_for(open_app):
    app = open_app(s="preset-interactive-offline~n-20000~n.1-20000")
    assert not app.exception
    assert "at most 20,000" in app.sidebar.error[0].value


# -- files -----------------------------------------------------------------------------------------


def trace_bundle(scenario=None, n=40):
    requests = Requests.from_columns(
        arrival_s=[i / 2 for i in range(n)], prompt_tokens=[200] * n, output_tokens=[30] * n
    )
    base = scenario or catalogue.presets()["customer-service"].scenario
    return write_bundle(replace(base, workload=TraceReference("mine", "0" * 64, n)), requests)


def _dialog_page():
    """The panel with a dialog's content below it: the harness closes dialogs in every run."""
    import streamlit as st

    from ui.engine import summary
    from ui.language import set_language
    from ui.panel.command import draw_command
    from ui.panel.share import draw_share
    from ui.scenario import current_scenario, open_panel, scenario_panel

    with st.sidebar:
        open_panel()
        set_language(st.session_state["address"]["lang"] or "en")
        scenario_panel()
    {"share": draw_share, "command": draw_command}[st.query_params["dialog"]]()
    st.session_state["requests"] = summary(current_scenario())["requests"]


def dialog(name, **params):
    app = AppTest.from_function(_dialog_page, default_timeout=30)
    for key, value in (params | {"dialog": name}).items():
        app.query_params[key] = value
    return app.run()


def test_a_link_to_copy_keeps_what_the_page_shows():
    app = dialog("share", s="preset-law~bd-32~v-2", lang="zh", view="film", part="check", at="")
    found = parse_qs(app.main.code[0].value.partition("?")[2])
    assert found == {
        "s": ["preset-law~bd-32~v-2"],
        "lang": ["zh"],
        "view": ["film"],
        "part": ["check"],
        "dialog": ["share"],
    }


def test_a_link_to_copy_has_nothing_of_a_plain_link():
    app = dialog("share", preset="law", bd="32", view="film")
    found = parse_qs(app.main.code[0].value.partition("?")[2])
    assert found == {"s": ["preset-law~bd-32~v-2"], "view": ["film"], "dialog": ["share"]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_itself_says_why_a_model_does_not_fit(open_app, language):
    app = open_app(s="model-deepseek-v3~gpus-1", lang=language)
    assert not app.exception
    reason = app.sidebar.error[0].value
    assert "DeepSeek-V3" in reason
    assert reason in app.main.warning[0].value


def upload(data, **params):
    app = dialog("share", **params)
    app.main.get("file_uploader")[0].set_value(("mine.zip", data, "application/zip")).run()
    return app


def test_a_bundle_of_a_preset_with_changes_becomes_a_plain_link():
    scenario = catalogue.presets()["law"].scenario
    changed = replace(scenario, seed=7, policy=replace(scenario.policy, max_num_seqs=9))
    app = upload(write_bundle(changed))
    assert not app.exception
    assert said(app) == "preset-law~bd-9~seed-7~v-2"


def test_a_bundle_with_a_trace_is_named_by_hash():
    app = upload(trace_bundle())
    assert not app.exception
    assert said(app).startswith("preset-bundle-")
    assert app.selectbox(key="choice.preset").value.startswith("bundle-")
    assert app.select_slider(key="choice.lin").disabled
    assert app.session_state["requests"] == 40
    app.select_slider(key="choice.bd").set_value(2).run()
    assert not app.exception
    open_group(app, "workload")
    assert any("mine" in c.value for c in app.sidebar.caption)


def test_without_its_file_the_page_says_so_and_a_preset_leads_out(open_app):
    app = open_app(s="preset-bundle-0123456789abcdef~bd-9")
    assert not app.exception
    assert "0123456789abcdef" in app.sidebar.warning[0].value
    assert "cannot hold" in app.main.info[0].value
    assert said(app) == "preset-bundle-0123456789abcdef~bd-9~v-2"
    app.selectbox(key="choice.preset").select("code").run()
    assert said(app) == "preset-code~v-2"
    assert len(app.metric) == 6


def test_the_file_a_link_names_brings_its_changes_back(open_app):
    named = said(upload(trace_bundle())).split("~")[0]
    app = open_app(s=f"{named}~bd-3")
    app.get("file_uploader")[0].set_value(("again.zip", trace_bundle(), "application/zip")).run()
    assert not app.exception
    assert said(app) == f"{named}~bd-3~v-2"
    assert app.select_slider(key="choice.bd").value == 3


def test_a_recording_without_a_model_can_be_opened():
    law = catalogue.presets()["law"].scenario
    bare = replace(
        law,
        clock=Linear(),
        model=None,
        hardware=None,
        memory=replace(law.memory, kv_blocks=9000, max_model_len=None),
    )
    app = upload(trace_bundle(bare))
    assert not app.exception
    assert app.selectbox(key="choice.model").value is None
    assert app.session_state["requests"] == 40


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + b"\0" * 18, b"no zip at all", b"\0" * 5000])
def test_a_broken_file_costs_a_sentence(data):
    app = upload(data)
    assert not app.exception
    assert app.error
    assert said(app) == ""


def _trace_page():
    import streamlit as st

    from model.traces import read_trace as read
    from ui.engine import simulated
    from ui.language import set_language
    from ui.scenario import (
        current_requests,
        current_scenario,
        open_panel,
        scenario_panel,
        use_trace,
    )

    with st.sidebar:
        open_panel()
        set_language("en")
        scenario_panel()
    data = b"arrival_s,prompt_tokens,output_tokens\n0,100,10\n0.5,200,20\n1,300,30\n"
    st.button("use", key="use", on_click=use_trace, args=(read(data, "three.csv"),))
    scenario = current_scenario()
    result = simulated(scenario)
    st.session_state["seen"] = (scenario, current_requests(), len(result.requests["request_id"]))


def test_a_trace_takes_the_place_of_the_workload():
    app = AppTest.from_function(_trace_page, default_timeout=30)
    app.query_params["s"] = "preset-code~bs-5~bd-7~seed-3"
    app.run()
    scenario, requests, n = app.session_state["seen"]
    assert isinstance(scenario.workload, Workload)
    assert requests is None
    app.button(key="use").click().run()
    assert not app.exception
    after, requests, n = app.session_state["seen"]
    assert n == len(requests) == 3
    assert after == replace(scenario, workload=after.workload)
    assert after.workload.name == "three.csv"
    assert "~bs-5~" in said(app)
    assert read_bundle(write_bundle(after, requests)).scenario == after


# -- the vLLM command line -------------------------------------------------------------------------


def paste(text, **params):
    app = dialog("command", **params)
    app.text_area(key="command.text").set_value(text).run()
    return app


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_command_is_reported_in_both_languages(language):
    app = paste(
        "vllm serve nobody/knows-this --max-num-seqs 32 --swap-space 9 --frobnicate 3 --port 1",
        lang=language,
    )
    assert not app.exception
    text = " ".join(m.value for m in (*app.markdown, *app.warning, *app.caption))
    assert "--frobnicate" in text
    assert "--port" in text
    assert "knows-this" in text
    assert translate(language, "command.understood") in text


def test_a_command_is_applied():
    app = paste(
        "VLLM_USE_V1=0 vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2 --max-num-seqs 33 "
        "--preemption-mode swap --max-model-len 9000",
        s="preset-code~lin-500~seed-4",
    )
    app.button(key="command.apply").click().run()
    assert not app.exception
    assert said(app) == (
        "preset-code~policy-vllm-v0~bd-33~lin-500~gpus-2~model-qwen2.5-7b"
        "~ctx-9000~preempt-swap~seed-4~v-2"
    )


@pytest.mark.parametrize("text", ["hello", "vllm serve 'x", "--max-num-seqs 0", "x" * 30_000])
def test_what_is_no_command_changes_nothing(text):
    app = paste(text)
    assert not app.exception
    assert app.error or app.warning
    assert all(b.disabled for b in app.button if b.key == "command.apply")
    assert said(app) == ""


@pytest.mark.parametrize("policy", POLICIES)
def test_the_export_says_what_a_command_cannot(open_app, policy):
    app = open_app(policy=policy)
    app.button(key="command.open").click().run()
    assert not app.exception
    if policy.startswith("vllm"):
        assert any("vllm serve" in code.value for code in app.code)
    else:
        assert any("not a vLLM scheduler" in info.value for info in app.info)


def test_a_run_that_was_stopped_is_not_tried_again(open_app, monkeypatch):
    from ui import engine

    tries = []

    def counted(scenario, requests=None):
        tries.append(scenario)
        return simulate(scenario, requests)

    monkeypatch.setattr(engine, "simulate", counted)
    app = open_app(s="preset-law~n-3000~lin-1~l-60000~bd-1")
    assert not app.exception
    assert "was stopped" in app.main.error[0].value
    app.run()
    assert len(tries) == 1
