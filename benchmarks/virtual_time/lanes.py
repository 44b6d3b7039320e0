"""Invocations under way, and work of one that waits side by side: in virtual time, at the share of a core of one
process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any

from stockyard import side_by_side
from stockyard.errors import StockyardError


@dataclass(slots=True)
class Running:
    """An invocation under way: whose it is, and up to where its CPU time is counted. ``core`` is the moment from which
    the process computes nothing else."""

    function: str
    share: float
    cpu: float
    core: list[float] = field(default_factory=lambda: [0.0])

    def computed(self, now: float, seconds: float) -> float:
        """Seconds from ``now`` until so many of a whole core are computed, behind what the process computes already."""
        self.core[0] = max(now, self.core[0]) + seconds / self.share
        return self.core[0] - now


@dataclass(frozen=True, slots=True)
class Lanes:
    """``results`` stands for the one of ``stockyard.side_by_side``. ``stage`` is a
    ``benchmarks.virtual_time.stage.Stage``."""

    stage: Any

    def results(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """See ``side_by_side.results``. An error is raised when all have ended."""
        stage, running = self.stage, self.stage.running()
        if running is None:
            return [work() for work in works]
        stage.spend(running)
        results: dict[int, Any] = {}
        waiting = list(enumerate(works))

        def lane() -> None:
            own = stage.own[threading.get_ident()] = replace(running, cpu=thread_time())
            try:
                while waiting:
                    at, work = waiting.pop(0)
                    results[at] = _outcome(work)
            finally:
                stage.spend(own)
                del stage.own[threading.get_ident()]

        stage.time.together([lane] * min(side_by_side.LANES, len(works)))
        running.cpu = thread_time()
        ordered = [results[at] for at in range(len(works))]
        for result in ordered:
            if isinstance(result, StockyardError):
                raise result
        return ordered


def _outcome(work: Callable[[], Any]) -> Any:
    """The result of the work, or the error that it has raised."""
    try:
        return work()
    except StockyardError as error:
        return error
