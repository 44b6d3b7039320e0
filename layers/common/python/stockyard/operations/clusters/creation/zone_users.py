"""Users of a zone that a cluster is to leave: members of its control plane, pools and nodes, by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.pools.node_groups import follows
from stockyard.domain.pools.records import CONTROL_PLANE, GROUP, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.lifecycle.pools.spread import zone_of
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Finding

MACHINES = "control_plane"
"""The phase on whose ledger lines the first machine is, and its volume."""
_NAMED = 5


def zone_findings(services: Services, driver: ClusterDriver, work: CloudWork) -> list[Finding]:
    """A fault for each zone that the cluster of ``work``, as it is to be, leaves while somebody uses it; for others a
    remark on what stays there."""
    findings = []
    for zone, pointer in driver.leaving_zones(work).items():
        users = list(_users(services, work.cluster, zone))
        if users:
            more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
            text = f"{zone} is used by {', '.join(users[:_NAMED])}{more}: move them first."
            findings.append(Finding(pointer, text))
        else:
            text = f"Volumes of pods in {zone} stay there, and no node reaches them any more."
            findings.append(Finding(pointer, text, warning=True))
    return findings


def _users(services: Services, cluster: Cluster, zone: str) -> Iterator[str]:
    claims = [claim for claim in claims_of(services, cluster.id) if zone_of(claim) == zone]
    for claim in claims:
        if claim.pool == CONTROL_PLANE:
            yield f"member {claim.host_name or claim.node_name or claim.name} of the control plane"
    for line in lines_of(services, cluster.id, MACHINES):
        if line.detail.get("zone") == zone:
            yield f"the control plane's {line.kind} {line.vendor_id or line.key}"
    for pool in _pools(services, cluster):
        if not pool.deleting and zone in _zones_of(pool):
            yield f"pool {pool.name}"
    for claim in claims:
        if claim.pool != CONTROL_PLANE:
            yield f"node {claim.node_name or claim.name}"


def _pools(services: Services, cluster: Cluster) -> Sequence[Pool]:
    """The pools as they are to be: of groups what the settings say."""
    pools = pools_of(services, cluster.id)
    if not follows(cluster):
        return pools
    return [*(pool for pool in pools if pool.form != GROUP), *group_pools(services, cluster, "")]


def _zones_of(pool: Pool) -> frozenset[str]:
    """The zones that the pool names."""
    requirement = Requirements.of(pool.requirements).get(ZONE)
    named = requirement.values if requirement is not None and not requirement.complement else ()
    return frozenset((*pool.zones, *named))
