"""The lesson on preemption, without a browser: numbers follow the sliders, links reproduce it."""

import json

import pytest

from tests.ui.reading import answered, figures, text_of

PARTS = ("cost", "which", "expected", "victim", "checkpoint", "exercise")


def opened(open_app, **params):
    return answered(open_app(page="preemption", **params), {"prediction.preemption.1"})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.warning


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="preemption")
    assert not app.main.metric
    assert not app.get("plotly_chart")


def test_the_border_without_small_copies(open_app):
    """Llama-3-8B on an A100, F_s = 1, 5, 20 ms: 11, 54, 215 tokens; R̂ = 0.102."""
    for fixed, border in (("1", "11"), ("5", "54"), ("20", "215")):
        app = opened(open_app, preset="customer-service", fs=fixed, copy="0")
        assert figures(app)[2:] == ["0.102", border]
    assert "▶ recompute below a border" in text_of(app)


def test_four_gpus_on_a_link_draw_another_border(open_app):
    """Llama-2-7B on an A100 whose link four GPUs share: R̂ = 1.94, n* = 48.4 thousand."""
    app = opened(open_app, model="llama-2-7b", v="2", fs="0", copy="0", shared="4")
    assert figures(app)[2] == "1.94"
    assert float(figures(app)[3].replace(",", "")) == pytest.approx(48_400, rel=0.005)


def test_the_simulated_eviction_stands_beside_the_formulas(open_app):
    table = text_of(opened(open_app, n="2000"))
    assert "**F23a** recomputed" in table
    assert "**F24** swapped" in table
    assert "this is Fr" in table


def test_contexts_beyond_the_models_limit_are_said(open_app):
    app = opened(open_app, model="llama-2-7b", v="2", n="128000")
    assert any("The model ends at 4,096 tokens" in caption.value for caption in app.main.caption)


def test_the_printed_costs_are_drawn_on_demand(open_app):
    full, printed, blocks = (
        json.loads(opened(open_app, lines=lines).get("plotly_chart")[0].proto.spec)["data"]
        for lines in ("full", "printed", "blocks")
    )
    assert [len(full), len(printed), len(blocks)] == [5, 7, 2]


def test_chances_come_from_the_scenario_or_from_a_preset_that_preempts(open_app):
    own = opened(open_app, part="expected", preset="preemption-storm")
    assert "your scenario" in text_of(own)
    other = opened(open_app, part="expected", preset="customer-service")
    assert "preempts nobody" in text_of(other)
    assert figures(own) == figures(other)
    assert figures(own)[:3] == ["100 / 200", "50.0", "60.2"]


def test_swaps_are_said(open_app):
    params = {"preset": "preemption-storm", "policy": "vllm-v0", "x": "preempt-swap", "v": "2"}
    app = opened(open_app, part="expected", **params)
    assert any("copied the KV out" in caption.value for caption in app.main.caption)
    plain = opened(open_app, part="expected", preset="preemption-storm")
    assert not any("copied the KV out" in caption.value for caption in plain.main.caption)


def test_a_border_of_few_tokens_keeps_a_digit(open_app):
    """GPT-3 on 8 A100: 0.5 ms of fixed cost over (2.24 − 0.38) ms / 8 a token are 2.15 tokens."""
    app = opened(open_app, model="gpt-3-175b", v="2", fs="0.5", copy="0", gpus="8")
    assert figures(app)[3] in ("2.1", "2.2")


def test_a_victim_is_billed_and_the_engines_follow(open_app):
    assert "SGLang**" not in text_of(opened(open_app, part="victim"))
    app = opened(open_app, part="victim", pick="B")
    assert "You free 47 blocks for 40 that are needed, 7 more than asked" in text_of(app)
    assert "SGLang** | D C | 216 | 176" in text_of(app)
    assert "The cheapest choice that frees enough is **D + F**" in text_of(app)
    few = opened(open_app, part="victim", pick="F")
    assert "14 blocks are not enough" in text_of(few)


def test_the_table_of_links(open_app):
    """DOMAIN's numbers: tokens in 10 ms."""
    table = text_of(opened(open_app, part="checkpoint"))
    for row in (
        "25.0 GB/s | 476 | 1,907 | 762 | 52 | 3,557",
        "50.0 GB/s | 953 | 3,814 | 1,525 | 105 | 7,115",
        "300 GB/s | 5,722 | 22,888 | 9,155 | 635 | 42,691",
        "200 GB/s | 3,814 | 15,258 | 6,103 | 423 | 28,460",
    ):
        assert row in table


def test_a_drop_rate_needs_three_thousand_trials(open_app):
    table = text_of(opened(open_app, part="checkpoint", trials="3000"))
    assert "**2,996** in a row" in table
    assert "below **0.0999 %**" in table


@pytest.mark.parametrize("code", ["nonsense", "", "模型"])
def test_unknown_codes_in_a_link_are_left_out(open_app, code):
    params = dict.fromkeys(("part", "lines", "pblock", "ways", "shared", "pick", "n"), code)
    assert opened(open_app, **params).main.metric


def test_the_exercise_knows_the_usual_mistakes(open_app):
    app = opened(open_app, part="exercise")
    field = "exercise.preemption.0"
    for given, said in ((133, "both ways"), (240, "fixed cost as well"), (100, "grows faster"),
                        (67, "subtracted"), (500, "Too high")):  # fmt: skip
        app.number_input(key=field).set_value(given)
        next(button for button in app.main.button if button.label == "Check").click().run()
        assert said in app.warning[0].value, given
    app.number_input(key=field).set_value(200)
    next(button for button in app.main.button if button.label == "Check").click().run()
    assert "200 tokens" in app.success[0].value


def test_other_numbers_have_other_answers(open_app):
    app = opened(open_app, part="exercise")
    for place, answer in ((1, 100), (2, 300), (3, 40), (4, 200)):
        next(b for b in app.main.button if b.label == "New numbers").click().run()
        field = f"exercise.preemption.{place % 4}"
        app.number_input(key=field).set_value(answer)
        next(button for button in app.main.button if button.label == "Check").click().run()
        assert app.success, answer


def test_the_map_of_another_device(open_app):
    """910B2: R̂ = 0.123, break-even at 3.1 GB/s; H100 0.161 and 8.1 as in DOMAIN's table."""
    for device, ratio, even in (("Ascend 910B2", "0.123", "3.07"), ("H100 SXM", "0.161", "8.07")):
        said = text_of(opened(open_app, part="which", on=device))
        assert f"For Llama-3-8B it is {ratio}, and at {even} GB/s" in said


def test_no_memory_for_a_simulation_leaves_the_formulas(open_app):
    app = opened(open_app, preset="preemption-storm", n="128000")
    assert figures(app)[2:]
    assert "▶" in text_of(app)


def test_what_rides_along_is_said(open_app):
    said = text_of(opened(open_app, preset="customer-service"))
    assert "99 prompt tokens an iteration" in said
    assert "in 21 iterations" in said


def test_a_checkpoint_needs_one_copy_of_a_latent_cache(open_app):
    """DeepSeek-V3: 70,272 bytes a token, 40,960 tokens would be 2.88 GB; 32,000 are 2.25 GB."""
    params = {"model": "deepseek-v3", "hardware": "h200-sxm", "gpus": "16", "v": "2"}
    assert "2.25 GB of host memory" in text_of(opened(open_app, part="checkpoint", **params))
