"""Check values of F19–F22 and the tables of claims A21, A22 and B20."""

import pytest

import formulas
from tests.formulas.cases import case, evaluate

CHUNKS = {
    # (model, device, GPUs), decodes, context: {bound in seconds: largest chunk on a grid of 16}
    (("llama-3-8b", "a100", 1), 32, 1500): {0.03: 224, 0.05: 416, 0.1: 896, 0.2: 1824},
    (("yi-34b", "a100", 2), 32, 4096): {0.05: 176, 0.1: 400, 0.2: 848},
    (("llama-3-70b", "a100", 4), 32, 1500): {0.05: 176, 0.1: 384},
    (("llama-3-8b", "h100", 1), 32, 1500): {0.03: 816, 0.05: 1408},
}


@pytest.mark.parametrize(("setting", "row"), CHUNKS.items())
def test_f19a_chunk_on_a_grid(setting, row):
    where, B, ctx = setting
    values = case(*where, B=B, ctx=ctx, C_grid=16, s_0=0)
    assert {tbt: evaluate("F19a", values, TBT=tbt) for tbt in row} == row


def test_f19_closed_form_lies_within_the_grid():
    values = case(B=32, ctx=1500, s_0=0)
    values["F_dec"] = 2 * values["Psi_a"] * 32 + 4 * values["n_L"] * values["d_a"] * 32 * 1500
    for tbt, on_grid in CHUNKS[("llama-3-8b", "a100", 1), 32, 1500].items():
        chunk = evaluate("F19", values, TBT=tbt)
        assert on_grid <= chunk < on_grid + 16
        pairs = 32 * 1500 + chunk * (chunk + 1) / 2
        assert evaluate("F5", values, T=32 + chunk, A=pairs, R_kv=1) == pytest.approx(tbt)


@pytest.mark.parametrize(("n", "C", "iterations"), [(1500, 416, 4), (32_768, 416, 79)])
def test_f19b_first_token(n, C, iterations):
    assert evaluate("F20c", {"n": n, "C": C}) == iterations
    first = evaluate("F19b", {"n": n, "C": C, "t_iter": 0.05})
    assert first == pytest.approx(iterations * 0.05)
    assert (first < 1) is (n == 1500)  # with the bound of 1 s only the short prompt is served


def test_f20c_field_case():
    assert evaluate("F20c", {"n": 130_000, "C": 512}) == 254


def test_f20_read_again():
    again = evaluate("F20", {"n": 32_768, "N_c": 16})
    assert again == 245_760
    values = case(n=32_768, N_c=16)
    assert again * values["kappa"] / 1e9 == pytest.approx(32, abs=0.3)
    seconds = evaluate("F20a", values)
    assert seconds * 1e3 == pytest.approx(20, abs=0.3)
    assert seconds / evaluate("F5b", values, k_p=1) == pytest.approx(0.004, abs=3e-4)


def test_f20b_tile():
    padded = [evaluate("F20b", {"C": C, "B": 1, "n_tile": 128}) for C in (255, 256)]
    assert padded == [256, 384]


@pytest.mark.parametrize(("setting", "gain"), [(("llama-3-8b", 1, 11), 1.16),
                                               (("llama-3-70b", 8, 34), 1.45)])  # fmt: skip
def test_f20d_overlap_at_32k_in_8k_out(setting, gain):
    model, g, B = setting
    values = case(model, g=g, B=B, B_d=B, L=8192, ctx=32_768 + 4096)
    values["t_d"] = evaluate("F5a", values)
    values["t_p"] = evaluate("F5b", values, k_p=1, n=32_768) - values["t_0"]
    assert evaluate("F20d", values) == pytest.approx(gain, abs=0.006)


def test_three_readings_of_22_percent():
    delta = 1797 / 250
    assert delta * 1.22 == pytest.approx(8.77, abs=0.005)
    assert delta + 0.22 == pytest.approx(7.41, abs=0.005)
    assert (1 + delta) * 1.22 - 1 == pytest.approx(8.99, abs=0.005)


@pytest.mark.parametrize(
    ("setting", "free"),
    [
        (("llama-3-8b", "a100", 1), 99),
        (("llama-3-8b", "h100", 1), 223),
        (("llama-3-70b", "a100", 4), 73),
    ],
)
def test_f21_free_slack(setting, free):
    values = case(*setting)
    reads = 32 * 1500
    work = 2 * values["Psi_a"] * 32 + 4 * values["n_L"] * values["d_a"] * reads
    values["t_c"] = work / (values["g"] * values["P"] * values["eta_c"])
    values["t_m"] = (values["b_w"] * values["Psi_a"] + values["kappa"] * reads) / (
        values["g"] * values["beta"] * values["eta_m"]
    )
    assert evaluate("F21", values) == pytest.approx(free, abs=0.6)


def test_f22_stall():
    """Six prompts of 3,000 tokens, two in an iteration of 8,192: three iterations in a row."""
    values = {"k_wait": 6, "b_tok": 8192, "n": 3000, "t_b": 0.7}
    assert evaluate("F22", values) == pytest.approx(2.1)
    by_tokens = -(-6 * 3000 // 8192) * 0.7
    assert evaluate("F22", values) >= by_tokens
    assert evaluate("F22", values, n=4096) == pytest.approx(3 * 0.7)


def test_f22_a_long_prompt_stalls_for_seconds():
    prefill = evaluate("F5b", k_p=1, n=32_768)
    stall = evaluate("F22", {"k_wait": 1, "b_tok": 32_768, "n": 32_768, "t_b": prefill})
    assert stall == pytest.approx(5.2, abs=0.05)


def test_f22_a_prompt_longer_than_the_budget_never_runs():
    with pytest.raises(formulas.FormulaError, match="finite"):
        evaluate("F22", {"k_wait": 1, "b_tok": 8192, "n": 9000, "t_b": 1.0})
