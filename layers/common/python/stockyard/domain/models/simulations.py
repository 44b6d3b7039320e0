"""A history of pods to replay against a policy of disruption: what it would have cost. Nothing is made.

The body is a document, with the names that Kubernetes documents have.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain import durations
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, View, check
from stockyard.domain.models.block_fields import Usd, Zone
from stockyard.domain.models.node_fields import Camel, CamelRequirements, Properties, Reference, Resources, Taints
from stockyard.domain.models.own_pools import CamelBudget, CamelDisruption
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.pool_fields import MAX_BUDGETS, Duration, DurationOrNever
from stockyard.domain.models.pools import MOST_SAVING, Limits, Name, NodeLabels

MOST_EVENTS, MOST_TYPES, MOST_POOLS, MOST_DAEMON_SETS = 5_000, 200, 20, 50
MOST_HOURS = 31 * 24
"""How long a trace may be."""
FIRST_MOMENT = "2026-01-05T00:00:00Z"
"""When a trace begins that does not say it: a Monday."""
MOST_SECONDS = 3600
"""How long a node may start, or be drained."""


def _moment_text(text: str) -> str:
    moment(text)
    return text


def _at(text: str) -> str:
    if not text[:1].isdigit() or "T" not in text:
        if durations.seconds(text) is None:
            raise ValueError("must be a moment, or a duration such as 90s or 1h30m")
        return text
    return _moment_text(text)


def _short(text: str) -> str:
    if (durations.seconds(text) or 0) > MOST_SECONDS:
        raise ValueError("must be at most an hour")
    return text


def moment(text: str) -> datetime:
    """The moment that a text of RFC 3339 names. Raises ``ValueError``."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a moment such as 2026-01-05T00:00:00Z") from None
    if read.tzinfo is None:
        raise ValueError("must have a time zone, as 2026-01-05T00:00:00Z has")
    if not 2000 <= read.year < 2100:
        raise ValueError("must be of the years 2000 to 2099")
    return read.astimezone(UTC).replace(microsecond=0)


Moment = Annotated[str, StringConstraints(max_length=40), AfterValidator(_moment_text)]
At = Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(_at)]
"""A moment, or a duration since the trace began."""
Short = Annotated[Duration, AfterValidator(_short)]
Zones = Annotated[list[Zone], Field(min_length=1, max_length=26), AfterValidator(fields.distinct)]
Manifests = list[dict[str, Any]]


class TraceNodeType(Camel):
    """A node type that pools of the trace may use."""

    name: Name
    resources: Resources
    usd_per_hour: Usd
    spot_usd_per_hour: Usd | None = None
    zones: Zones | None = None
    properties: Properties = Field(default_factory=dict)


class TracePool(Camel):
    """What makes nodes in the trace."""

    name: Name
    requirements: CamelRequirements = Field(default_factory=list)
    labels: NodeLabels = Field(default_factory=dict)
    taints: Taints = Field(default_factory=list)
    limits: Limits = Field(default_factory=dict)
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    disruption: CamelDisruption | None = None


class PodsGone(Camel):
    """Pods that go: so many of those that the manifest of this name made, or all of them."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    namespace: Annotated[str, StringConstraints(min_length=1, max_length=63)] = "default"
    count: Annotated[int, Field(ge=1)] | None = None


class TraceEvent(Camel):
    """What happens at one moment: pods that manifests make come, others go."""

    at: At
    arrive: Annotated[Manifests, Field(max_length=1_000)] = Field(default_factory=list)
    depart: Annotated[list[PodsGone], Field(max_length=1_000)] = Field(default_factory=list)


class SimulatedPolicy(Camel):
    """The policy that the trace is replayed against. What is not given is what each pool says. ``None`` never
    consolidates."""

    consolidation_policy: Literal["None", "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] | None = None
    consolidate_after: DurationOrNever | None = None
    budgets: Annotated[list[CamelBudget], Field(max_length=MAX_BUDGETS)] | None = None
    minimum_saving: Annotated[float, Field(ge=0, le=MOST_SAVING, allow_inf_nan=False)] | None = None


class SimulationRequest(Camel):
    """A trace, and the policy that it is replayed against.

    Nodes are those of the dynamic pools of ``cluster`` as they are now, or of ``pools``; without both of one pool that
    takes every node type. ``nodeTypes`` are the types of pools of the trace; without them those of all providers of the
    tenant. The replay begins without a node.
    """

    cluster: Reference | None = None
    node_types: Annotated[list[TraceNodeType], Field(max_length=MOST_TYPES)] = Field(default_factory=list)
    pools: Annotated[list[TracePool], Field(max_length=MOST_POOLS)] = Field(default_factory=list)
    daemon_sets: Annotated[Manifests, Field(max_length=MOST_DAEMON_SETS)] = Field(default_factory=list)
    starts_at: Moment = FIRST_MOMENT
    until: At
    start_up: Short = "90s"
    drain: Short = "1m"
    events: Annotated[list[TraceEvent], Field(min_length=1, max_length=MOST_EVENTS)]
    policy: SimulatedPolicy = Field(default_factory=SimulatedPolicy)

    @model_validator(mode="after")
    def _together(self) -> Self:
        faults: list[Fault] = []
        if self.cluster is not None:
            faults += [
                ((name,), "cannot be given with cluster, which has its own")
                for name, items in (("nodeTypes", self.node_types), ("pools", self.pools))
                if items
            ]
        end = self.seconds(self.until)
        if not 0 < end <= MOST_HOURS * 3600:
            faults.append((("until",), f"must be after the begin, and at most {MOST_HOURS} hours later"))
        for number, event in enumerate(self.events):
            if not 0 <= self.seconds(event.at) < end:
                faults.append((("events", number, "at"), "must be within the trace"))
        for field, items in (("nodeTypes", self.node_types), ("pools", self.pools)):
            names = [item.name for item in items]
            faults += [((field, n, "name"), "is there twice") for n, name in enumerate(names) if name in names[:n]]
        check(faults)
        return self

    def seconds(self, at: str) -> int:
        """When that is, in seconds since the trace began."""
        if "T" in at:
            return int((moment(at) - moment(self.starts_at)).total_seconds())
        return durations.seconds(at) or 0


class SimulatedDecisionView(View):
    """Nodes that left together. ``saving`` is in USD an hour."""

    at: str
    reason: str
    nodes: list[str]
    replacements: list[str]
    evictions: int
    saving: float


class SimulatedWaitsView(View):
    """How often a pod waited for a node, one that moved among them, and for how many seconds."""

    count: int
    longest_seconds: int
    mean_seconds: float


class WithoutPlaceView(View):
    """Pods that have no place at the end, and why."""

    name: str
    count: int
    why: str


class SimulationView(View):
    """What comes of the trace under the policy. Everything is counted up to ``ended_at``.

    That is the end of the trace if ``complete``; otherwise the work of one request was used up then. ``decisions`` are
    the first of ``decision_count``.
    """

    complete: bool
    ended_at: str
    hours: float
    usd: float
    node_hours: float
    mean_nodes: float
    peak_nodes: int
    nodes: int
    pods: int
    evictions: int
    waits: SimulatedWaitsView
    decision_count: int
    abandoned: int
    decisions: list[SimulatedDecisionView]
    without_place: list[WithoutPlaceView]
    warnings: list[Remark]
