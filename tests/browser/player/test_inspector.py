"""Why? What the inspector says about a decision has the numbers that the event has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from model.events import EVENTS, REASONS
from model.film import film
from model.result import SimulationResult
from tests.player.recordings import film_result

CASES = (
    "v1_thrash",
    "v1_prefix_cache_tight",
    "v1_cancel",
    "v1_priority",
    "v0_tight_swap",
    "v0_priority",
    "sarathi_tight",
    "orca_memory_bound",
    "static_batch",
    "preemption-storm",
)

TELL = """(language) => {
    const words = new lab.Words(language);
    const plain = (spans) => spans.map((span) => span.text).join("");
    const told = [];
    for (let row = 0; row < film.length; row++) {
        for (const decision of lab.decisionsOf(film, row, words)) {
            told.push([row, decision.event, plain(decision.title), plain(decision.body),
                decision.fold ?? null]);
        }
    }
    return JSON.stringify(told);
}"""

# What must be in the sentence about an event, by its kind; tokens are counted apart below.
NUMBERS = {
    "preempt": ("blocks_needed", "tokens"),
    "swap_out": ("blocks_needed", "tokens"),
    "swap_in": ("blocks_needed", "blocks_free", "tokens"),
    "admit": ("blocks_needed", "blocks_free"),
    "resume": ("blocks_needed", "blocks_free"),
    "finish": ("blocks_needed",),
}
REFUSALS = {
    "no_blocks": ("blocks_needed", "blocks_free"),
    "no_budget": (),
    "no_slot": (),
}


def decisions(page: Page, language: str) -> list:
    return json.loads(page.evaluate(TELL, language))


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*", text))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_events(case: str, language: str, open_film: Callable):
    result: SimulationResult = film_result(case)
    told = decisions(open_film(film(result).windows[0]), language)
    events, ids = result.events, result.requests["request_id"]
    seen = dict.fromkeys(EVENTS, 0)
    for row, index, title, body, _ in told:
        text = f"{title} {body}"
        where = f"{case}, row {row}: {text}"
        assert "undefined" not in text, where
        assert "NaN" not in text, where
        assert "{" not in text, where
        assert "–" not in text, where
        if index < 0:
            continue
        name = EVENTS[events["event"][index]]
        reason = REASONS[events["reason"][index]]
        seen[name] += 1
        request = str(ids[events["request"][index]])
        if "recompute" not in title and "重算" not in title:
            assert (f"r{request}" if request.isdigit() else request) in text, where
        fields = REFUSALS.get(reason, ()) if name == "refuse" else NUMBERS.get(name, ())
        for field in fields:
            assert f"{events[field][index]:,}" in numbers_in(text), f"{field} in {where}"
        other = events["other"][index]
        now = events["iteration"][index] == row  # not a cause told later
        if now and name in ("preempt", "swap_out") and other not in (-1, events["request"][index]):
            assert f"r{ids[other]}" in body, where
    # what happened at all is told: preemptions and swaps every one, or folded into a line
    for name in ("preempt", "swap_out", "swap_in", "refuse"):
        happened = int((events["event"] == EVENTS.index(name)).sum())
        assert (seen[name] > 0) == (happened > 0), name


@pytest.mark.parametrize("case", ["v1_thrash", "preemption-storm"])
def test_seconds_at_stake_are_those_of_the_events(case: str, open_film: Callable):
    result = film_result(case)
    told = decisions(open_film(film(result).windows[0]), "en")
    checked = 0
    for _, index, _, body, _ in told:
        if index < 0 or EVENTS[result.events["event"][index]] != "preempt":
            continue
        if "Coming back" not in body:
            continue
        seconds = float(result.events["recompute_s"][index])
        found = re.search(r"about ([\d.,]+) (ms|s)\b", body)
        value = float(found[1].replace(",", "")) * (1e-3 if found[2] == "ms" else 1)
        assert value == pytest.approx(seconds, rel=6e-3)
        checked += 1
    assert checked > 5


def test_first_come_first_served_is_given_as_the_reason(open_film: Callable):
    told = decisions(open_film(film(film_result("preemption-storm")).windows[0]), "en")
    bodies = [body for _, _, title, body, _ in told if "must wait" in title]
    assert any("does not let r" in body for body in bodies)
    assert all("It needs" in body or "needs" not in body for body in bodies)


def test_who_arrives_is_told_before_what_is_decided(open_film: Callable):
    """An arrival belongs to the next decision, so it happened before that iteration's tokens."""
    told = decisions(open_film(film(film_result("preemption-storm")).windows[0]), "en")
    first = [title for row, _, title, _, _ in told if row == 0]
    assert first[0] == "r0 arrives"
    assert first[-1] == "r0 gets its first token"


def test_many_of_a_kind_are_folded(open_film: Callable):
    told = decisions(open_film(film(film_result("v1_max_seqs")).windows[0]), "en")
    first = [entry for entry in told if entry[0] == min(entry[0] for entry in told)]
    assert len(first) < 12


def test_the_inspector_on_the_page_says_what_the_event_says(open_player: Callable[..., Page]):
    result = film_result("v1_thrash")
    page = open_player("/?case=v1_thrash&iteration=218")
    first = page.locator(".decisions li").first
    index = int(first.get_attribute("data-event"))
    events = result.events
    assert events["iteration"][index] == 218
    expect(first).to_contain_text(f"{events['blocks_needed'][index]} blocks come free")
    expect(first).to_contain_text(f"recompute {events['tokens'][index]} tokens")
    page = open_player("/?case=v1_thrash&iteration=218&lang=zh")
    first = page.locator(".decisions li").first
    expect(first).to_contain_text(f"腾出 {events['blocks_needed'][index]} 块")
    expect(first).to_contain_text(f"重算 {events['tokens'][index]} 词元")


def test_any_text_in_a_name_stays_text(open_film: Callable):
    page = open_film(film(film_result("v1_thrash")).windows[0])
    spans = page.evaluate(
        """() => {
            film.labels = film.labels.map((label) => `${label} **<img src=x>** {tokens}`);
            const words = new lab.Words("en");
            return lab.decisionsOf(film, 218, words)[0].title;
        }"""
    )
    assert spans == [{"text": "r21 **<img src=x>** {tokens} is preempted", "bold": False}]
