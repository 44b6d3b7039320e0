"""Give a node back: in every state, once; a second request points to the same operation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.pools.records import CONTROL_PLANE, ClusterClaim, entry_id
from stockyard.domain.records import Name, NodeClaim, Operation
from stockyard.domain.values import ids, times
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes.draining import drain_deadline
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_phases import DELETE_NODE
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, change_writes, commit, until_written
from stockyard.operations.engine.find import find_claim
from stockyard.operations.engine.ledger import lines_of, locations, planned_removals
from stockyard.operations.engine.tell import tell
from stockyard.operations.node_providers.catalog import drain_seconds
from stockyard.operations.pricing import plan_of, removal_verdict
from stockyard.operations.quotas.node_claims import claim_quota_writes
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace, Write


@until_written("claim changes too often to be deleted")
def delete_claim(services: Services, id_or_name: str, actor: str, grace_seconds: int | None = None) -> NodeClaim:
    """The claim on its way out. ``NotFound`` when there is none.

    ``grace_seconds`` is how long pods may hold its node from now on, where that is less than what holds for it; 0 ends
    them at once, also when the deletion is under way. One that was never placed is gone when this returns: nothing was
    made for it. A deletion that is blocked is tried again at once when a person asks again.
    """
    claim = find_claim(services, id_or_name)
    if is_member(claim) and not claim.deleting and actor != WORKFLOW_ACTOR:
        text = "is a member of a control plane, which is replaced by operations on its cluster alone"
        raise IllegalTransition(f"Claim {claim.name} {text}: replace all of them by a repave of the cluster.")
    if grace_seconds is None:
        return _asked_again(services, claim, actor) if claim.deleting else give_back(services, claim, actor)
    until = times.to_text(services.clock.now() + timedelta(seconds=grace_seconds))
    if not claim.deleting:
        return give_back(services, replace(claim, drain_until=until), actor)
    deadline = drain_deadline(claim, drain_seconds(services, claim))
    if deadline is not None and times.to_text(deadline) <= until:
        return claim
    shorter, transition = MOVES.shorten_drain(claim, until, services.now())
    changed = replace(shorter, sequence=shorter.sequence + 1)
    services.store.commit(Replace(changed), *tell(services, actor, changed, transition))
    return changed


def is_member(claim: NodeClaim) -> bool:
    """Whether its machine may be a voter of etcd, which leaves that first."""
    return claim.control_plane and claim.pool == CONTROL_PLANE


def give_back(services: Services, claim: NodeClaim, actor: str, first: Transition | None = None) -> NodeClaim:
    """The claim on its way out, which it was not yet; ``first`` is told before it. Raises ``Conflict`` when it was
    changed since it was read."""
    now = services.now()
    current = services.store.get(Operation, claim.operation_id) if claim.operation_id else None
    procedure = services.procedure(DELETE_NODE)
    operation = new_operation(services.new_id(ids.OPERATION), procedure, claim, actor, now)
    overtaken = (current, services.procedure(current.kind)) if current is not None else None
    # No execution was ever asked for: the version that this was read at proves it.
    move = MOVES.delete_at_once if claim.execution is None else MOVES.start_deletion
    change = move(claim, overtaken, operation, procedure, now)
    if first is not None:
        change = replace(change, transitions=(first, *change.transitions))
    changed, operation, writes = change_writes(services, actor, change)
    if claim.execution is None:
        forgotten = forgetting(services, claim)
        services.store.commit(Remove(NodeClaim, claim.id, claim.version), Create(operation), *forgotten, *writes)
    else:
        services.store.commit(Replace(changed), Create(operation), *writes)
    return changed


def _asked_again(services: Services, claim: NodeClaim, actor: str) -> NodeClaim:
    """A person has mended what blocks the deletion; a workflow that asks has not."""
    operation = services.store.get(Operation, claim.operation_id) if claim.operation_id else None
    if operation is None or operation.error is None or actor == WORKFLOW_ACTOR:
        return claim
    return commit(services, actor, MOVES.retry(claim, operation, services.procedure(operation.kind), services.now()))


def forgetting(services: Services, claim: NodeClaim) -> list[Write]:
    """Writes that go with the removal of a claim's record: its name, its entry in its cluster, and its share of the
    quotas."""
    quotas = claim_quota_writes(services, claim.provider_ref, claim.created_by, -1)
    entry = entry_id(claim.cluster_id, claim.pool, claim.id)
    entries = [Remove(ClusterClaim, entry)] if claim.cluster_id else []
    return [Remove(Name, f"node-claim/{claim.name}"), *entries, *quotas]


def plan_deletion(services: Services, id_or_name: str, grace_seconds: int | None = None) -> dict[str, Any]:
    """The dry run: everything on the ledger, the price that ends, and for how long pods may hold the node."""
    claim = find_claim(services, id_or_name)
    lines, items = lines_of(services, claim.id), price_items(claim)
    deletes = [*planned_removals(lines), {"kind": "node-claim", "name": claim.name}]
    verdict = removal_verdict(len(deletes), locations(lines), items)
    return plan_of(items, verdict=verdict, deletes=deletes, warnings=_waits(services, claim, grace_seconds))


def _waits(services: Services, claim: NodeClaim, grace_seconds: int | None) -> list[dict[str, str]]:
    """Notes of a plan about pods that hold the node; nothing for a claim that was never placed."""
    if claim.execution is None:
        return []
    now = services.clock.now()
    leaving = claim if claim.deleting else replace(claim, deletion_timestamp=services.now())
    deadline = drain_deadline(leaving, drain_seconds(services, claim))
    if grace_seconds is not None:
        until = now + timedelta(seconds=grace_seconds)
        deadline = until if deadline is None else min(deadline, until)
    pods = "Pods that a disruption budget or karpenter.sh/do-not-disrupt holds"
    if deadline is None:
        text = f"{pods} keep the node for as long as it takes; a deletion with grace_seconds ends them."
    else:
        text = f"{pods} keep the node until {times.to_text(max(now, deadline))} at most; then they are ended."
    return [{"pointer": "", "detail": text}]


def price_items(claim: NodeClaim) -> list[PriceItem]:
    """Cost of the claim's node; nothing before it is placed."""
    placed = claim.placement
    if placed is None:
        return []
    own = ", own" * placed.owned
    return [PriceItem(f"{placed.type} ({placed.capacity_type}{own})", 1, placed.usd_hour)]
