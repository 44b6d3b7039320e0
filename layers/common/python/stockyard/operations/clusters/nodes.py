"""The nodes of a cluster that is being deleted: every claim is given back, then the environments go."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.records import Cluster, NodeClaim, Pool, Resource
from stockyard.lifecycle.nodes.node_phases import DESTROYED
from stockyard.lifecycle.operation import DELETING
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools import pools
from stockyard.operations.fleet.pools.groups import remove_providers
from stockyard.operations.listing import every
from stockyard.operations.node_claims import cluster_claims
from stockyard.operations.node_claims import environments as node_environments
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.ports import Outcome, Remove, Replace

LOOK_AGAIN = 20
NAMED = 5


def claims_of(services: Services, cluster: Cluster) -> list[NodeClaim]:
    """Every claim that was made for the cluster."""
    return cluster_claims.all_claims_of(services, cluster.id)


def release(services: Services, cluster: Cluster, session: str) -> Outcome:
    """Ask for the deletion of every claim and wait until all are gone; then remove the environments."""
    claims = claims_of(services, cluster)
    workers = [claim for claim in claims if not claim.control_plane]
    # The members go when nothing is left that they could serve.
    for claim in workers or claims:
        if not claim.deleting:
            if claim.machine_id and claim.execution is None:
                _give_machine_back(services, cluster, claim)
            delete_claim(services, claim.id, WORKFLOW_ACTOR)
    remaining_claims = claims_of(services, cluster) if claims else []
    if remaining_claims:
        names = ", ".join(claim.name for claim in remaining_claims[:NAMED])
        more = f" and {len(remaining_claims) - NAMED} more" if len(remaining_claims) > NAMED else ""
        text = f"Waiting for nodes to be given back: {names}{more}.{_why(remaining_claims)}"
        return Outcome(False, text, wait_seconds=LOOK_AGAIN)
    member_pool = pools.member_pool_of(services, cluster.id)
    for pool in (*pools.pools_of(services, cluster.id), *([member_pool] if member_pool is not None else [])):
        services.store.commit(Remove(Pool, pool.id))
    outcome = node_environments.clear_all(services, cluster, session)
    if outcome.done:
        remove_providers(services)
    return outcome


def _give_machine_back(services: Services, cluster: Cluster, claim: NodeClaim) -> None:
    """The first member's machine is the cluster's again, whose deletion removes it: a claim that took it over and was
    not placed yet is gone as soon as it is deleted, with nobody to end a machine."""
    former_lines = [
        line
        for line in every(services.store, Resource, f"{cluster.id}/")
        if line.state == "gone" and line.vendor_id == claim.machine_id
    ]
    cluster_lines = [replace(line, state="made", gone_at=None, version=line.version + 1) for line in former_lines]
    own_lines = [
        replace(line, state="gone", gone_at=services.now(), version=line.version + 1)
        for line in lines_of(services, claim.id)
    ]
    if own_lines:
        services.store.commit(*map(Replace, (*cluster_lines, *own_lines)))


def _why(claims: list[NodeClaim]) -> str:
    """The cause of the first claim whose deletion is blocked: nobody looks for it at the claim when a cluster stays."""
    for claim in claims:
        for condition in claim.conditions:
            if condition.type == DESTROYED and condition.reason not in ("", DELETING):
                return f" {claim.name}: {condition.message}"
    return ""
