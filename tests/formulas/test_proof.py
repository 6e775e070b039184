"""The checks find what is false: each kind of step refuses a wrong claim of its kind."""

import pytest
import sympy
from sympy import Dummy, Float, Limit, Rational, ceiling, exp, floor, oo

from formulas import step
from formulas.functions import Largest, Smallest
from formulas.proof import Known, ProofError, is_nonnegative, is_zero, unit_mismatch
from formulas.relation import Relation, equation
from formulas.step import (
    Algebra,
    Approximation,
    Assumption,
    Definition,
    Inequality,
    Numeric,
    verify_all,
)
from formulas.symbols import symbols
from formulas.units import parse_unit

B_s, B_d, L, L_in, T_s, X_old, X_new = symbols("B_s B_d L L_in T_s X_old X_new")
rho, rho_max, x, q, CV = symbols("rho rho_max x_ttft q_share CV")
kappa, n, M_kv, N_kv, bs = symbols("kappa n M_kv N_kv bs")
one_token, one_request = symbols("one_token one_request")
z = Dummy("z", positive=True)


def refuses(one_step, match, known=None):
    with pytest.raises(ProofError, match=match):
        one_step.verify(known or Known())


# --- units --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("FLOP/(s·GPU)", "FLOP/(s·GPU)"), ("byte/token", "byte/token"), ("1", "1"),
        ("1/GPU", "1/GPU"), ("token^2", "token²"), ("s/token^2", "s/token²"),
        ("request·s", "request·s"),
    ],
)  # fmt: skip
def test_units_are_read_and_written(text, written):
    assert str(parse_unit(text)) == written


def test_unknown_unit():
    with pytest.raises(ValueError, match="furlong"):
        parse_unit("furlong/s")


def test_units_multiply():
    assert parse_unit("byte/token") * parse_unit("token") == parse_unit("byte")
    assert parse_unit("byte") / parse_unit("byte/token") == parse_unit("token")


def test_units_of_sides_are_compared():
    assert unit_mismatch(equation(M_kv, kappa * n)) is None
    assert unit_mismatch(equation(M_kv, kappa * n**2))
    assert unit_mismatch(equation(M_kv, kappa))
    assert unit_mismatch(equation(M_kv, kappa * n + n))


def test_units_within_rounding_max_and_exp():
    whole = floor(M_kv / (kappa * one_token)) * one_token
    assert unit_mismatch(equation(N_kv, whole)) is None
    assert unit_mismatch(equation(N_kv, floor(M_kv / kappa)))  # rounds a number of tokens
    assert unit_mismatch(equation(n, Largest(n, N_kv))) is None
    assert unit_mismatch(equation(n, Largest(n, M_kv)))
    assert unit_mismatch(equation(rho, exp(-n / N_kv))) is None
    assert unit_mismatch(equation(rho, exp(-n)))


def test_a_bare_number_has_no_unit():
    """ "+ 1" to a number of tokens is one token."""
    assert unit_mismatch(equation(N_kv, n + 1))
    assert unit_mismatch(equation(N_kv, n + one_token)) is None


# --- kinds of steps -----------------------------------------------------------------------


def test_definition():
    known = verify_all((Definition("a", equation(X_new, B_d * one_token / one_request / T_s)),))
    refuses(Definition("again", equation(X_new, X_old)), "defined already", known)
    refuses(Definition("itself", equation(rho, rho**2)), "by itself")
    refuses(Definition("circle", equation(B_d, X_new * T_s * one_request / one_token)),
            "by itself", known)  # fmt: skip
    refuses(Definition("sides", equation(rho + 1, x)), "one symbol")
    refuses(Definition("units", equation(X_new, B_d / T_s)), "change by")


def test_assumption():
    Assumption("fine", equation(B_d, B_s)).verify(Known())
    Assumption("fine", Relation(rho, rho_max, "<")).verify(Known())
    refuses(Assumption("empty", equation(2 * rho, rho + rho)), "assumes nothing")
    refuses(Assumption("impossible", equation(-rho, rho_max)), "no usual values")
    refuses(Assumption("impossible", Relation(rho, 0, "<")), "no usual values")


def test_algebra():
    Algebra("fine", equation((rho + x) ** 2, rho**2 + 2 * rho * x + x**2)).verify(Known())
    refuses(Algebra("wrong", equation((rho + x) ** 2, rho**2 + x**2)), "not shown to be 0")
    known = verify_all((Definition("a", equation(rho, x / (1 + x))),))
    Algebra("uses", equation(1 - rho, 1 / (1 + x))).verify(known)
    refuses(Algebra("unknown", equation(1 - rho, 1 / (1 + x))), "not shown to be 0")


def test_algebra_with_a_special_case():
    special = Algebra("case", equation(rho + x, 2 * x), given={rho: x})
    special.verify(Known())
    assert special.learn(Known()) == Known()
    assert special.special_case == (equation(rho, x),)
    refuses(Algebra("case", equation(rho + x, 3 * x), given={rho: x}), "not shown to be 0")


def test_algebra_that_solves():
    balance = equation(x * (1 - rho), rho)
    known = verify_all((Assumption("balance", balance),))
    Algebra("root", equation(rho, x / (1 + x)), solves=balance).verify(known)
    refuses(Algebra("root", equation(rho, x / (1 - x)), solves=balance), "not shown", known)
    refuses(Algebra("root", equation(rho, x / (1 + x)), solves=balance), "no step before")


def test_limit():
    step.Limit("fine", equation(Limit((1 + 2 * x) / x, x, oo), 2)).verify(Known())
    step.Limit("grows", equation(Limit(x / (1 - rho), rho, 1, "-"), oo)).verify(Known())
    refuses(step.Limit("wrong", equation(Limit((1 + 2 * x) / x, x, oo), 3)), "the limit is 2")


def test_approximation():
    exact, simpler = x + 1, x
    near = {x: (100.0, 1000.0)}
    Approximation("fine", Relation(exact, simpler, "≈"), within=0.01, where=near).verify(Known())
    refuses(
        Approximation("bold", Relation(exact, simpler, "≈"), within=0.001, where=near), "is above"
    )
    refuses(
        Approximation("vague", Relation(exact, simpler, "≈"), within=0.5, where=near), "tighter"
    )


def test_an_approximation_counts_from_there_on():
    rho_of_x = equation(rho, 1 / (x + 1))
    known = verify_all(
        (
            Definition("exact", rho_of_x),
            Approximation("near", Relation(rho, 1 / x, "≈"), within=0.02, where={x: (100.0, 1e3)}),
        )
    )
    assert known.meanings[rho] == 1 / x


def test_inequality():
    Inequality("fine", Relation(1 / (1 - rho), 1, ">")).verify(Known())
    Inequality("given", Relation(x, 1, ">"), given={x: 1 + z}).verify(Known())
    refuses(Inequality("wrong", Relation(x, 1, ">")), "does not follow")
    refuses(Inequality("wrong way", Relation(1 / (1 - rho), 1, "<")), "does not follow")
    refuses(Inequality("no sign", equation(x, x)), "no inequality")


def test_inequality_in_cases():
    K = symbols("K_s")[0]
    bound = Relation((x + K) / Largest(x, K), 2, "≤")
    cases = ({x: K + Dummy("z", nonnegative=True)}, {K: x + Dummy("z", nonnegative=True)})
    Inequality("both", bound, cases=cases).verify(Known())
    refuses(Inequality("neither", bound), "does not follow")


def test_numeric():
    Numeric("fine", Relation(x * rho, Float("1.5"), "≈"), values={"x_ttft": 3, "rho": 0.5}).verify(
        Known()
    )
    refuses(
        Numeric("off", Relation(x * rho, Float("1.6"), "≈"), values={"x_ttft": 3, "rho": 0.5}),
        "1.5, not 1.6",
    )
    refuses(Numeric("typo", Relation(x, Float(1), "≈"), values={"y": 1}), "no symbols")


def test_definitions_in_a_circle():
    known = Known({rho: 1 - x, x: 1 - rho})
    with pytest.raises(ProofError, match="circle"):
        known.expand(rho)


# --- proofs -------------------------------------------------------------------------------


def test_zero_by_plain_algebra():
    i = sympy.Symbol("i", positive=True, integer=True)
    m = sympy.Symbol("m", positive=True, integer=True)
    assert is_zero(sympy.Sum(i, (i, 1, m)) - m * (m + 1) / 2)
    assert is_zero(sympy.Sum(rho**i, (i, 0, m)) - (1 - rho ** (m + 1)) / (1 - rho))
    assert not is_zero(rho - x)


@pytest.mark.parametrize(
    "expression",
    [
        n / bs - floor(n / bs),
        ceiling(n / bs) - n / bs,
        1 - floor(n / bs) / (n / bs),
        ceiling(n / (bs * ceiling(x))) * bs * ceiling(x) - n,
        Largest(x, CV) - x,
        x - Smallest(x, CV),
        1 - rho,
        1 / (1 - rho) - 1,
    ],
)
def test_signs_that_follow(expression):
    assert is_nonnegative(expression)


@pytest.mark.parametrize(
    "expression", [floor(n / bs) - n / bs, x - Largest(x, CV), rho - Rational(1, 2), x - CV]
)
def test_signs_that_do_not(expression):
    assert not is_nonnegative(expression)


def test_largest_and_smallest():
    assert Largest(1, 3, 2) == 3
    assert Smallest(1, 3, 2) == 1
    assert Largest(x, x) == x
    assert Largest(x, CV).func is Largest
    assert Largest(rho, x).is_positive
    assert Smallest(rho, x).is_positive
