"""The sweep of clouds and of the realm: remove what carries our tags and belongs to no living record (law 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    Fact,
    LaunchGroup,
    NodeClaim,
    NodeEnvironment,
    Resource,
)
from stockyard.domain.values import ids
from stockyard.errors import VendorError
from stockyard.lifecycle import sweeping
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import IdentityClient, Put, Remove, Tagged

SIGHTING = "sweep/"
MACHINE = "instance"
"""What a cloud's sweep calls the kind of thing that a launch group has several of."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that may have to go: a name for people, its birth, and how to remove it."""

    key: str
    resource_id: str
    created_at: str | None
    remove: Callable[[], bool]


def tagged_suspects(things: Sequence[Tagged], discard: Callable[[Tagged], bool]) -> list[Suspect]:
    """Suspects in a cloud account, or at a node provider that works in none."""
    return [
        Suspect(
            f"{thing.kind}/{thing.region}/{thing.vendor_id}", _owner(thing), thing.created_at, partial(discard, thing)
        )
        for thing in things
    ]


def _owner(thing: Tagged) -> str:
    """Owner of the thing. A machine of a launch group must be one that the group has given out: another one is an
    orphan."""
    if thing.kind == MACHINE and thing.resource_id.startswith(f"{ids.LAUNCH_GROUP}_"):
        return f"{thing.resource_id}/{thing.vendor_id}"
    return thing.resource_id


def secret_suspects(services: Services) -> list[Suspect]:
    """The secrets of the tenant's clusters and cloud accounts."""

    def remove(name: str) -> bool:
        services.secrets.delete(name)
        return True

    prefix = f"{services.tenant}/"
    return [
        Suspect(f"secret/{name}", name[len(prefix) :].split("/")[0], None, partial(remove, name))
        for name in services.secrets.names(prefix)
    ]


def client_suspects(services: Services) -> list[Suspect]:
    """Keycloak clients of this installation's clusters, of all tenants."""

    def remove(client: IdentityClient) -> bool:
        return services.identity.delete_client(client_id=client.client_id, owner=client.owner, uuid=client.uuid)

    return [
        Suspect(f"keycloak-client/{client.client_id}", client.owner, None, partial(remove, client))
        for client in services.identity.owned_clients()
    ]


def regions_of(services: Services, account: CloudAccount, lines: Iterable[Resource] | None = None) -> list[str]:
    """The regions to look at: the account's own, and every one that its clusters or ledger lines name. ``lines`` are
    those of the account where the caller has read them."""
    if lines is None:
        lines = [line for line in every(services.store, Resource) if str(line.account_id) == account.id]
    regions = set(services.clouds[account.provider].regions(account))
    for cluster in every(services.store, Cluster):
        if str(cluster.cloud_account_id) == account.id:
            regions.add(str(cluster.settings.get("region_name") or ""))
    regions.update(line.region for line in lines)
    return sorted(regions - {""})


def living(services: Services, claims: Iterable[NodeClaim]) -> frozenset[str]:
    """Ids of all records of the tenant that own something in a cloud; ``claims`` are all of its claims."""
    clusters = (cluster.id for cluster in every(services.store, Cluster))
    environments = (environment.id for environment in every(services.store, NodeEnvironment))
    claim_ids = (claim.id for claim in claims)
    groups = (owner for group in every(services.store, LaunchGroup) for owner in _owners(group))
    return frozenset((*clusters, *environments, *claim_ids, *groups))


def _owners(group: LaunchGroup) -> list[str]:
    return [group.id, *(f"{group.id}/{machine['id']}" for machine in group.machines.values())]


def sweep(services: Services, scope: str, suspects: Sequence[Suspect], alive: frozenset[str], tally: Tally) -> None:
    """Remove orphans seen for the second time and past the grace period, unless they are suspiciously many.

    Sightings are kept as facts below ``sweep/{scope}/``.
    """
    now = services.clock.now()
    grace = timedelta(seconds=services.settings.sweep_grace_seconds)
    orphans = [s for s in suspects if s.resource_id not in alive]
    keys = [s.key for s in orphans]
    tally.orphans += keys
    prefix = f"{SIGHTING}{scope}/"
    sightings = {fact.id.removeprefix(prefix): fact.time for fact in every(services.store, Fact, prefix)}
    ripe = [s for s in orphans if sweeping.old_enough(s.created_at, sightings.get(s.key), now, grace)]
    if sweeping.too_many(len(ripe), len(suspects)):
        tally.stopped += [s.key for s in ripe]
        ripe = []
    for suspect in orphans:
        if suspect.key not in sightings:
            services.store.commit(Put(Fact(prefix + suspect.key, suspect.resource_id, services.now())))
    for suspect in () if services.settings.report_only else ripe:
        try:
            if suspect.remove():
                tally.removed.append(suspect.key)
        except VendorError:
            continue
    for key in sweeping.stale_sightings(sightings, frozenset(keys)):
        services.store.commit(Remove(Fact, prefix + key))
