"""What pages call: defaults, a film made once, errors of use."""

from __future__ import annotations

import json
import struct

import pytest
from streamlit.testing.v1 import AppTest

from model.film import film
from tests.player.recordings import film_result
from ui.player.component import CompareView, View, compare, film_of
from ui.player.packing import pack_data


def page() -> None:
    import streamlit as st

    from tests.player.recordings import film_result
    from ui.player import compare, show

    view = show(film_result("v1_ample"), key="film", language="zh", iteration=7, speed=2)
    st.json({"iteration": view.iteration, "speed": view.speed, "request": view.request})
    sides = [film_result("start_static"), film_result("start_continuous")]
    both = compare(sides, key="both", titles=["a", "b"], at_s=0.5)
    st.json({"at_s": both.at_s})


def test_before_the_first_pause_a_page_has_what_it_gave():
    at = AppTest.from_function(page).run(timeout=30)
    assert not at.exception
    assert json.loads(at.json[0].value) == {"iteration": 7, "speed": 2, "request": None}
    assert json.loads(at.json[1].value) == {"at_s": 0.5}
    assert View().pace == "iterations"
    assert CompareView().pace == "time"


def test_a_film_is_made_once():
    result = film_result("v1_ample")
    assert film_of(result) is film_of(result)
    assert film_of(result).digest == film(result).digest
    assert film_of(result, window_bytes=8000) is not film_of(result)


def test_a_comparison_has_two_sides():
    with pytest.raises(ValueError, match="two sides"):
        compare([film_result("v1_ample")], key="k", titles=["one"])


def test_packed_data_begins_with_the_options():
    data = pack_data({"mode": "run", "theme": None, "title": "迭代"}, [b"abc", b"defgh"])
    (length,) = struct.unpack_from("<I", data)
    assert json.loads(data[4 : 4 + length]) == {"mode": "run", "title": "迭代", "sizes": [3, 5]}
    first = 4 + length + (-(4 + length) % 8)
    assert data[first : first + 3] == b"abc"
    assert data[first + 8 :] == b"defgh"
