"""The sweep of clouds and of the realm: remove what carries our tags and belongs to no living record (law 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from stockyard.domain import ids
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    Fact,
    LaunchGroup,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Resource,
)
from stockyard.errors import VendorError
from stockyard.lifecycle import sweeping
from stockyard.operations.every import every
from stockyard.operations.services import Services
from stockyard.ports import IdentityClient, Put, Remove, Skipped, Tagged
from stockyard.ports.nodes import NodeSource

SIGHTING = "sweep/"
MACHINE = "instance"
"""What a cloud's sweep calls the kind of thing that a launch group has several of."""


@dataclass(slots=True)
class Findings:
    """What a sweep found. ``stopped`` is not empty when it refused to remove so much: an alarm."""

    tagged: int = 0
    orphans: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that may have to go: a name for people, its birth, and how to remove it."""

    key: str
    resource_id: str
    created_at: str | None
    remove: Callable[[], bool]


def tagged(
    services: Services, account: CloudAccount, regions: Sequence[str], skipped: Skipped | None = None
) -> Sequence[Tagged]:
    """Everything in a cloud account that carries this installation's and this tenant's tags. A region that cannot be
    asked is told to ``skipped``."""
    provider = services.providers[account.provider]
    return provider.tagged(account, services.installation, services.tenant, regions, skipped)


def cloud_suspects(services: Services, account: CloudAccount, things: Sequence[Tagged]) -> list[Suspect]:
    """What was found in a cloud account."""
    provider = services.providers[account.provider]
    return _suspects(things, lambda thing: provider.discard(account, thing, services.tenant))


def node_suspects(
    services: Services, source: NodeSource, provider: NodeProvider, things: Sequence[Tagged]
) -> list[Suspect]:
    """What was found at a node provider that works in no cloud account."""
    return _suspects(things, lambda thing: source.discard(provider, thing, services.tenant))


def _suspects(things: Sequence[Tagged], discard: Callable[[Tagged], bool]) -> list[Suspect]:
    return [
        Suspect(f"{one.kind}/{one.region}/{one.vendor_id}", _owner(one), one.created_at, partial(discard, one))
        for one in things
    ]


def _owner(thing: Tagged) -> str:
    """Whose it is. A machine of a launch group must be one that the group has given out: another one is an orphan."""
    if thing.kind == MACHINE and thing.resource_id.startswith(f"{ids.LAUNCH_GROUP}_"):
        return f"{thing.resource_id}/{thing.vendor_id}"
    return thing.resource_id


def secret_suspects(services: Services) -> list[Suspect]:
    """The secrets of the tenant's clusters."""

    def removal(name: str) -> Callable[[], bool]:
        def remove() -> bool:
            services.secrets.delete(name)
            return True

        return remove

    prefix = f"{services.tenant}/"
    return [
        Suspect(f"secret/{name}", name[len(prefix) :].split("/")[0], None, removal(name))
        for name in services.secrets.names(prefix)
    ]


def client_suspects(services: Services) -> list[Suspect]:
    """Keycloak clients of this installation's clusters, of all tenants."""

    def removal(client: IdentityClient) -> Callable[[], bool]:
        return lambda: services.identity.delete_client(client_id=client.client_id, owner=client.owner, uuid=client.uuid)

    return [
        Suspect(f"keycloak-client/{client.client_id}", client.owner, None, removal(client))
        for client in services.identity.owned_clients()
    ]


def regions_of(services: Services, account: CloudAccount) -> list[str]:
    """The regions to look at: the account's own, and every one that its clusters or ledger lines name."""
    regions = {str(account.attributes.get("region") or "us-east-1")}
    for cluster in every(services.store, Cluster):
        if str(cluster.cloud_account_id) == account.id:
            regions.add(str(cluster.settings.get("region_name") or ""))
    regions.update(line.region for line in every(services.store, Resource) if str(line.account_id) == account.id)
    return sorted(regions - {""})


def living(services: Services) -> frozenset[str]:
    """Ids of all records of the tenant that own something in a cloud."""
    clusters = (cluster.id for cluster in every(services.store, Cluster))
    environments = (environment.id for environment in every(services.store, NodeEnvironment))
    claims = (claim.id for claim in every(services.store, NodeClaim))
    groups = (owner for group in every(services.store, LaunchGroup) for owner in _owners(group))
    return frozenset((*clusters, *environments, *claims, *groups))


def _owners(group: LaunchGroup) -> list[str]:
    return [group.id, *(f"{group.id}/{machine['id']}" for machine in group.machines.values())]


def sweep(services: Services, scope: str, suspects: Sequence[Suspect], alive: frozenset[str]) -> Findings:
    """Remove orphans seen for the second time and past the grace period, unless they are suspiciously many.

    Sightings are kept as facts below ``sweep/{scope}/``.
    """
    now = services.clock.now()
    grace = timedelta(seconds=services.rules.sweep_grace_seconds)
    found = Findings(tagged=len(suspects))
    orphans = [s for s in suspects if sweeping.is_orphan(s.resource_id, alive)]
    found.orphans = [s.key for s in orphans]
    seen = _sightings(services, scope)
    ripe = [s for s in orphans if sweeping.old_enough(s.created_at, seen.get(s.key), now, grace)]
    if sweeping.too_many(len(ripe), len(suspects)):
        found.stopped = [s.key for s in ripe]
        ripe = []
    for suspect in orphans:
        if suspect.key not in seen:
            services.store.commit(Put(Fact(f"{SIGHTING}{scope}/{suspect.key}", suspect.resource_id, services.now())))
    if not services.rules.report_only:
        for suspect in ripe:
            try:
                if suspect.remove():
                    found.removed.append(suspect.key)
            except VendorError:
                continue
    for key in sweeping.stale_sightings(seen, frozenset(found.orphans)):
        services.store.commit(Remove(Fact, f"{SIGHTING}{scope}/{key}"))
    return found


def _sightings(services: Services, scope: str) -> dict[str, str]:
    prefix = f"{SIGHTING}{scope}/"
    return {fact.id[len(prefix) :]: fact.time for fact in every(services.store, Fact, prefix)}
