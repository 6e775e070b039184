"""Models and devices of the check values, as the symbols' values (SI units)."""

import formulas

MODELS = {
    # id: n_L, d, H, H_kv, h, parameters, active parameters (None: all), KV numbers (MLA) or None
    "llama-2-7b": (32, 4096, 32, 32, 128, 6_738_415_616, None, None),
    "llama-2-13b": (40, 5120, 40, 40, 128, 13_015_864_320, None, None),
    "llama-2-70b": (80, 8192, 64, 8, 128, 68_976_648_192, None, None),
    "llama-3-8b": (32, 4096, 32, 8, 128, 8_030_261_248, None, None),
    "llama-3-70b": (80, 8192, 64, 8, 128, 70_553_706_496, None, None),
    "qwen3-30b-a3b": (48, 2048, 32, 4, 128, 30.53e9, 3.35e9, None),
    "deepseek-v3": (61, 7168, 128, 128, 128, 671e9, 37e9, 576),
    "gpt-3": (96, 12288, 96, 96, 128, 174.6e9, None, None),
    "opt-13b": (40, 5120, 40, 40, 128, 12.85e9, None, None),
    "opt-66b": (64, 9216, 72, 72, 128, 65.7e9, None, None),
    "bloom-176b": (70, 14336, 112, 112, 128, 176.2e9, None, None),
    "yi-34b": (60, 7168, 56, 8, 128, 34.39e9, None, None),
}

DEVICES = {
    # id: dense bf16 FLOP/s, HBM bytes/s, HBM bytes, effective host link bytes/s
    "a100": (312e12, 2.039e12, 80e9, 25e9),
    "h100": (989e12, 3.35e12, 80e9, 50e9),
    "h20": (148e12, 4.0e12, 96e9, 50e9),
    "910b2": (376e12, 1.6e12, 64e9, 25e9),
    "910b3": (313e12, 1.6e12, 64e9, 25e9),
    "b200": (2250e12, 8.0e12, 180e9, 50e9),
}


def case(model="llama-3-8b", device="a100", g=1, **more):
    """Values of a model on g devices with the teaching constants; ``more`` replaces and adds."""
    n_L, d, H, H_kv, h, Psi, Psi_a, latent = MODELS[model]
    P, beta, M, beta_h = DEVICES[device]
    values = {
        "n_L": n_L, "d": d, "H": H, "H_kv": H_kv, "h": h, "d_a": H * h,
        "Psi": Psi, "Psi_a": Psi_a or Psi, "b_w": 2, "b_kv": 2,
        "kappa": 2 * n_L * (latent / 2 if latent else H_kv * h) * 2,
        "P": P, "beta": beta, "M": M, "beta_h": beta_h, "g": g,
        "eta_c": 0.5, "eta_m": 0.8, "t_0": 2e-3, "u": 0.9, "M_act": 2e9, "w": 2,
        "F_s": 0.0, "F_r": 0.0,
    }  # fmt: skip
    return values | more


def evaluate(formula_id, values=None, **more):
    """The result of a formula at a case's values."""
    return formulas.get(formula_id).evaluate({**(case() if values is None else values), **more})
