"""Node groups of a cluster's settings, as pools: each worker group becomes a dynamic pool with a floor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.budgets import DEFAULT_NODES
from stockyard.domain.pool_records import DYNAMIC, EXPIRE_AFTER, NODES, NewPool, Pool
from stockyard.domain.quantities import milli
from stockyard.domain.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE

WORKER = "worker"
ALLOCATION_STRATEGY = "allocation_strategy"
CONSOLIDATE_AFTER = "30s"


def pool_of_group(group: Mapping[str, Any], provider: str = "") -> NewPool:
    """The pool of a worker group: ``group`` is an entry of a cluster's checked settings, ``provider`` who serves it.

    ``min_size`` is the floor, ``max_size`` the limit of nodes, ``instance_types`` and ``capacity_type`` are
    requirements, ``allocation_strategy`` is a variable of the provider.
    """
    return NewPool(
        name=group["name"],
        kind=DYNAMIC,
        provider_ref=provider,
        requirements=(
            {"key": INSTANCE_TYPE, "operator": IN, "values": list(group["instance_types"])},
            {"key": CAPACITY_TYPE, "operator": IN, "values": [group["capacity_type"]]},
        ),
        properties={ALLOCATION_STRATEGY: group["allocation_strategy"]},
        taints=tuple(
            {name: taint[name] for name in ("key", "value", "effect") if taint.get(name)} for taint in group["taints"]
        ),
        labels=dict(group["labels"]),
        floor=group["min_size"],
        limits={NODES: str(group["max_size"])},
        expire_after=EXPIRE_AFTER,
        disruption={
            "consolidateAfter": CONSOLIDATE_AFTER,
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": DEFAULT_NODES}],
        },
        form="group",
    )


def pools_of_groups(groups: Iterable[Mapping[str, Any]], provider: str = "") -> list[NewPool]:
    """The pools of all groups but the control plane's."""
    return [pool_of_group(group, provider) for group in groups if group["role"] == WORKER]


def group_of_pool(pool: NewPool | Pool) -> dict[str, Any]:
    """The pool as an entry of ``autoscaler_node_groups``: what such an entry can say of it."""
    values = {
        requirement["key"]: list(requirement.get("values", ()))
        for requirement in pool.requirements
        if requirement["operator"] == IN
    }
    return {
        "name": pool.name,
        "role": WORKER,
        "min_size": pool.floor,
        "max_size": milli(pool.limits.get(NODES, pool.floor)) // 1000,
        "instance_types": values.get(INSTANCE_TYPE, []),
        "labels": dict(pool.labels),
        "taints": [{"value": "", **taint} for taint in pool.taints],
        ALLOCATION_STRATEGY: pool.properties.get(ALLOCATION_STRATEGY, "lowest-price"),
        "capacity_type": next(iter(values.get(CAPACITY_TYPE, ())), "on-demand"),
    }
