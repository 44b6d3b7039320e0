"""Places of tenants where nothing happens are swept once an hour.

Everything that makes, changes or removes something in a cloud leaves an event of its tenant. What changes without one
(a machine that is ended, a member that ails) the agents of clusters tell. A scope that has more than one member of a
control plane, machines on spot or of a capacity block, or something that was kept, found or failed is swept each time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from stockyard.domain.nodes.node_types import CAPACITY_BLOCK, SPOT
from stockyard.domain.records import Cluster, Event, Fact, NodeClaim
from stockyard.errors import StoreError
from stockyard.lifecycle import sweeping
from stockyard.operations.services import Services
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Put, Remove

CALM = "sweep-calm/"
"""The tenant's fact of each scope whose last sweep left nothing to be watched: when that sweep began."""


def due_scopes(services: Services, scopes: Iterable[str]) -> list[str]:
    """The tenant's scopes that are to be swept now."""
    last_event, now = _last_event(services), services.clock.now()
    calm_scopes = {fact.id.removeprefix(CALM): fact.time for fact in services.store.list(Fact, prefix=CALM).items}
    return [scope for scope in scopes if sweeping.scope_due(calm_scopes.get(scope), last_event, now)]


def _last_event(services: Services) -> str | None:
    """Time of the tenant's last event; None where there is none."""
    newest = services.store.list(Event, limit=1, newest_first=True).items
    return newest[0].time if newest else None


def note_calm(services: Services, scope: str, started_at: str, *, calm: bool) -> None:
    """Remember whether the sweep of a scope left anything to be watched. What is not written is swept again soon.
    Nothing is remembered of a tenant in which something has just happened, or that has no cluster: its scopes are swept
    each time anyway, and nothing stays of what is over."""
    with suppress(StoreError):
        name = f"{CALM}{scope}"
        quiet = sweeping.is_quiet(_last_event(services), services.clock.now())
        if calm and quiet and services.store.list(Cluster, limit=1).items:
            services.store.commit(Put(Fact(name, started_at, started_at)))
        elif services.store.get(Fact, name) is not None:
            services.store.commit(Remove(Fact, name))


def is_calm(tally: Tally, clusters: Collection[Cluster], claims: Iterable[NodeClaim]) -> bool:
    """Whether a sweep with this ``tally`` left nothing to be watched at a scope with these clusters and claims."""
    if tally.done or tally.orphans or tally.removed or tally.stopped or tally.failures:
        return False
    members: dict[str, int] = {}
    for claim in claims:
        for_a_time = claim.placement is not None and claim.placement.capacity_type in (SPOT, CAPACITY_BLOCK)
        if for_a_time or claim.kept_until is not None or claim.deleting:
            return False
        if claim.control_plane:
            members[claim.cluster_id] = members.get(claim.cluster_id, 0) + 1
    has_kept = any(cluster.kept_until is not None for cluster in clusters)
    return not has_kept and all(count < 2 for count in members.values())
