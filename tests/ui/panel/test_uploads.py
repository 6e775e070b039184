"""Files are named by what they say, and what they claim decides nothing."""

from dataclasses import replace

import pytest

from model.bundle import read_bundle, write_bundle
from model.catalogue import presets
from model.requests import Requests
from model.scenario import TraceReference
from ui.panel.uploads import digest_of, name_of

LAW = presets()["law"].scenario
REFERENCE = TraceReference("mine", "0" * 64, 3)
SCENARIO = replace(LAW, workload=REFERENCE)


def requests(**changes):
    columns = {
        "arrival_s": [0.0, 0.5, 1.25],
        "prompt_tokens": [10, 20, 30],
        "output_tokens": [5, 6, 7],
    }
    return Requests.from_columns(**(columns | changes))


def test_equal_contents_have_one_name_also_after_a_bundle():
    made = requests()
    read = read_bundle(write_bundle(SCENARIO, made))
    assert digest_of(read.requests) == digest_of(made) == digest_of(requests())
    assert name_of(read.scenario, digest_of(read.requests)) == name_of(SCENARIO, digest_of(made))


@pytest.mark.parametrize(
    "changes",
    [
        {"arrival_s": [0.0, 0.5, 1.5]},
        {"prompt_tokens": [10, 20, 31]},
        {"output_tokens": [5, 6, 8]},
        {"priority": [0, 0, 1]},
        {"cancel_s": [9.0, 9.0, 9.0]},
        {"prefix_group": [1, 1, -1], "shared_prefix_tokens": [4, 4, 0]},
        {"request_class": [0, 0, 1], "class_names": ("a", "b")},
        {"request_id": ["x", "y", "z"]},
        {"hash_ids": [(1,), (1,), (2,)]},
        {"arrival_s": [0.0, float("nan"), float("nan")], "users": 1, "think_s": [0.0, 1.0, 1.0]},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_whatever_decides_how_requests_are_served_is_in_the_hash(changes):
    assert digest_of(requests(**changes)) != digest_of(requests())


def test_the_hash_that_a_file_claims_is_not_believed():
    """Two files that both claim to be the same trace are two files."""
    one, other = requests(), requests(output_tokens=[50, 60, 70])
    assert name_of(SCENARIO, digest_of(one)) != name_of(SCENARIO, digest_of(other))
    assert digest_of(None) == ""
