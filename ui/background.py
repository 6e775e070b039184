"""Work in a thread of its own beside a page: it says how far it is, and ends when asked to.

The thread knows no session; it is given what it works on, and leaves what it finds. It ends, too,
when the browser that started it has been gone for a while, so that nobody's work holds up others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.errors import LabError
from ui.language import t

__all__ = ["GONE_S", "Job", "bar", "start"]

GONE_S = 20.0
"""How long a browser may be away, as when a train passes a tunnel."""
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """Work that runs, or has ended: with ``found``, with an ``error``, or ``failed``.

    ``plan`` is what was asked for; ``found`` is what is known so far, ``done`` of ``planned`` runs.
    """

    plan: object
    found: object | None = None
    done: int = 0
    planned: int = 0
    error: LabError | None = None
    failed: bool = False
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)
    _here: Callable[[], bool] = field(default=lambda: True, repr=False)
    _seen_s: float = field(default_factory=time.monotonic, repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def cancel(self) -> None:
        """Ask it to end after the runs it is at; what is done is kept."""
        self.stop.set()

    def progress(self, done: int, planned: int) -> None:
        self.done, self.planned = done, planned

    def cancelled(self) -> bool:
        """Whether nobody wants it any more; asked by the work between its runs."""
        if self._here():
            self._seen_s = time.monotonic()
        elif time.monotonic() - self._seen_s > GONE_S:
            self.stop.set()
        return self.stop.is_set()


def start(plan: object, work: Callable[[Job], None], planned: int = 0) -> Job:
    """Begin ``work(job)`` in a thread. It reports to the job and asks it whether to go on."""
    job = Job(plan, planned=planned, _here=_connected())
    threading.Thread(target=_run, args=(job, work), name="background", daemon=True).start()
    return job


def _run(job: Job, work: Callable[[Job], None]) -> None:
    try:
        work(job)
    except LabError as error:
        job.error = error
    except Exception:  # a thread that dies in silence would leave a bar that never moves
        _log.exception("work beside a page")
        job.failed = True
    finally:
        job.ended.set()


def _connected() -> Callable[[], bool]:
    """Whether the session that runs this is connected to a browser; always so without a server."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not runtime.exists():
        return lambda: True
    session = context.session_id
    return lambda: not runtime.exists() or runtime.get_instance().is_active_session(session)


def bar(job: Job, words: str, key: str) -> None:
    """The bar and the button that ends the work, in a fragment that is drawn anew by itself.

    When the work has ended, the whole page is drawn.
    """
    if not job.running:
        st.rerun(scope="app")
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.progress(min(job.done / max(job.planned, 1), 1.0), text=words)
    right.button(
        t("sweep.cancel"),
        key=f"{key}.cancel",
        icon=":material/stop:",
        on_click=job.cancel,
        disabled=job.stop.is_set(),
        width="stretch",
    )
