"""The node types of a tenant as the scheduler needs them: an index, built once per version, and what is scarce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from stockyard.domain.declared_types import capacity_counter, declared, kinds
from stockyard.domain.node_types import NodeKind, canonical
from stockyard.domain.platform import CAPACITY, SHARED_CAPACITY
from stockyard.domain.records import CloudAccount, Counter, NodeProvider
from stockyard.operations.every import every
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import all_providers, by_name
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import State

KEPT = 4
"""Catalogues that a process keeps."""
FRESH_SECONDS = 900
"""How long one is used before the sources are asked again: prices and offers change."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many nodes of a type there may be, and the counter of those that are."""

    counter: str
    total: int


@dataclass(frozen=True, slots=True)
class Catalog:
    """One version of a tenant's node types. Keys are names of providers, and canonical names of types."""

    index: Index
    kinds: Mapping[str, NodeKind]
    providers: Mapping[str, NodeProvider]
    limits: Mapping[str, Limit]
    scopes: Mapping[str, str]


Key = tuple[str, tuple[tuple[str, int], ...], int]
"""Tenant, its providers' ids and versions, and the quarter of an hour."""


def load(services: Services) -> Catalog:
    """The catalogue of the tenant's providers as they are now; built anew only when one of them changed."""
    now = services.now()
    providers = [one for one in by_name(all_providers(services)).values() if not one.is_leaving(now)]
    versions = tuple((provider.id, provider.version) for provider in providers)
    key = (services.tenant, versions, int(services.clock.now().timestamp()) // FRESH_SECONDS)
    kept: dict[Key, Catalog] = services.catalogs
    found = kept.get(key)
    if found is None:
        while len(kept) >= KEPT:
            del kept[next(iter(kept))]
        found = kept[key] = build(services, providers)
    return found


def build(services: Services, providers: list[NodeProvider]) -> Catalog:
    """The catalogue of these providers."""
    everything: list[NodeKind] = []
    limits: dict[str, Limit] = {}
    scopes: dict[str, str] = {}
    for provider in providers:
        everything += kinds_of(services, provider)
        for one in declared(provider):
            if one.max_capacity is not None:
                name = canonical(provider.name, one.name)
                limits[name] = Limit(capacity_counter(provider, one.name), one.max_capacity)
        source = services.sources.get(provider.kind)
        if source is not None:
            scopes[provider.name] = source.scope(provider, account_of(services, provider))
    index = Index.build(everything)
    named = {kind.name: kind for kind in everything}
    return Catalog(index, named, {provider.name: provider for provider in providers}, limits, scopes)


def kinds_of(services: Services, provider: NodeProvider) -> list[NodeKind]:
    """The node types of one provider: discovered where its source can, as declared otherwise."""
    source = services.sources.get(provider.kind)
    if source is None:
        return kinds(provider, built=False)
    return list(source.kinds(provider, account_of(services, provider)))


def account_of(services: Services, provider: NodeProvider) -> CloudAccount | None:
    """The cloud account that a provider works in; None when it needs none or when it is gone."""
    number = (provider.spec.get(provider.kind) or {}).get("cloudAccount")
    return services.store.get(CloudAccount, str(number)) if number is not None else None


def state(services: Services, catalog: Catalog, now: datetime) -> State:
    """What is scarce now: places left of limited types, and what was refused of late."""
    used = _used(services, catalog)
    free = {name: max(0, limit.total - used.get(limit.counter, 0)) for name, limit in catalog.limits.items()}
    return State(free, refused(services, catalog, now))


def _used(services: Services, catalog: Catalog) -> dict[str, int]:
    """By one look at the tenant's own and one at the shared ones, however many have limited types."""
    if not catalog.limits:
        return {}
    shared = {limit.counter.startswith(SHARED_CAPACITY) for limit in catalog.limits.values()}
    prefixes = [SHARED_CAPACITY if one else CAPACITY for one in shared]
    return {one.id: one.value for prefix in prefixes for one in every(services.store, Counter, prefix)}


def refused(services: Services, catalog: Catalog, now: datetime) -> frozenset[tuple[str, str, str]]:
    """What was refused of late, by canonical names."""
    if services.scarcity is None:
        return frozenset()
    by_scope = {scope: services.scarcity.refused(scope, now) for scope in sorted(set(catalog.scopes.values()))}
    return frozenset(
        (canonical(provider, name), capacity_type, zone)
        for provider, scope in catalog.scopes.items()
        for name, capacity_type, zone in by_scope[scope]
    )
