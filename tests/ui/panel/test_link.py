"""Every choice survives the way through a link, and no text does harm on its way back."""

import string
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import catalogue
from model.schedulers import POLICIES
from ui.panel import link
from ui.panel.choices import Base, Choices, draft
from ui.panel.settings import MOST_REQUESTS, _by_code, setting_of

PRESETS = catalogue.presets()


def some_value(setting):
    if setting.kind == "flag":
        return st.booleans()
    if setting.kind == "choice":
        return st.sampled_from(setting.choices)
    if setting.kind == "whole":
        return st.integers(int(setting.low), int(setting.high))
    return st.floats(setting.low, setting.high, allow_nan=False)


def some_expert():
    codes = st.sampled_from(sorted(_by_code()))
    pairs = codes.flatmap(lambda code: st.tuples(st.just(code), some_value(setting_of(code))))
    return st.lists(pairs, max_size=6).map(dict)


def some_choices():
    whole = st.none() | st.integers(1, 1000)
    return st.builds(
        Choices,
        base=st.sampled_from(sorted(PRESETS)) | st.just("bundle-0123456789abcdef"),
        policy=st.none() | st.sampled_from(sorted(POLICIES)),
        bs=whole,
        bd=whole,
        lin=whole,
        l=whole,
        hardware=st.none() | st.sampled_from(sorted(catalogue.devices())),
        gpus=st.none() | st.integers(1, 64),
        model=st.none() | st.sampled_from(sorted(catalogue.models())),
        expert=some_expert().map(lambda pairs: tuple(sorted(pairs.items()))),
        measured=st.booleans(),
    )


@settings(max_examples=150, deadline=None)
@given(some_choices())
def test_choices_survive_a_link(choices):
    text = link.spelled(choices)
    assert link.holds(choices)
    assert link.read(text) == (choices, ())
    # Nothing in it has to be escaped, so the address stays readable.
    assert urlencode({"s": text}) == f"s={text}"
    if choices.base in PRESETS:
        draft(choices, Base(PRESETS[choices.base].scenario))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="~-.xn0129ratelinbsv", max_size=60))
def test_any_text_is_read_without_a_fault(text):
    choices, left_out = link.read(text)
    assert link.read(link.spelled(choices)) == (choices, ())
    safe = set(string.ascii_lowercase + string.digits + ".?")
    assert all(set(name) <= safe for name in left_out)


def test_the_preset_is_named_and_the_version_comes_last():
    assert link.spelled(Choices("law", bd=32)) == "preset-law~bd-32~v-2"
    assert link.write(Choices("customer-service")) == ""
    assert link.spelled(Choices("customer-service")) == "preset-customer-service~v-2"


def test_the_plain_form_says_the_same():
    fields = parse_qs("preset=law&policy=orca&bd=32&x=rate-0.1~reserve-pow2&v=2")
    plain = {name: values[0] for name, values in fields.items()}
    text = "preset-law~policy-orca~bd-32~rate-0.1~reserve-pow2~v-2"
    assert link.read_plain(plain) == link.read(text)


@pytest.mark.parametrize("text", ["ctx-none", "chunked-0", "prio--5", "pertoken-5e-05", "seed-0"])
def test_values_as_they_are_written(text):
    choices, left_out = link.read(text)
    assert not left_out
    assert text in link.spelled(choices)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("util-none", "util"),
        ("chunked-true", "chunked"),
        ("n-5.5", "n"),
        (f"n-{MOST_REQUESTS + 1}", "n"),
        ("seed-1e3", "seed"),
        ("rate-٣", "rate"),
        ("rate-0x10", "rate"),
        ("weights-BF16", "weights"),
        ("lin-1000001", "lin"),
        ("preset-bundle-xyz", "preset"),
        ("V-2", "?"),
        ("rate", "rate"),
    ],
)
def test_what_is_impossible_is_left_out_and_named(text, name):
    assert link.read(text) == (Choices(link.default_base()), (name,))


def test_of_a_code_given_twice_the_last_counts():
    assert link.read("bd-3~bd-5")[0].bd == 5


def test_a_version_from_the_future_is_named_and_read_as_far_as_possible():
    choices, left_out = link.read("preset-law~bd-8~v-3")
    assert left_out == ("v",)
    assert choices == Choices("law", bd=8)
