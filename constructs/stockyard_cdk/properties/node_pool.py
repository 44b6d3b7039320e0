"""Typed properties of a NodePool, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from stockyard_cdk.properties.cluster import MaxPrice, UpdateStrategy


class NodePoolProperties(TypedDict, total=False):
    """Properties of a NodePool."""

    name: str
    """The name of the pool, once in the cluster. It cannot be changed."""
    kind: Literal["static", "dynamic"] | None
    """`static`: always `quantity` nodes. `dynamic`: as many as pending pods need. Without it a quantity says which."""
    provider: str | None
    """The node provider; where none is given, the cheapest of all serves each node."""
    requirements: Sequence[RequirementInput]
    """What the labels of the node must be, all together."""
    properties: Mapping[str, str]
    """Each value is one label value, a comma list of them, or `*`; a provider's own settings are any text."""
    taints: Sequence[TaintInput]
    """Taints that the node has as long as it is there."""
    startup_taints: Sequence[TaintInput]
    """Taints of a node's first moment. Who put them there takes them away; the node is not Available before."""
    labels: Mapping[str, str]
    """Labels of the nodes."""
    annotations: Mapping[str, str]
    """Annotations of the claims of the pool."""
    kubelet_args: Mapping[str, Any]
    """Flags of the kubelet of the node, without the dashes, with their values."""
    quantity: int | None
    """How many nodes a static pool has, always."""
    floor: int
    """How many nodes a dynamic pool never goes below."""
    headroom: Mapping[str, str | int | float]
    """Resources that a dynamic pool keeps free for pods that may come."""
    limits: Mapping[str, str | int | float]
    """What all nodes together may have: `nodes`, `usd_hour`, `usd_month`, or a resource as a quantity."""
    weight: int | None
    """Pools of a higher weight are tried first, 1 to 100."""
    expire_after: str | None
    """How old a node may become; 720h of dynamic pools that do not say it."""
    termination_grace_period: str | None
    """How long a drain waits for pods that budgets or annotations hold."""
    disruption: DisruptionInput | None
    """When nodes may be removed or replaced."""
    zones: Sequence[str]
    """Zones over which the nodes of a pool are spread evenly."""
    max_price: MaxPrice | None
    """The most that a node may cost as spot."""
    update_strategy: UpdateStrategy
    """How nodes are replaced that are not as they would be made now."""


class RequirementInput(TypedDict, total=False):
    """Requirement of a node."""

    key: Required[str]
    """The label that is required, such as `karpenter.sh/capacity-type`."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "NotExists", "Gt", "Lt", "Gte", "Lte"]
    """How the label is compared with the values; `NotExists` is another word for `DoesNotExist`."""
    values: Sequence[str]
    """The values to compare with: one number for `Gt`, `Lt`, `Gte` and `Lte`, none for `Exists` and `DoesNotExist`."""
    min_values: int | None
    """How many different values the node types that come into question must have between them."""


class TaintInput(TypedDict, total=False):
    """A taint of the node."""

    key: Required[str]
    """The key of the taint."""
    value: str | None
    """The value of the taint."""
    effect: Required[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]]
    """What the taint does to pods that do not tolerate it."""


class DisruptionInput(TypedDict, total=False):
    """Rules for when nodes of a pool may be replaced or removed; those of a static pool are not to save money."""

    consolidate_after: str
    """How long no pod may have come to a node or left it before it leaves to save money; `Never` for no node."""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]
    """Which nodes leave to save money."""
    budgets: Sequence[BudgetInput] | None
    """How many nodes may be disrupted at a time. Without any, one in ten; an empty list limits nothing."""
    minimum_saving: float
    """How much each node that leaves has to save, in USD an hour."""
    paused: bool
    """True: no node leaves now, not for drift or age either."""


class BudgetInput(TypedDict, total=False):
    """Number of nodes that may be disrupted at a time: a number or a percentage, while its window is open."""

    nodes: Required[str]
    """How many nodes, or which part of them in percent, may be disrupted at a time."""
    reasons: Sequence[Literal["Empty", "Drifted", "Underutilized", "Expired"]] | None
    """The reasons that the budget holds for; without any all but `Expired`."""
    schedule: str | None
    """When the window of the budget opens: five fields of cron, or `@daily` and the like. Without one it is always
    open."""
    duration: str | None
    """For how long the window of the schedule is open, in hours and minutes."""
    time_zone: str | None
    """The time zone of the schedule, a name of the IANA database; UTC where none is given."""
