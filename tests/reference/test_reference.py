"""The reference takes every decision of the recorded schedulers."""

from __future__ import annotations

import pytest

from tests.reference import run
from tests.reference.common import difference, golden_names, read_inputs, read_recording

TIME_TOLERANCE_S = 1e-6


def test_all_recordings_are_here():
    assert len(golden_names()) == 29


@pytest.mark.parametrize("name", golden_names())
def test_recorded_schedule(name):
    config, requests = read_inputs(name)
    iterations, tokens = read_recording(name)
    recording = run(config, requests)
    assert difference(recording.iterations, iterations, TIME_TOLERANCE_S) is None
    assert not recording.rejected
    assert not recording.ignored
    assert not recording.unfinished
    for actual, expected in zip(recording.tokens, tokens, strict=True):
        assert actual["request_id"] == expected["request_id"]
        assert actual["output_tokens"] == expected["output_tokens"]
        for column in ("first_token_s", "last_token_s"):
            if expected[column] is None:
                assert actual[column] is None
            else:
                assert actual[column] == pytest.approx(expected[column], abs=TIME_TOLERANCE_S)
