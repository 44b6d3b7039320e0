"""Undo a creation that was accepted but not handed over: claim it, then the Keycloak client, then the records."""

from __future__ import annotations

from stockyard.domain.records import Cluster, Name
from stockyard.errors import Conflict, VendorError
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.profiles.resolve import removal_writes
from stockyard.operations.quotas.limits import CLUSTERS
from stockyard.operations.services import Services
from stockyard.ports import Add, IdentityClient, Remove, Replace


def undo(services: Services, accepted: Cluster) -> bool:
    """True when nothing is left. False leaves the record: somebody else goes on with it, or the sweep finds it again.

    An acceptance is undone only as ``accepted`` shows it: one that was taken over or handed over since is left alone.
    From the claim on nobody can hand it over, and who finds it ``undoing`` goes on where another undo has stopped.
    """
    try:
        # Before the claim: what is found now belongs to this acceptance. The id, and with it the client's name, may
        # be used again once the records are gone, so that a slow undo must know the very client it may delete.
        client = services.identity.find_client(accepted.client_id)
    except VendorError:
        return False
    stored = services.store.get(Cluster, accepted.id)
    if stored is None:
        return True
    claimed = stored if stored.status == "undoing" else _claim(services, accepted)
    return claimed is not None and _finish(services, claimed, client)


def _claim(services: Services, accepted: Cluster) -> Cluster | None:
    if accepted.status != "accepting":
        return None
    claimed = MOVES.take_back(accepted, services.now())
    try:
        services.store.commit(Replace(claimed, fence={"status": "accepting"}))
    except Conflict:
        return None
    return claimed


def _finish(services: Services, claimed: Cluster, client: IdentityClient | None) -> bool:
    try:
        if client is not None:
            services.identity.delete_client(client_id=claimed.client_id, owner=claimed.id, uuid=client.uuid)
    except VendorError:
        return False
    try:
        services.store.commit(
            Remove(Cluster, claimed.id, version=claimed.version, fence={"status": "undoing"}),
            Remove(Name, f"cluster/{claimed.name}"),
            Add(f"quota/{CLUSTERS}", -1),
            *removal_writes(services, claimed.id),
        )
    except Conflict:
        return services.store.get(Cluster, claimed.id) is None
    return True
