"""A cluster with everything below it, for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stockyard.domain.pools.records import Pool
from stockyard.domain.pools.views import hourly_price
from stockyard.domain.profiles.records import PACK_READY, ClusterPacks
from stockyard.domain.records import Cluster, NodeClaim, Operation
from stockyard.lifecycle.pools.pool import READY, shown_status
from stockyard.operations.clusters.network import home_of, networks_of
from stockyard.operations.costs.report import hourly
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.machines import overlay_paths
from stockyard.operations.services import Services

MOST_CLAIMS = 200
"""Claims that are shown of each pool; those that are not available come first."""


def node(
    kind: str, name: str, status: str, *, id: str | None = None, message: str = "", children: list[Any] | None = None
) -> dict[str, Any]:
    """One node: what it is, how it is, and what is below."""
    return {"kind": kind, "name": name, "id": id, "status": status, "message": message, "children": children or []}


def cluster_tree(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The cluster, the phases of its operation, the resources on its ledger, profiles, pools and claims with their
    price, and other costs. The price of the cluster is the sum of these, which its costs say too."""
    operation = services.store.get(Operation, cluster.operation_id or "")
    below: list[dict[str, Any]] = []
    if operation is not None:
        phases = [node("phase", p.name, p.state, message=p.message) for p in operation.phases]
        if operation.error is not None and operation.error.console:
            phases.append(node("console", operation.error.phase, "failed", message=operation.error.console))
        below.append(node("operation", operation.kind, operation.status, id=operation.id, children=phases))
    below += [
        node(line.kind, line.key, line.state, id=line.vendor_id or None, message=line.region)
        for line in lines_of(services, cluster.id)
    ]
    below += _profiles(services, cluster)
    claims = claims_of(services, cluster.id, consistent=False)
    network_texts = _network_texts(services, cluster, claims)
    by_pool: defaultdict[str, list[NodeClaim]] = defaultdict(list)
    for claim in claims:
        by_pool[claim.pool].append(claim)
    pools = [_pool(pool, by_pool.pop(pool.name, []), network_texts) for pool in pools_of(services, cluster.id)]
    below += [*pools, *_claims([claim for remaining in by_pool.values() for claim in remaining], network_texts)]
    ready = next((c.message for c in cluster.conditions if c.type == "Ready"), "")
    root = node("cluster", cluster.name, cluster.status, id=cluster.id, message=ready, children=below)
    costs, of_claims = hourly(services, cluster, claims), hourly_price(claims)
    remainder = None if costs is None or of_claims is None else round(costs - of_claims, 6)
    if remainder != 0:
        below.append({**node("billed", "control plane and network", cluster.status), "usd_hour": remainder})
    return {**root, "usd_hour": costs}


def _profiles(services: Services, cluster: Cluster) -> list[dict[str, Any]]:
    """The profiles of the cluster with their packs."""
    record = services.store.get(ClusterPacks, cluster.id)
    drawn = []
    for profile in record.profiles if record is not None else ():
        packs = [status for status in record.packs if status.profile == profile["name"]] if record is not None else []
        ready = sum(status.condition == PACK_READY for status in packs)
        nodes = [node("pack", f"{p.layer} {p.name} {p.tag}", p.condition, message=p.message) for p in packs]
        status = PACK_READY if ready == len(packs) else "Applying"
        message = f"{ready} of {len(packs)} packs are ready"
        name = f"{profile['name']} {profile['version']}"
        drawn.append(node("profile", name, status, id=profile["id"], message=message, children=nodes))
    return drawn


def _network_texts(services: Services, cluster: Cluster, claims: Sequence[NodeClaim]) -> Mapping[str, str]:
    """Network, and path in the overlay, of each claim's machine; empty for a cluster without one."""
    paths = overlay_paths.paths_of(services, cluster, claims)
    if paths is None:
        return {}
    networks = networks_of(services, claims)
    return {
        claim.id: "; ".join(
            filter(None, (networks.get(claim.id, home_of(cluster)), overlay_paths.sentence(paths, claim.id)))
        )
        for claim in claims
    }


def _pool(pool: Pool, claims: Sequence[NodeClaim], network_texts: Mapping[str, str]) -> dict[str, Any]:
    message = next((condition.message for condition in pool.conditions if condition.type == READY), "")
    drawn = node(
        "pool", pool.name, shown_status(pool), id=pool.id, message=message, children=_claims(claims, network_texts)
    )
    return {**drawn, "type": pool.kind, "usd_hour": hourly_price(claims)}


def _claims(claims: Iterable[NodeClaim], network_texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Claims with their nodes, those first that somebody may have to look at."""
    ordered = sorted(claims, key=lambda claim: (claim.phase == "Available" and not claim.deleting, claim.name))
    nodes = [_claim(claim, network_texts.get(claim.id, "")) for claim in ordered[:MOST_CLAIMS]]
    more = len(ordered) - MOST_CLAIMS
    return nodes if more <= 0 else [*nodes, node("more", f"{more} more node claims", "Available")]


def _claim(claim: NodeClaim, network_text: str) -> dict[str, Any]:
    placed = claim.placement
    drawn_node = node("node", claim.node_name, claim.phase, id=claim.machine_id or None, message=network_text)
    below = [drawn_node] if claim.node_name else []
    status = "Deleting" if claim.deleting else claim.phase
    drawn = node("node-claim", claim.name, status, id=claim.id, message=claim.message, children=below)
    return {
        **drawn,
        "type": claim.type_ref,
        "usd_hour": placed.usd_hour if placed is not None else None,
        "owned": placed is not None and placed.owned,
    }
