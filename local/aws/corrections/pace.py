"""Pace of managed services: by a clock and a time for each kind of change.

The services of this folder change their states when somebody looks: what has its time behind it is done then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

SECONDS: Mapping[str, float] = {
    "cluster": 540,
    "cluster update": 480,
    "cluster deletion": 180,
    "add-on": 45,
    "add-on update": 45,
    "add-on deletion": 10,
    "node group": 60,
    "node group update": 30,
    "node group deletion": 120,
    "size sync": 120,
    "rebalance": 600,
    "launch": 40,
    "next zone": 15,
    "join": 1500,
    "end": 60,
    "shutdown": 40,
    "file system": 10,
    "mount target": 90,
    "mount target deletion": 60,
}
"""How long AWS usually takes for each kind of change."""
MANAGED = ("cluster", "add-on", "node group", "file system", "mount target")
"""How the kinds of changes begin that EKS and EFS make to their own things. The others are of machines and groups."""


@dataclass(frozen=True, slots=True)
class Pace:
    """``seconds`` is the time that a kind of change takes, by the clock ``now``, which counts from 1970."""

    seconds: Callable[[str], float] = lambda _kind: 0.0
    now: Callable[[], float] = time.time


_paces = [Pace()]


@contextmanager
def paced(seconds: Callable[[str], float], now: Callable[[], float] = time.time) -> Iterator[None]:
    """While it is open, each change takes ``seconds(kind)`` by the clock ``now``. Without it a change is done at the
    next look.

    The kinds are those of ``SECONDS``.
    """
    pace = Pace(seconds, now)
    _paces.append(pace)
    try:
        yield
    finally:
        _paces.remove(pace)


def scaled(scale: float, managed: float = 1.0) -> Callable[[str], float]:
    """The seconds of each kind, times ``scale``; those of ``MANAGED`` times ``managed`` too.

    How long a machine has to join, and when a group looks at its zones, stays as it is: programs need that time.
    """

    def seconds(kind: str) -> float:
        return SECONDS.get(kind, 0.0) * scale * (managed if kind.startswith(MANAGED) else 1.0)

    return seconds


def now() -> float:
    """The present moment, in seconds since 1970."""
    return _paces[-1].now()


def moment() -> datetime:
    """The present moment."""
    return datetime.fromtimestamp(now(), UTC)


def after(kind: str) -> float:
    """End of a change of that kind that begins now."""
    return now() + _paces[-1].seconds(kind)
