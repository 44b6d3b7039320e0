"""The records of what a cluster's agent says of pods: which wait, and what runs where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

MOST_GROUPS = 5_000
"""Different pods that a report may have."""
MOST_NODES = 5_000
"""Nodes that a cluster's agent may tell of."""


@dataclass(frozen=True, slots=True)
class WorkloadReport(VersionedRecord):
    """The last report of a cluster's pods. ``id`` is the cluster's; ``version`` guards its parts too.

    ``content`` names the parts that belong to it: a report in which nothing is new leaves them as they are.
    """

    sequence: int
    """Of the last report; it rises with each."""
    observed_at: str
    received_at: str
    content: int
    """The sequence of the report that wrote the parts."""
    parts: int
    """How many parts there are; those of a higher number are left over from a larger report."""
    woken_at: str = ""
    """When more pods waited than before: soon there may be claims for them."""


@dataclass(frozen=True, slots=True)
class WorkloadPart(VersionedRecord):
    """A piece of a report's compressed JSON. ``id`` is ``{cluster id}/{number}``, from 0."""

    content: int
    """See ``WorkloadReport.content``: parts of different reports are never put together."""
    data: bytes


@dataclass(frozen=True, slots=True)
class UnusedRoom(VersionedRecord):
    """Room in one cluster that its waiting pods have not used; ``id`` is the cluster's.

    ``groups`` is by the id of a group of equal pods, as ``lifecycle.waiting.unused`` reads and writes it.
    """

    updated_at: str
    groups: dict[str, Any] = field(default_factory=dict)


def part_id(cluster_id: str, number: int) -> str:
    """The id of a part."""
    return f"{cluster_id}/{number}"


@dataclass(frozen=True, slots=True)
class ProtectedPod:
    """A pod with the annotation ``karpenter.sh/do-not-disrupt``: namespace and name, the value as it is, and when the
    pod started; None before."""

    name: str
    value: str
    started_at: str | None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts about a node, from the report of its cluster, that decide on disruption. Times are as those of records, in
    whole seconds.

    ``protected`` are a few pods with the annotation, the one that it protects for longest first, and
    ``protected_count`` how many have it. ``budgets`` counts the pods of each PodDisruptionBudget, by namespace and
    name, that a drain would evict; ``doubly_guarded`` those with more than one, which Kubernetes refuses to evict.
    ``pod_event_at`` is when a pod, but of a DaemonSet, was last bound to the node, began to leave it, or finished.

    ``labels``, ``taints`` (key, value, effect) and ``allocatable`` (quantities by resource) are those of the Node
    object; None where an older agent does not tell of them. ``volume_limits`` is how many volumes of each CSI driver
    the node takes (CSINode), ``volumes`` how many of each its pods use; a driver that is not named has no limit.
    """

    ready: str
    """``True``, ``False`` or ``Unknown``."""
    ready_since: str | None
    created_at: str
    unschedulable: bool
    do_not_disrupt: bool
    pod_event_at: str | None
    protected: tuple[ProtectedPod, ...]
    protected_count: int
    budgets: Mapping[str, int]
    doubly_guarded: int
    uid: str | None = None
    labels: Mapping[str, str] | None = None
    taints: tuple[tuple[str, str, str], ...] | None = None
    allocatable: Mapping[str, str] | None = None
    volume_limits: Mapping[str, int] = field(default_factory=dict)
    volumes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> NodeFacts:
        """The facts as the agent's report has them."""
        protected = facts["protected"] or {"count": 0, "pods": ()}
        taints = facts.get("taints")
        return cls(
            facts["ready"],
            facts["ready_since"],
            facts["created_at"],
            facts["unschedulable"],
            facts["do_not_disrupt"],
            facts["pod_event_at"],
            tuple(ProtectedPod(pod["name"], pod["value"], pod["started_at"]) for pod in protected["pods"]),
            protected["count"],
            facts["budgets"],
            facts["doubly_guarded"],
            facts.get("uid"),
            facts.get("labels"),
            None if taints is None else tuple((taint["key"], taint["value"], taint["effect"]) for taint in taints),
            facts.get("allocatable"),
            facts.get("volume_limits") or {},
            facts.get("volumes") or {},
        )
