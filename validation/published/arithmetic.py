"""Published numbers that are arithmetic: memory, transfer, and where two parallelisms cross."""

from __future__ import annotations

import formulas
from model import catalogue, kv_cache
from model.kv_cache import GIB, Memory
from validation.published.record import PARTLY, REPRODUCTION, Finding, Row

__all__ = ["kv_slots", "parallelism", "transfer"]

_PLAIN = Memory()


def _kv_bytes_per_token(model: str) -> float:
    return kv_cache.kv_bytes_per_token(catalogue.model(model), _PLAIN, 1)


def kv_slots() -> Finding:
    """P6: KV of a token and KV slots of vLLM's Table 1, whose GB are GiB."""
    small, large = _kv_bytes_per_token("opt-13b"), _kv_bytes_per_token("gpt-3-175b")
    slots = formulas.get("F8a")
    return Finding(
        "P6",
        REPRODUCTION,
        (
            Row.within("P6.token", "KiB", 800.0, small / 1024, 0.0),
            Row.within(
                "P6.slots_13b",
                "token",
                15_700.0,
                slots.evaluate({"M_kv": 12.0 * GIB, "kappa": small}),
                0.005,
            ),
            Row.within(
                "P6.slots_175b",
                "token",
                60_100.0,
                slots.evaluate({"M_kv": 264.0 * GIB, "kappa": large}),
                0.001,
            ),
        ),
    )


def parallelism() -> Finding:
    """P13: at a low rate sharing every layer gives the shorter TTFT, at a high one the pipeline."""
    speedup, prefill_s = 1.5, 1.0
    crossing = formulas.get("F26c").evaluate({"K_s": speedup})

    def advantage(load: float) -> float:
        """TTFT of the pipeline over TTFT of sharing every layer."""
        given = {"D": prefill_s, "lambda": load / prefill_s, "K_s": speedup}
        return formulas.get("F26a").evaluate(given) / formulas.get("F26b").evaluate(given)

    return Finding(
        "P13",
        REPRODUCTION,
        (
            Row.within("P13.crossing", "1", 0.936, crossing, 0.0005),
            Row("P13.below", "1", None, advantage(0.5), low=1.0),
            Row("P13.above", "1", None, advantage(0.98), high=1.0),
        ),
    )


def transfer() -> Finding:
    """P14: KV of 512 tokens of OPT-66B, and the network that ten such prompts a second need."""
    kappa, tokens, rate = _kv_bytes_per_token("opt-66b"), 512, 10
    size = kappa * tokens
    seconds = formulas.get("F32e").evaluate(
        {"kappa": kappa, "L_in": float(tokens), "beta_net": _nvlink()}
    )
    return Finding(
        "P14",
        PARTLY,
        (
            Row.within("P14.size", "GiB", 1.13, size / GIB, 0.005),
            Row.within("P14.rate_gib", "Gbit/s", 90.0, size * rate * 8 / GIB, 0.005),
            Row.within("P14.rate_gb", "Gbit/s", 90.0, size * rate * 8 / 1e9, 0.10),
            Row("P14.seconds", "ms", 30.0, seconds * 1e3, high=30.0),
        ),
    )


def _nvlink() -> float:
    """The paper sends between GPUs of one machine."""
    return catalogue.device("a100-80g-sxm").gpu_link_bytes_per_s
