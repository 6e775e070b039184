"""Links: language-neutral codes, differences only, a version; whatever stands there, no fault."""

import pytest

from model import catalogue
from ui.scenario import session


def carried(app):
    """The codes of the address that are not empty."""
    return {name: code for name, code in app.session_state["address"].items() if code}


def test_defaults_leave_the_address_empty(open_app):
    app = open_app()
    assert not app.exception
    assert carried(app) == {}
    assert all(app.session_state[name] == "" for name in (*session.ADDRESS, "lang", "v"))


def test_a_link_sets_the_choices(open_app):
    app = open_app(preset="law", policy="sarathi", lang="zh")
    assert not app.exception
    assert app.selectbox(key="choice.preset").value == "law"
    assert app.selectbox(key="choice.policy").value == "sarathi"
    assert app.main.title[0].value == "模拟器"
    assert carried(app) == {"preset": "law", "policy": "sarathi", "lang": "zh", "v": "2"}
    app.run()
    assert app.session_state["v"] == "2"  # the unseen field that is bound to the address


def test_a_link_made_in_chinese_opens_in_english(open_app):
    app = open_app(lang="zh")
    app.selectbox(key="choice.policy").select("static").run()
    link = carried(app)
    assert link == {"policy": "static", "lang": "zh", "v": "2"}
    english = open_app(**(link | {"lang": "en"}))
    assert english.selectbox(key="choice.policy").value == "static"
    assert "Static batching" in english.main.caption[0].value


def test_choosing_the_preset_s_own_policy_again_empties_the_address(open_app):
    app = open_app()
    app.selectbox(key="choice.policy").select("orca").run()
    assert carried(app)["policy"] == "orca"
    app.selectbox(key="choice.policy").select("vllm-v1").run()
    assert carried(app) == {}


def test_another_preset_undoes_the_differences_from_the_old_one(open_app):
    app = open_app(policy="orca", model="qwen3-8b", bd="32", x="seed-3")
    app.selectbox(key="choice.preset").select("code").run()
    assert carried(app) == {"preset": "code", "v": "2"}
    assert app.selectbox(key="choice.policy").value == "vllm-v1"


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"preset": "nonsense"}, "preset"),
        ({"policy": "<script>alert(1)</script>"}, "policy"),
        ({"gpus": "1e9"}, "gpus"),
        ({"gpus": "3.5"}, "gpus"),
        ({"bs": "0"}, "bs"),
        ({"bd": "99999999999999999999999"}, "bd"),
        ({"lin": "-5"}, "lin"),
        ({"l": "NaN"}, "l"),
        ({"v": "99"}, "v"),
        ({"v": "1; drop"}, "v"),
        ({"hardware": "x" * 5_000}, "hardware"),
        ({"x": "rate-abc"}, "rate"),
        ({"x": "util-7"}, "util"),
        ({"x": "rate-inf"}, "rate"),
        ({"x": "n-1000000"}, "n"),
        ({"x": "nosuchthing-1"}, "nosuchthing"),
        ({"x": "[a](javascript:alert(1))-1"}, "?"),
        ({"x": "seed-1*" * 4_000}, "x"),
        ({"x": "weights-__class__"}, "weights"),
        ({"x": "in-quantiles"}, "in"),
    ],
)
def test_nonsense_in_a_link_is_left_out_and_named_once(open_app, params, name):
    app = open_app(**params)
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="choice.preset").value == "customer-service"
    assert len(app.metric) == 6
    [notice] = [w.value for w in app.sidebar.warning]
    assert notice.endswith(f": `{name}`")
    assert carried(app) == {}
    # It stays over reruns, and goes with the first change.
    app.run()
    assert len(app.sidebar.warning) == 1
    app.selectbox(key="choice.policy").select("orca").run()
    assert len(app.sidebar.warning) == 0


def test_the_rest_of_a_link_with_nonsense_is_used(open_app):
    app = open_app(preset="code", policy="magic", bd="32", x="rate-4*bogus-1*tpot-0.1")
    assert not app.exception
    assert carried(app) == {"preset": "code", "bd": "32", "x": "rate-4*tpot-0.1", "v": "2"}
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
    link = carried(app)
    assert link["v"] == "2"
    again = open_app(**link)
    assert [m.value for m in again.metric] == [m.value for m in app.metric]


def test_a_link_of_version_1_with_every_choice(open_app):
    app = open_app(
        *("simulator",),
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
