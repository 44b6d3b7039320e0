"""The time that a question may take, whatever it is doing: its work is counted in steps and looks at the clock, and
what nobody has counted ends here, before the gateway gives up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from stockyard.errors import InvalidInput

QUESTION_SECONDS = 24
"""For which a question is worked on; its function has 29, and API Gateway 30."""
AGAIN_SECONDS = 0.5
"""After which it is ended once more, where something has caught the first."""


class _TimeOver(BaseException):
    """No ``Exception``: what is tried again or left aside when it fails must not catch it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Work that ends after so many seconds with ``InvalidInput``. It must write nothing: it is ended at any place.

    Only the main thread can be ended so, in which Lambda runs a function; elsewhere there is no deadline.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _end)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    except _TimeOver:
        detail = "The question takes more work than one answer has time for: ask for less at once."
        raise InvalidInput(detail) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _TimeOver
