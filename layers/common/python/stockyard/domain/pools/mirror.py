"""Pools and their claims as the NodePools and NodeClaims that the agent mirrors into their cluster.

Each is a document with ``kind``, ``name``, ``labels``, ``annotations``, ``spec`` and ``status``, a claim's also with
its ``pool``. The agent adds what only the cluster knows: the capacity of nodes and their sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.manifests import KARPENTER_CONDITIONS, asked_requirements
from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.manifests import node_pool
from stockyard.domain.pools.records import Pool
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from stockyard.domain.values.states import Truth

NODE_CLASS = {"group": "stockyard.dev", "kind": "NodeProvider"}
"""What every mirror names as its node class, whatever the pool's document says: a Karpenter that runs in the cluster
works on all NodePools of its own classes."""
ANY_PROVIDER = "any"
CLAIM_LABEL = "stockyard.dev/claim"
Mirrored = dict[str, Any]


def mirrored_pool(pool: Pool, claims: Sequence[NodeClaim]) -> Mirrored:
    """The pool as a NodePool; ``claims`` are those of the pool."""
    spec = node_pool(pool)["spec"]
    spec["template"]["spec"]["nodeClassRef"] = _node_class(pool.provider_ref)
    nodes = sum(bool(claim.node_name) for claim in claims)
    status = {"nodes": nodes, "conditions": [_condition(condition) for condition in pool.conditions]}
    return {"kind": "NodePool", "name": pool.name, "labels": {}, "annotations": {}, "spec": spec, "status": status}


def mirrored_claim(claim: NodeClaim) -> Mirrored:
    """The claim as a NodeClaim."""
    spec = {
        "requirements": [dict(requirement) for requirement in asked_requirements(claim)],
        "resources": {"requests": dict(claim.resources)},
        "taints": [dict(taint) for taint in claim.taints],
        "startupTaints": [dict(taint) for taint in claim.startup_taints],
        "nodeClassRef": _node_class(claim.provider_ref),
    }
    needed = ("requirements", "nodeClassRef")
    return {
        "kind": "NodeClaim",
        "name": claim.name,
        "pool": claim.pool,
        "labels": _labels(claim),
        "annotations": {},
        "spec": {name: value for name, value in spec.items() if name in needed or value not in ([], {"requests": {}})},
        "status": {
            "conditions": _conditions(claim),
            **({"nodeName": claim.node_name} if claim.node_name else {}),
        },
    }


def _node_class(provider: str) -> Mapping[str, str]:
    return {**NODE_CLASS, "name": provider or ANY_PROVIDER}


def _labels(claim: NodeClaim) -> dict[str, str]:
    """Labels by which ``kubectl get nodeclaims`` shows what the machine is."""
    labels = {NODE_POOL: claim.pool, CLAIM_LABEL: claim.id}
    placement = claim.placement
    if placement is None:
        return labels
    zone = placement.zones[0] if len(placement.zones) == 1 and placement.zones[0] != "*" else ""
    attributes = {INSTANCE_TYPE: placement.type.partition(".")[2], CAPACITY_TYPE: placement.capacity_type, ZONE: zone}
    return {**labels, **{name: value for name, value in attributes.items() if value}}


def _conditions(claim: NodeClaim) -> list[dict[str, str]]:
    """The claim's state by Karpenter's conditions. ``Initialized`` and those after it have no time of their own: they
    follow from the claim's phase, and change when the last of the others did or after it."""
    own = {condition.type: condition for condition in claim.conditions}
    named = {name: own[own_type] for own_type, name in KARPENTER_CONDITIONS.items() if own_type in own}
    conditions = [_condition(condition, name) for name, condition in named.items()]
    moment = max((condition.last_transition_time for condition in claim.conditions), default=claim.created_at)
    truth: Truth = "True" if claim.phase == "Available" else "False" if claim.phase == "Failed" else "Unknown"
    for name in ("Initialized", "Ready"):
        reason = name if truth == "True" else claim.reason or "Pending"
        conditions.append(_condition(Condition(name, truth, reason, claim.message, moment)))
    if claim.deleting:
        conditions.append(_condition(Condition("InstanceTerminating", "True", "Deleting", claim.message, moment)))
    return conditions


def _condition(condition: Condition, name: str = "") -> dict[str, str]:
    kind = name or condition.type
    return {
        "type": kind,
        "status": condition.status,
        "reason": condition.reason or kind,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
    }
