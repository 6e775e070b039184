"""Check values of F12–F18 and the tables of claims A10–A13."""

import pytest

import formulas
from tests.formulas.cases import case, evaluate

SERVICE = {"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200}


def test_f14_as_printed():
    delta = evaluate("F14", SERVICE)
    assert delta == pytest.approx(1797 / 250, rel=1e-12)
    assert delta == pytest.approx(7.188)
    old = evaluate("F12", SERVICE, T_s=0.0126)
    new = evaluate("F13", SERVICE, T_s=0.0126)
    assert new / old - 1 == pytest.approx(delta)


def test_f14_factors_and_limit_test():
    assert evaluate("F14", SERVICE) + 1 == pytest.approx(2.3 * 3.56)
    assert evaluate("F14", SERVICE, B_d=1) == pytest.approx(2.56)
    steps = {step.id: step for step in formulas.get("F14").consequences}
    assert float(steps["number_alike"].relation.rhs) == pytest.approx(1.3)
    assert float(steps["bookkeeping_number"].relation.rhs) == pytest.approx(3.56)


MEAN_LONGEST = {
    # E[max]/E[L] at B = 16 and 32
    ("F16a", None): (3.381, 4.058),
    ("F16b", None): (1.88, 1.94),
    ("F16c", None): (3.375, 4.051),
    ("F16d", 0.5): (2.13, 2.45),
    ("F16d", 1): (3.44, 4.34),
    ("F16d", 2): (5.49, 7.70),
}


@pytest.mark.parametrize(("formula", "row"), MEAN_LONGEST.items())
def test_f16_longest_output(formula, row):
    formula_id, spread = formula
    values = {"L": 200, "CV": spread or 1}
    found = [evaluate(formula_id, values, B_s=B) / 200 for B in (16, 32)]
    assert found == pytest.approx(row, abs=0.006)


@pytest.mark.parametrize("formula_id", ["F16a", "F16b", "F16c", "F16d"])
def test_f16_a_batch_of_one_waits_for_itself(formula_id):
    longest = evaluate(formula_id, {"B_s": 1, "L": 200, "CV": 0.7})
    assert longest == pytest.approx(200, rel=1e-6)
    assert evaluate("F16", {"L": 200, "L_max": longest}) == pytest.approx(0, abs=1e-6)


def test_f16c_certain_end():
    assert evaluate("F16c", {"B_s": 9, "L": 1}) == 1


def test_f16_waste():
    assert evaluate("F16", {"L": 200, "L_max": 200 * 3.381}) == pytest.approx(1 - 1 / 3.381)


@pytest.mark.parametrize(
    ("truncated_at", "ratio"), [(32, 1.95), (128, 2.17), (512, 3.03), (1536, 3.38)]
)
def test_f16_widest_variance_of_a_published_benchmark(truncated_at, ratio):
    """Length variance alone explains at most 3.4 times at a batch of 16."""
    assert ratio <= evaluate("F16a", {"B_s": 16, "L": 1}) + 0.005


def iteration_times(setting, B_s):
    """Values for F15, F17 and F18 with text A's lengths and 2.3 times the batch."""
    values = case(*setting, L_in=512, L=200, ctx=612, B_s=B_s, B_d=round(2.3 * B_s))
    return values | {
        "t_p": evaluate("F5b", values, k_p=1, n=512),
        "t_pB": evaluate("F5b", values, k_p=B_s, n=512),
        "t_d": evaluate("F5a", values, B=values["B_d"]),
        "t_ds": evaluate("F5a", values, B=B_s),
    }


def test_f17_worked_example():
    """8B on an A100, B_d = 37: 1,550 tokens/s instead of 2,937; prefill takes 43 % of the time."""
    values = iteration_times(("llama-3-8b", "a100", 1), 16)
    assert evaluate("F17", values) == pytest.approx(1550, abs=1)
    assert evaluate("F13", values, T_s=12.6e-3) == pytest.approx(2937, abs=1)
    assert evaluate("F17b", values) == pytest.approx(0.43, abs=0.005)
    assert values["t_p"] / 200 * 1e3 == pytest.approx(0.276, abs=5e-4)
    assert 1e3 / evaluate("F17", values) == pytest.approx(0.646, abs=2e-3)


def test_f13_t_s_is_not_constant():
    """From B = 16 to 37 an iteration grows by 9 % (GQA 8B) or 28 % (MHA 13B)."""
    for model, growth in (("llama-3-8b", 0.09), ("llama-2-13b", 0.28)):
        times = [evaluate("F5a", case(model), B=B, ctx=612) for B in (16, 37)]
        assert times[1] / times[0] - 1 == pytest.approx(growth, abs=0.01)


IMPROVEMENTS = {
    # Δ with equal lengths, with exponential lengths, hybrid bound with exponential lengths
    (("llama-3-8b", "a100", 1), 8): (0.83, 3.50, 6.42),
    (("llama-3-8b", "a100", 1), 16): (0.64, 3.55, 7.01),
    (("llama-3-8b", "a100", 1), 32): (0.41, 3.06, 4.37),
    (("llama-2-13b", "a100", 1), 8): (0.71, 3.22, 5.17),
    (("llama-2-13b", "a100", 1), 16): (0.51, 3.27, 6.13),
    (("llama-2-13b", "a100", 1), 32): (0.31, 2.99, 5.66),
    (("llama-3-70b", "a100", 4), 8): (0.84, 3.49, 6.05),
    (("llama-3-70b", "a100", 4), 16): (0.66, 3.50, 6.05),
    (("llama-3-70b", "a100", 4), 32): (0.43, 2.93, 3.60),
}


@pytest.mark.parametrize(("setting", "row"), IMPROVEMENTS.items())
def test_f17a_corrected_improvement(setting, row):
    where, B_s = setting
    values = iteration_times(where, B_s)
    exponential = evaluate("F16a", values)
    equal = evaluate("F17a", values, L_max=200)
    spread = evaluate("F17a", values, L_max=exponential)
    parts = {key: evaluate(f, values) for key, f in (("c_tok", "F18a"), ("m_tok", "F18b"))}
    static = evaluate("F15", values, L_max=exponential)
    bound = evaluate("F18", parts) / static - 1
    assert (equal, spread, bound) == pytest.approx(row, abs=0.0051)
    assert spread == pytest.approx(evaluate("F17", values) / static - 1)


@pytest.mark.parametrize("model", [("llama-3-8b", 1), ("llama-2-13b", 1), ("llama-3-70b", 4)])
def test_f17a_never_reaches_what_text_a_promises(model):
    """Efficiencies and overheads swept at B_s = 16: Δ stays in [0.36, 0.91] and [2.3, 5.1]."""
    for eta_c in (0.3, 0.5, 0.7):
        for eta_m in (0.5, 0.8, 0.95):
            for t_0 in (0.0, 0.01, 0.03):
                values = case(model[0], g=model[1], eta_c=eta_c, eta_m=eta_m, t_0=t_0)
                values |= {"L_in": 512, "L": 200, "ctx": 612, "B_s": 16, "B_d": 37}
                values["t_p"] = evaluate("F5b", values, k_p=1, n=512)
                values["t_pB"] = evaluate("F5b", values, k_p=16, n=512)
                values["t_d"] = evaluate("F5a", values, B=37)
                values["t_ds"] = evaluate("F5a", values, B=16)
                assert 0.355 <= evaluate("F17a", values, L_max=200) <= 0.915
                assert 2.25 <= evaluate("F17a", values, L_max=200 * 3.3807) <= 5.15


def test_f17a_limit_test_is_passed():
    values = {"B_s": 16, "B_d": 16, "L": 200, "L_max": 200, "t_d": 0.013, "t_ds": 0.013}
    assert evaluate("F17a", values, t_p=0.05, t_pB=0.8) == pytest.approx(0)
