"""The film's limits of size; its times are measured by `python -m benchmarks.bench_player`."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from benchmarks.bench_player import films, measure
from model.film import WINDOW_BYTES


@pytest.mark.parametrize("name", ["256 slots", "20,000 iterations"])
def test_limits(name: str, browser: Browser):
    found = measure(browser, name, films()[name])
    assert found.window_bytes <= WINDOW_BYTES
    if name == "256 slots":
        assert found.running == 256
        assert found.kv_blocks == 2000
    else:
        assert found.iterations > 20_000
