"""Members of a control plane that a change replaces, by the names of their nodes: for its plan."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.records import Cluster
from stockyard.lifecycle.clusters.repave import OF_MEMBERS, Reason
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.clusters.members.members import first_line, member_claims, node_of_member
from stockyard.operations.machines.first_node import first_node
from stockyard.operations.services import Services

FIRST = "the first member"
"""What the first machine is called until the agent has told its node."""


def replaced_members(services: Services, cluster: Cluster, why: Sequence[Reason]) -> list[str]:
    """The oldest first, as they go: claims, and before them the first machine while the cluster's own ledger has it and
    no claim. None where the reasons are of workers, or the driver replaces no members."""
    balancer = services.cluster_drivers[cluster.driver].balancer
    if balancer is None or not OF_MEMBERS & {reason["code"] for reason in why}:
        return []
    claims = living(member_claims(services, cluster.id))
    names = [node_of_member(claim) for claim in sorted(claims, key=lambda claim: (claim.created_at, claim.id))]
    if first_line(services, balancer, cluster, claims) is None:
        return names
    return [first_node(services, cluster) or FIRST, *names]
