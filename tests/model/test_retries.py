"""Refused requests that come again: by hand, and as the storm that they can become."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from model.events import REASON
from model.metrics import summary
from model.requests import Requests
from model.schedulers import VllmV1
from model.schedulers.base import Refused
from model.state import CANCELLED, FINISHED, REJECTED
from model.workload import Arrivals, Lengths, Stream, Workload
from tests.model.test_engines import events_of
from tests.model.test_engines import run as run_on
from tests.model.test_routers import assert_same


@dataclass(frozen=True)
class Full(VllmV1):
    """vLLM V1 behind a door that lets nobody in while `most` requests are there."""

    name: ClassVar[str] = "full"

    most: int = 1

    def refusal(self, state, request) -> Refused | None:
        there = len(state.running) + len(state.waiting)
        return Refused(REASON["no_slot"], there, self.most) if there >= self.most else None


def requests_at(*times: float, outputs=None, **given) -> Requests:
    n = len(times)
    return Requests.from_columns(
        arrival_s=times,
        prompt_tokens=[4] * n,
        output_tokens=outputs or [4] * n,
        **given,
    )


def test_a_refused_request_comes_again_after_its_backoff():
    """One place, iterations of 1 s. Request 1 comes at 0.5, 1.5 and 3.5 and is refused; at 7.5 the
    first, of 6 tokens, has been gone since 6."""
    backoff = {"retry_after_s": [1.0] * 2, "retry_factor": [2.0] * 2}
    requests = requests_at(0.0, 0.5, outputs=[6, 4], retries=[0, 3], **backoff)
    result = run_on(Full(), requests)
    arrivals = [0.5, 1.5, 3.5]
    assert [e for e in events_of(result, "reject") if e[2] == 1] == [
        ("reject", time_s, 1) for time_s in arrivals
    ]
    table = result.requests
    assert table["attempts"].tolist() == [1, 4]
    assert table["status"].tolist() == [FINISHED, FINISHED]
    assert table["arrival_s"].tolist() == [0.0, 0.5]  # of the first try
    assert table["first_token_s"][1] == 8.5
    assert table["end_s"][1] == 11.5
    numbers = summary(result)
    assert numbers["retries"] == numbers["refused_attempts"] == 3
    assert numbers["ttft_mean_s"] == (1.0 + 8.0) / 2
    assert numbers["rejected_requests"] == 0


def test_when_the_tries_are_used_up_it_is_rejected():
    requests = requests_at(0.0, 0.5, retries=[0, 1])
    result = run_on(Full(), requests)
    assert result.requests["status"].tolist() == [FINISHED, REJECTED]
    assert result.requests["attempts"].tolist() == [1, 2]
    assert result.requests["end_s"][1] == 1.5
    numbers = summary(result)
    assert (numbers["retries"], numbers["refused_attempts"]) == (1, 2)
    assert numbers["rejected_requests"] == 1


def test_nobody_tries_again_what_can_never_be():
    requests = requests_at(0.0, retries=[5], outputs=[500])
    result = run_on(VllmV1(), requests, max_model_len=100)
    assert result.requests["status"].tolist() == [REJECTED]
    assert result.requests["attempts"].tolist() == [1]


def test_who_gives_up_between_two_tries_does_not_come_again():
    requests = requests_at(0.0, 0.5, retries=[0, 5], cancel_s=[np.inf, 2.0])
    result = run_on(Full(), requests)
    assert result.requests["status"].tolist() == [FINISHED, CANCELLED]
    assert result.requests["attempts"].tolist() == [1, 2]
    assert result.requests["end_s"][1] == 2.0


def test_another_engine_may_take_a_retry():
    """By turns over two engines: the third request finds the first busy, then the second free."""
    requests = requests_at(0.0, 0.0, 0.5, outputs=[9, 2, 2], retries=[0, 0, 1])
    requests = replace(requests, retry_after_s=np.full(3, 2.0), retry_factor=np.ones(3))
    result = run_on(Full(), requests, n_engines=2)
    assert result.requests["status"].tolist() == [FINISHED] * 3
    assert result.requests["first_token_s"][2] == 3.5
    assert result.requests["engine_id"].tolist() == [0, 1, 0]
    assert result.requests["decode_engine_id"].tolist() == [0, 1, 1]
    assert result.requests["emitted_tokens"].tolist() == [9, 2, 2]


def storm(retries: int, rate_per_s: float = 1.0, n: int = 300) -> Requests:
    stream = Stream(
        n_requests=n,
        arrivals=Arrivals("poisson", rate_per_s=rate_per_s),
        prompt=Lengths("fixed", 4.0),
        output=Lengths("fixed", 8.0),
        retries=retries,
        retry_after_s=4.0,
        retry_factor=1.0,
    )
    return Workload((stream,)).generate(2)


@pytest.mark.parametrize("n_engines", [1, 2])
def test_a_retry_storm_multiplies_the_attempts(n_engines):
    """Four places and 8 s a request serve 0.5 requests a second; twice as many come.

    Without retries half is refused once. With many, everybody knocks until served: the work that
    gets done in a second stays what it was, while the attempts multiply.
    """
    calm, mad = (
        run_on(Full(most=4), storm(retries, n_engines), n_engines=n_engines) for retries in (0, 20)
    )
    few, many = summary(calm), summary(mad)
    assert few["refused_attempts"] == few["rejected_requests"] > 100
    assert many["refused_attempts"] > 10 * few["refused_attempts"]
    assert many["throughput_requests_per_s"] == pytest.approx(
        few["throughput_requests_per_s"], rel=0.25
    )
    assert few["ttft_mean_s"] <= 2.0 < 20 < many["ttft_mean_s"]
    attempts = mad.requests["attempts"]
    assert attempts.max() <= 21
    rejects = len(events_of(mad, "reject"))
    refused_for_good = int((mad.requests["status"] == REJECTED).sum())
    assert rejects == (attempts - 1).sum() + refused_for_good
    again = run_on(Full(most=4), storm(20, n_engines), n_engines=n_engines, fast_forward=False)
    assert_same(mad, again)


def test_retries_of_nobody_refused_change_nothing():
    plain, stubborn = (
        run_on(VllmV1(max_num_seqs=8), storm(retries, n=60), n_engines=2) for retries in (0, 5)
    )
    assert_same(plain, stubborn)


def test_a_stream_without_retries_has_no_such_columns():
    assert storm(0).retries is None
    assert storm(3).retries.tolist() == [3] * 300
