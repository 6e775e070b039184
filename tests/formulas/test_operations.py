"""Bind, evaluate, solve, elasticities, NumPy functions."""

import math
import pickle

import numpy as np
import pytest

import formulas
from formulas import FormulaError
from formulas.entry import entries
from formulas.evaluation import harmonic
from formulas.symbols import quantities
from tests.formulas.cases import case

SERVICE = {"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200}


def usual(formula):
    """Values near the middle of the usual ranges, no two quite alike; counts are whole."""
    values = {}
    for place, entry in enumerate(formula.inputs):
        low, high = entry.low, entry.high
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        middle *= 1 + 0.01 * place
        values[entry.id] = float(round(middle)) if entry.domain == "count" else middle
    return values


@pytest.mark.parametrize("formula_id", entries())
def test_every_formula_evaluates(formula_id):
    formula = formulas.get(formula_id)
    value = formula.evaluate(usual(formula))
    assert math.isfinite(value)
    assert formula.bind(usual(formula)).latex()
    assert formula.bind(usual(formula)).mathml()


@pytest.mark.parametrize("formula_id", entries())
def test_the_numpy_function_says_the_same(formula_id):
    formula = formulas.get(formula_id)
    values = usual(formula)
    if formula.is_condition or not values:
        return
    function = formula.lambdify(*values)
    first, *rest = values
    column = np.array([values[first], values[first] * 1.5])
    try:
        expected = [formula.evaluate({**values, first: x}) for x in column]
    except FormulaError:
        return
    found = function(column, *(values[name] for name in rest))
    np.testing.assert_allclose(np.broadcast_to(found, 2), expected, rtol=1e-12)


def test_lambdify_broadcasts():
    function = formulas.get("F5a").lambdify()
    names = [entry.id for entry in formulas.get("F5a").inputs]
    values = case(ctx=612.0)
    B = np.array([[1.0], [8.0], [128.0]])
    g = np.array([1.0, 4.0])
    table = function(*({**values, "B": B, "g": g}[name] for name in names))
    assert table.shape == (3, 2)
    assert table[2, 0] == formulas.get("F5a").evaluate({**values, "B": 128})


def test_lambdify_wants_every_input_once():
    with pytest.raises(FormulaError, match="L_in"):
        formulas.get("F14").lambdify("B_s", "B_d", "L")


def test_more_values_than_needed_are_fine():
    assert formulas.get("F14").evaluate({**SERVICE, **case()}) == pytest.approx(7.188)


@pytest.mark.parametrize(
    ("formula_id", "change", "code"),
    [
        ("F14", {"L": None}, "missing_values"),
        ("F14", {"L": "200"}, "not_a_number"),
        ("F14", {"L": True}, "not_a_number"),
        ("F14", {"L": math.nan}, "not_finite"),
        ("F14", {"L": math.inf}, "not_finite"),
        ("F14", {"L": 0}, "outside_positive"),
        ("F23c", {"p": 1.1}, "outside_share"),
        ("F23c", {"p": 1}, "no_value"),
        ("F24", {"F_s": -1}, "outside_nonnegative"),
    ],
)
def test_wrong_values(formula_id, change, code):
    values = {**SERVICE, **case(n=100, p=0.5, C_rec=1.0), **change}
    values = {key: value for key, value in values.items() if value is not None}
    with pytest.raises(FormulaError) as error:
        formulas.get(formula_id).evaluate(values)
    assert error.value.code == code
    assert str(error.value).endswith(".") or str(error.value).endswith(").")
    assert error.value.sentence("zh") != str(error.value)


def test_errors_travel():
    error = FormulaError("outside_share", name="p", value=1.2)
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.values, str(again)) == (error.code, error.values, str(error))


# --- solving ------------------------------------------------------------------------------


def test_solve_in_closed_form():
    solution = formulas.get("F14").solve_for("B_d", {**SERVICE, "Delta": 7.188})
    assert solution.kind == "closed_form"
    assert solution.value == pytest.approx(2.3)
    assert solution.bracket is None
    (expression,) = formulas.get("F14").closed_forms("B_d")
    assert {s.name for s in expression.free_symbols} == {"B_s", "L", "L_in", "Delta"}


def test_solve_a_quadratic_for_the_root_in_the_domain():
    formula = formulas.get("F23a")
    values = case(F_r=0.001)
    seconds = formula.evaluate({**values, "n": 5000})
    solution = formula.solve_for("n", {**values, "t_rec": seconds})
    assert solution.kind == "closed_form"
    assert solution.value == pytest.approx(5000)


def test_solve_numerically_where_max_decides():
    formula = formulas.get("F5a")
    values = case(ctx=612)
    goal = formula.evaluate({**values, "B": 100})
    solution = formula.bind({**values, "B": 1}).solve_for("B", goal)
    assert solution.kind == "numeric_root"
    assert solution.expression is None
    low, high = solution.bracket
    assert low <= solution.value <= high
    assert solution.value == pytest.approx(100)


def test_solve_across_a_jump():
    """The smallest pool that gives 100 blocks: the step is bracketed like a root."""
    solution = formulas.get("F8b").solve_for("N_kv", {"bs": 16, "N_blocks": 100})
    assert solution.kind == "numeric_root"
    assert solution.value == pytest.approx(1600)


def test_solve_an_algorithm():
    solution = formulas.get("F26e").solve_for("rho", {"q_share": 0.99, "x_ttft": 5.0})
    assert solution.kind == "numeric_root"
    assert solution.value == pytest.approx(0.561, abs=5e-4)


def test_solve_for_the_result_itself():
    solution = formulas.get("F14").solve_for("Delta", SERVICE)
    assert solution.value == pytest.approx(7.188)


def test_no_solution():
    with pytest.raises(FormulaError) as error:
        formulas.get("F16").solve_for("L", {"L_max": 100, "w_pad": 1.5})
    assert error.value.code == "no_solution"


def test_solve_for_a_stranger():
    with pytest.raises(FormulaError, match="choose one of"):
        formulas.get("F14").solve_for("Psi", {**SERVICE, "Delta": 1})


@pytest.mark.parametrize("formula_id", entries())
def test_solving_gets_the_value_back(formula_id):
    """Every input of every formula: put in the result, take out the input."""
    formula = formulas.get(formula_id)
    if formula.is_condition or formula.algorithm is not None:
        return
    values = usual(formula)
    result = formula.evaluate(values)
    for name, value in values.items():
        changed = formula.evaluate({**values, name: value * (0.9 if value else 1)})
        if changed == result:
            continue  # the other branch of max decides, or rounding hides it
        solution = formula.solve_for(name, {**values, formula.result.id: result})
        again = formula.evaluate({**values, name: solution.value})
        assert again == pytest.approx(result, rel=1e-6, abs=1e-12), name


# --- elasticities -------------------------------------------------------------------------


def test_elasticities_of_powers():
    found = formulas.get("F24").bind(case(n=1000)).elasticities()
    assert found["kappa"] == pytest.approx(1)
    assert found["beta_h"] == pytest.approx(-1)
    assert found["F_s"] == 0


def test_elasticities_follow_the_active_branch():
    decode = formulas.get("F5a")
    memory = decode.bind(case(B=8, ctx=612)).elasticities()
    assert memory["P"] == 0
    assert memory["beta"] < -0.7
    compute = decode.bind(case(B=500, ctx=100)).elasticities()
    assert compute["beta"] == 0
    assert compute["P"] < -0.7


def test_elasticities_leave_rounding_out():
    found = formulas.get("F8a").bind({"M_kv": 53.9e9, "kappa": 131_072}).elasticities()
    assert found == pytest.approx({"M_kv": 1, "kappa": -1})


@pytest.mark.parametrize("formula_id", entries())
def test_elasticities_match_small_changes(formula_id):
    formula = formulas.get(formula_id)
    if formula.is_condition:
        return
    bound = formula.bind(usual(formula))
    rounded = "⌊" in formula.plain() or "⌈" in formula.plain()
    for name, elasticity in bound.elasticities().items():
        if rounded or formula.algorithm is not None or bound.value == 0:
            assert math.isfinite(elasticity)
            continue
        up, down = bound.changed(name, 1 + 1e-5), bound.changed(name, 1 - 1e-5)
        assert elasticity == pytest.approx((up - down) / 2e-5 / bound.value, rel=1e-3, abs=1e-4)


def test_ten_percent_more():
    bound = formulas.get("F14").bind(SERVICE)
    assert bound.changed("B_d") == pytest.approx(1.1 * 8.188 - 1)
    with pytest.raises(FormulaError):
        bound.changed("Psi")


def test_conditions():
    bound = formulas.get("F28p").bind({"lambda": 5, "s_mean": 1000, "C_p": 9714, "rho_max": 0.5})
    assert bound.value == 1.0
    assert bound.plain() == "5 × 1,000 > 0.5 × 9,714"
    assert bound.elasticities() == {}
    assert formulas.get("F28p").is_condition
    assert formulas.get("F28p").result is None


def test_steps_show_numbers():
    formula = formulas.get("F14")
    bound = formula.bind(SERVICE)
    from formulas import plain

    shown = plain.render(bound.step_node(formula.derivation[0]))
    assert shown == "X_old = 1 × 200/(T_s × (512 + 200))"


# --- parts --------------------------------------------------------------------------------


def test_harmonic_numbers():
    sums = np.cumsum(1 / np.arange(1, 1001))
    np.testing.assert_allclose(harmonic(np.arange(1, 1001)), sums, rtol=1e-13)
    assert harmonic(0) == pytest.approx(0, abs=1e-13)


def test_algorithms_keep_their_units():
    """Seconds, bytes and GPUs may be rescaled; tokens and requests are counted one by one."""
    scales = {"s": 4.0, "byte": 0.5, "GPU": 2.0, "token": 1.0, "request": 1.0, "FLOP": 1.0}
    for formula in formulas.all():
        if formula.algorithm is None:
            continue
        values = usual(formula)
        scaled = {
            name: value * quantities()[name].unit.scaled(scales) for name, value in values.items()
        }
        compute = formula.algorithm.compute
        expected = compute(values) * formula.result.unit.scaled(scales)
        assert compute(scaled) == pytest.approx(expected, rel=1e-9), formula.id
