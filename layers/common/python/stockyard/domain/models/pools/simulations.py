"""A history of pods to replay against a policy of disruption: what it would have cost. Nothing is made.

The body is a document, with the names that Kubernetes documents have.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, View, check
from stockyard.domain.models.nodes.block_fields import Usd, Zone
from stockyard.domain.models.nodes.node_fields import Camel, CamelRequirements, Properties, Reference, Resources, Taints
from stockyard.domain.models.plan import Remark
from stockyard.domain.models.pools.own_pools import CamelBudget, CamelDisruption
from stockyard.domain.models.pools.pool_fields import MAX_BUDGETS, Duration, DurationOrNever, known_labels
from stockyard.domain.models.pools.pools import MOST_SAVING, Limits, Name, NodeLabels
from stockyard.domain.values import durations

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
    """The name of the type, which pools require by ``node.kubernetes.io/instance-type``."""
    resources: Resources
    """What a node of it has, by the name of the resource."""
    usd_per_hour: Usd
    """Its price on demand, in USD an hour."""
    spot_usd_per_hour: Usd | None = None
    """Its price as spot, in USD an hour; without one it is not on offer as spot."""
    zones: Zones | None = None
    """The zones where it is on offer."""
    properties: Properties = Field(default_factory=dict)
    """Further labels that a node of it has."""


class TracePool(Camel):
    """Pool that makes nodes in the trace."""

    name: Name
    """The name of the pool."""
    requirements: Annotated[CamelRequirements, AfterValidator(known_labels)] = Field(default_factory=list)
    labels: NodeLabels = Field(default_factory=dict)
    """Labels of its nodes."""
    taints: Taints = Field(default_factory=list)
    """Taints of its nodes."""
    limits: Limits = Field(default_factory=dict)
    """What all its nodes may have together: ``nodes``, ``usd_hour``, or a resource."""
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Pools of a higher weight are tried first, 1 to 100."""
    disruption: CamelDisruption | None = None
    """When its nodes may be removed or replaced."""


class PodsGone(Camel):
    """Pods that go: so many of those that the manifest of this name made, or all of them."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The name in the manifest that made the pods."""
    namespace: Annotated[str, StringConstraints(min_length=1, max_length=63)] = "default"
    """The namespace in the manifest that made the pods."""
    count: Annotated[int, Field(ge=1)] | None = None
    """How many of them go; null for all."""


class TraceEvent(Camel):
    """Event at one moment: pods that manifests make come, others go."""

    at: At
    """When it happens: a moment, or a duration since the trace began."""
    arrive: Annotated[Manifests, Field(max_length=1_000)] = Field(default_factory=list)
    """Manifests whose pods come."""
    depart: Annotated[list[PodsGone], Field(max_length=1_000)] = Field(default_factory=list)
    """Pods that go."""


class SimulatedPolicy(Camel):
    """The policy that the trace is replayed against. What is not given is what each pool says."""

    consolidation_policy: Literal["None", "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] | None = None
    """Which nodes leave to save money; ``None`` for none of them."""
    consolidate_after: DurationOrNever | None = None
    """How long no pod may have come to a node or left it before it leaves."""
    budgets: Annotated[list[CamelBudget], Field(max_length=MAX_BUDGETS)] | None = None
    """How many nodes may be disrupted at a time."""
    minimum_saving: Annotated[float, Field(ge=0, le=MOST_SAVING, allow_inf_nan=False)] | None = None
    """How much each node that leaves has to save, in USD an hour."""


class SimulationRequest(Camel):
    """A trace, and the policy that it is replayed against. The replay begins without a node."""

    cluster: Reference | None = None
    """The cluster whose dynamic pools are replayed as they are now."""
    node_types: Annotated[list[TraceNodeType], Field(max_length=MOST_TYPES)] = Field(default_factory=list)
    """The node types of the trace's pools; without them those of all providers of the tenant."""
    pools: Annotated[list[TracePool], Field(max_length=MOST_POOLS)] = Field(default_factory=list)
    """The pools of the trace; without them and a cluster there is one that takes every node type."""
    daemon_sets: Annotated[Manifests, Field(max_length=MOST_DAEMON_SETS)] = Field(default_factory=list)
    """Manifests of DaemonSets, which have a pod on each node."""
    starts_at: Moment = FIRST_MOMENT
    """The moment when the trace begins."""
    until: At
    """When the trace ends: a moment, or a duration since it began. At most 31 days."""
    start_up: Short = "90s"
    """How long it takes from asking for a node until pods run on it; at most an hour."""
    drain: Short = "1m"
    """How long it takes from the first eviction until a node costs nothing more; at most an hour."""
    events: Annotated[list[TraceEvent], Field(min_length=1, max_length=MOST_EVENTS)]
    """What happens, in any order."""
    policy: SimulatedPolicy = Field(default_factory=SimulatedPolicy)
    """The policy that the trace is replayed against."""

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
        """Seconds from the beginning of the trace to that time."""
        if "T" in at:
            return int((moment(at) - moment(self.starts_at)).total_seconds())
        return durations.seconds(at) or 0


class SimulatedDecisionView(View):
    """Nodes that left together."""

    at: str
    """When it was decided."""
    reason: str
    """Why the nodes left."""
    nodes: list[str]
    """The nodes that left together."""
    replacements: list[str]
    """The nodes that came in their place."""
    evictions: int
    """How many pods had to move."""
    saving: float
    """What it saved, in USD an hour."""


class SimulatedWaitsView(View):
    """Waits of pods for a node."""

    count: int
    """How often a pod waited for a node, one that moved among them."""
    longest_seconds: int
    """The longest wait, in seconds."""
    mean_seconds: float
    """The mean wait, in seconds."""


class WithoutPlaceView(View):
    """Pods that have no place at the end, and why."""

    name: str
    """The name of the pods."""
    count: int
    """How many they are."""
    why: str
    """Why they have no place."""


class SimulationView(View):
    """Outcome of the trace under the policy."""

    complete: bool
    """Whether the whole trace was replayed; false when the work or the time of one request was used up."""
    ended_at: str
    """Up to when everything counts."""
    hours: float
    """How many hours that are."""
    usd: float
    """What all nodes cost until then, in USD."""
    node_hours: float
    """How many hours all nodes ran together."""
    mean_nodes: float
    """How many nodes there were on average."""
    peak_nodes: int
    """How many nodes there were at most."""
    nodes: int
    """How many nodes there are at the end."""
    pods: int
    """How many pods there are at the end."""
    evictions: int
    """How many pods had to move."""
    waits: SimulatedWaitsView
    """How often and how long pods waited for a node."""
    decision_count: int
    """How many decisions there were."""
    abandoned: int
    """How many of them were given up."""
    decisions: list[SimulatedDecisionView]
    """The first of the decisions."""
    without_place: list[WithoutPlaceView]
    """Pods that have no place at the end."""
    warnings: list[Remark]
    """What of the pools is not replayed, and what else to mind."""
