"""Requests as columns: defaults, order, and rows that are refused by name."""

import math

import pytest

from model.errors import LabError
from model.requests import Requests

THREE = {"arrival_s": [2.0, 1.0, 1.0], "prompt_tokens": [5, 6, 7], "output_tokens": [1, 2, 3]}


def test_from_columns_sorts_stably_and_keeps_labels():
    requests = Requests.from_columns(**THREE, request_id=["x", "y", "z"], hash_ids=[[1], [2], [3]])
    assert requests.request_id == ("y", "z", "x")
    assert requests.prompt_tokens.tolist() == [6, 7, 5]
    assert requests.hash_ids == ((2,), (3,), (1,))
    assert Requests.from_columns(**THREE).request_id == ("0", "1", "2")
    assert len(requests) == 3


def test_no_requests_are_requests_too():
    assert len(Requests.from_columns(arrival_s=[], prompt_tokens=[], output_tokens=[])) == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt_tokens": [5, 0, 7]}, "Request 2: prompt_tokens is 0; it must be between 1"),
        ({"prompt_tokens": [5, 6.5, 7]}, "Request 2: prompt_tokens is 6.5; it must be"),
        ({"prompt_tokens": [5, 10**400, 7]}, "Request 2: prompt_tokens is nan"),
        ({"prompt_tokens": [5, "=1+1", 7]}, "Request 2: prompt_tokens is nan"),
        ({"output_tokens": [5, 6, 2**62]}, "Request 3: output_tokens is"),
        ({"output_tokens": [5, 6]}, "Column output_tokens has 2 rows and arrival_s has 3"),
        ({"arrival_s": [2, -1, 1]}, "Request 2: arrival_s is -1.0; it must be between 0"),
        ({"arrival_s": [2, math.nan, 1]}, "Request 2: arrival_s is nan"),
        ({"cancel_s": [3, 0.5, 9]}, "Request 2: cancel_s is 0.5, before the request arrives"),
        ({"shared_prefix_tokens": [0, 0, 8]}, "Request 3: 8 shared prefix tokens are more than"),
        ({"request_class": [0, 0, 1]}, "Request 3: request_class is 1, but there are only 1"),
        ({"request_id": ["x"]}, "Column request_id has 1 rows"),
        ({"users": 2}, "Request 3: arrival_s is 1.0; in a closed loop the first 2 requests"),
        ({"think_s": [0, 0, -1]}, "Request 3: think_s is -1.0"),
    ],
)
def test_a_bad_column_names_its_row(changes, sentence):
    with pytest.raises(LabError) as caught:
        Requests.from_columns(**(THREE | changes))
    assert sentence in str(caught.value)
