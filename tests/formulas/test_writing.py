"""How formulas are written: order, numbers, LaTeX, MathML, plain text."""

import math
import xml.etree.ElementTree as ElementTree

import pytest
import sympy

import formulas
from formulas import exact, latex, layout, mathml, plain
from formulas.entry import entries
from formulas.functions import Largest
from formulas.symbols import quantities, symbols

MATHML = "{http://www.w3.org/1998/Math/MathML}"
CORE = {
    *("math", "mrow", "mi", "mn", "mo", "mfrac", "msub", "msup", "msubsup", "msqrt", "mover"),
    *("munder", "munderover", "mtable", "mtr", "mtd"),
}
"""Elements of MathML Core that browsers draw by themselves."""
CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "mover": 2, "munder": 2,
            "munderover": 3}  # fmt: skip
X, Y, Z, W = sympy.symbols("x y z w")


def written(formula_id):
    return formulas.get(formula_id).plain()


@pytest.mark.parametrize(
    ("formula_id", "text"),
    [
        ("F3", "κ = 2·n_L·H_kv·h·b"),
        ("F8", "M_kv = u·M·g − b_w·Ψ − M_act·g"),
        ("F9a", "B_max = ⌊N_kv/(bs·⌈n/bs⌉)⌋"),
        ("F10a", "n_waste = (bs − 1)/2"),
        ("F12", "X_old = B_s·L/(T_s·(L_in + L))"),
        ("F14", "Δ = B_d·(L_in + L)/(B_s·L) − 1"),
        ("F15", "X_s ≈ B_s·L/(t_p,B + L_max·t_d,s)"),
        ("F16a", "L_max = L·H(B_s)"),
        ("F17", "X_c = 1/(t_p/L + t_d/B_d)"),
        ("F18", "X_h = 1/max(c_tok, m_tok)"),
        ("F23c", "C_exp = p·C_rec/(1 − p)"),
        ("F24", "t_swap = F_s + w·κ·n/(g·β_h)"),
        ("F26", "TTFT = D + λ·D^2/(2·(1 − λ·D))"),
        ("F27a", "W_q = ρ·S̄·(1 + CV^2)/(2·(1 − ρ))"),
        ("F28", "ρ* = 2·(x − 1)/(2·x − 1)"),
        ("F28p", "λ·s̄_p > ρ_max·C_p"),
        ("F35", "E = (1 − α_acc^(γ + 1))/(1 − α_acc)"),
    ],
)
def test_plain_text(formula_id, text):
    assert written(formula_id) == text


def test_latex():
    assert formulas.get("F14").latex() == (
        r"\Delta = \frac{B_{d}\,\left( L_{\mathrm{in}} + L \right)}{B_{s}\,L} - 1"
    )
    assert r"\left\lceil \frac{n}{\mathrm{bs}} \right\rceil" in formulas.get("F10").latex()
    assert r"\max\left(" in formulas.get("F5").latex()
    assert r"\hat{R}" in formulas.get("F25a").latex()
    assert r"\sum_{k = 0}^{" in formulas.get("F26d").latex()


@pytest.mark.parametrize("formula_id", entries())
def test_latex_is_balanced(formula_id):
    formula = formulas.get(formula_id)
    for node in [formula.node(), *(layout.layout(step.relation) for step in formula.steps)]:
        text = latex.render(node)
        assert text.count("{") == text.count("}")
        assert text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right")
        assert "one_" not in text
        assert "None" not in text


@pytest.mark.parametrize("formula_id", entries())
def test_mathml_marks_every_symbol(formula_id):
    formula = formulas.get(formula_id)
    nodes = [formula.node(), *(layout.layout(step.relation) for step in formula.steps)]
    for node in nodes:
        root = ElementTree.fromstring(mathml.document(node))
        for element in root.iter():
            tag = element.tag.removeprefix(MATHML)
            assert tag in CORE
            if tag in CHILDREN:
                assert len(element) == CHILDREN[tag]
    root = ElementTree.fromstring(formula.mathml())
    marked = {element.get("data-symbol") for element in root.iter()} - {None}
    assert marked <= set(quantities())
    shown = {s.name for side in formula._sides for s in side.free_symbols}
    hidden = {key for key, entry in quantities().items() if entry.hidden}
    assert shown & set(quantities()) - hidden <= marked


def test_numbers_keep_their_symbol():
    bound = formulas.get("F14").bind({"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200})
    root = ElementTree.fromstring(bound.mathml())
    values = {
        element.get("data-symbol"): "".join(element.itertext())
        for element in root.iter()
        if element.get("data-symbol")
    }
    assert values == {"Delta": "7.188", "B_d": "2.3", "L_in": "512", "L": "200", "B_s": "1"}


def test_bound_formula():
    bound = formulas.get("F14").bind({"B_s": 1, "B_d": 2.3, "L_in": 512, "L": 200})
    assert bound.plain() == "Δ = 2.3 × (512 + 200)/(1 × 200) − 1 = 7.188"
    assert bound.latex() == (
        r"\Delta = \frac{2.3 \times \left( 512 + 200 \right)}{1 \times 200} - 1 = 7.188"
    )
    rounded = formulas.get("F14").bind({"B_s": 3, "B_d": 2.3, "L_in": 512, "L": 200})
    assert rounded.plain() == "Δ = 2.3 × (512 + 200)/(3 × 200) − 1 ≈ 1.729"


@pytest.mark.parametrize(
    ("expression", "result", "sign"),
    [
        (sympy.floor(X / Y), 4, "="),  # ⌊8192/2048⌋
        (X + Y, 10_240, "="),
        (X / 3, 8192 / 3, "≈"),
        (Z * 3, 0.1 * 3, "="),  # 0.30000000000000004 as a float
        (W + 1, 9378.4, "≈"),  # 9,377.4 is written 9,377
        (sympy.exp(-X) + 1, 1.0, "≈"),
        (Largest(X, Y), 8192, "="),
        (X / (Y - 2048), math.inf, "≈"),
    ],
)
def test_an_equals_sign_stands_only_before_what_is_exact(expression, result, sign):
    values = {"x": 8192.0, "y": 2048.0, "z": 0.1, "w": 9377.4}
    assert exact.sign(expression, values, result) == sign


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1, "1"), (-2, "−2"), (131_072, "131,072"), (0.0126, "0.0126"),
        (0.5, "0.5"), (2.039e12, "2.039×10¹²"), (1e-6, "1×10⁻⁶"), (1234.5678, "1,235"),
        (99.96, "99.96"), (-0.25, "−0.25"), (float("inf"), "∞"), (float("nan"), "?"),
        (1.5e7, "1.5×10⁷"), (0.99999999, "1"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert plain.render(layout.number(value)) == text


def test_units_that_count_are_not_written():
    one_token, n, C = symbols("one_token n C")
    assert plain.render(layout.layout(n / one_token)) == "n"
    assert plain.render(layout.layout(C + one_token)) == "C + 1"
    assert plain.render(layout.layout(one_token * 2)) == "2"
    assert plain.render(layout.layout(1 / one_token)) == "1"


def test_order_and_signs():
    rho, gamma, CV, x = symbols("rho gamma CV x_ttft")
    for expression, text in (
        (1 - rho, "1 − ρ"),
        (rho - 1, "ρ − 1"),
        (-rho, "−ρ"),
        (1 + CV**2, "1 + CV^2"),
        (gamma + 1, "γ + 1"),
        (2 * x - 2, "2·x − 2"),
        ((2 * x - 2) / (2 * x - 1), "2·(x − 1)/(2·x − 1)"),
        (-rho / 2, "−ρ/2"),
        (sympy.Rational(1, 2), "1/2"),
        (1 / rho, "1/ρ"),
        (sympy.sqrt(rho), "√(ρ)"),
        (sympy.exp(-rho), "e^(−ρ)"),
        ((rho + x) ** 2, "(ρ + x)^2"),
    ):
        assert plain.render(layout.layout(expression)) == text


def test_piecewise_is_written_in_cases():
    rho, x = symbols("rho x_ttft")
    cases = sympy.Piecewise((rho, x > 1), (x, True))
    assert plain.render(layout.layout(cases)) == "{ρ if x > 1; x else}"
    assert r"\begin{cases}" in latex.render(layout.layout(cases))
    ElementTree.fromstring(mathml.document(layout.layout(cases)))


def test_values_in_powers_and_parentheses():
    rho = symbols("rho")[0]
    square = layout.layout(rho**2, {"rho": 2.5e12})
    assert plain.render(square) == "(2.5×10¹²)^2"
