"""The picture of tokens as HTML: complete, escaped, in the colors of the theme."""

import re
from functools import partial

import pytest

from charts.moments import moment
from charts.palette import COLORS, THEMES
from charts.tokens import jobs, lanes, rows
from model.simulator import simulate
from ui.few_requests import iterations
from ui.first_lesson import TWO, eight
from ui.language import LANGUAGES, translate

WORDS = {"r1": [f"p{i}" for i in range(13)], "r2": [f"q{i}" for i in range(8)]}


@pytest.fixture(params=LANGUAGES)
def t(request):
    return partial(translate, request.param)


@pytest.fixture
def result():
    return simulate(TWO.scenario("continuous"), TWO.requests())


def tokens(html):
    return re.findall(r'<span class="il-token ([^"]*)">([^<]*)</span>', html)


@pytest.mark.parametrize("theme", THEMES)
def test_each_known_word_is_shown_once_and_blocks_frame_the_kept_ones(result, t, theme):
    for k in range(iterations(result) + 1):
        now = moment(result, k)
        html = rows(now, WORDS, TWO.block_size, "said", t, theme)
        shown = [word for _, word in tokens(html) if word]
        known = [
            word
            for stand in now.requests
            if stand.phase != "away"
            for word in WORDS[stand.name][: stand.prompt_tokens + stand.emitted_tokens]
        ]
        assert shown == known
        assert html.count('<div class="il-block') == now.blocks_used
        assert COLORS[theme]["decode"] in html
        computed = [kind for kind, _ in tokens(html) if kind in ("il-prefill", "il-decode")]
        assert len(computed) == now.tokens


def test_words_are_escaped(result, t):
    words = {"r1": ["<script>alert(1)</script>"] * 13, "r2": ["&"] * 8}
    html = rows(moment(result, 1), words, TWO.block_size, "<i>", t, "light")
    assert "<script" not in html
    assert "&lt;i&gt;" in html


def test_lanes_show_every_iteration_of_every_request_until_then(result, t):
    for until in range(iterations(result) + 1):
        html = lanes([("", result, until)], t, "light")
        numbers = [int(n) for n in re.findall(r"<b>(\d+)</b>", html)]
        assert sum(numbers) == result.iterations["tokens"][:until].sum()


def test_jobs_name_each_answer(t):
    few = eight("mixed")
    html = jobs(simulate(few.scenario("static"), few.requests()), t, "dark")
    for row in few.rows:
        assert t("jobs.tokens", n=row[2]) in html
