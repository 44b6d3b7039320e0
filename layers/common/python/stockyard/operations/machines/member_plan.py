"""The instructions of a change of a control plane's members for the joining member, and that member's reports.

The action writes the plan, the joining machine reads it and reports: so neither side knows the other.
"""

from __future__ import annotations

import json
from typing import Any

from stockyard.domain.pools.records import CONTROL_PLANE, ClusterClaim, entry_id
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.operations.listing import every
from stockyard.operations.services import Services

PLAN = "member-plan"
"""The fact of a cluster: ``claim``, ``remove_before``, ``remove_after``, ``done``; ``restore`` where the claim's
machine begins from a snapshot instead of joining."""
MEMBER = "member"
"""The fact of a claim: ``state``, ``removed``, ``machine``."""
JOINED = "joined"


@dataclass(frozen=True, slots=True)
class Removals:
    """The nodes of members that go: ``before`` the claim's machine is added to etcd, and ``after`` that. ``done``:
    nothing more is wanted of it."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    done: bool = False


def removals(services: Services, cluster: Cluster, claim: NodeClaim) -> Removals:
    """Removals that are wanted of the claim's machine. A plan for a later claim means that this one's is over."""
    fact = services.store.get(Fact, f"{cluster.id}/{PLAN}")
    if fact is None:
        return Removals()
    plan = json.loads(fact.value)
    if plan["claim"] != claim.id:
        return Removals(done=claim.id < plan["claim"])
    return Removals(tuple(plan["remove_before"]), tuple(plan["remove_after"]), bool(plan["done"]))


def restore_of(services: Services, cluster: Cluster, claim: NodeClaim) -> dict[str, str]:
    """Location of the snapshot by which the claim's machine begins the control plane anew; empty for one that joins."""
    fact = services.store.get(Fact, f"{cluster.id}/{PLAN}")
    plan = json.loads(fact.value) if fact is not None else {}
    location: dict[str, str] = plan.get("restore") or {}
    return location if plan.get("claim") == claim.id else {}


def members_of(services: Services, cluster: Cluster) -> list[NodeClaim]:
    """The claims of the control plane's members."""
    entries = every(services.store, ClusterClaim, prefix=entry_id(cluster.id, CONTROL_PLANE))
    claims = (services.store.get(NodeClaim, entry.claim_id) for entry in entries)
    return [claim for claim in claims if claim is not None]


def member_of(services: Services, claim: NodeClaim) -> dict[str, Any] | None:
    """Report of the claim's machine as a member; None before that, and for a machine before this one."""
    fact = services.store.get(Fact, member_fact(claim))
    if fact is None:
        return None
    member: dict[str, Any] = json.loads(fact.value)
    return member if member["machine"] == claim.machine_id else None


def has_joined(services: Services, claim: NodeClaim) -> bool:
    """Whether the claim's machine is a member of the control plane, by its own word."""
    return claim.control_plane and member_of(services, claim) is not None


def member_fact(claim: NodeClaim) -> str:
    """The name of the fact."""
    return f"{claim.id}/{MEMBER}"
