"""The film's limits: script a frame, time to open, size of a window, time from pause to why."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from benchmarks.bench_player import films, measure
from model.film import WINDOW_BYTES

ATTEMPTS = 3  # other work on the machine may spoil a measurement, not three


@pytest.mark.parametrize("name", ["256 slots", "20,000 iterations"])
def test_limits(name: str, browser: Browser):
    result = films()[name]
    for attempt in range(ATTEMPTS):
        found = measure(browser, name, result)
        kept = found.draw_median_ms < 6 and found.open_ms < 1000 and found.pause_ms < 150
        if kept or attempt == ATTEMPTS - 1:
            break
    assert found.window_bytes <= WINDOW_BYTES
    assert found.draw_median_ms < 6, found.line()
    assert found.open_ms < 1000, found.line()
    assert found.pause_ms < 150, found.line()
    if name == "256 slots":
        assert found.running == 256
        assert found.kv_blocks == 2000
    else:
        assert found.iterations > 20_000
