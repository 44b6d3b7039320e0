"""Reports of a cluster's agent about pods: which wait for a node, and what runs where."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.clusters.observations import Labels, Name, ObservedTaint, Text, Time
from stockyard.domain.pools.workload_records import MOST_GROUPS, MOST_NODES
from stockyard.domain.values.states import Truth

MOST_ALTERNATIVES = 100
MOST_NAMES = 5
MOST_BUDGETS = 5_000
"""PodDisruptionBudgets with a pod on a node."""
_TWICE = 2
"""A report of changes may take away as many entries as it brings."""
GroupId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""How many there are."""
Volumes = Annotated[dict[Name, Annotated[int, Field(ge=0, le=1_000_000)]], Field(max_length=100)]
"""How many volumes, by CSI driver."""
ShownName = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Message = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class VolumePlace(Input):
    """A requirement on the node's labels, as a volume's node affinity has it."""

    key: Name
    """The label of the node."""
    operator: Annotated[str, StringConstraints(max_length=20)]
    """How the label is compared with the values."""
    values: Annotated[list[Text], Field(max_length=1_000)] = Field(default_factory=list)
    """The values to compare with."""


class PodTemplate(Input):
    """Equal pods: what of their manifest decides where they may go."""

    namespace: Name
    """The namespace of the pods."""
    labels: Labels = Field(default_factory=dict)
    """The labels of the pods."""
    spec: Annotated[dict[str, Any], Field(max_length=32)]
    """The part of their specification that scheduling reads."""
    volumes: Annotated[
        list[Annotated[list[VolumePlace], Field(max_length=MOST_ALTERNATIVES)]], Field(max_length=MOST_ALTERNATIVES)
    ] = Field(default_factory=list)
    """The alternatives of where their volumes can be, each a list of requirements that hold together."""
    daemon_set: Annotated[str, StringConstraints(max_length=512)] = ""
    """The namespace and name of the DaemonSet that makes them; empty for other pods."""
    static: bool = False
    """Whether they mirror static pods of their nodes."""
    deletion_cost: Annotated[int, Field(ge=-(10**10), le=10**10)] = 0
    """The annotation ``controller.kubernetes.io/pod-deletion-cost``."""
    ending: bool = False
    """Whether they are being deleted: they take room until they are gone, and need no other node."""
    attachments: Volumes = Field(default_factory=dict)
    """How many volumes of each CSI driver a pod that waits attaches to its node."""


class WaitingPods(Input):
    """Number of a group's pods that wait for a node, a few of them, and the words of the cluster's scheduler."""

    count: Count
    names: Annotated[list[ShownName], Field(max_length=MOST_NAMES)] = Field(default_factory=list)
    """The namespaces and names of a few of them."""
    message: Message | None = None
    """Why the cluster's scheduler has found no node for one of them, in its words; null where it says nothing, or the
    agent does not tell of it."""


class ProtectedPod(Input):
    """A pod with the annotation ``karpenter.sh/do-not-disrupt``."""

    name: ShownName
    """The namespace and name of the pod."""
    value: Annotated[str, StringConstraints(max_length=64)]
    """The value of the annotation, as it is."""
    started_at: Time | None = None
    """When the pod started; null before."""


class ProtectedPods(Input):
    """Number of a node's pods with the annotation, and a few of them."""

    count: Count
    pods: Annotated[list[ProtectedPod], Field(min_length=1, max_length=MOST_NAMES)]
    """A few of them, first the one that the annotation protects for longest."""


class NodeFacts(Input):
    """Facts that decide whether a node may be disrupted, as the cluster has them."""

    ready: Truth
    """The status of its condition ``Ready``."""
    ready_since: Time | None = None
    """When that changed last; null while it is not known."""
    created_at: Time
    """When the node came into the cluster."""
    unschedulable: bool = False
    """Whether it takes no new pods."""
    do_not_disrupt: bool = False
    """Whether the node itself has the annotation ``karpenter.sh/do-not-disrupt``."""
    pod_event_at: Time | None = None
    """When a pod, but of a DaemonSet, was last bound to the node or left it; null where that is not known."""
    protected: ProtectedPods | None = None
    """Its pods with the annotation; null for none."""
    budgets: Annotated[dict[ShownName, Count], Field(max_length=1_000)] = Field(default_factory=dict)
    """PodDisruptionBudgets by namespace and name, with the number of their pods on the node that a drain would have to
    evict."""
    doubly_guarded: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many pods have more than one budget, which Kubernetes never evicts."""
    uid: Text | None = None
    """The uid of the Node object; null where the agent does not tell of it."""
    labels: Labels | None = None
    """The labels of the node; null where the agent does not tell of them."""
    taints: Annotated[list[ObservedTaint], Field(max_length=100)] | None = None
    """The taints of the node; null where the agent does not tell of them."""
    allocatable: Labels | None = None
    """What the node has for pods, by resource; null where the agent does not tell of it."""
    volume_limits: Volumes = Field(default_factory=dict)
    """How many volumes of each CSI driver the node takes (CSINode); one that is not named has no limit."""
    volumes: Volumes = Field(default_factory=dict)
    """How many different volumes of each CSI driver the pods of the node use."""


class PendingPods(Input):
    """One post of the agent: all of it, or what changed since an earlier report. There an entry of null takes away what
    was said under its name."""

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    """Rises with each report of pods."""
    base: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    """The sequence of the report that this one changes; null: it says everything."""
    observed_at: Time
    """When the agent looked, by its own clock."""
    agent_version: Text
    """The version of the agent."""
    groups: Annotated[dict[GroupId, PodTemplate | None], Field(max_length=_TWICE * MOST_GROUPS)]
    """Equal pods by the id of their group; null takes one away."""
    pending: Annotated[dict[GroupId, WaitingPods | None], Field(max_length=_TWICE * MOST_GROUPS)]
    """How many pods of a group wait for a node; null takes one away."""
    running: Annotated[
        dict[Name, Annotated[dict[GroupId, Count], Field(max_length=1_000)] | None],
        Field(max_length=_TWICE * MOST_NODES),
    ] = Field(default_factory=dict)
    """How many pods of each group are on a node, by its name; null takes a node away."""
    nominated: Annotated[
        dict[Name, Annotated[dict[GroupId, Count], Field(max_length=1_000)] | None],
        Field(max_length=_TWICE * MOST_NODES),
    ] = Field(default_factory=dict)
    """How many pods of each group the scheduler has assigned or nominated to a node and not bound yet, by the node's
    name; null takes a node away. They keep their room."""
    daemon_sets: Annotated[dict[ShownName, GroupId | None], Field(max_length=_TWICE * MOST_GROUPS)] = Field(
        default_factory=dict
    )
    """The group of the pods that a DaemonSet makes, by its namespace and name; null takes one away."""
    omitted: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """How many pods that wait were left out, because there are too many different ones."""
    nodes: Annotated[dict[Name, NodeFacts | None], Field(max_length=_TWICE * MOST_NODES)] | None = None
    """Facts of the nodes by name. Null: nobody knows them, and no node is disrupted."""
    budgets: (
        Annotated[
            dict[ShownName, Annotated[int, Field(ge=0, le=1_000_000)] | None], Field(max_length=_TWICE * MOST_BUDGETS)
        ]
        | None
    ) = None
    """How many evictions each PodDisruptionBudget allows that has a pod on a node. Null: nobody knows, and no node is
    disrupted."""


class PendingPodsAnswer(View):
    """Last report that Stockyard has, and how soon to come again."""

    sequence: int
    """The sequence of the report that Stockyard has: the base of the next changes."""
    resync: bool
    """True: it could not use this report, and needs all of it."""
    interval_seconds: int
    """How soon to come again when nothing changes, in seconds."""
