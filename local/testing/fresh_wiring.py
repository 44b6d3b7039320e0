"""A composition root without memory: what it made for one environment is not used in the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stockyard import wiring

CACHED = tuple(value for value in vars(wiring).values() if hasattr(value, "cache_clear"))
"""Each function of the composition root that makes its value once for a process."""


def forget() -> None:
    """Have the next call of each function make its value again."""
    for cached in CACHED:
        cached.cache_clear()


@contextmanager
def fresh_wiring() -> Iterator[None]:
    """Use nothing that was made before, and keep nothing for what comes after.

    For whoever sets variables of the environment, clients or a table of their own in a process that others use too.
    """
    forget()
    try:
        yield
    finally:
        forget()
