"""Check values of F1–F11: parameters, FLOP, KV bytes, roofline, memory."""

import pytest

from tests.formulas.cases import case, evaluate

MILLISECOND = 1e-3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"d_ff": 14336, "m_ff": 3, "V": 128_256, "e_emb": 2, **case("llama-3-8b")}, 8.03e9),
        ({"d_ff": 13824, "m_ff": 3, "V": 32_000, "e_emb": 2, **case("llama-2-13b")}, 13.02e9),
        ({"d_ff": 49152, "m_ff": 2, "V": 50_257, "e_emb": 1, **case("gpt-3")}, 174.6e9),
    ],
)
def test_f1_parameters(values, expected):
    assert evaluate("F1", values) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("llama-3-8b", 61_266), ("llama-3-70b", 107_656), ("llama-2-7b", 51_410)],
)
def test_f2c_attention_equals_linear(model, tokens):
    values = case(model)
    assert evaluate("F2c", values) == pytest.approx(tokens, abs=0.6)
    whole = evaluate("F2", values, n=evaluate("F2c", values))
    assert whole == pytest.approx(2 * 2 * values["Psi_a"] * evaluate("F2c", values))


@pytest.mark.parametrize(("n", "share"), [(8192, 0.134), (32768, 0.535)])
def test_f2d_attention_share(n, share):
    assert evaluate("F2d", n=n) == pytest.approx(share, abs=5e-4)


def test_f2_parts_agree():
    """A prompt's attention is that of its tokens, or of its chunks."""
    values = case(C=100, s_0=0)
    whole = evaluate("F2b", values)
    single = sum(evaluate("F2a", values, ctx=i) for i in range(1, 101))
    chunks = sum(evaluate("F2b", values, C=25, s_0=start) for start in (0, 25, 50, 75))
    assert whole == pytest.approx(single)
    assert whole == pytest.approx(chunks)


def test_f2e_experts():
    assert evaluate("F2e", {"E_x": 8, "k_x": 2, "T": 1}) == 2
    assert evaluate("F2e", {"E_x": 128, "k_x": 8, "T": 32}) == pytest.approx(111.77, abs=0.01)
    assert evaluate("F2e", {"E_x": 8, "k_x": 2, "T": 1000}) == pytest.approx(8)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("opt-13b", 819_200), ("llama-3-8b", 131_072), ("llama-3-70b", 327_680)],
)
def test_f3_kv_bytes(model, expected):
    values = case(model)
    assert evaluate("F3", values) == expected == values["kappa"]
    assert evaluate("F3", values, b_kv=1) == expected / 2


def test_f3a_latent():
    assert evaluate("F3a", {"n_L": 61, "r_kv": 512, "d_rope": 64, "b_kv": 2}) == 70_272


def test_f3b_copies_beyond_one_head():
    values = case("llama-3-8b")
    assert evaluate("F3b", values, g=4) == 131_072 / 4
    assert evaluate("F3b", values, g=8) == evaluate("F3b", values, g=16) == 131_072 / 8


@pytest.mark.parametrize(
    ("device", "ridge"),
    [("a100", 153.0), ("h100", 295.2), ("910b2", 235.0), ("910b3", 195.6), ("h20", 37.0)],
)
def test_f4_ridge(device, ridge):
    assert evaluate("F4", case(device=device)) == pytest.approx(ridge, abs=0.05)


def test_f4_threshold_of_distserve():
    assert evaluate("F4", P=312e12, beta=2.0e12) == 156


def test_f4_intensities():
    assert evaluate("F4a", T=100) == 100  # bf16: one FLOP per byte and token
    assert evaluate("F4b", case("llama-3-8b")) == 4  # the query group
    assert evaluate("F4b", case("llama-2-7b")) == 1
    assert evaluate("F4c", {"b_blk": 64, "b_el": 2}) == pytest.approx(42.7, abs=0.05)


@pytest.mark.parametrize(("device", "rows"), [("a100", 230), ("910b2", 353), ("910b3", 293)])
def test_f4c_rows_to_be_compute_bound(device, rows):
    import formulas

    target = evaluate("F4", case(device=device))
    solution = formulas.get("F4c").solve_for("b_blk", {"I_tile": target, "b_el": 2})
    assert solution.kind == "closed_form"
    assert solution.value == pytest.approx(rows, abs=0.6)


DECODE_TABLE = {
    ("llama-3-8b", "a100", 1): (11.9, 12.2, 12.6, 13.7, 15.0, 18.1, 55.2),
    ("llama-2-13b", "a100", 1): (18.3, 20.4, 22.9, 29.3, 37.6, 57.3, 88.1),
    ("llama-3-70b", "a100", 4): (23.7, 23.9, 24.1, 24.8, 25.6, 31.3, 118.3),
    ("llama-3-8b", "910b2", 1): (14.6, 15.0, 15.5, 16.9, 18.6, 22.6, 46.1),
    ("llama-3-8b", "h100", 1): (8.0, 8.2, 8.5, 9.1, 9.9, 11.8, 18.8),
}


@pytest.mark.parametrize(("setting", "row"), DECODE_TABLE.items())
def test_f5_iteration_times(setting, row):
    """Milliseconds of a decode at context 612 for B = 1 … 128, and of a prefill of 512."""
    values = case(*setting, ctx=612)
    times = [evaluate("F5a", values, B=B) / MILLISECOND for B in (1, 8, 16, 37, 64, 128)]
    times.append(evaluate("F5b", values, k_p=1, n=512) / MILLISECOND)
    assert times == pytest.approx(row, abs=0.051)


def test_f5_of_its_parts():
    values = case(ctx=612, B=37)
    pairs = 37 * 612
    assert evaluate("F5", values, T=37, A=pairs, R_kv=pairs) == evaluate("F5a", values)
    prefill = evaluate("F5", values, T=512, A=512 * 513 / 2, R_kv=512)
    assert prefill == pytest.approx(evaluate("F5b", values, k_p=1, n=512), rel=1e-15)


def test_f5_text_charges_a_joint_prefill_too_much():
    """16 prompts together take 852 ms, 67.6 decode iterations; text A charges 512."""
    joint = evaluate("F5b", k_p=16, n=512)
    assert joint / MILLISECOND == pytest.approx(852, abs=0.5)
    assert joint / evaluate("F5a", B=16, ctx=612) == pytest.approx(67.6, abs=0.15)


def test_f5_long_prompt_stalls():
    assert evaluate("F5b", k_p=1, n=32_768) == pytest.approx(5.2, abs=0.05)


@pytest.mark.parametrize(
    ("setting", "seconds"), [(("llama-3-8b", "a100", 1), 15.7), (("llama-3-8b", "h100", 1), 10.3),
                             (("llama-3-70b", "a100", 4), 26), (("yi-34b", "a100", 2), 33)]
)  # fmt: skip
def test_f5_decode_only_of_the_slo_exercise(setting, seconds):
    context = 4096 if setting[0] == "yi-34b" else 1500
    found = evaluate("F5a", case(*setting), B=32, ctx=context) / MILLISECOND
    assert found == pytest.approx(seconds, abs=0.5 if seconds > 20 else 0.06)


def test_f5c_communication():
    values = {"n_L": 80, "d": 8192, "g": 4, "T": 1024, "b_act": 2, "beta_link": 300e9}
    assert evaluate("F5c", values) == pytest.approx(2 * 80 * 1.5 * 1024 * 8192 * 2 / 300e9)
    assert evaluate("F5c", values, g=1) == 0


@pytest.mark.parametrize(
    ("device", "ideal", "real"),
    [("a100", 153, 96), ("h100", 295, 185), ("910b2", 235, 147), ("h20", 37, 23)],
)
def test_f6_critical_batch(device, ideal, real):
    values = case(device=device)
    assert evaluate("F6", values, eta_c=1.0, eta_m=1.0) == pytest.approx(ideal, abs=0.5)
    assert evaluate("F6", values) == pytest.approx(real, abs=0.5)


@pytest.mark.parametrize(
    ("model", "tokens"), [("llama-3-8b", 122.5e3), ("llama-2-7b", 25.7e3), ("llama-3-70b", 430.6e3)]
)
def test_f7_kv_dominates(model, tokens):
    assert evaluate("F7", case(model)) == pytest.approx(tokens, abs=60)


@pytest.mark.parametrize(
    ("setting", "gigabytes", "tokens"),
    [
        (("llama-3-8b", "a100", 1), 53.9, 411_525),
        (("llama-2-13b", "a100", 1), 44.0, 53_672),
        (("llama-3-70b", "a100", 4), 138.9, 423_866),
        (("llama-3-8b", "910b2", 1), 39.5, 301_662),
    ],
)
def test_f8_pool(setting, gigabytes, tokens):
    values = case(*setting, bs=16)
    pool = evaluate("F8", values)
    assert pool / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert evaluate("F8a", values, M_kv=pool) == tokens
    assert evaluate("F8b", values, N_kv=tokens) == tokens // 16


def test_f8_two_gpus_are_too_few_for_70b():
    assert evaluate("F8", case("llama-3-70b", g=2)) / 1e9 == pytest.approx(-1.1, abs=0.05)


@pytest.mark.parametrize(
    ("blocks", "tokens", "wanted", "serves"),
    [(1478, 23_648, 29_000, False), (1952, 31_232, 20_000, True), (229, 3_664, 4_096, False)],
)
def test_f8c_field_cases(blocks, tokens, wanted, serves):
    held = evaluate("F8c", {"N_blocks": blocks, "bs": 16})
    assert held == tokens
    assert (held >= wanted) is serves


@pytest.mark.parametrize(("tokens", "reserved", "paged"), [(411_525, 50, 672), (53_672, 6, 87)])
def test_f9_largest_batch(tokens, reserved, paged):
    values = {"N_kv": tokens, "n_max": 8192, "n": 612}
    assert evaluate("F9", values) == reserved
    # The published numbers divide by the mean context itself; blocks of 16 hold 624.
    assert evaluate("F9a", values, bs=1) == paged
    assert evaluate("F9a", values, bs=16) == tokens // 624


@pytest.mark.parametrize(("bs", "waste", "share"), [(16, 7.5, 0.0148), (128, 63.5, 0.113)])
def test_f10_block_waste(bs, waste, share):
    assert evaluate("F10a", {"bs": bs}) == waste
    assert evaluate("F10b", {"bs": bs, "n": 500}) == pytest.approx(share, abs=5e-4)
    contexts = range(1, 8 * bs + 1)
    held = [evaluate("F10", {"bs": bs, "n": n}) * bs for n in contexts]
    assert sum(h - n for h, n in zip(held, contexts, strict=True)) / len(held) == waste


def test_f10_waste_stays_below_the_published_bound():
    assert evaluate("F10b", {"bs": 16, "n": 500}) < 0.04


@pytest.mark.parametrize(
    ("bs", "n", "stored", "found"),
    [(16, 1640, 1579, 1568), (1, 1640, 1579, 1579), (16, 160, 159, 144), (16, 160, 160, 144),
     (16, 161, 160, 160), (1, 160, 160, 159), (512, 1640, 400, 0)],
)  # fmt: skip
def test_f10_full_blocks_before_the_last_token(bs, n, stored, found):
    values = {"bs": bs, "n": n, "n_old": stored}
    assert evaluate("F10c", values) == found
    assert evaluate("F10d", values) == pytest.approx(found / n)


def test_f2f_is_a_chunk_behind_what_was_found():
    """Linear work of the 72 tokens and F2b's attention at position 1,568."""
    n, hit = 1640, 1568
    whole = evaluate("F2f", n=n, n_hit=hit)
    pairs = sum(range(hit + 1, n + 1))
    assert whole == pytest.approx(2 * 8.03e9 * 72 + 4 * 32 * 4096 * pairs, rel=1e-3)


@pytest.mark.parametrize("share", [0.204, 0.382])
def test_f11_effective_share_of_existing_systems(share):
    """The published range: of 2,048 reserved tokens 418 to 782 are used."""
    assert evaluate("F11", {"n": share * 2048, "n_res": 2048}) == pytest.approx(share)
    assert round(share * 2048) in (418, 782)
