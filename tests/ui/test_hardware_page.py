"""The lesson on hardware, without a browser: numbers follow the panel, links reproduce it."""

import pytest

from tests.ui.reading import answered, numbers, text_of

PARTS = ("roof", "batch", "causes", "delta", "block", "factor")


def opened(open_app, **params):
    return answered(open_app(page="hardware", **params), {"prediction.hardware.1"})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.main.warning
    assert app.get("plotly_chart")


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="hardware")
    assert not app.get("plotly_chart")
    assert "ms" not in text_of(app)


def test_the_h20_decodes_faster_and_prefills_slower(open_app):
    words = text_of(opened(open_app))
    assert "**114 ms** instead of 55.2" in words
    assert "**7.04 ms** instead of 11.9" in words


def test_the_dynamic_batch_may_be_the_smaller_one(open_app):
    words = text_of(opened(open_app, bs="64", bd="8", v="2"))
    assert "with 8 requests it takes" in words
    assert "| Decode, B = 64 | " in words
    assert "and 12.2 on the A100" in words  # the domain's table: 12.2 ms at B = 8


def test_the_sources_are_shown(open_app):
    words = text_of(opened(open_app))
    assert "gitcode cann/ops-cv #997" in words
    assert "primary source" in words


def test_critical_batches_stand_beside_runs(open_app):
    words = text_of(opened(open_app, part="batch"))
    assert "| A100 80G SXM | 153 | 153 | 95.6 | **97** |" in words
    assert "122,532" in words


def test_the_block_is_a_slider(open_app):
    app = opened(open_app, part="block")
    assert numbers(app) == ["42.7", "153", "230", "4.00"]
    app.slider(key="blk").set_value(256).run()
    assert numbers(app)[0] == "171"
    assert "112 %" in text_of(app)


def test_what_the_factor_means(open_app):
    app = opened(open_app, part="factor", f="100")
    assert numbers(app) == ["0.785", "0.785"]
    app.slider(key="f").set_value(0).run()
    assert numbers(app) == ["1.21", "1.00"]
    assert "f = 0.780" in text_of(app)


def test_devices_come_from_the_address_and_go_there(open_app):
    app = opened(open_app, part="batch", devices="l40s,mi300x")
    assert app.multiselect(key="choice.devices").value == ["l40s", "mi300x"]
    assert "MI300X" in text_of(app)
    app.multiselect(key="choice.devices").set_value(["h20"]).run()
    assert app.session_state["devices"] == "h20"
    app.multiselect(key="choice.devices").set_value([]).run()
    assert not app.exception
    assert "H20" not in text_of(app)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("code", ["nonsense", "-", "设备,h20"])
def test_unknown_codes_in_a_link_are_left_out(open_app, code, part):
    assert opened(open_app, part=part, devices=code).get("plotly_chart")


@pytest.mark.parametrize("part", PARTS)
def test_a_model_that_does_not_fit_gets_sentences(open_app, part):
    params = {"model": "llama-3-70b", "gpus": "4", "v": "2", "devices": "rtx-4090"}
    app = opened(open_app, part=part, **params)
    assert not app.error
    assert app.get("plotly_chart")


def test_a_reference_without_room_is_said(open_app):
    params = {"model": "llama-3-70b", "hardware": "mi300x", "v": "2"}
    app = opened(open_app, part="factor", **params)
    assert "does not fit on the A100" in app.main.warning[0].value


def test_devices_without_room_are_named(open_app):
    app = opened(open_app, part="causes", model="llama-2-13b", v="2", devices="rtx-4090,h20")
    assert any("**RTX 4090**" in warning.value for warning in app.main.warning)
    assert "| H20 |" in text_of(app)


def test_a_clock_that_knows_no_device_is_replaced_and_that_is_said(open_app):
    app = opened(open_app, part="causes", x="clock-textbook", v="2")
    assert "knows no device" in app.main.info[0].value
    assert "| H20 |" in text_of(app)


def test_too_little_memory_for_the_batch_is_said(open_app):
    app = opened(open_app, part="delta", devices="rtx-4090")
    captions = " ".join(caption.value for caption in app.main.caption)
    assert "RTX 4090: the KV memory holds fewer" in captions


def test_experts_move_the_simulated_border(open_app):
    params = {"model": "qwen3-30b-a3b", "gpus": "2", "v": "2", "devices": "h20"}
    words = text_of(opened(open_app, part="batch", **params))
    assert "| A100 80G SXM | 153 | 153 | 95.6 | **877** | never | **–** |" in words


def test_the_panels_batch_is_used(open_app):
    small = text_of(opened(open_app, part="delta", bs="16", bd="37", v="2"))
    assert "+63.7" in small
    assert "Bd = 37" in small


def test_a_latent_cache_is_not_called_bound_by_memory(open_app):
    """All heads of DeepSeek-V3 share a vector: F4b's 1 FLOP/byte would be wrong by two orders."""
    params = {"model": "deepseek-v3", "hardware": "h200-sxm", "gpus": "16", "v": "2"}
    app = opened(open_app, part="block", **params)
    assert numbers(app)[3] == "–"
    assert "all heads read one latent vector" in text_of(app)
    assert "memory binds it" not in text_of(app)
    assert "memory binds it" in text_of(opened(open_app, part="block"))


@pytest.mark.parametrize(("part", "claim"), [("roof", "A19"), ("batch", "A2"), ("block", "A20")])
def test_what_is_only_claimed_stands_in_a_card(open_app, part, claim):
    assert f"**{claim}** &nbsp;" in text_of(opened(open_app, part=part))


def test_agreement_is_said_only_where_it_is(open_app):
    assert "Formula and simulation agree" in text_of(opened(open_app, part="delta"))
    crowded = text_of(opened(open_app, part="delta", bd="256", lin="2000", v="2"))
    assert "agree" not in crowded
    assert "percentage points" in crowded


def test_long_prompts_leave_the_formulas(open_app):
    params = {"model": "llama-3.1-8b", "lin": "120000", "bd": "256", "v": "2"}
    for part in ("roof", "delta"):
        app = opened(open_app, part=part, **params)
        assert app.get("plotly_chart")
        assert not any("max" in warning.value for warning in app.main.warning)


def test_large_scenarios_are_not_run_on_every_device(open_app):
    app = opened(open_app, part="causes", x="n-20000")
    assert "too large" in app.main.info[0].value
    assert not app.get("plotly_chart")


def test_the_exercise_knows_the_usual_mistakes(open_app):
    app = opened(open_app, part="batch")
    field = "exercise.hardware.0"
    for given, hint in ((419, "peak rates"), (670, "swapped"), (524, "Twice too much")):
        app.number_input(key=field).set_value(given)
        next(b for b in app.main.button if b.label == "Check").click().run()
        assert hint in app.main.warning[0].value
    app.number_input(key=field).set_value(262)
    next(b for b in app.main.button if b.label == "Check").click().run()
    assert app.success


def test_every_variant_has_its_own_answer(open_app):
    """B* = P·η_c·b_w/(2·β·η_m), by hand."""
    app = opened(open_app, part="batch")
    for variant, answer in enumerate((262, 77, 123, 204)):
        app.number_input(key=f"exercise.hardware.{variant}").set_value(answer)
        next(b for b in app.main.button if b.label == "Check").click().run()
        assert app.success, variant
        next(b for b in app.main.button if b.label == "New numbers").click().run()
