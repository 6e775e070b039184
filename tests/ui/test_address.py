"""Links: language-neutral codes, differences only, a version; whatever stands there, no fault."""

import pytest

from model import catalogue


def address(app):
    """The address as the browser is told: what is bound, and what was rewritten."""
    return {name: code for name, code in app.session_state["address"].items() if code}


def test_defaults_leave_the_address_empty(open_app):
    app = open_app()
    assert not app.exception
    assert address(app) == {}
    assert (app.session_state["s"], app.session_state["lang"]) == ("", "")


def test_a_link_sets_the_choices(open_app):
    app = open_app(s="preset-law~policy-sarathi~v-2", lang="zh")
    assert not app.exception
    assert app.selectbox(key="choice.preset").value == "law"
    assert app.selectbox(key="choice.policy").value == "sarathi"
    assert app.main.title[0].value == "模拟器"
    assert address(app) == {"s": "preset-law~policy-sarathi~v-2", "lang": "zh"}


def test_a_link_written_by_hand_is_read_and_takes_the_present_form(open_app):
    app = open_app(preset="law", bd="32", x="rate-0.1~tpot-0.08", lang="zh", view="latency")
    assert not app.exception
    assert app.select_slider(key="choice.bd").value == 32
    text = "preset-law~bd-32~rate-0.1~tpot-0.08~v-2"
    assert address(app) == {"s": text, "lang": "zh"}
    assert {name: app.query_params[name] for name in app.query_params} in (
        {"s": text, "lang": "zh", "view": "latency"},
        {"s": [text], "lang": ["zh"], "view": ["latency"]},
    )
    assert app.session_state["view"] == "latency"  # a page's own parameter


def test_a_link_made_in_chinese_opens_in_english(open_app):
    app = open_app(lang="zh")
    app.selectbox(key="choice.policy").select("static").run()
    link = address(app)
    assert link == {"s": "preset-customer-service~policy-static~v-2", "lang": "zh"}
    english = open_app(**(link | {"lang": "en"}))
    assert english.selectbox(key="choice.policy").value == "static"
    assert "Static batching" in english.main.caption[0].value


def test_choosing_the_preset_s_own_policy_again_empties_the_address(open_app):
    app = open_app()
    app.selectbox(key="choice.policy").select("orca").run()
    assert "policy-orca" in address(app)["s"]
    app.selectbox(key="choice.policy").select("vllm-v1").run()
    assert address(app) == {}


def test_another_preset_undoes_the_differences_from_the_old_one(open_app):
    app = open_app(s="policy-orca~model-qwen3-8b~bd-32~seed-3")
    app.selectbox(key="choice.preset").select("code").run()
    assert address(app) == {"s": "preset-code~v-2"}
    assert app.selectbox(key="choice.policy").value == "vllm-v1"


NONSENSE = [
    ("preset-nonsense", "preset"),
    ("policy-<script>alert(1)</script>", "policy"),
    ("gpus-1e9", "gpus"),
    ("gpus-3.5", "gpus"),
    ("bs-0", "bs"),
    ("bd-99999999999999999999999", "bd"),
    ("lin--5", "lin"),
    ("l-NaN", "l"),
    ("v-99", "v"),
    ("v-1; drop", "v"),
    ("rate-abc", "rate"),
    ("rate-inf", "rate"),
    ("util-7", "util"),
    ("n-1000000", "n"),
    ("nosuchthing-1", "nosuchthing"),
    ("[a](javascript:alert(1))-1", "?"),
    ("seed-1~" * 4_000, "s"),
    ("weights-__class__", "weights"),
    ("in-quantiles", "in"),
    ("rate.9-4~rate.0-4~rate.10-4", "rate.0"),
]


@pytest.mark.parametrize(("text", "name"), NONSENSE)
def test_nonsense_in_a_link_is_left_out_and_named_once(open_app, text, name):
    app = open_app(s=text)
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="choice.preset").value == "customer-service"
    assert len(app.metric) == 6
    [notice] = [w.value for w in app.sidebar.warning]
    assert f"`{name}`" in notice
    assert "javascript" not in notice
    # It stays over reruns, and goes with the first change.
    app.run()
    assert len(app.sidebar.warning) == 1
    app.selectbox(key="choice.policy").select("orca").run()
    assert len(app.sidebar.warning) == 0
    assert address(app)["s"].startswith("preset-customer-service~policy-orca")


@pytest.mark.parametrize("params", [{"hardware": "x" * 5_000}, {"x": "n-9~" * 3_000}, {"v": "9"}])
def test_nonsense_in_the_plain_form_too(open_app, params):
    app = open_app(**params)
    assert not app.exception
    [name] = params
    assert f"`{name}`" in app.sidebar.warning[0].value
    assert address(app) == {}


def test_the_rest_of_a_link_with_nonsense_is_used(open_app):
    app = open_app(preset="code", policy="magic", bd="32", x="rate-4~bogus-1~tpot-0.1")
    assert not app.exception
    assert address(app) == {"s": "preset-code~bd-32~rate-4~tpot-0.1~v-2"}
    assert "`policy`; `bogus`" in app.sidebar.warning[0].value


def test_an_unknown_language_is_the_browser_s(open_app):
    app = open_app(lang="fr")
    assert not app.exception
    assert app.main.title[0].value == "Simulator"


def test_changing_the_language_keeps_the_choices(open_app):
    app = open_app(preset="law", policy="sarathi")
    app.selectbox(key="choice.lang").select("zh").run()
    assert app.selectbox(key="choice.preset").value == "law"
    assert app.selectbox(key="choice.policy").value == "sarathi"
    app.selectbox(key="choice.lang").select("en").run()
    assert app.selectbox(key="choice.preset").value == "law"


# -- links of the first version --------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["customer-service", "law", "interactive-offline"])
@pytest.mark.parametrize("policy", ["static", "orca", "vllm-v0", "sarathi"])
def test_links_of_version_1_keep_their_meaning(open_app, preset, policy):
    """Then every policy ran with the preset's limit, the static one too."""
    app = open_app(preset=preset, policy=policy, v="1")
    assert not app.exception
    assert not app.sidebar.warning
    own = catalogue.presets()[preset].scenario.policy
    key = "choice.bs" if policy == "static" else "choice.bd"
    assert app.select_slider(key=key).value == own.max_num_seqs
    link = address(app)
    assert link["s"].endswith("~v-2")
    again = open_app(**link)
    assert [m.value for m in again.metric] == [m.value for m in app.metric]


def test_a_link_of_version_1_with_every_choice(open_app):
    app = open_app(
        preset="law",
        policy="sarathi",
        hardware="h100-sxm",
        gpus="4",
        model="llama-3.1-70b",
        v="1",
    )
    assert not app.exception
    values = {box.key: box.value for box in app.selectbox}
    assert values["choice.hardware"] == "h100-sxm"
    assert values["choice.gpus"] == "4"
    assert values["choice.model"] == "llama-3.1-70b"
