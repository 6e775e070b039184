"""Check values of F26–F31 and F34: M/D/1, M/G/1, Little, admission, goodput, job order."""

import math
from itertools import accumulate, pairwise

import numpy as np
import pytest

import formulas
from formulas.topics.queues import waiting_probability
from formulas.topics.slo import goodput, load_for_share
from tests.formulas.cases import case, evaluate

TTFT_TABLE = {0.5: (1.5, 4.34), 0.7: (2.17, 7.49), 0.8: (3.0, 11.36), 0.9: (5.5, 22.9),
              0.95: (10.5, 45.9)}  # fmt: skip


@pytest.mark.parametrize(("rho", "row"), TTFT_TABLE.items())
def test_f26_mean_and_p99(rho, row):
    mean = evaluate("F26", {"D": 2.0, "lambda": rho / 2.0}) / 2.0
    p99 = evaluate("F26e", {"rho": rho, "q_share": 0.99})
    assert mean == pytest.approx(row[0], abs=0.006)
    assert p99 == pytest.approx(row[1], abs=0.06 if rho >= 0.9 else 0.006)


def test_f26_against_a_simulated_queue():
    """Lindley's recursion with 400,000 arrivals at ρ = 0.8: mean near 3.0, P99 near 11.4."""
    generator = np.random.default_rng(1)
    gaps = generator.exponential(1 / 0.8, 400_000)
    # W_(n+1) = max(0, W_n + D − gap), as a running sum less its running minimum.
    steps = np.concatenate(([0.0], np.cumsum(1.0 - gaps)))
    waits = steps - np.minimum.accumulate(steps)
    assert waits.mean() + 1 == pytest.approx(evaluate("F26", {"D": 1, "lambda": 0.8}), rel=0.02)
    p99 = evaluate("F26e", {"rho": 0.8, "q_share": 0.99})
    assert np.quantile(waits, 0.99) + 1 == pytest.approx(p99, rel=0.04)
    for t in (0.0, 0.5, 2.0, 7.5):
        assert np.mean(waits <= t) == pytest.approx(waiting_probability(0.8, t), abs=0.01)


def test_f26d_is_a_distribution():
    probabilities = [waiting_probability(0.9, t) for t in np.linspace(0, 60, 200)]
    assert probabilities[0] == pytest.approx(0.1)
    assert all(b >= a for a, b in pairwise(probabilities))
    assert probabilities[-1] == pytest.approx(1, abs=1e-3)
    assert waiting_probability(0.5, -1) == 0
    assert evaluate("F26d", {"rho": 0.5, "t_w": 0.0, "D": 3.0}) == pytest.approx(0.5)


def test_f26d_mean_of_the_distribution():
    """∫ P(W > t) dt is the mean wait."""
    t = np.linspace(0, 40, 801)
    tail = [1 - waiting_probability(0.7, x) for x in t]
    assert np.trapezoid(tail, t) == pytest.approx(0.7 / (2 * 0.3), rel=1e-3)


def test_f26c_crossing():
    x = evaluate("F26c", {"K_s": 1.5})
    assert x == pytest.approx(0.936, abs=5e-4)
    values = {"D": 1.0, "K_s": 1.5}
    assert evaluate("F26a", values, **{"lambda": x}) == pytest.approx(
        evaluate("F26b", values, **{"lambda": x})
    )
    low, high = (
        evaluate("F26b", values, **{"lambda": r}) - evaluate("F26a", values, **{"lambda": r})
        for r in (x - 0.1, x + 0.05)
    )
    assert low < 0 < high  # sharing every layer is better below, the pipeline above


def test_f27_variation_of_the_azure_prompts():
    even = evaluate("F27a", {"rho": 0.8, "S_mean": 1.0, "CV": 0.0})
    azure = evaluate("F27a", {"rho": 0.8, "S_mean": 1.0, "CV": 0.96})
    assert azure / even == pytest.approx(1.92, abs=0.002)
    exponential = evaluate("F27a", {"rho": 0.8, "S_mean": 1.0, "CV": 1.0})
    assert azure / exponential == pytest.approx((1 + 0.96**2) / 2)
    assert evaluate("F27", {"lambda": 0.8, "S_sq": 1 + 0.96**2, "rho": 0.8}) == (
        pytest.approx(azure)
    )


@pytest.mark.parametrize(
    ("x", "load"), [(1.5, 0.5), (2, 0.667), (3, 0.8), (5, 0.889), (10, 0.947), (20, 0.974)]
)
def test_f28_load_for_the_mean(x, load):
    rho = evaluate("F28", {"x_ttft": x})
    assert rho == pytest.approx(load, abs=6e-4)
    assert evaluate("F26", {"D": 1, "lambda": rho}) == pytest.approx(x)


@pytest.mark.parametrize(("x", "load"), [(2, 0.135), (3, 0.32), (5, 0.561), (10, 0.773)])
def test_f28b_load_for_p99(x, load):
    rho = evaluate("F28b", {"x_ttft": x, "q_share": 0.99})
    assert rho == pytest.approx(load, abs=6e-4)
    assert evaluate("F26e", {"rho": rho, "q_share": 0.99}) == pytest.approx(x, rel=1e-6)


def test_f28b_impossible_bound():
    assert load_for_share(0.9, 0.99) == 0


def test_f28p_and_load_say_the_same():
    values = {"lambda": 5.0, "s_mean": 1000, "C_p": 9714, "rho_max": 0.5}
    assert evaluate("F28p", values) == 1.0
    assert evaluate("F28a", values) > 1
    assert evaluate("F28p", values, **{"lambda": 4.0}) == 0.0
    assert evaluate("F28a", values, **{"lambda": 4.0}) < 1


def test_f28d_queue_cap():
    """8B on an A100 prefills 9,714 tokens/s alone (without fixed time: one endless prompt)."""
    assert evaluate("F28d", {"C_p": 9714, "D_ttft": 1.0}) == 9714
    linear = 312e12 * 0.5 / (2 * case()["Psi_a"])
    assert linear == pytest.approx(9714, rel=1e-3)


def test_f28e_overload():
    values = {"lambda": 10.0, "s_mean": 1000, "C_p": 9000, "D": 0.1, "D_ttft": 1.1}
    t = evaluate("F28e", values)
    assert t == pytest.approx(9.0)
    assert (10_000 - 9000) * t / 9000 + 0.1 == pytest.approx(1.1)


def test_f28c_rate_for_memory():
    values = {"M_kv": 53.9e9, "kappa": 131_072, "ctx": 612, "W": 6.63}
    assert evaluate("F28c", values) == pytest.approx(math.floor(53.9e9 / 131_072 / 612) / 6.63)


def test_f29_azure():
    stay = evaluate("F29a", {"TTFT": 0.3, "L": 211, "TPOT": 0.03})
    assert stay == pytest.approx(6.63, abs=1e-9)
    values = {"lambda": 5.53, "W": stay, "ctx": 1155 + 105}
    assert evaluate("F29", values) == pytest.approx(36.7, abs=0.05)
    tokens = evaluate("F29b", values)
    assert tokens == pytest.approx(46.2e3, abs=50)
    assert tokens * case()["kappa"] / 1e9 == pytest.approx(6.1, abs=0.05)


def test_f30_latency():
    values = {"t_arr": 1.0, "t_first": 1.4, "t_last": 7.4, "L_i": 201}
    ttft, tpot = evaluate("F30a", values), evaluate("F30", values)
    assert (ttft, tpot) == pytest.approx((0.4, 0.03))
    assert evaluate("F30b", {"TTFT": ttft, "TPOT": tpot, "L_i": 201}) == pytest.approx(6.4)


def test_f30_one_output_has_no_tpot():
    with pytest.raises(formulas.FormulaError, match="finite"):
        evaluate("F30", {"t_arr": 1.0, "t_first": 1.4, "t_last": 1.4, "L_i": 1})


def test_f31_goodput_by_halving():
    found = goodput(lambda rate: 1.0 if rate <= 3.3 else 0.0, 0.1, 100.0)
    assert found == pytest.approx(3.3, rel=2e-3)
    assert goodput(lambda _: 0.5, 0.1, 100.0) == 0.0
    assert goodput(lambda _: 0.95, 0.1, 100.0) == 100.0
    assert evaluate("F31", {"R_max": 10.0, "g": 3}) == pytest.approx(3.33, abs=0.005)


def test_f31a_published_prefill_rate():
    """OPT-13B on an A100, 512 tokens, TTFT of 0.4 s: P90 8.7, P99 6.3 requests/s (measured 5.6)."""
    values = case("opt-13b", n=512, D_ttft=0.4)
    D = evaluate("F23a", values)
    found = [evaluate("F31a", values, D=D, q_share=q) for q in (0.90, 0.99)]
    assert found == pytest.approx([8.7, 6.3], abs=0.06)


def test_f31b_price_of_a_million_tokens():
    """8 GPUs at 2.00 an hour cost 16 an hour, in which 5,000 tokens/s make 18 million tokens."""
    found = evaluate("F31b", {"N_gpu": 8, "p_gpu": 2 / 3600, "X": 5000})
    assert found == pytest.approx(16 / 18)



RESPONSES = {0.5: (2.0, 1.71, 1.43), 0.8: (5.0, 2.88, 2.35), 0.9: (10, 4.2, 3.55),
             0.95: (20, 6.26, 5.54)}  # fmt: skip


@pytest.mark.parametrize(("rho", "row"), RESPONSES.items())
def test_f34_job_order(rho, row):
    found = [evaluate(f, {"rho": rho}) for f in ("F34a", "F34b", "F34c")]
    assert found == pytest.approx(row, abs=0.006)


def test_f34_wait_of_one_size():
    wait = evaluate("F34", {"lambda": 0.8, "S_sq": 2.0, "rho_below": 0.5})
    assert wait == pytest.approx(0.8 * 2 / (2 * 0.25))


def test_lindley_helper_is_right():
    """The vectorised queue of these tests equals the plain recursion."""
    gaps = np.random.default_rng(2).exponential(1.3, 200)
    plain = list(accumulate(gaps, lambda w, gap: max(0.0, w + 1.0 - gap), initial=0.0))
    steps = np.concatenate(([0.0], np.cumsum(1.0 - gaps)))
    np.testing.assert_allclose(steps - np.minimum.accumulate(steps), plain, atol=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.8, 0.95, 0.99])
def test_f26d_the_tail_continues_the_exact_sum(rho, monkeypatch):
    from formulas.topics import queues

    exact = [waiting_probability.__wrapped__(rho, t) for t in (19.0, 20.0)]
    monkeypatch.setattr(queues, "_EXACT_UP_TO", 10.0)
    tail = [waiting_probability.__wrapped__(rho, t) for t in (19.0, 20.0)]
    assert tail == pytest.approx(exact, abs=1e-12)
