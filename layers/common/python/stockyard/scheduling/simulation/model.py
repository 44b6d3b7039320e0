"""Input and outcome of a simulation. Times are whole seconds since the trace began, money is in USD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from stockyard.domain.pools.budgets import Budget
from stockyard.scheduling.consolidation.model import WHEN_UNDERUTILIZED, Decision, Fleet
from stockyard.scheduling.packing.model import Pod, Pool

FOREVER = float("inf")
"""The protection of a pod that is never to be disrupted."""
START_UP_SECONDS, DRAIN_SECONDS = 90, 60
"""From asking for a node until pods run on it, and from the first eviction until it costs nothing any more."""


@dataclass(frozen=True, slots=True)
class PodKind:
    """Equal pods of one application.

    ``cost`` is what it costs to evict one, 1 for an ordinary one and never below 0. One may not be disrupted for
    ``protected`` seconds after it began to run.
    """

    app: str
    pod: Pod
    cost: float = 1.0
    protected: float = 0.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """So many pods come."""

    at: int
    kind: PodKind
    count: int = 1


@dataclass(frozen=True, slots=True)
class Departure:
    """So many pods of an application go; all of them where ``count`` is None."""

    at: int
    app: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """Policy for the disruption of one pool's nodes. ``consolidate_after`` is how many seconds no pod of a node may
    have come or gone; None: nothing is ever consolidated."""

    policy: str = WHEN_UNDERUTILIZED
    consolidate_after: int | None = 0
    budgets: tuple[Budget, ...] = ()
    minimum_saving: float = 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """All that is replayed. ``pools`` make the nodes, and every price in them is known. ``policies`` are by the name of
    the pool; a pool without one is never consolidated. ``daemons`` run on each node. ``places`` is how many nodes there
    can be of a type."""

    starts_at: datetime
    until: int
    arrivals: tuple[Arrival, ...]
    departures: tuple[Departure, ...]
    pools: tuple[Pool, ...]
    policies: Mapping[str, PoolPolicy] = field(default_factory=dict)
    daemons: tuple[Pod, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    start_up: int = START_UP_SECONDS
    drain: int = DRAIN_SECONDS


Decider = Callable[[Fleet, int, bool], tuple[Decision | None, int]]
"""Which nodes go for their price, given so many steps of work, and how many it took. The last argument says that the
decision is to be careful (``Settings.careful``)."""


@dataclass(frozen=True, slots=True)
class Event:
    """A decision that was carried out. ``saving`` is in USD an hour."""

    at: int
    reason: str
    nodes: tuple[str, ...]
    replacements: tuple[str, ...]
    evictions: int
    saving: float


@dataclass(frozen=True, slots=True)
class Homeless:
    """Pods of one application that have no place at the end, and why."""

    app: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of pods for a node, those that moved among them: their number, and their lengths in seconds."""

    count: int
    longest: int
    mean: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a trace. Everything is counted up to ``end``.

    ``complete`` says that this is the end of the trace. Otherwise the work, or the time of the caller, was used up at
    that moment. ``abandoned``
    counts decisions that were given up because their pods had no room any more.
    """

    end: int
    complete: bool
    usd: float
    node_seconds: int
    peak_nodes: int
    nodes: int
    """Nodes that were launched."""
    pods: int
    """Pods that came."""
    evictions: int
    waits: Waits
    events: tuple[Event, ...]
    abandoned: int
    homeless: tuple[Homeless, ...]
    steps: int

    @property
    def mean_nodes(self) -> float:
        """Nodes at a time."""
        return self.node_seconds / self.end if self.end else 0.0
