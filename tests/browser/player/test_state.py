"""The state that the player shows of every iteration is the one that the simulator recorded."""

from __future__ import annotations

import numpy as np
import pytest

from model import recording
from model.events import EVENT, REASON
from model.film import film
from tests.player.recordings import CASES, recorded

STATES = """() => Array.from({ length: film.length }, (_, row) => {
    const state = film.stateAt(row);
    const running = state.running;
    const name = (request) => film.labels[request].replace(/^r/, "");
    const sum = (list, value) => list.reduce((total, item) => total + value(item), 0);
    const active = running.filter((m) => m.tokens > 0);
    return {
        start: state.startNs, end: state.endNs,
        scheduled: active.map((m) => `${name(m.request)}:${m.tokens}`).sort().join(" "),
        running: running.length,
        waiting: state.waiting.map((i) => name(film.waits.request[i])),
        hosted: state.hosted.length,
        decodes: running.filter((m) => m.phase === "decode").length,
        recompute: sum(running, (m) => m.recompute),
        emitted: Object.fromEntries(running.map((m) => [name(m.request), m.emitted])),
        held: sum(running, (m) => m.blocks) + sum(state.kept, (m) => m.blocks),
        used: state.used,
        refused: state.refusal < 0 ? null : name(film.events.request[state.refusal]),
        seconds: film.header.cost ? (({ total, compute, memory, fixed, perToken, swap }) =>
            Math.abs(Math.max(compute, memory) + fixed + perToken + swap - total))(state.time) : 0,
    };
})"""


@pytest.mark.parametrize("case", CASES)
def test_every_iteration(case, open_film):
    result = recorded(case)
    states = open_film(film(result).windows[0]).evaluate(STATES)
    rows = list(recording.iteration_rows(result))
    columns = result.iterations
    assert len(states) == len(rows)
    shares = getattr(result.scenario.policy, "enable_prefix_caching", False)
    emitted = emitted_before(result)
    for i, (state, row) in enumerate(zip(states, rows, strict=True)):
        where = f"{case}, row {i}"
        assert state["start"] == pytest.approx(columns["start_s"][i] * 1e9, abs=1), where
        assert state["end"] == pytest.approx(columns["end_s"][i] * 1e9, abs=1), where
        assert state["scheduled"].split() == sorted(row["scheduled"].split()), where
        assert state["running"] == row["running"], where
        assert len(state["waiting"]) == row["waiting"], where
        assert state["hosted"] == columns["swapped"][i], where
        assert state["decodes"] == columns["decode_requests"][i], where
        assert state["recompute"] == columns["recompute_tokens"][i], where
        assert state["used"] == row["blocks_used"], where
        assert state["seconds"] < 2e-9, where
        if shares:
            assert state["held"] >= state["used"], where
        else:
            assert state["held"] == state["used"], where
        if state["refused"] is not None:
            # V0 refuses the head first; who is preempted then goes in front of it.
            asked = state["waiting"] if case.startswith("v0") else state["waiting"][:1]
            assert state["refused"] in asked, where
        for name, tokens in state["emitted"].items():
            assert tokens == emitted[i, int(name)], f"{where}, r{name}"


def emitted_before(result) -> np.ndarray:
    """Output tokens of each request before each iteration (rows x requests)."""
    n = len(result.inputs)
    per_row = np.zeros((len(result.iterations["start_s"]) + 1, n), dtype=int)
    for request in range(n):
        first, last = result._token_bounds[request : request + 2]
        np.add.at(per_row[:, request], result._tokens[0][first:last] + 1, 1)
    return np.cumsum(per_row, axis=0)


@pytest.mark.parametrize("case", ["v1_thrash", "v0_tight_swap", "v1_cancel", "v0_chunked"])
def test_windows_show_the_same_states(case, open_film):
    result = recorded(case)
    whole = open_film(film(result).windows[0]).evaluate(STATES)
    # the order of the queue is kept; only tokens that left before the window are unknown to it
    cut = film(result, window_bytes=9000)
    assert len(cut.windows) > 1
    assert max(map(len, cut.windows)) <= 9000
    states = [state for data in cut.windows for state in open_film(data).evaluate(STATES)]
    assert states == whole


def test_events_are_those_of_the_result(open_film):
    result = recorded("v1_thrash")
    page = open_film(film(result).windows[0])
    for name in ("request", "reason", "blocks_needed", "blocks_free", "tokens", "other"):
        values = page.evaluate(f"() => Array.from(film.events.{name})")
        assert values == result.events[name].tolist(), name
    refused = result.events["event"] == EVENT["refuse"]
    assert (result.events["reason"][refused] == REASON["no_budget"]).any()


def test_jumps(open_film):
    result = recorded("v1_thrash")
    events = result.events
    rows = np.unique(events["iteration"][events["event"] == EVENT["preempt"]])
    page = open_film(film(result).windows[0])
    assert page.evaluate("() => Array.from(film.marks('preempt'))") == rows.tolist()
    assert page.evaluate(f"() => film.nextMark('preempt', {rows[0]}, 1)") == rows[1]
    assert page.evaluate(f"() => film.nextMark('preempt', {rows[1]}, -1)") == rows[0]
    assert page.evaluate(f"() => film.nextMark('preempt', {rows[-1]}, 1)") == -1
    cut = film(result, window_bytes=9000)
    page = open_film(cut.windows[1])
    assert page.evaluate("() => Array.from(film.marks('preempt'))") == rows.tolist()
