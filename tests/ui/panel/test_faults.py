"""Where an error is shown, and the changes of one click that mend it."""

import pytest

from model import catalogue
from ui.panel.choices import Base, Choices, draft
from ui.panel.faults import Change, applied, fixes, place_of, too_long

PRESETS = catalogue.presets()


def made(preset="customer-service", expert=(), **fields):
    base = Base(PRESETS[preset].scenario)
    return draft(Choices(preset, expert=tuple(sorted(expert)), **fields), base)


CASES = [
    # (what was chosen, used last, where it is shown, what a click changes)
    ({"model": "llama-3-70b"}, "model", "model", Change("gpus", 4)),
    ({"model": "llama-3-70b"}, "hardware", "hardware", Change("gpus", 4)),
    ({"model": "llama-3-70b"}, None, "model", Change("weights", "int4")),
    ({"model": "llama-3-70b"}, "seed", "model", Change("gpus", 4)),
    ({"model": "qwen2.5-14b", "gpus": 16}, "gpus", "gpus", Change("gpus", 8)),
    ({"expert": [("ctx", 9000)]}, "ctx", "ctx", Change("ctx", 8192)),
    (
        {"preset": "preemption-storm", "expert": [("ctx", 65536)]},
        "ctx",
        "ctx",
        Change("ctx", 26_992),
    ),
    ({"expert": [("kvblocks", 90_000)]}, "kvblocks", "kvblocks", Change("kvblocks", 30_488)),
    ({"expert": [("swap", 2000.0)]}, "swap", "swap", Change("swap", 238)),
    ({"expert": [("groups", 4)]}, "groups", "groups", Change("shared", 256)),
    ({"expert": [("shared", 64)]}, None, "shared", Change("groups", 8)),
    ({"preset": "interactive-offline", "expert": [("arr.1", "closed_loop")]}, None, "arr.1", None),
    ({"expert": [("budget", 64)]}, "budget", "budget", Change("budget", 256)),
    ({"expert": [("budget", 64)]}, "bd", "bd", Change("bd", 64)),
    (
        {"expert": [("chunked", False), ("whole", 512)]},
        "whole",
        "whole",
        Change("whole", 8192),
    ),
    (
        {"expert": [("in", "uniform"), ("inlow", 900), ("inhigh", 100)]},
        "inhigh",
        "inlow",
        Change("inlow", 100),
    ),
    (
        {"preset": "interactive-offline", "expert": [("n", 15_000), ("n.1", 15_000)]},
        "n",
        "n",
        None,
    ),
]


@pytest.mark.parametrize(("chosen", "last", "place", "change"), CASES)
def test_an_error_has_a_place_and_changes_that_mend_it(chosen, last, place, change):
    found = made(**chosen)
    assert found.error is not None
    assert place_of(found.error, found, last) == place
    offered = fixes(found.error, found, last)
    assert len(offered) <= 3
    for fix in offered:
        assert draft(applied(found.choices, found.base, fix), found.base).error is None
    if change is not None:
        assert change in [single for fix in offered for single in fix]


def test_a_field_of_the_second_stream_is_its_own_control():
    found = made("interactive-offline", [("out.1", "fixed"), ("outmean.1", 10.5)])
    assert found.error.code == "not_a_whole_number"
    assert place_of(found.error, found, None) == "outmean.1"
    assert (Change("outmean.1", 10),) in fixes(found.error, found, None)


def test_lengths_beyond_the_context_get_a_model_that_has_it():
    advice = too_long(made(lin=20_480))
    assert (advice.rejected, advice.requests, advice.limit) == (400, 400, 8192)
    found = made(lin=20_480)
    after = draft(applied(found.choices, found.base, advice.fix), found.base)
    assert after.basic["model"] == "llama-3.1-8b"
    assert too_long(after) is None


def test_a_longer_context_is_enough_where_the_model_has_it():
    advice = too_long(made("code", lin=12_288))
    assert [change.target for change in advice.fix] == ["ctx"]


def test_no_advice_where_everything_fits():
    assert all(too_long(made(name)) is None for name in PRESETS)
