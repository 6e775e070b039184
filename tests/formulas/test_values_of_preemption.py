"""Check values of F23–F25 and F40, and the tables of claims A16 and B10–B19."""

import pytest

import formulas
from formulas.topics.preemption import crossovers
from tests.formulas.cases import case, evaluate


def test_f23_one_request():
    """8B, 512 + 200 tokens: 1.1435e13 FLOP linear, 73.3 ms on an A100."""
    printed = evaluate("F23p", s_p=512, s_g=200)
    assert printed == pytest.approx(1.1435e13, rel=1e-4)
    assert printed / (312e12 * 0.5) * 1e3 == pytest.approx(73.3, abs=0.05)
    full = evaluate("F23", n=712)
    assert full / printed == pytest.approx(1 + evaluate("F2d", n=712))
    assert evaluate("F23a", n=712, F_r=0) == pytest.approx(full / (312e12 * 0.5))


@pytest.mark.parametrize(("n", "more"), [(8192, 0.13), (32_768, 0.54)])
def test_f23_what_the_printed_version_leaves_out(n, more):
    ratio = evaluate("F23", n=n) / evaluate("F23p", s_p=n, s_g=0)
    assert ratio - 1 == pytest.approx(more, abs=0.006)


@pytest.mark.parametrize(("p", "odds"), [(0.1, 0.111), (0.3, 0.429), (0.5, 1.0)])
def test_f23_expected_work(p, odds):
    assert evaluate("F23c", p=p, C_rec=1.0) == pytest.approx(odds, abs=6e-4)
    assert evaluate("F23b", p=p, C_rec=1.0) == p
    assert evaluate("F23q", p=p, s_p=512, s_g=200) == pytest.approx(
        p * evaluate("F23p", s_p=512, s_g=200)
    )


@pytest.mark.parametrize(
    ("n", "swap", "recompute"), [(512, 5.4, 53), (8192, 86, 956), (32_768, 344, 5178)]
)
def test_f24_absolute_times(n, swap, recompute):
    """Milliseconds, 8B on an A100."""
    assert evaluate("F24", n=n) * 1e3 == pytest.approx(swap, rel=0.01)
    assert evaluate("F23a", n=n) * 1e3 == pytest.approx(recompute, abs=0.5)


def test_f24p_is_too_optimistic():
    one_way = evaluate("F24p", m_kv=131_072 * 8192, beta_pcie=64e9)
    assert evaluate("F24", n=8192) / one_way == pytest.approx(2 * 64 / 25)


@pytest.mark.parametrize(
    ("model", "g", "bs", "swap", "recompute"),
    [
        ("opt-13b", 1, 1, 865, 165), ("opt-13b", 1, 8, 165.5, 165), ("opt-13b", 1, 16, 115, 165),
        ("opt-13b", 1, 64, 78, 165), ("llama-3-8b", 1, 8, 90.5, 103),
        ("llama-3-70b", 8, 16, 103, 113),
    ],
)  # fmt: skip
def test_f24a_small_copies(model, g, bs, swap, recompute):
    """Microseconds per token with 5 µs a copy: parity near blocks of 8, as published."""
    values = case(model, g=g, n=1, bs=bs, delta_copy=5e-6)
    assert evaluate("F24a", values) * 1e6 == pytest.approx(swap, rel=0.006)
    linear = 2 * values["Psi_a"] / (g * values["P"] * values["eta_c"])
    assert linear * 1e6 == pytest.approx(recompute, rel=0.006)


R_HAT = {
    # R̂ on A100, H100 and 910B2 with w = 2
    "llama-2-7b": (0.486, 0.769, 0.585),
    "llama-3-8b": (0.102, 0.161, 0.123),
    "llama-2-13b": (0.393, 0.622, 0.473),
    "opt-13b": (0.398, 0.630, 0.479),
    "llama-3-70b": (0.029, 0.046, 0.035),
    "gpt-3": (0.169, 0.267, 0.203),
    "qwen3-30b-a3b": (0.183, 0.290, 0.220),
    "deepseek-v3": (0.012, 0.019, 0.014),
}


@pytest.mark.parametrize(("model", "row"), R_HAT.items())
def test_f25a_swap_over_recompute(model, row):
    found = [evaluate("F25a", case(model, device)) for device in ("a100", "h100", "910b2")]
    assert found == pytest.approx(row, abs=8e-4)


SLOPES = {
    # swap and recompute, µs per token on A100
    ("llama-2-7b", 1): (41.9, 86.4), ("llama-3-8b", 1): (10.5, 103),
    ("llama-2-13b", 1): (65.5, 167), ("opt-13b", 1): (65.5, 165),
    ("llama-3-70b", 8): (3.28, 113), ("gpt-3", 16): (23.6, 140),
    ("qwen3-30b-a3b", 1): (7.9, 43), ("deepseek-v3", 16): (0.35, 29.7),
}  # fmt: skip


@pytest.mark.parametrize(("setting", "row"), SLOPES.items())
def test_f25a_slopes(setting, row):
    """Per-token costs with one link per GPU. The recompute column of 70B and larger is per GPU."""
    model, g = setting
    steps = {step.id: step for step in formulas.get("F25a").derivation}
    from formulas.evaluation import value

    values = case(model, g=g)
    swap, recompute = (value(steps[k].relation.rhs, values) * 1e6 for k in ("swap", "recompute"))
    assert swap == pytest.approx(row[0], rel=0.012)
    assert recompute == pytest.approx(row[1], rel=0.012)


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("llama-2-7b", (12.1, 38.5, 14.6)), ("llama-3-8b", (2.55, 8.1, 3.1)),
        ("llama-3-70b", (0.72, 2.3, 0.87)), ("gpt-3", (4.2, 13.4, 5.1)),
    ],
)  # fmt: skip
def test_f25e_break_even_bandwidth(model, row):
    found = [evaluate("F25e", case(model, device)) / 1e9 for device in ("a100", "h100", "910b2")]
    assert found == pytest.approx(row, rel=0.012)


@pytest.mark.parametrize(
    ("model", "device", "beta_h", "ratio", "tokens"),
    [
        ("llama-2-7b", "a100", 25e9 / 4, 1.94, 48.4e3),
        ("llama-2-7b", "h100", 50e9 / 2, 1.539, 27_698),
        ("llama-2-13b", "h100", 50e9 / 2, 1.25, 15.5e3),
        ("llama-2-7b", "b200", 50e9, 1.75, 38.6e3),
        ("llama-2-7b", "910b2", 10e9, 1.46, 23.8e3),
    ],
)
def test_f25_recompute_wins_below(model, device, beta_h, ratio, tokens):
    # The published lengths take the parameters rounded to two digits behind the point.
    parameters = {"llama-2-7b": 6.74e9, "llama-2-13b": 13.02e9}[model]
    values = case(model, device, beta_h=beta_h, Psi_a=parameters)
    R_hat = evaluate("F25a", values)
    assert R_hat == pytest.approx(ratio, abs=0.006)
    n = evaluate("F25", values, R_hat=R_hat)
    assert n == pytest.approx(tokens, abs=60 if tokens % 100 == 0 else 0.6)
    assert evaluate("F23a", values, n=n) == pytest.approx(evaluate("F24", values, n=n))


def curve(values):
    """F_s, F_r and the coefficients of R(n) and S(n)."""
    speed = values["g"] * values["P"] * values["eta_c"]
    return {
        "F_s": values["F_s"], "F_r": values["F_r"],
        "r_tok": 2 * values["Psi_a"] / speed,
        "s_tok": values["w"] * values["kappa"] / (values["g"] * values["beta_h"]),
        "a_sq": 2 * values["n_L"] * values["d_a"] / speed,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "g", "row"),
    [("llama-3-8b", 1, (11, 54, 215)), ("llama-2-7b", 1, (22, 112, 442)),
     ("llama-3-70b", 8, (9, 46, 182))],
)  # fmt: skip
def test_f25d_crossover_from_fixed_costs(model, g, row):
    for fixed, tokens in zip((1e-3, 5e-3, 20e-3), row, strict=True):
        values = curve(case(model, g=g, F_s=fixed))
        assert evaluate("F25d", values) == pytest.approx(tokens, abs=0.6)
        assert crossovers(values) == ("recompute_then_swap", (evaluate("F25d", values),))
        assert evaluate("F25c", values) == pytest.approx(evaluate("F25d", values), rel=0.02)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, "swap_always"),
        ({"F_r": 0.01}, "swap_always"),
        ({"F_s": 0.01}, "recompute_then_swap"),
        ({"beta_h": 2e9}, "recompute_then_swap"),
        ({"beta_h": 2e9, "F_s": 0.01}, "recompute_then_swap"),
        ({"beta_h": 2e9, "F_r": 0.01}, "swap_recompute_swap"),
        ({"beta_h": 2.4e9, "F_r": 0.5}, "swap_always"),
    ],
)
def test_f25_four_cases(change, kind):
    """The cheaper of the two changes exactly where the roots say."""
    values = case(**change)
    found, roots = crossovers(curve(values))
    assert found == kind
    winners = {"swap_always": "s", "recompute_then_swap": "rs", "swap_recompute_swap": "srs"}[kind]
    edges = [1.0, *roots, 1e7]
    for winner, low, high in zip(winners, edges, edges[1:], strict=False):
        middle = (low * high) ** 0.5
        swap, recompute = (evaluate(f, values, n=middle) for f in ("F24", "F23a"))
        assert ("s" if swap < recompute else "r") == winner


@pytest.mark.parametrize(("device", "hidden"), [("a100", 2080), ("h100", 3297)])
def test_f25f_critical_hidden_size(device, hidden):
    values = case(device=device)
    assert evaluate("F25f", values) == pytest.approx(hidden, abs=0.6)
    assert evaluate("F25b", values, d=hidden) == pytest.approx(1, abs=1e-3)


def test_f25p_has_no_crossover():
    assert "n" not in {entry.id for entry in formulas.get("F25p").inputs}
    assert evaluate("F25p", beta_pcie=64e9) < 1


def test_f25g_length_hardly_matters():
    short, long = (evaluate("F25g", n=n) for n in (100, 1000))
    assert long / short == pytest.approx(1, abs=0.02)


CHECKPOINT = {
    # tokens that 10 ms let through: 7B, 8B, 70B (one GPU's link), GPT-3, DeepSeek-V3
    25e9: (476, 1_907, 762, 52, 3_557),
    50e9: (953, 3_814, 1_525, 105, 7_115),
    300e9: (5_722, 22_888, 9_155, 635, 42_691),
    200e9: (3_814, 15_258, 6_103, 423, 28_460),
}


@pytest.mark.parametrize(("link", "row"), CHECKPOINT.items())
def test_f40_tokens_in_ten_milliseconds(link, row):
    models = ("llama-2-7b", "llama-3-8b", "llama-3-70b", "gpt-3", "deepseek-v3")
    found = [evaluate("F40", case(m), beta_link=link, t_dead=0.01) for m in models]
    assert found == pytest.approx(row, abs=1.0)


@pytest.mark.parametrize(
    ("model", "gigabytes", "pcie", "nvlink"),
    [
        ("llama-2-7b", 21.5, 859, 71.6), ("llama-2-13b", 33.6, None, None),
        ("llama-3-8b", 5.37, 215, None), ("llama-3-70b", 13.4, 537, 44.7),
        ("gpt-3", 193, None, None), ("deepseek-v3", 2.88, 115, 9.6),
    ],
)  # fmt: skip
def test_f40a_full_checkpoint(model, gigabytes, pcie, nvlink):
    values = case(model, n=40_960)
    assert values["kappa"] * 40_960 / 1e9 == pytest.approx(gigabytes, rel=2e-3)
    for link, milliseconds in ((25e9, pcie), (300e9, nvlink)):
        if milliseconds:
            found = evaluate("F40a", values, beta_link=link) * 1e3
            assert found == pytest.approx(milliseconds, abs=0.5 if link < 1e11 else 0.06)


def test_f40_incremental():
    """70B: 13 µs a token; a tail of one block is far below 10 ms. 8B: 0.2 GB/s all the time."""
    values = case("llama-3-70b", beta_link=25e9, bs=16)
    assert evaluate("F40a", values, n=1) * 1e6 == pytest.approx(13, abs=0.2)
    assert evaluate("F40b", values) < 0.001
    assert evaluate("F40c", X=1550) / 1e9 == pytest.approx(0.2, abs=0.005)


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [("llama-2-7b", 17.2), ("llama-3-8b", 4.29), ("llama-3-70b", 10.7), ("gpt-3", 155),
     ("deepseek-v3", 2.3)],
)  # fmt: skip
def test_f3_long_context(model, gigabytes):
    assert case(model)["kappa"] * 32_768 / 1e9 == pytest.approx(gigabytes, rel=5e-3)


def test_f25h_block_seconds():
    """1,024 tokens are 64 blocks of 16; 500 tokens of 20 ms are 10 s; over 1e13 FLOP."""
    found = evaluate("F25h", n=1024, bs=16, n_left=500, t_d=0.02, C_rec=1e13)
    assert found == pytest.approx(64 * 10 / 1e13)
    rounded = evaluate("F25h", n=1025, bs=16, n_left=500, t_d=0.02, C_rec=1e13)
    assert rounded == pytest.approx(65 * 10 / 1e13)
