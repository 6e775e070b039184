"""Work beside a page: it ends by itself, when asked to, when it fails, and when nobody is there."""

import time

import pytest

from model.errors import LabError
from ui import background
from ui.background import start


def ended(job):
    assert job.ended.wait(10)
    return job


def until_cancelled(job):
    while not job.cancelled():
        job.progress(job.done + 1, 10)
        time.sleep(0.005)
    job.found = job.done


def test_work_leaves_what_it_finds():
    def work(job):
        job.progress(2, 2)
        job.found = "all"

    job = ended(start("plan", work))
    assert (job.plan, job.found, job.done, job.planned) == ("plan", "all", 2, 2)
    assert not job.running
    assert not job.failed


def test_cancelled_work_keeps_what_it_has():
    job = start(None, until_cancelled)
    assert job.running
    job.cancel()
    assert ended(job).found is not None


def test_cancelling_one_leaves_the_other():
    first, second = (start(None, until_cancelled) for _ in range(2))
    first.cancel()
    ended(first)
    assert second.running
    second.cancel()
    ended(second)


@pytest.mark.parametrize(("fault", "failed"), [(LabError("no_rate"), False), (OSError(), True)])
def test_what_goes_wrong_is_kept(fault, failed):
    def work(job):
        raise fault

    job = ended(start(None, work))
    assert job.failed is failed
    assert (job.error is fault) is not failed


def test_it_ends_when_the_browser_has_been_gone_for_a_while(monkeypatch):
    here = [True]
    monkeypatch.setattr(background, "_connected", lambda: lambda: here[0])
    monkeypatch.setattr(background, "GONE_S", 0.3)
    job = start(None, until_cancelled)
    assert not job.ended.wait(0.6)  # as long as somebody is there
    here[0] = False
    assert ended(job).stop.is_set()


def test_a_browser_that_comes_back_finds_it_running(monkeypatch):
    here = [False]
    monkeypatch.setattr(background, "_connected", lambda: lambda: here[0])
    job = start(None, until_cancelled)
    here[0] = True
    assert not job.ended.wait(0.1)
    job.cancel()
    ended(job)
