"""Waiting for an operation to end, by polling."""

from __future__ import annotations

from collections.abc import Callable

from stockyard_client.errors import OperationFailed, WaitTimedOut
from stockyard_client.models import Operation

FIRST_INTERVAL = 1.0
LONGEST_INTERVAL = 5.0
_GROWTH = 1.5


def wait_operation(
    read: Callable[[], Operation],
    *,
    timeout: float | None,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    on_change: Callable[[Operation], None] | None = None,
    interval: float = FIRST_INTERVAL,
) -> Operation:
    """The operation once it has succeeded; ``timeout`` and ``interval`` are seconds, no ``timeout`` means for ever.

    ``on_change`` sees the operation at first and whenever it differs. The pause grows to 5 s while nothing changes.
    Raises :class:`OperationFailed` and :class:`WaitTimedOut`.
    """
    started = clock()
    pause = interval
    last: Operation | None = None
    while True:
        now = read()
        if now != last:
            pause = interval
            if on_change:
                on_change(now)
        else:
            pause = min(pause * _GROWTH, max(LONGEST_INTERVAL, interval))
        last = now
        if now.done:
            if now.status == "failed":
                raise OperationFailed(now)
            return now
        if timeout is not None:
            remaining = timeout - (clock() - started)
            if remaining <= 0:
                raise WaitTimedOut(now, timeout)
            sleep(min(pause, remaining))
        else:
            sleep(pause)
