"""F12, F13, F15 and F17 against simulations of the same case."""

from dataclasses import replace

import pytest

from validation.throughput import (
    BAND,
    Case,
    Engine,
    compare,
    curves,
    improvements,
    kv_batch,
    parameters_read,
    textbook_improvement,
    utilizations,
    values,
)

CASES = [
    Case(),
    Case(16, 37),
    Case(8, 18, 1024, 300, engine=Engine(model="llama-2-13b")),
    Case(16, 37, engine=Engine(model="llama-3-70b", tensor_parallel=4)),
]


@pytest.mark.parametrize("case", CASES)
def test_equal_lengths_agree_within_half_a_percent(case):
    for pair in compare(case)[:4]:
        assert pair.drawn == pair.formula
        assert pair.difference == pytest.approx(0, abs=5e-3), pair.id


@pytest.mark.parametrize("case", CASES[:2])
def test_geometric_lengths_agree_but_for_the_draw(case):
    for pair in compare(replace(case, lengths="geometric"))[:4]:
        assert pair.unexplained == pytest.approx(0, abs=1e-2), pair.id
        assert pair.difference == pytest.approx(0, abs=4e-2), pair.id


def test_the_printed_formulas_leave_out_one_iteration_of_a_stay():
    static, continuous = compare(Case())[:2]
    assert static.difference == pytest.approx(1 / (512 + 200 - 1))
    assert continuous.difference == pytest.approx(0, abs=1e-9)


def test_memory_that_is_too_small_is_named_as_a_reason():
    case = Case(64, 256, 4096, 1000, "geometric")
    assert kv_batch(case) < 256
    assert compare(case)[3].reasons[0] == "memory"


@pytest.mark.parametrize("model", ["qwen3-30b-a3b", "mixtral-8x7b"])
def test_a_batch_reads_the_experts_that_it_touches(model):
    case = Case(engine=Engine(model=model, tensor_parallel=2))
    for pair in compare(case)[2:4]:
        assert pair.difference == pytest.approx(0, abs=6e-3), pair.id


def test_coverage_of_experts_by_hand():
    """Mixtral-8x7B, 12.88 of 46.70 billion parameters active, 2 of 8 experts a token."""
    given = values(Case(engine=Engine(model="mixtral-8x7b")))
    one_expert = (46.70e9 - 12.88e9) / 6
    assert parameters_read(given, 1.0) == pytest.approx(12.88e9, rel=1e-3)
    assert parameters_read(given, 2.0) == pytest.approx(12.88e9 + 1.5 * one_expert, rel=1e-3)
    assert parameters_read(given, 1e3) == pytest.approx(46.70e9, rel=1e-3)


def test_what_experts_leave_open_is_named():
    pairs = compare(Case(lengths="geometric", engine=Engine(model="qwen3-30b-a3b")))
    assert ["experts" in pair.reasons for pair in pairs] == [False, False, True, False, True]


def test_improvements_of_the_source_text():
    found = improvements(Case())
    assert found.printed == pytest.approx(7.188)
    assert found.alike == pytest.approx(1.3)
    assert found.same_batch == pytest.approx(2.56)
    assert found.lowest <= found.corrected <= found.highest < found.printed


def test_nothing_reaches_the_printed_improvement():
    assert improvements(Case(16, 37, lengths="geometric")).highest < 7.19


@pytest.mark.parametrize("lengths", ["fixed", "geometric"])
def test_every_line_lies_in_its_band(lengths):
    found = curves(Case(lengths=lengths))
    for line, (low, high) in (
        (found.static, found.static_band),
        (found.continuous, found.continuous_band),
        (found.decode_ms, found.decode_band_ms),
    ):
        assert (low <= line).all()
        assert (line <= high).all()
    assert (found.continuous <= found.bound * 1.0001).all()
    assert set(BAND) == {"eta_c", "eta_m", "t_0"}


def test_utilizations_are_shares_and_differ():
    for found in utilizations(Case()):
        assert found["residency"] == pytest.approx(1)
        assert 0 < found["mfu"] < found["mbu"] < 1


@pytest.mark.parametrize(
    ("accounting", "promised"), [("printed", 7.188), ("alike", 1.3), ("same", 2.56)]
)
def test_the_simulator_gives_what_the_accounting_promises(accounting, promised):
    assert textbook_improvement(Case(), accounting) == pytest.approx(promised, rel=5e-3)


@pytest.mark.parametrize("lengths", ["fixed", "geometric"])
@pytest.mark.parametrize("case", CASES)
def test_mixing_stays_below_its_bound(case, lengths):
    *_, continuous, mixed = compare(replace(case, lengths=lengths))
    assert mixed.id == "F18"
    assert mixed.simulated < mixed.formula
    if lengths == "geometric":
        assert mixed.simulated > continuous.simulated
