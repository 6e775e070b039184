"""``python -m formulas``: lists, shows, evaluates, and answers wrong input with a sentence."""

import pytest

from formulas.__main__ import main
from formulas.entry import entries
from formulas.texts import LANGUAGES

SERVICE = ["B_s=1", "B_d=2.3", "L_in=512", "L=200"]


def run(capsys, *arguments):
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_list(capsys):
    status, out, _ = run(capsys, "list")
    assert status == 0
    assert len(out.splitlines()) == len(entries())
    assert "F14   Improvement Δ, as printed  [wrong]" in out


def test_list_of_a_topic_in_chinese(capsys):
    _, out, _ = run(capsys, "list", "--topic", "quantum", "--language", "zh")
    assert [line.split()[0] for line in out.splitlines()] == ["F37", "F41", "F41a"]
    assert "多级反馈队列" in out


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("formula_id", entries())
def test_show_every_formula(capsys, formula_id, language):
    status, out, err = run(capsys, "show", formula_id, "--language", language)
    assert (status, err) == (0, "")
    assert out.startswith(formula_id)
    assert "LaTeX" in out


def test_show_tells_verdict_and_derivation(capsys):
    _, out, _ = run(capsys, "show", "F14")
    assert "verdict: wrong. See F17a." in out
    assert "Δ = L_in/L   (B_d = B_s)" in out
    assert "[token/request]" in out


def test_evaluate(capsys):
    assert run(capsys, "evaluate", "F14", "--set", *SERVICE) == (0, "Delta = 7.188\n", "")
    assert run(capsys, "evaluate", "f14", "--set", *SERVICE[:2], "--set", *SERVICE[2:])[0] == 0


def test_evaluate_with_a_unit(capsys):
    status, out, _ = run(capsys, "evaluate", "F3", "--set", "n_L=32", "H_kv=8", "h=128", "b_kv=2")
    assert (status, out) == (0, "kappa = 131072 byte/token\n")


def test_evaluate_a_condition(capsys):
    values = ["s_mean=1000", "C_p=9714", "rho_max=0.5"]
    assert run(capsys, "evaluate", "F28p", "--set", "lambda=5", *values)[1] == (
        "The condition holds.\n"
    )
    assert run(capsys, "evaluate", "F28p", "--set", "lambda=1", *values)[1] == (
        "The condition does not hold.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["F99"], "There is no formula 'F99'"),
        (["F14"], "F14 needs values for B_s, B_d, L_in, L; give them."),
        (["F14", "--set", "B_s=one"], "B_s is 'one'; give a number"),
        (["F14", "--set", "B_s=__import__('os').getcwd()"], "give a number"),
        (["F14", "--set", "B_s=2**9"], "B_s is '2**9'; give a number"),
        (["F14", "--set", "B_s=nan"], "B_s is 'nan'; give a number"),
        (["F14", "--set", "B_s=1e999", *SERVICE[1:]], "B_s is inf; give a finite number."),
        (["F14", "--set", "B_s"], "'B_s' is not of the form name=value"),
        (["F14", "--set", "=3"], "'=3' is not of the form name=value"),
        (["F14", "--set", "Psi=3"], "F14 has no symbol 'Psi'; choose one of B_s, B_d, L_in, L."),
        (["F14", "--set", "L=1", "L=2"], "L is set twice; give it once."),
        (["F14", "--set", *SERVICE[:3], "L=-5"], "L is -5; it must be above 0."),
        (["F23c", "--set", "p=1.5", "C_rec=1"], "p is 1.5; it is a share"),
        (["F23c", "--set", "p=1", "C_rec=1"], "F23c has no finite value there"),
    ],
)
def test_wrong_input(capsys, arguments, sentence):
    status, out, err = run(capsys, "evaluate", *arguments)
    assert (status, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_wrong_input_in_chinese(capsys):
    status, _, err = run(capsys, "evaluate", "F14", "--language", "zh")
    assert status == 2
    assert "还需要" in err


def test_numbers_may_be_grouped(capsys):
    arguments = ["F8a", "--set", "M_kv=53_940_000_000", "kappa=131_072"]
    assert run(capsys, "evaluate", *arguments)[1].startswith("N_kv = 4115")
