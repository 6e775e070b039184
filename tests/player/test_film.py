"""The film's bytes: columns come back as they were, windows keep to their size."""

from __future__ import annotations

import numpy as np
import pytest

from model.film import WINDOW_BYTES, film
from model.film_packing import pack, pack_column, unpack, unpack_column, varints
from model.scenario import Scenario
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload
from tests.player.recordings import recorded

COLUMNS = {
    "nothing": [],
    "one": [7],
    "bytes": [0, 255, 3],
    "signs": [-1, 1, -(2**40), 2**40],
    "clock": np.cumsum(np.arange(10**6, 10**6 + 500)),
    "runs": np.repeat([5, 1, 9], [100, 1, 300]),
    "large": [2**53, 0, -(2**53)],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_come_back(name):
    values = np.array(COLUMNS[name], dtype=np.int64)
    form, data = pack_column(values)
    assert np.array_equal(unpack_column(form, len(values), data), values)
    differences = varints(np.diff(values, prepend=0))
    assert np.array_equal(unpack_column("d1", len(values), differences), values)


def test_even_clocks_take_a_byte_or_two():
    form, data = pack_column(np.array(COLUMNS["clock"]))
    assert form == "d2"
    assert len(data) < 1.1 * len(COLUMNS["clock"])


def test_a_file_comes_back():
    table = {"whole": np.arange(5), "real": np.array([0.5, 1e300])}
    header, tables = unpack(pack({"name": "迭代"}, {"t": table}))
    assert header == {"name": "迭代"}
    assert all(np.array_equal(tables["t"][name], values) for name, values in table.items())
    with pytest.raises(ValueError, match="not a film"):
        unpack(b"something else")


def test_windows_follow_one_another():
    result = recorded("v1_thrash")
    cut = film(result, window_bytes=12_000)
    assert cut.bounds[0] == 0
    assert cut.rows == len(result.iterations["start_s"])
    for name in ("blocks_used", "waiting"):
        columns = [unpack(data)[1]["rows"][name] for data in cut.windows]
        assert np.array_equal(np.concatenate(columns), result.iterations[name])
    assert cut.window_at(0) == 0
    assert cut.window_at(cut.bounds[1]) == 1
    assert cut.window_at(10**9) == len(cut.windows) - 1


def long_run(n_requests: int, rate_per_s: float):
    stream = Stream(
        "s",
        n_requests,
        Arrivals("poisson", rate_per_s=rate_per_s),
        Lengths("lognormal", mean_tokens=300, cv=1.0, max_tokens=4000),
        Lengths("geometric", mean_tokens=200, max_tokens=2000),
    )
    return simulate(Scenario(Workload((stream,)), POLICIES["vllm-v1"]()))


def test_twenty_thousand_iterations_fit_a_window():
    result = long_run(2800, 8.0)
    assert len(result.iterations["start_s"]) > 20_000
    cut = film(result)
    assert len(cut.windows) == 1
    assert len(cut.windows[0]) < WINDOW_BYTES


def test_a_run_without_iterations_has_a_film():
    stream = Stream("s", 2, Arrivals("at_once"), Lengths("fixed", 3000), Lengths("fixed", 90))
    result = simulate(
        Scenario(Workload((stream,)), POLICIES["vllm-v1"](enable_chunked_prefill=False))
    )
    assert len(result.iterations["start_s"]) == 0
    header, tables = unpack(film(result).windows[0])
    assert header["rows"] == 0
    assert len(tables["events"]["row"]) == 2


def test_only_engines_that_exist():
    with pytest.raises(IndexError):
        film(recorded("v1_ample"), 1)
