"""What a cluster's agent says of pods: which wait for a node, and what runs where."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.observations import Labels, Name, Text, Time, Truth
from stockyard.domain.workload_records import MOST_GROUPS, MOST_NODES

MOST_ALTERNATIVES = 100
MOST_NAMES = 5
MOST_BUDGETS = 5_000
"""PodDisruptionBudgets with a pod on a node."""
_TWICE = 2
"""A report of changes may take away as many entries as it brings."""
GroupId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
ShownName = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class VolumePlace(Input):
    """A requirement on the node's labels, as a volume's node affinity has it."""

    key: Name
    operator: Annotated[str, StringConstraints(max_length=20)]
    values: Annotated[list[Text], Field(max_length=1_000)] = Field(default_factory=list)


class PodTemplate(Input):
    """Equal pods: what of their manifest decides where they may go.

    ``spec`` is the part of a pod's specification that scheduling reads. ``volumes`` are the alternatives of where
    their volumes can be, each a list of requirements that hold together. ``daemon_set`` is the namespace and name of
    the DaemonSet that makes them, empty for other pods. ``static``: they mirror static pods of their nodes.
    ``deletion_cost`` is that of the annotation ``controller.kubernetes.io/pod-deletion-cost``. ``ending``: they are
    being deleted, take room until they are gone, and need no other node.
    """

    namespace: Name
    labels: Labels = Field(default_factory=dict)
    spec: Annotated[dict[str, Any], Field(max_length=32)]
    volumes: Annotated[
        list[Annotated[list[VolumePlace], Field(max_length=MOST_ALTERNATIVES)]], Field(max_length=MOST_ALTERNATIVES)
    ] = Field(default_factory=list)
    daemon_set: Annotated[str, StringConstraints(max_length=512)] = ""
    static: bool = False
    deletion_cost: Annotated[int, Field(ge=-(10**10), le=10**10)] = 0
    ending: bool = False


class WaitingPods(Input):
    """How many pods of a group wait for a node, and the namespaces and names of a few."""

    count: Count
    names: Annotated[list[ShownName], Field(max_length=MOST_NAMES)] = Field(default_factory=list)


class ProtectedPod(Input):
    """A pod with the annotation ``karpenter.sh/do-not-disrupt``: its namespace and name, the annotation's value as it
    is, and when the pod started; null before."""

    name: ShownName
    value: Annotated[str, StringConstraints(max_length=64)]
    started_at: Time | None = None


class ProtectedPods(Input):
    """How many pods of a node have the annotation, and a few of them: the one that it protects for longest first."""

    count: Count
    pods: Annotated[list[ProtectedPod], Field(min_length=1, max_length=MOST_NAMES)]


class NodeFacts(Input):
    """What decides whether a node may be disrupted, as the cluster has it.

    ``ready_since`` is the last change of ``ready``; ``do_not_disrupt`` the node's own annotation. ``pod_event_at`` is
    when a pod, but of a DaemonSet, was last bound to the node or left it; null where that is not known. ``budgets`` are
    PodDisruptionBudgets by namespace and name, with the number of their pods on the node that a drain would have to
    evict; ``doubly_guarded`` counts those with more than one budget, which Kubernetes never evicts.
    """

    ready: Truth
    ready_since: Time | None = None
    created_at: Time
    unschedulable: bool = False
    do_not_disrupt: bool = False
    pod_event_at: Time | None = None
    protected: ProtectedPods | None = None
    budgets: Annotated[dict[ShownName, Count], Field(max_length=1_000)] = Field(default_factory=dict)
    doubly_guarded: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class PendingPods(Input):
    """One post of the agent. All of it, or what changed since the report of the sequence ``base``: there an entry of
    null takes away what was said under its name.

    ``running`` are the pods of each node, ``daemon_sets`` the pods that each DaemonSet makes, ``omitted`` how many
    pods that wait were left out, because there are too many different ones. ``nodes`` are facts by the node's name, and
    ``budgets`` how many evictions each PodDisruptionBudget allows that has a pod on a node. Null for either says that
    nobody knows, not that there are none: no node is disrupted then. It is so whatever was said before.
    """

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    base: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    observed_at: Time
    agent_version: Text
    groups: Annotated[dict[GroupId, PodTemplate | None], Field(max_length=_TWICE * MOST_GROUPS)]
    pending: Annotated[dict[GroupId, WaitingPods | None], Field(max_length=_TWICE * MOST_GROUPS)]
    running: Annotated[
        dict[Name, Annotated[dict[GroupId, Count], Field(max_length=1_000)] | None],
        Field(max_length=_TWICE * MOST_NODES),
    ] = Field(default_factory=dict)
    daemon_sets: Annotated[dict[ShownName, GroupId | None], Field(max_length=_TWICE * MOST_GROUPS)] = Field(
        default_factory=dict
    )
    omitted: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    nodes: Annotated[dict[Name, NodeFacts | None], Field(max_length=_TWICE * MOST_NODES)] | None = None
    budgets: (
        Annotated[
            dict[ShownName, Annotated[int, Field(ge=0, le=1_000_000)] | None], Field(max_length=_TWICE * MOST_BUDGETS)
        ]
        | None
    ) = None


class PendingPodsAnswer(View):
    """``sequence`` is that of the report that Stockyard has: the base of the next changes. With ``resync`` it could not
    use this one, and needs all of it. ``interval_seconds`` says how soon to come again when nothing changes."""

    sequence: int
    resync: bool
    interval_seconds: int
