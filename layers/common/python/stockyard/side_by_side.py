"""Calls that wait side by side: a function is paid for while it waits, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

LANES = 8
"""Calls that wait at once. A client keeps ten connections."""
T = TypeVar("T")


def results(works: Sequence[Callable[[], T]]) -> list[T]:
    """The result of each of the ``works``, in their order; they are begun in that order too, ``LANES`` at a time.

    Raises what the first of them that fails has raised. Then no other is begun, and nothing of them is at work any
    more when it is raised.
    """
    if LANES < 2 or len(works) < 2:
        return [work() for work in works]
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(min(LANES, len(works))) as pool:
        futures = [pool.submit(copy_context().run, work) for work in works]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
