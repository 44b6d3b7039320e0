"""Faults of a world in memory: at a write to the table or a call of a driver a worker dies, or an answer is lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import StockyardError, StoreUnavailable, VendorTimeout
from stockyard.ports import Create, Replace, Write


class Died(StockyardError):
    """The worker's process ended. Lambda reports it under this name, and workflows try again."""

    workflow_name = "Runtime.ExitError"


ERRORS: Sequence[type[StockyardError]] = (Died, StoreUnavailable, VendorTimeout)


@dataclass
class Faults:
    """Lets the write or call number ``site`` go wrong, before or after it is done. ``places`` are all that came."""

    site: int = -1
    when: str = ""
    error: type[StockyardError] = Died
    points: list[str] = field(default_factory=list)

    def around(self, point: str, do: Callable[[], Any]) -> Any:
        here = len(self.points) == self.site
        self.points.append(point)
        if here and self.when == "before":
            raise self.error("before")
        result = do()
        if here:
            raise self.error("after")
        return result

    def __str__(self) -> str:
        return f"{self.site}-{self.when}-{self.error.__name__}"


class FaultyStore:
    """A store whose commits may go wrong; everything else is the store's own."""

    def __init__(self, store: Any, faults: Faults) -> None:
        self._store, self._faults = store, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *writes: Write) -> None:
        self._faults.around(_point_of(writes), lambda: self._store.commit(*writes))


def _point_of(writes: Sequence[Write]) -> str:
    """Place of a cluster that is written, else the kinds of the records."""
    records = [write.record for write in writes if isinstance(write, Create | Replace)]
    cluster = next((record for record in records if isinstance(record, Cluster)), None)
    kinds = sorted({type(record).__name__ for record in records})
    return f"{cluster.status} at {cluster.phase}" if cluster is not None else " ".join(kinds)


def every_fault(points: Sequence[str]) -> list[Faults]:
    """All that may go wrong in a life that came to these places."""
    return [
        Faults(site, when, error) for site in range(len(points)) for when in ("before", "after") for error in ERRORS
    ]


def sample(faults: Sequence[Faults], points: Sequence[str], most: int, seed: str) -> list[Faults]:
    """At most so many of the faults, so that they are at as many places, and of as many kinds, as they can be."""
    remaining, selection = list(faults), list[Faults]()
    random.Random(seed).shuffle(remaining)
    there, kinds = Counter[str](), Counter[tuple[str, str]]()
    while remaining and len(selection) < most:
        fault = min(remaining, key=lambda each: (there[points[each.site]], kinds[_kind(each)]))
        remaining.remove(fault)
        selection.append(fault)
        there[points[fault.site]] += 1
        kinds[_kind(fault)] += 1
    return selection


def _kind(fault: Faults) -> tuple[str, str]:
    return fault.when, fault.error.__name__
