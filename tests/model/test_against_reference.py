"""The simulator against the naive reference, decision by decision, on random small cases."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import LabError
from model.events import EVENT
from tests import reference
from tests.adapter import rows_of, simulate_model
from tests.cases import POLICIES, VARIANTS, Case, cases, profile
from tests.reference.common import OutOfHostBlocks, StillDeciding, difference

EXAMPLES = 120
"""A variant; the whole file stays well under a minute."""
ROUNDING = 1e-13
"""Relative; the reference may add its seconds up in another order."""


def check(case: Case) -> None:
    try:
        expected = reference.run(case.config, case.requests, max_decisions=3000)
    except OutOfHostBlocks:
        for fast_forward in (False, True):
            with pytest.raises(LabError):
                simulate_model(case.config, case.requests, fast_forward=fast_forward)
        return
    except StillDeciding as livelock:
        check_until_it_gives_up(case, livelock.args[0])
        return
    if expected.unfinished:
        check_until_it_gives_up(case, expected.iterations)
        return

    slow = simulate_model(case.config, case.requests, fast_forward=False)
    rows = rows_of(slow)
    # The rows carry times as text with six decimals.
    assert difference(rows, expected.iterations, tolerance_s=1e-6) is None
    clocks = np.array([[i["start_s"], i["end_s"]] for i in expected.iterations]).reshape(-1, 2)
    np.testing.assert_allclose(slow.iterations["start_s"], clocks[:, 0], rtol=ROUNDING)
    np.testing.assert_allclose(slow.iterations["end_s"], clocks[:, 1], rtol=ROUNDING)

    names = [row["request_id"] for row in case.requests]
    for i, tokens in enumerate(expected.tokens):
        assert tokens["request_id"] == names[i]
        assert slow.requests["emitted_tokens"][i] == tokens["output_tokens"]
        for column in ("first_token_s", "last_token_s"):
            time_s = tokens[column]
            expected_s = math.nan if time_s is None else time_s
            assert slow.requests[column][i] == pytest.approx(expected_s, rel=ROUNDING, nan_ok=True)

    check_fast_forward(case, slow)


def check_until_it_gives_up(case: Case, expected: list[dict]) -> None:
    """The real engine is stuck, or preempts in a circle, for ever.

    The simulator does the same until it gives up on the request to blame, and comes to an end.
    """
    slow = simulate_model(case.config, case.requests, fast_forward=False)
    rows = rows_of(slow)
    events = slow.events
    arrival_s = slow.requests["arrival_s"][events["request"]]
    gave_up = (events["event"] == EVENT["reject"]) & (events["time_s"] > arrival_s)
    agreed = int(min(events["iteration"][gave_up], default=len(rows)))
    assert agreed <= len(expected)
    assert difference(rows[:agreed], expected[:agreed]) is None
    check_fast_forward(case, slow)


def check_fast_forward(case: Case, slow) -> None:
    fast = simulate_model(case.config, case.requests, fast_forward=True)
    assert_bit_equal(fast, slow)
    assert rows_of(fast) == rows_of(slow)


def assert_bit_equal(fast, slow) -> None:
    """All columns of two results hold the same bits."""
    for table in ("iterations", "requests", "events"):
        a, b = getattr(fast, table), getattr(slow, table)
        assert list(a) == list(b)
        for column in a:
            assert a[column].dtype == b[column].dtype, (table, column)
            np.testing.assert_array_equal(a[column], b[column], err_msg=f"{table}.{column}")


RARE_CASES = json.loads((Path(__file__).parent.parent / "data/rare_cases.json").read_text("utf-8"))
"""Cases in which a rule decides that random cases seldom meet: each fails when it is broken."""


@pytest.mark.parametrize("rare", RARE_CASES, ids=lambda rare: rare["rule"])
def test_rare_rules(rare):
    check(Case(rare["config"], rare["requests"]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_decisions(variant):
    @profile(EXAMPLES)
    @given(cases(*VARIANTS[variant]))
    def same_decisions(case: Case) -> None:
        check(case)

    same_decisions()


@pytest.mark.parametrize("policy", POLICIES)
def test_same_decisions_with_room(policy):
    """Nobody is preempted: the stretches that fast-forward takes at once are long."""

    @profile(EXAMPLES // 4)
    @given(cases(policy, tight=False), st.integers(2, 40))
    def same_decisions(case: Case, factor: int) -> None:
        rows = [
            row | {"output_tokens": row["output_tokens"] * factor} if i % 3 == 0 else row
            for i, row in enumerate(case.requests)
        ]
        scheduler = dict(case.config["scheduler"])
        scheduler["kv_blocks"] *= factor
        if "max_model_len" in scheduler:
            scheduler["max_model_len"] *= factor
        if not scheduler.get("enable_chunked_prefill", True):
            scheduler["max_num_batched_tokens"] *= factor
        check(Case(case.config | {"scheduler": scheduler}, rows))

    same_decisions()
