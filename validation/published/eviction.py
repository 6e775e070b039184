"""P5: recompute against swap by the size of a KV block."""

from __future__ import annotations

from collections.abc import Mapping

import formulas
from model import catalogue
from validation.published.record import PARTLY, Finding, Row
from validation.throughput_formulas import Engine, engine_values

__all__ = ["by_block_size", "recompute_or_swap"]

BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
COPY_S = 5e-6
"""Teaching constant: seconds that one small copy costs beside its bytes."""

CONTEXT_TOKENS = 512


def recompute_or_swap() -> Finding:
    """P5: small blocks make swapping slow; medium ones make both comparable."""
    ratio = {size: row["recompute_s"] / row["swap_s"] for size, row in by_block_size().items()}
    return Finding(
        "P5",
        PARTLY,
        (
            Row("P5.small", "1", None, ratio[1], high=1.0),
            Row("P5.medium_16", "1", 1.0, ratio[16], 0.5, 2.0),
            Row("P5.medium_64", "1", 1.0, ratio[64], 0.5, 2.0),
            Row("P5.never", "1", 1.2, max(ratio.values()), high=1.2),
        ),
    )


def by_block_size() -> Mapping[int, Mapping[str, float]]:
    """Seconds to recompute and to swap a context of OPT-13B on an A100, by block size."""
    engine = Engine("opt-13b", "a100-40g-sxm")
    device = catalogue.device(engine.hardware)
    given = {
        **engine_values(engine),
        "n": float(CONTEXT_TOKENS),
        "beta_h": device.host_link_effective_bytes_per_s,
        "w": 2.0,
        "F_s": 0.0,
        "F_r": 0.0,
        "delta_copy": COPY_S,
    }
    recompute_s = formulas.get("F23a").evaluate(given)
    swap = formulas.get("F24a")
    return {
        size: {"recompute_s": recompute_s, "swap_s": swap.evaluate({**given, "bs": float(size)})}
        for size in BLOCK_SIZES
    }
