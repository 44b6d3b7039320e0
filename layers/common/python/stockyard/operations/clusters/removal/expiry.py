"""A cluster whose time ends: its deletion is announced a day before, and begins at the time."""

from __future__ import annotations

from datetime import timedelta

from stockyard.domain.records import UNSEEN, Cluster
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.clusters.removal.delete import PROTECTION, delete_expired
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Replace

ANNOUNCED = timedelta(days=1)
"""How long before its deletion begins an event tells of it."""


def look_at_expiry(services: Services, cluster: Cluster) -> str | None:
    """Begin the deletion of a cluster whose time has come, or announce it; what was done."""
    if cluster.expires_at is None or cluster.status == "deleting" or cluster.status in UNSEEN:
        return None
    remaining = times.from_text(cluster.expires_at) - services.clock.now()
    if remaining <= timedelta():
        return "expired" if delete_expired(services, cluster.id) else None
    if remaining > ANNOUNCED or cluster.expiry_announced == cluster.expires_at:
        return None
    return _announce(services, cluster, cluster.expires_at)


def _announce(services: Services, cluster: Cluster, expires_at: str) -> str | None:
    nodes = sum(not claim.control_plane for claim in claims_of(services, cluster))
    text = f"Its deletion begins at {expires_at}, with {nodes} nodes: change or remove expires_at to keep it."
    if cluster.settings.get(PROTECTION):
        text += f" Its {PROTECTION} does not keep it."
    changed = MOVES.touch(cluster, services.now(), sequence=cluster.sequence + 1, expiry_announced=cluster.expires_at)
    expiring = Transition("Cluster", cluster.status, cluster.status, "Expiring", text)
    try:
        services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, expiring))
    except Conflict:
        return None  # Somebody has changed it since it was read: the next sweep looks again.
    return "announced"
