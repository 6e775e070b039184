"""The lesson on policies, without a browser."""

import csv
import io
import re

import pytest

from model import catalogue, metrics
from model.experiment import replace_at, with_policy
from model.schedulers import POLICIES
from model.simulator import simulate
from ui.language import LANGUAGES, translate
from ui.policies.comparison import csv_of
from ui.policies.contestants import FEWEST, MOST, Run, contestants, known
from ui.policies.exercise import POLICY, task
from ui.policies.suggestions import suggestions
from ui.prose import sections

LOOKS = ("table", "curves", "pair", "luck")
STORM = "preset-preemption-storm~v-2"
CONVERSATION = "preset-conversation~v-2"
SCENARIO = catalogue.presets()["conversation"].scenario


def opened(open_app, guess=0, **params):
    """The page after a prediction: the contestant at this place."""
    app = open_app(page="policies", **params)
    app.button(key=f"prediction.policies.{guess}").click().run()
    assert not app.exception
    return app


def texts(app):
    return "\n".join(block.value for block in app.main.markdown)


def page_html(app):
    return "\n".join(block.proto.body for block in app.get("html"))


def cells(app, name):
    """The numbers of a row of the table, as shown."""
    row = next(r for r in re.findall(r"<tr>.*?</tr>", page_html(app)) if f">{name}</th>" in r)
    return [re.sub(r"<i.*?</i>|<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("look", LOOKS)
def test_everything_opens_in_both_languages(open_app, look, language):
    app = opened(open_app, look=look, lang=language, s=STORM)
    assert not app.error
    assert not app.main.warning


def test_nothing_is_given_away_before_the_prediction(open_app):
    app = open_app(page="policies")
    assert "il-policies" not in page_html(app)
    assert not app.get("plotly_chart")
    assert not app.main.multiselect


def test_the_numbers_are_those_of_the_simulator(open_app):
    app = opened(open_app, s=STORM, policies="vllm-v0,vllm-v1,v1-512")
    scenario = catalogue.presets()["preemption-storm"].scenario
    expected = [
        simulate(one)
        for one in (
            with_policy(scenario, "vllm-v0"),
            scenario,
            replace_at(scenario, "policy.max_num_batched_tokens", 512),
        )
    ]
    assert cells(app, "Preemptions") == [
        f"{int(one.requests['preemptions'].sum())} times" for one in expected
    ]
    shares = [metrics.summary(one)["slo_attainment_share"] for one in expected]
    assert cells(app, "Both SLOs met") == [f"{100 * share:.1f} %" for share in shares]


def test_classes_are_told_apart(open_app):
    app = opened(open_app, s="preset-interactive-offline~v-2")
    assert len(cells(app, "… of class interactive")) == 5
    assert cells(app, "Fairness between classes (Jain)")


def test_the_panels_policy_is_marked_once(open_app):
    app = opened(open_app, s=STORM)
    assert page_html(app).count("<em>in the panel</em>") == 1


def test_the_prediction_is_judged(open_app):
    app = opened(open_app, guess=0, s=CONVERSATION)  # static batching
    assert "You said **Static batching**: 0.500 %." in texts(app)
    assert "equally good, **vLLM V1, Sarathi-Serve**" in texts(app)


def test_what_decides_alike_is_said(open_app):
    app = opened(open_app, s=CONVERSATION)
    assert "vLLM V1 = Sarathi-Serve" in app.main.info[0].value


def test_a_light_load_offers_harder_ones(open_app):
    app = opened(open_app)
    app.button(key="pol.preset.preemption-storm").click().run()
    assert not app.exception
    assert app.session_state["s"].startswith("preset-preemption-storm")


# -- who takes part --------------------------------------------------------------------------------


def test_the_choice_is_in_the_address_and_back(open_app):
    app = opened(open_app, policies="vllm-v1,v1-512,v0-swap")
    box = app.main.multiselect(key="choice.policies")
    assert box.value == ["vllm-v1", "v1-512", "v0-swap"]
    box.set_value(["vllm-v1", "orca"]).run()
    assert not app.exception
    assert app.session_state["policies"] == "vllm-v1,orca"
    assert len(cells(app, "Preemptions")) == 2


@pytest.mark.parametrize("names", ["", "nobody", "策略,,<b>"])
def test_unknown_names_in_a_link_are_left_out(open_app, names):
    app = opened(open_app, policies=names)
    assert len(cells(app, "Preemptions")) == 5


@pytest.mark.parametrize("code", ["<script>", "orca,orca", "nobody,orca", "../..", "策略", ","])
def test_unknown_codes_of_views_and_pairs_stand_for_the_first_choice(open_app, code):
    app = opened(open_app, s=CONVERSATION, look=code, pair=code)
    assert len(cells(app, "Preemptions")) == 5  # the table
    app.session_state["look"] = "pair"
    app.session_state["from"] = code
    app.run()
    assert not app.exception
    pair = [app.main.selectbox(key=f"choice.pair.{place}").value for place in range(2)]
    assert pair == ["static", "vllm-v1"]  # the panel's, and who decides like it for longest


def test_one_policy_is_not_a_comparison(open_app):
    app = opened(open_app)
    for names in (["orca"], []):
        app.main.multiselect(key="choice.policies").set_value(names).run()
        assert not app.exception
        assert app.main.info[0].value == "Choose at least 2 policies that can run."
        assert app.main.multiselect(key="choice.policies").value == names
    assert "You said:] **Static batching**" in texts(app)  # although it takes no part any more


def test_a_link_with_one_policy_asks_about_those_of_the_beginning(open_app):
    app = open_app(page="policies", policies="orca")
    assert len([b for b in app.main.button if b.key.startswith("prediction.")]) == 5


def test_at_most_so_many_take_part(open_app):
    names = list(contestants())[: MOST + 2]
    app = opened(open_app, policies=",".join(names))
    assert len(app.main.multiselect(key="choice.policies").value) == MOST


def test_what_cannot_run_gets_its_sentence_and_the_others_go_on(open_app):
    """Budget 512 with 1,024 seats: vLLM would not start."""
    app = opened(open_app, s="preset-customer-service~bd-1024~v-2", policies="v1-512,vllm-v1,orca")
    (warning,) = app.main.warning
    assert "vLLM V1 · budget 512" in warning.value
    assert "1,024" in warning.value
    assert len(cells(app, "Preemptions")) == 2


def test_what_fails_on_the_way_gets_its_sentence_too(open_app):
    """No host memory to swap to: the run is stopped when the first victim has nowhere to go."""
    app = opened(open_app, s=f"{STORM}~cpublocks-0", policies="v0-swap,vllm-v1,orca")
    (warning,) = app.main.warning
    assert "swap" in warning.value
    assert len(cells(app, "Preemptions")) == 2


@pytest.mark.parametrize("name", [n for n, c in contestants().items() if c.policy in POLICIES])
def test_every_row_of_the_table_has_settings_of_its_policy(name):
    one = contestants()[name]
    scenario = with_policy(catalogue.presets()["conversation"].scenario, one.policy)
    for setting, value in one.settings:
        scenario = replace_at(scenario, f"policy.{setting}", value)
    assert scenario.policy.name == one.policy


def test_the_file_has_every_metric_of_every_policy():
    scenario = catalogue.presets()["interactive-offline"].scenario
    runs = [
        Run(contestants()[name], name, with_policy(scenario, name)) for name in ("vllm-v1", "orca")
    ]
    rows = list(csv.DictReader(io.StringIO(csv_of(runs).decode())))
    assert [row["id"] for row in rows] == ["vllm-v1", "orca"]
    assert set(metrics.METRICS) < set(rows[0])
    assert float(rows[0]["preemptions"]) == simulate(scenario).requests["preemptions"].sum()
    for row, name in zip(rows, ("vllm-v1", "orca"), strict=True):
        result = simulate(with_policy(scenario, name))
        kept = metrics.meets_slo(result.requests, scenario.slo)
        offline = result.requests["request_class"] == result.inputs.class_names.index("offline")
        assert float(row["slo_attainment_share.offline"]) == kept[offline].mean()
        short, long = metrics.length_ends(result.requests, scenario.slo)
        assert float(row["ttft_mean_s.shortest"]) == short.ttft_mean_s
        assert float(row["slo_attainment_share.longest"]) == long.slo_attainment_share


NEVER_FULL = [
    one.id
    for one in contestants().values()
    if "admission" not in dict(one.settings)
]


@pytest.mark.parametrize("first", range(0, len(NEVER_FULL), MOST - 1))
@pytest.mark.parametrize("preset", ["law", "code"])
def test_nobody_is_refused_without_admission_control(open_app, preset, first):
    """Variants that compute whole prompts have a budget for the longest one."""
    names = [*NEVER_FULL[first : first + MOST - 1], "vllm-v1"]
    app = opened(open_app, s=f"preset-{preset}~v-2", policies=",".join(names))
    assert set(cells(app, "Rejected requests")) == {"0 requests"}


# -- questions worth a comparison ------------------------------------------------------------------


def numbers_of(name, metric):
    """A metric of everybody who takes part in a suggestion, by id."""
    one = next(one for one in suggestions() if one.id == name)
    found = {}
    for code in one.policies:
        scenario = with_policy(catalogue.presets()[one.preset].scenario, contestants()[code].policy)
        for setting, value in contestants()[code].settings:
            scenario = replace_at(scenario, f"policy.{setting}", value)
        found[code] = metric(simulate(scenario))
    return found


def of(name):
    return lambda result: metrics.summary(result)[name]


@pytest.mark.parametrize("one", suggestions(), ids=lambda one: one.id)
def test_a_suggestion_names_a_preset_and_contestants(one):
    assert one.preset in catalogue.presets()
    assert FEWEST <= len(known(one.policies)) == len(one.policies) <= MOST
    assert set(one.pair) <= set(one.policies)
    for language in LANGUAGES:
        assert sections(language, "policies")[f"try-{one.id}"].text


def test_a_suggestion_changes_preset_and_contestants_and_says_what_to_look_for(open_app):
    app = opened(open_app, look="pair")
    app.button(key="pol.try.quantum").click().run()
    assert not app.exception
    assert app.session_state["s"].startswith("preset-conversation")
    assert app.main.multiselect(key="choice.policies").value == ["lab", "lab-quantum", "lab-slo"]
    assert app.main.selectbox(key="choice.pair.1").value == "lab-quantum"
    assert "What does a 10 ms quantum cost?" in app.main.info[0].value


def test_what_the_suggestions_say_is_what_the_simulations_give():
    tpot = numbers_of("budget", of("tpot_p99_s"))
    assert tpot["v1-512"] < tpot["vllm-v1"] < tpot["v1-8192"]
    ttft = numbers_of("budget", of("ttft_mean_s"))
    assert ttft["v1-512"] > ttft["vllm-v1"]

    busy = numbers_of("quantum", of("residency_share"))
    assert busy["lab-quantum"] < 0.95 < busy["lab-slo"] == pytest.approx(busy["lab"], abs=1e-3)
    tpot = numbers_of("quantum", of("tpot_p50_s"))
    assert tpot["lab-quantum"] > tpot["lab"] > tpot["lab-slo"]

    wasted = numbers_of("priority", of("wasted_tokens_share"))
    assert wasted["v1-priority"] < 0.1 < 0.3 < wasted["lab-evict"]

    shortest, longest = (
        numbers_of(
            "shortest",
            lambda result, end=end: metrics.length_ends(result.requests, result.scenario.slo)[
                end
            ].ttft_mean_s,
        )
        for end in (0, 1)
    )
    assert shortest["lab-sjf"] < shortest["lab-guess"] < shortest["lab-blind"] < shortest["lab"]
    assert longest["lab-sjf"] > longest["lab"]
    mean = numbers_of("shortest", of("ttft_mean_s"))
    assert mean["lab-sjf"] < mean["lab-aging"] < mean["lab"]

    kept = numbers_of("refuse", of("slo_attainment_share"))
    assert max(kept, key=kept.get) == "lab-loss"
    assert kept["lab"] < kept["lab-deadline"] < kept["lab-little"]

    kept = numbers_of("reserve", of("slo_attainment_share"))
    assert kept["orca"] < kept["orca-pow2"] < kept["orca-oracle"] < kept["vllm-v1"]
    victims = numbers_of("reserve", of("preemptions"))
    assert victims["orca-oracle"] == 0 < victims["v1-watermark"] < victims["vllm-v1"]

    wasted = numbers_of("evicted", of("wasted_tokens_share"))
    assert wasted["v0-swap"] == wasted["lab-cheaper"] == wasted["lab-reserve"] == 0
    ttft = numbers_of("evicted", of("ttft_mean_s"))
    assert ttft["lab-cheaper"] < ttft["lab"] < ttft["lab-reserve"]


def test_the_table_tells_short_requests_from_long_ones(open_app):
    app = opened(open_app, s=STORM, policies="lab,lab-sjf")
    rows = re.findall(r"<tr>(?:(?!</tr>).)*… shortest tenth.*?</tr>", page_html(app))
    assert len(rows) == 2  # mean TTFT and attainment
    sjf = with_policy(catalogue.presets()["preemption-storm"].scenario, "lab")
    result = simulate(replace_at(sjf, "policy.queue_order", "sjf"))
    short, _ = metrics.length_ends(result.requests, result.scenario.slo)
    assert f"{1e3 * short.ttft_mean_s:.1f} ms</td>" in rows[0]
    assert short.slo_attainment_share == 1
    assert "100 %</td>" in rows[1]


def test_where_all_are_equally_long_there_are_no_such_rows(open_app):
    app = opened(open_app, s="preset-law~v-2", policies="vllm-v1,lab-deadline")
    assert "tenth" not in page_html(app)
    assert cells(app, "Both SLOs met")[1] == "0 %"  # all 24 are refused
    assert cells(app, "TTFT P50")[1] == "–"


# -- two of them -----------------------------------------------------------------------------------


def test_the_parting_is_explained_with_its_numbers(open_app):
    app = opened(open_app, look="pair", s=CONVERSATION, pair="orca,vllm-v1")
    said = texts(app)
    assert "decide the first 8 iterations alike" in said
    # The request wants its whole prompt; V1 gives what one decode leaves of 2,048.
    assert "computes 3,821 tokens" in said
    assert "2,047 tokens of its prompt of 3,821" in said
    results = [simulate(with_policy(SCENARIO, name)) for name in ("orca", "vllm-v1")]
    waits = [1e3 * metrics.ttft_s(result.requests)[1] for result in results]
    assert [f"**{ms:.0f} ms**" in said for ms in waits] == [True, True]
    assert len(app.get("bidi_component")) == 1


def test_who_gets_no_token_is_said_to_get_none(open_app):
    """Every document needs 5 s of prefill, and the bound of admission is one."""
    app = opened(open_app, look="pair", s="preset-law~v-2", pair="vllm-v1,lab-deadline",
                 policies="vllm-v1,lab-deadline")  # fmt: skip
    said = texts(app)
    assert "**r0** is rejected" in said
    assert "it never got a token" in said
    assert len(app.get("bidi_component")) == 1


def test_what_the_prefix_cache_gave_is_said(open_app):
    app = opened(open_app, look="pair", s="preset-conversation-turns~v-2", pair="sarathi,vllm-v1")
    said = texts(app)
    assert "computes 204 tokens" in said
    assert "computes 60 tokens, 144 more are found in the prefix cache" in said


@pytest.mark.parametrize("look", LOOKS)
def test_prefill_pools_retries_and_refusals_are_compared(open_app, look):
    app = opened(
        open_app,
        look=look,
        s="preset-conversation~engines-2~prefillers-1~retries-2~patience-20~v-2",
        policies="vllm-v0,vllm-v1,lab-deadline,static",
        pair="vllm-v1,lab-deadline",
    )
    assert not app.error
    (warning,) = app.main.warning  # static batching takes in no KV while it runs
    assert "static" in warning.value
    if look == "pair":
        assert "engine 0" in texts(app)


def test_two_that_never_part_differ_in_memory_only(open_app):
    app = opened(open_app, look="pair", s=CONVERSATION, pair="vllm-v1,sarathi")
    assert "never part here" in app.main.info[0].value
    assert "Only the memory differs" in app.main.info[0].value


def test_choosing_one_twice_changes_places(open_app):
    app = opened(open_app, look="pair", s=CONVERSATION, pair="orca,vllm-v1")
    app.main.selectbox(key="choice.pair.0").set_value("vllm-v1").run()
    assert not app.exception
    assert app.session_state["pair"] == "vllm-v1,orca"


# -- luck and exercise -----------------------------------------------------------------------------


def test_five_seeds_give_ranges(open_app):
    app = opened(open_app, look="luck", s=CONVERSATION, policies="vllm-v0,vllm-v1")
    app.button(key="pol.luck.start").click().run()
    assert not app.exception
    scenario = catalogue.presets()["conversation"].scenario
    shares = [
        100 * metrics.summary(simulate(replace_at(scenario, "seed", seed)))["slo_attainment_share"]
        for seed in range(5)
    ]
    row = next(line for line in texts(app).splitlines() if line.startswith("| vLLM V1"))
    assert f"<br>{min(shares):.1f} – {max(shares):.1f}" in row


@pytest.mark.parametrize("variant", range(1, 6))
def test_the_exercise_is_worth_asking(variant):
    now = task(variant)
    assert now == task(variant)
    # What is read off the schedule alone gives the answer.
    read = sum(
        int(part.partition(":")[2]) for scheduled, _ in now.schedule for part in scheduled.split()
    )
    least = sum(prompt + output - 1 for _, prompt, output in now.rows)
    assert now.answer == read - least > 0
    victims = sum(len(preempted.split()) for _, preempted in now.schedule)
    assert now.again == now.answer + victims  # each comes back with one token that is new
    assert POLICY == "vllm-v0"


def test_the_exercise_knows_the_usual_mistakes(open_app):
    app, now = opened(open_app), task(1)
    field, check = "exercise.policies.1", translate("en", "lesson.check")
    for given, word in ((now.again, "is new"), (now.total, "everything"), (now.other, "vLLM V1")):
        app.number_input(key=field).set_value(given)
        next(b for b in app.main.button if b.label == check).click().run()
        assert word in app.main.warning[0].value
    app.number_input(key=field).set_value(now.answer)
    next(b for b in app.main.button if b.label == check).click().run()
    assert app.main.success


# -- requests from a file --------------------------------------------------------------------------

TRACE = b"""request_id,arrival_s,prompt_tokens,output_tokens,request_class
r*1*,0,900,40,<b>x</b>
two,0,3000,20,[x](javascript:alert(1))
three,0.1,40,60,<b>x</b>
"""


@pytest.mark.parametrize("look", LOOKS)
def test_a_trace_is_compared_like_any_other_workload(open_app, look):
    app = open_app(page="simulator", view="files")
    app.file_uploader(key="trace.upload").upload("mine.csv", TRACE, "text/csv").run()
    app.button(key="trace.use").click().run()
    app.switch_page("app_pages/policies.py")
    app.session_state["look"] = look
    app.run()
    app.button(key="prediction.policies.0").click().run()
    assert not app.exception
    assert not app.error
    assert "<b>x</b>" not in page_html(app)
    if look == "luck":
        assert "from a file" in app.main.info[0].value
