"""Members of a control plane as room for pods: which of their claims count, and the first machine, which may have none.

A member is replaced by operations alone. One that is on its way out, or would be made otherwise now, may go at any
moment of such an operation, so nothing is planned onto it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.domain.nodes.node_types import read_resources
from stockyard.domain.pools.records import CONTROL_PLANE
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.fleet.state.workload import Workload
from stockyard.operations.machines.first_node import first_room
from stockyard.operations.machines.member_plan import PLAN
from stockyard.operations.node_claims.delete import is_member
from stockyard.operations.services import Services


def with_room(services: Services, cluster: Cluster, claims: Sequence[NodeClaim], workload: Workload) -> list[NodeClaim]:
    """The claims that may have room: of members those that are ready and stay, and one that stands for the first
    machine while no claim has it. That one is in no store."""
    members = [claim for claim in claims if is_member(claim)]
    leaving = _leaving(services, cluster) if members else frozenset[str]()
    staying = {
        claim.id
        for claim in members
        if claim.phase == AVAILABLE
        and not claim.deleting
        and not is_interrupted(claim)
        and not is_lost(claim)
        and leaving.isdisjoint(_names(claim))
        and _made_at(cluster, claim) >= cluster.members_since
        and (workload.nodes is None or workload.facts_of(claim) is not None)
    }
    counted = [claim for claim in claims if claim.id in staying or not is_member(claim)]
    first = None if any(claim.machine_id == cluster.instance_id for claim in members) else _first(services, cluster)
    if first is not None and workload.facts_of(first) is not None:
        counted.append(first)
    return counted


def is_stand_in(claim: NodeClaim) -> bool:
    """Whether it stands for the first machine, which is no claim's."""
    return not claim.id


def _first(services: Services, cluster: Cluster) -> NodeClaim | None:
    room = first_room(services, cluster)
    if room is None or cluster.created_at < cluster.members_since:
        return None
    # What its node is it has been asked, so no type has to be known.
    return NodeClaim(
        id="",
        name=str(room["name"]),
        node_name=str(room["name"]),
        created_at=cluster.created_at,
        updated_at=cluster.created_at,
        cluster_id=cluster.id,
        control_plane=True,
        pool=CONTROL_PLANE,
        phase=AVAILABLE,
        machine_id=cluster.instance_id or "",
        taints=tuple(room.get("taints") or ()),
        node_labels=dict(room.get("labels") or {}),
        resources=_readable(room.get("allocatable") or {}),
    )


def _readable(allocatable: Mapping[str, Any]) -> dict[str, str]:
    """The quantities that can be read; of a resource whose quantity cannot there is nothing."""
    amounts: dict[str, str] = {}
    for name, quantity in allocatable.items():
        with suppress(ValueError):
            read_resources({name: quantity}, pods=None)
            amounts[name] = str(quantity)
    return amounts


def _leaving(services: Services, cluster: Cluster) -> frozenset[str]:
    """The nodes of members that are taken out of etcd."""
    fact = services.store.get(Fact, f"{cluster.id}/{PLAN}")
    plan = json.loads(fact.value) if fact is not None else {}
    return frozenset((*plan.get("remove_before", ()), *plan.get("remove_after", ())))


def _names(claim: NodeClaim) -> tuple[str, ...]:
    return tuple(name for name in (claim.host_name, claim.node_name, claim.name) if name)


def _made_at(cluster: Cluster, claim: NodeClaim) -> str:
    return cluster.created_at if claim.machine_id == cluster.instance_id else claim.created_at
