"""The lesson on SLOs without a browser: numbers follow knobs, links reproduce it."""

import time
from dataclasses import replace

import pytest

from model import catalogue
from model.errors import LabError
from model.goodput import Curve, Effort, Frontier, Point
from model.parameters import with_policy
from model.steady_load import load_run
from tests.ui.reading import answered, check, numbers
from ui.background import Job
from ui.slo import goodput as goodput_part
from ui.slo import study
from ui.slo.goodput import _largest_rate, _most

PARTS = ("tension", "goodput", "little", "stability", "admission", "exercise")
ANSWERS = {
    f"prediction.slo.{part}.{place}"
    for part, place in zip(PARTS, (1, 1, 1, 3, 2), strict=False)
}


def opened(open_app, **params):
    return answered(open_app(page="slo", **params), ANSWERS)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages(open_app, part, language):
    app = opened(open_app, part=part, lang=language)
    assert not app.error
    assert not app.warning


@pytest.mark.parametrize("preset", [name for name in catalogue.presets() if name != "law"])
def test_every_preset_gets_numbers_or_a_sentence(open_app, preset):
    for part in PARTS[2:5]:
        app = opened(open_app, part=part, preset=preset)
        assert not app.error
        assert len(app.main.metric) >= 4 or app.info or app.warning


@pytest.mark.parametrize("part", PARTS[:5])
def test_nothing_is_given_away_before_the_prediction(open_app, part):
    app = open_app(page="slo", part=part)
    assert not app.main.metric
    assert not app.get("plotly_chart")


def test_an_unknown_part_is_the_first(open_app):
    app = opened(open_app, part="nonsense")
    assert app.segmented_control(key="choice.part").value == "tension"


def test_the_bound_decides_which_load_is_allowed(open_app):
    """x = 2: .667 for the mean, .135 for P99; x = 5: .889 and .561."""
    assert numbers(opened(open_app, part="stability", bound="2"))[:4] == [
        "1", "0.667", "0.392", "0.135",
    ]  # fmt: skip
    found = numbers(opened(open_app, part="stability", bound="5"))
    assert (found[1], found[3]) == ("0.889", "0.561")


def test_littles_law_follows_the_load(open_app):
    normal = numbers(opened(open_app, part="little"))
    double = numbers(opened(open_app, part="little", load="200"))
    assert float(double[0]) > 1.8 * float(normal[0])
    assert float(double[2]) > float(normal[2])


def test_the_exercise_knows_the_usual_mistakes(open_app):
    """5 requests/s that stay 0.4 + 30 ms·200 = 6.4 s: 32."""
    app = opened(open_app, part="little")
    for given, said in ((2, "first token"), (30, "part of the stay"), (6, "one request stays")):
        app.number_input(key="exercise.slo.little.0").set_value(given)
        check(app).click().run()
        assert said in app.warning[0].value
    app.number_input(key="exercise.slo.little.0").set_value(32)
    check(app).click().run()
    assert app.success


def test_the_morning_peak_is_kept_with_one_gpu_by_two_knobs(open_app):
    start = opened(open_app, part="exercise")
    assert not start.success
    one = opened(open_app, part="exercise", budget="416")
    assert not one.success
    both = opened(open_app, part="exercise", budget="416", cap="4096")
    assert both.success
    assert numbers(both)[4] == "1"
    table = next(m.value for m in both.main.markdown if "416" in m.value and "|" in m.value)
    assert len(table.splitlines()) == 6  # head, rule, start, two knobs, both together


def test_a_second_engine_keeps_it_too_and_costs_a_gpu(open_app):
    app = opened(open_app, part="exercise", engines="2")
    assert app.success
    assert numbers(app)[4] == "2"


def test_refusing_saves_what_is_served_in_time(open_app):
    """Without control hardly anything is in time at 1.5 times the limit."""
    app = opened(open_app, part="admission", rule="little", offered="1.5")
    good = app.main.metric[0]
    assert float(good.value.split()[0]) > 5 * float(good.delta.split()[-1])


@pytest.mark.parametrize("rule", ["little", "token_cap", "vllm", "queue_cap", "deadline", "loss"])
def test_every_rule_refuses_some_in_overload_and_is_explained(open_app, rule):
    app = opened(open_app, part="admission", rule=rule, offered="2.0")
    assert not app.warning
    assert float(numbers(app)[1]) > 10  # percent refused


def test_retries_multiply_arrivals(open_app):
    once = opened(open_app, part="admission", offered="2.0")
    again = opened(open_app, part="admission", offered="2.0", retries="4")
    tries = [float(app.main.metric[1].delta.split()[0]) for app in (once, again)]
    assert tries[0] == 1.0
    assert tries[1] > 2.0


def test_a_link_says_who_is_measured(open_app):
    app = opened(open_app, part="goodput", who="orca,nonsense,vllm-v0")
    assert app.multiselect(key="slo.policies").value == ["orca", "vllm-v0"]


@pytest.mark.parametrize("part", ["goodput", "admission"])
def test_a_closed_loop_has_no_rate_and_says_so(open_app, part):
    app = opened(open_app, part=part, s="arr-closed_loop~v-2")
    assert "No rate" in app.info[0].value
    assert not app.warning
    assert not [button for button in app.main.button if button.key == "slo.start"]


@pytest.mark.parametrize("part", ["tension", "stability", "admission"])
def test_pools_of_engines_leave_single_mechanisms_as_they_are(open_app, part):
    app = opened(open_app, part=part, preset="customer-service", x="engines-4~prefillers-2", v="2")
    assert not app.warning


def test_bounds_that_nobody_misses_are_not_said_to_be_broken(open_app):
    tight = opened(open_app, part="admission")
    loose = opened(open_app, part="admission", x="ttft-1000000~tpot-1000000", v="2")
    said = [" ".join(one.value for one in app.main.markdown) for app in (tight, loose)]
    assert ["late already" in words for words in said] == [True, False]


def test_a_stall_that_does_not_fit_leaves_the_rest_of_its_part(open_app):
    app = opened(open_app, part="tension", x="kvblocks-40~ctx-600", v="2")
    assert any("KV" in warning.value for warning in app.warning)
    assert app.number_input(key="exercise.slo.tension.0")


# -- the study that runs beside the page -----------------------------------------------------------


def scenarios():
    scenario = catalogue.presets()["customer-service"].scenario
    return {name: with_policy(scenario, name) for name in ("vllm-v1", "orca")}


def ended(one):
    assert one.ended.wait(120)
    return one


def test_a_study_leaves_a_frontier():
    one = ended(study.start(scenarios(), Effort(60, 2), Effort(20, 1)))
    assert one.found.finished
    assert not one.found.cancelled
    assert one.done == one.planned > 0
    assert all(len(curve.points) >= 8 for curve in one.found.curves)


def test_a_cancelled_study_keeps_what_it_has():
    one = study.start(scenarios(), Effort(2000, 3))
    until = time.monotonic() + 60
    while (one.found is None or one.found.done < 3) and time.monotonic() < until:
        time.sleep(0.01)
    one.cancel()
    ended(one)
    assert one.found.cancelled
    assert one.found.done >= 3


def test_a_study_that_fails_says_so(monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no more processes")

    monkeypatch.setattr(study, "frontier", broken)
    one = ended(study.start(scenarios()))
    assert one.failed
    assert not one.running


def test_a_policy_that_cannot_run_says_so_beside_the_others(open_app):
    app = opened(open_app, part="goodput")
    one = ended(study.start(scenarios(), Effort(60, 1), Effort(20, 1)))
    good, broken = one.found.curves
    faults = tuple(replace(p, runs=(), error=LabError("no_rate")) for p in broken.points)
    one.found = replace(one.found, curves=(good, replace(broken, points=faults)))
    app.session_state["slo.study"] = one
    app.multiselect(key="slo.policies").set_value(list(one.plan)).run()
    assert not app.exception
    (table,) = (m.value for m in app.main.markdown if "| **" in m.value)
    assert "No stream of this workload has a rate" in table.splitlines()[-1]


def test_the_formula_of_goodput_gets_the_rate_of_one_engine(monkeypatch):
    """Two GPUs an engine: 3 requests/s per GPU are 6 of an engine."""
    scenario = replace(catalogue.presets()["customer-service"].scenario, tensor_parallel=2)
    run = replace(load_run(scenario, 2.0, 0, 60), slo_attainment_share=1.0, growth=0)
    curve = Curve("vllm-v1", scenario, 0.9, 20.0, (Point(3.0, (run,), settled=True),))
    job = Job({}, found=Frontier((curve,), 1, 1))
    monkeypatch.setattr(goodput_part.st, "session_state", {"slo.study": job})
    assert _largest_rate(scenario) == {"R_max": 6.0}
    assert _largest_rate(replace(scenario, seed=1)) == {}


def test_the_largest_slo_throughput_is_told_from_that_at_the_goodput():
    """Half are late at 8/s, none at 2/s: 4 in time per second against 2."""
    scenario = catalogue.presets()["customer-service"].scenario
    run = load_run(scenario, 2.0, 0, 60)

    def point(rate, share):
        good = rate * share
        made = replace(run, slo_attainment_share=share, slo_throughput_requests_per_s=good)
        return Point(rate, (made,), settled=True)

    curve = Curve("vllm-v1", scenario, 0.9, 20.0, (point(2.0, 1.0), point(8.0, 0.5)))
    assert curve.goodput[:2] == (2.0, 8.0)
    assert _most(curve) == "4.00 (at 8.00)"


def test_a_finished_study_is_shown(open_app):
    app = opened(open_app, part="goodput")
    one = ended(study.start(scenarios(), Effort(60, 2), Effort(20, 1)))
    chosen = dict(one.plan)
    app.session_state["slo.study"] = one
    app.multiselect(key="slo.policies").set_value(list(chosen)).run()
    assert not app.exception
    table = [m.value for m in app.main.markdown if "vLLM V1 | **" in m.value]
    assert table
