"""Pools as callers send them on our own routes."""

from __future__ import annotations

import re
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, Irremovable, check, check_fixed, read
from stockyard.domain.models.nodes.node_fields import (
    Annotations,
    DnsLabel,
    KubeletArgs,
    Properties,
    Requirements,
    Resources,
    Taints,
)
from stockyard.domain.models.pools.bid_fields import MaxPrice, UpdateStrategy, Zones
from stockyard.domain.models.pools.pool_fields import (
    MAX_BUDGETS,
    MAX_NODES,
    BudgetDuration,
    DisruptionReason,
    DurationOrNever,
    Schedule,
    TimeZone,
    known_labels,
)
from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.pools.budgets import DEFAULT_NODES
from stockyard.domain.pools.records import (
    DYNAMIC,
    EXPIRE_AFTER,
    NODES,
    POOL_LABEL,
    STATIC,
    USD_HOUR,
    NewPool,
    Pool,
    PoolSpec,
)
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import NODE_POOL
from stockyard.domain.values.states import PoolKind
from stockyard.errors import InvalidInput

POOL_LABELS = (POOL_LABEL, NODE_POOL)
"""Labels that say of which pool a node is: they are set by us."""
_ONLY_STATIC = ("quantity",)
_ONLY_DYNAMIC = ("floor", "headroom", "weight")
_ONLY_DYNAMIC_DISRUPTION = ("consolidate_after", "consolidation_policy", "minimum_saving")
_BUDGET_NAMES = {"time_zone": "timeZone"}
MOST_SAVING = 10_000.0
"""USD an hour; more than any node costs."""
_FIXED = frozenset({"name", "kind", "provider"})

Nodes = Annotated[int, Field(ge=0, le=MAX_NODES)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.LABEL)]


def _limits(limits: dict[str, Any]) -> dict[str, Any]:
    faults: list[Fault] = []
    for name, amount in limits.items():
        if name == NODES and milli(amount) % 1000:
            faults.append(((name,), "must be a whole number of nodes"))
        if (
            "/" not in name
            and name not in (NODES, USD_HOUR, USD_MONTH)
            and not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name)
        ):
            faults.append(((name,), f"must be {NODES}, {USD_HOUR}, {USD_MONTH} or the name of a resource"))
    check(faults)
    return limits


def _own_labels(labels: dict[str, str]) -> dict[str, str]:
    check([((key,), "is set by Stockyard and cannot be given") for key in labels if key in POOL_LABELS])
    return labels


Limits = Annotated[Resources, AfterValidator(_limits)]
"""What all nodes together may have: ``nodes``, ``usd_hour``, ``usd_month``, or a resource as a quantity."""
NodeLabels = Annotated[fields.Labels, AfterValidator(_own_labels)]


class BudgetInput(Input):
    """Number of nodes that may be disrupted at a time: a number or a percentage, while its window is open."""

    nodes: Annotated[str, StringConstraints(pattern=r"^((100|[0-9]{1,2})%|[0-9]{1,6})$")]
    """How many nodes, or which part of them in percent, may be disrupted at a time."""
    reasons: Annotated[list[DisruptionReason], Field(max_length=4)] | None = None
    """The reasons that the budget holds for; without any all but ``Expired``."""
    schedule: Schedule | None = None
    """When the window of the budget opens: five fields of cron, or ``@daily`` and the like. Without one it is always
    open."""
    duration: BudgetDuration | None = None
    time_zone: TimeZone | None = None
    """The time zone of the schedule, a name of the IANA database; UTC where none is given."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("schedule and duration are given together or not at all")
        return self

    def entry(self) -> dict[str, Any]:
        """The budget as the record keeps it."""
        parts = self.model_dump(exclude_none=True)
        return {_BUDGET_NAMES.get(name, name): value for name, value in parts.items()}


class DisruptionInput(Input):
    """Rules for when nodes of a pool may be replaced or removed; those of a static pool are not to save money."""

    consolidate_after: DurationOrNever = "0s"
    """How long no pod may have come to a node or left it before it leaves to save money; ``Never`` for no node."""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    """Which nodes leave to save money."""
    budgets: Annotated[list[BudgetInput], Field(max_length=MAX_BUDGETS)] | None = None
    """How many nodes may be disrupted at a time. Without any, one in ten; an empty list limits nothing."""
    minimum_saving: Annotated[float, Field(ge=0, le=MOST_SAVING, allow_inf_nan=False)] = 0.0
    """How much each node that leaves has to save, in USD an hour."""
    paused: bool = False
    """True: no node leaves now, not for drift or age either."""

    def document(self) -> dict[str, Any]:
        """The block as Karpenter's NodePool has it.

        Without budgets there is one of 10 %; an empty list of them limits nothing.
        """
        return {
            "consolidateAfter": self.consolidate_after,
            "consolidationPolicy": self.consolidation_policy,
            "budgets": [{"nodes": DEFAULT_NODES}],
            **({"minimumSaving": self.minimum_saving} if self.minimum_saving else {}),
            **self.static_document(),
        }

    def static_document(self) -> dict[str, Any]:
        """Part of the block that a static pool has: what it says of budgets, and whether it is paused."""
        return {
            **({} if self.budgets is None else {"budgets": [budget.entry() for budget in self.budgets]}),
            **({"paused": True} if self.paused else {}),
        }


class PoolCreate(Input):
    """A pool of a cluster: static, with always as many nodes, or dynamic, with as many as pending pods need."""

    name: Name
    """The name of the pool, once in the cluster. It cannot be changed."""
    kind: PoolKind | None = None
    """``static``: always ``quantity`` nodes. ``dynamic``: as many as pending pods need. Without it a quantity says
    which."""
    provider: DnsLabel | None = None
    """The node provider; where none is given, the cheapest of all serves each node."""
    requirements: Annotated[Requirements, AfterValidator(known_labels)] = Field(default_factory=list)
    properties: Properties = Field(default_factory=dict)
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    """Taints of a node's first moment. Who put them there takes them away; the node is not Available before."""
    labels: NodeLabels = Field(default_factory=dict)
    """Labels of the nodes."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the claims of the pool."""
    kubelet_args: KubeletArgs = Field(default_factory=dict)
    quantity: Nodes | None = None
    """How many nodes a static pool has, always."""
    floor: Nodes = 0
    """How many nodes a dynamic pool never goes below."""
    headroom: Resources = Field(default_factory=dict)
    """Resources that a dynamic pool keeps free for pods that may come."""
    limits: Limits = Field(default_factory=dict)
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Pools of a higher weight are tried first, 1 to 100."""
    expire_after: DurationOrNever | None = None
    """How old a node may become; 720h of dynamic pools that do not say it."""
    termination_grace_period: DurationOrNever | None = None
    """How long a drain waits for pods that budgets or annotations hold."""
    disruption: DisruptionInput | None = None
    """When nodes may be removed or replaced."""
    zones: Zones = Field(default_factory=list)
    max_price: MaxPrice | None = None
    """The most that a node may cost as spot."""
    update_strategy: UpdateStrategy = Field(default_factory=UpdateStrategy)
    """How nodes are replaced that are not as they would be made now."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        kind = self.pool_kind()
        if kind == STATIC and self.quantity is None:
            check([(("quantity",), "this field is required for a static pool")])
        foreign_fields, other = (_ONLY_DYNAMIC, DYNAMIC) if kind == STATIC else (_ONLY_STATIC, STATIC)
        check([((name,), f"is for {other} pools only") for name in foreign_fields if name in self.model_fields_set])
        if kind == STATIC and self.disruption is not None:
            fields_set = self.disruption.model_fields_set
            strange = [name for name in _ONLY_DYNAMIC_DISRUPTION if name in fields_set]
            check([(("disruption", name), "is for dynamic pools only") for name in strange])
        most = self.limits.get(NODES)
        if most is not None and max(self.floor, self.quantity or 0) * 1000 > milli(most):
            name = "quantity" if kind == STATIC else "floor"
            check([((name,), f"is more than the limit of {most} nodes")])
        return self

    def pool_kind(self) -> PoolKind:
        """The kind; where it is not said, a quantity says it."""
        return self.kind or (STATIC if self.quantity is not None else DYNAMIC)

    def new_pool(self) -> NewPool:
        """The pool that is asked for."""
        kind = self.pool_kind()
        dynamic, disruption = kind == DYNAMIC, self.disruption or DisruptionInput()
        values = {part.name: getattr(self, part.name) for part in fields_of(PoolSpec) if hasattr(self, part.name)}
        return NewPool(
            **{name: _stored(value) for name, value in values.items() if value is not None}
            | {
                "name": self.name,
                "kind": kind,
                "provider_ref": self.provider or "",
                "expire_after": self.expire_after or (EXPIRE_AFTER if dynamic else ""),
                "disruption": disruption.document() if dynamic else disruption.static_document(),
            }
        )


def _stored(value: Any) -> Any:
    """A value as the record keeps it: tuples for lists, texts for amounts."""
    if isinstance(value, list):
        return tuple(_stored(entry) for entry in value)
    if isinstance(value, dict):
        return {name: str(amount) for name, amount in value.items()}
    return value.entry() if hasattr(value, "entry") else value


class PoolPatch(Input):
    """A JSON merge patch of a pool: absent means as it was; maps are merged, and ``null`` removes what may be absent.
    Name, kind and provider of a pool cannot change."""

    requirements: Irremovable[Annotated[Requirements, AfterValidator(known_labels)]] = None
    properties: dict[str, str | None] | None = None
    """Settings of the provider to add or change; null takes one away, or all of them."""
    taints: Irremovable[Taints] = None
    startup_taints: Irremovable[Taints] = None
    """Taints of a node's first moment, all of them."""
    labels: dict[str, fields.LabelValue | None] | None = None
    """Labels of the nodes to add or change; null takes one away, or all of them."""
    annotations: dict[str, str | None] | None = None
    """Annotations to add or change; null takes one away, or all of them."""
    kubelet_args: dict[str, str | None] | None = None
    """Flags of the kubelet to add or change; null takes one away, or all of them."""
    count: Irremovable[Nodes] = None
    """A number of nodes for pools of both kinds: of a dynamic one it is ``floor``, and the limit of ``nodes`` stays, so
    that it may grow as before. Where both were equal, or no limit or a lower one is set, the limit is the number too.
    """
    quantity: Irremovable[Nodes] = None
    """How many nodes a static pool has, always."""
    floor: Irremovable[Nodes] = None
    """How many nodes a dynamic pool never goes below."""
    headroom: dict[str, str | int | float | None] | None = None
    """Resources to keep free; null takes one away, or all of them."""
    limits: dict[str, str | int | float | None] | None = None
    """Limits to add or change; null takes one away, or all of them."""
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Pools of a higher weight are tried first, 1 to 100; null takes it away."""
    expire_after: DurationOrNever | None = None
    """How old a node may become; null is the usual age."""
    termination_grace_period: DurationOrNever | None = None
    """How long a drain waits for pods that cannot go; null takes it away."""
    disruption: DisruptionInput | None = None
    """When nodes may be removed or replaced; what it does not say stays."""
    queue: bool = False
    """Of the pool of a node group: wait for the operation that is at work on the cluster, in place of a refusal."""
    zones: Irremovable[Zones] = None
    max_price: MaxPrice | None = None
    """The most that a node may cost as spot; null takes it away."""
    update_strategy: UpdateStrategy | None = None
    """How nodes are replaced that are not as they would be made now."""

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        other = [name for name in ("quantity", "floor") if name in self.model_fields_set]
        if self.count is not None and other:
            check([(("count",), f"cannot be given beside {other[0]}")])
        return self

    @model_validator(mode="before")
    @classmethod
    def _unchangeable(cls, document: Any) -> Any:
        return check_fixed(document, _FIXED)

    def apply_to(self, pool: Pool) -> NewPool:
        """The pool after the patch, in the form that it came in. Raises ``InvalidInput`` for what it then would be."""
        document = own_document(pool)
        if self.quantity is not None and pool.kind != STATIC:
            raise InvalidInput.at("/quantity", "is for static pools only; count sizes a dynamic one")
        if self.count is not None and pool.kind == STATIC:
            document["quantity"] = self.count
        elif self.count is not None:
            document |= self._sized(pool, document.get("limits", {}), self.count)
        for name in self.model_fields_set - {"count", "queue"}:
            value = getattr(self, name)
            if isinstance(value, MaxPrice | UpdateStrategy):
                # One form of a bid, or one way to replace nodes, takes the place of another.
                document[name] = value.model_dump(exclude_none=True)
                continue
            if isinstance(value, Input):
                # Who pauses a pool keeps its budgets.
                value = value.model_dump(exclude_unset=True)
            if isinstance(value, dict):
                merged = {**document.get(name, {}), **value}
                document[name] = {key: amount for key, amount in merged.items() if amount is not None}
            elif value is None:
                document.pop(name, None)
            elif isinstance(value, list):
                document[name] = [entry if isinstance(entry, str) else _plain(entry.entry()) for entry in value]
            else:
                document[name] = value
        return replace(read(PoolCreate, document).new_pool(), form=pool.form, document=pool.document)

    def _sized(self, pool: Pool, limits: dict[str, Any], count: int) -> dict[str, Any]:
        """Floor and limits of a dynamic pool with so many nodes: one that may grow keeps how far."""
        most = milli(limits[NODES]) // 1000 if NODES in limits else None
        if most is None or most == pool.floor or most < count:
            return {"floor": count, "limits": {**limits, NODES: count}}
        return {"floor": count}


def own_document(pool: NewPool | Pool) -> dict[str, Any]:
    """The pool as the body of our own route that makes it; what says nothing is left out."""
    static = pool.kind == STATIC
    document = {
        **pool.spec(),
        "name": pool.name,
        "provider": pool.provider_ref,
        "requirements": [_plain(requirement) for requirement in pool.requirements],
        "disruption": _own_disruption(pool.disruption, static=static),
    }
    foreign_fields = _ONLY_DYNAMIC if static else _ONLY_STATIC
    values = {
        name: value for name, value in document.items() if value and name not in (*foreign_fields, "provider_ref")
    }
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {**values, "quantity": pool.quantity} if static else values


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    names = {"minValues": "min_values"}
    return {names.get(name, name): value for name, value in entry.items()}


def _own_disruption(block: dict[str, Any], *, static: bool) -> dict[str, Any]:
    """The block as our own routes have it; of a static NodePool without what they refuse."""
    names = {
        "consolidateAfter": "consolidate_after",
        "consolidationPolicy": "consolidation_policy",
        "minimumSaving": "minimum_saving",
    }
    document = {names.get(name, name): value for name, value in block.items()}
    if "budgets" in document:
        own_names = {name: own for own, name in _BUDGET_NAMES.items()}
        document["budgets"] = [
            {own_names.get(name, name): value for name, value in budget.items()} for budget in document["budgets"]
        ]
    left_out = _ONLY_DYNAMIC_DISRUPTION if static else ()
    return {name: value for name, value in document.items() if name not in left_out}
