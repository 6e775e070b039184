"""Links: language-neutral codes, differences only, a version; whatever stands there, no fault."""

import pytest


def test_defaults_leave_the_address_empty(open_app):
    app = open_app()
    assert not app.exception
    assert [app.session_state[name] for name in ("lang", "preset", "policy", "v")] == [""] * 4


def test_a_link_sets_the_choices(open_app):
    app = open_app(preset="law", policy="sarathi", lang="zh")
    assert not app.exception
    assert app.selectbox(key="choice.preset").value == "law"
    assert app.selectbox(key="choice.policy").value == "sarathi"
    assert app.session_state["v"] == "1"
    assert app.main.title[0].value == "模拟器"


def test_a_link_made_in_chinese_opens_in_english(open_app):
    app = open_app(lang="zh")
    app.selectbox(key="choice.policy").select("static").run()
    carried = {name: app.session_state[name] for name in ("policy", "preset")}
    assert carried == {"policy": "static", "preset": ""}
    english = open_app(policy=carried["policy"], lang="en")
    assert english.selectbox(key="choice.policy").value == "static"
    assert "Static batching" in english.main.caption[0].value


def test_choosing_the_preset_s_own_policy_again_empties_the_address(open_app):
    app = open_app()
    app.selectbox(key="choice.policy").select("orca").run()
    assert app.session_state["policy"] == "orca"
    app.selectbox(key="choice.policy").select("vllm-v1").run()
    assert app.session_state["policy"] == ""


def test_another_preset_undoes_the_differences_from_the_old_one(open_app):
    app = open_app(policy="orca", model="qwen3-8b")
    app.selectbox(key="choice.preset").select("code").run()
    assert (app.session_state["policy"], app.session_state["model"]) == ("", "")
    assert app.selectbox(key="choice.policy").value == "vllm-v1"


@pytest.mark.parametrize(
    "params",
    [
        {"preset": "nonsense"},
        {"policy": "<script>alert(1)</script>"},
        {"gpus": "1e9"},
        {"lang": "fr"},
        {"v": "99"},
        {"hardware": "x" * 5_000},
    ],
)
def test_a_link_with_nonsense_opens_with_the_default(open_app, params):
    app = open_app(**params)
    assert not app.exception
    assert app.selectbox(key="choice.preset").value == "customer-service"
    assert len(app.metric) == 6


def test_changing_the_language_keeps_the_choices(open_app):
    app = open_app(preset="law", policy="sarathi")
    app.selectbox(key="choice.lang").select("zh").run()
    assert app.selectbox(key="choice.preset").value == "law"
    assert app.selectbox(key="choice.policy").value == "sarathi"
    app.selectbox(key="choice.lang").select("en").run()
    assert app.selectbox(key="choice.preset").value == "law"
