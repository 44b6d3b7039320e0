"""Members of a cluster's overlay with their networks and paths, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.overlay_paths import DOWN
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines import overlay_paths
from stockyard.operations.machines.observe import last_post
from stockyard.operations.node_providers.reach import network_of
from stockyard.operations.services import Services


def network_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The overlay of a cluster: its members, those first that are down, and when its agent came last. ``range`` is
    None for a cluster without one."""
    # What its agent has told is some seconds old anyway.
    claims = claims_of(services, cluster.id, consistent=False) if overlay.range_of(cluster.settings) else ()
    paths = overlay_paths.paths_of(services, cluster, claims)
    if paths is None:
        return {"range": None, "observed_at": None, "changed_at": None, "members": []}
    by_id = {claim.id: claim for claim in claims}
    networks = networks_of(services, claims)
    members = [
        {
            "name": by_id[member.owner].name if member.owner in by_id else cluster.name,
            "claim": member.owner if member.owner in by_id else None,
            "node": paths.names[member.address] if member.paths.direct is not None else None,
            "network": networks.get(member.owner, home_of(cluster)),
            "address": member.address,
            "hub": member.hub,
            "state": member.paths.state,
            "since": member.paths.since,
            "home": paths.names.get(member.paths.home, member.paths.home) if member.paths.home else None,
            "handshake_at": member.paths.handshake_at,
            "direct": member.paths.direct,
            "relayed": member.paths.relayed,
            "through_hub": [paths.names.get(address, address) for address in member.paths.through_hub],
        }
        for member in paths.members
    ]
    members.sort(key=lambda row: (row["state"] != DOWN, not row["hub"], row["name"]))
    return {
        "range": paths.range,
        "observed_at": last_post(services, cluster.id),
        "changed_at": paths.changed_at,
        "members": members,
    }


def networks_of(services: Services, claims: Sequence[NodeClaim]) -> Mapping[str, str]:
    """Network of each claim that is placed outside of its cluster's own machines, by the claim's id."""
    providers: dict[str, NodeProvider | None] = {}
    networks: dict[str, str] = {}
    for claim in claims:
        if claim.placement is None or claim.control_plane:
            continue
        number = claim.placement.provider_id
        if number not in providers:
            providers[number] = services.store.get(NodeProvider, number)
        provider = providers[number]
        if provider is not None:
            networks[claim.id] = network_of(services.node_sources.get(provider.kind), provider)
    return networks


def home_of(cluster: Cluster) -> str:
    """Network of the cluster's own machines."""
    region = cluster.place or str(cluster.settings.get("region_name") or "")
    return " ".join(filter(None, (cluster.driver, region, f"of cloud account {cluster.cloud_account_id}")))
