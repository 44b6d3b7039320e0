"""Undo a creation that was accepted but not handed over: the Keycloak client first, then the records."""

from __future__ import annotations

from stockyard.domain.records import Cluster, Name
from stockyard.errors import Conflict, VendorError
from stockyard.operations.services import Services
from stockyard.ports import Add, Remove


def undo(services: Services, accepted: Cluster) -> bool:
    """True when nothing is left. False leaves the record, so that the sweep finds it again."""
    try:
        services.identity.delete_client(client_id=accepted.client_id, owner=accepted.id)
    except VendorError:
        return False
    stored = services.store.get(Cluster, accepted.id)
    if stored is None:
        return True
    if stored.status != "accepting":
        return False
    try:
        services.store.commit(
            Remove(Cluster, stored.id, version=stored.version),
            Remove(Name, f"cluster/{stored.name}"),
            Add("quota/clusters", -1),
        )
    except Conflict:
        return services.store.get(Cluster, accepted.id) is None
    return True
