"""The node types of a tenant as the scheduler needs them: an index, built once per version, and what is scarce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import capacity_counter, declared, node_types_of
from stockyard.domain.nodes.node_types import NodeType, canonical
from stockyard.domain.nodes.offers import RefusedOffering
from stockyard.domain.platform import CAPACITY, SHARED_CAPACITY
from stockyard.domain.records import CloudAccount, Counter, NodeClaim, NodeProvider
from stockyard.domain.values.frozen import dataclass
from stockyard.operations.cloud_accounts.of_provider import account_number, account_of
from stockyard.operations.listing import every
from stockyard.operations.node_providers.visible import all_providers, by_name
from stockyard.operations.services import Services
from stockyard.ports.nodes import NodeSource
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability

DRAIN = "drain"
MAX_CATALOGS = 4
"""Catalogues that a process keeps."""
FRESH_SECONDS = 900
"""How long one is used before the sources are asked again: prices and offers change."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Largest number of nodes of a type, and the counter of those that are there."""

    counter: str
    total: int


@dataclass(frozen=True, slots=True)
class Catalog:
    """One version of a tenant's node types. Keys are names of providers, and canonical names of types."""

    index: Index
    node_types: Mapping[str, NodeType]
    providers: Mapping[str, NodeProvider]
    limits: Mapping[str, Limit]
    scopes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stock:
    """Machines that a provider has in all, by the bare name of their type, and when they were counted."""

    totals: Mapping[str, int]
    counted_at: str | None

    def most(self, name: str, declared_most: int | None) -> int:
        """Largest number of nodes of a type: its total, or what the document allows where that is less."""
        total = max(0, self.totals.get(name, 0))
        return total if declared_most is None else min(total, declared_most)


Key = tuple[str, tuple[tuple[str, int, str | None], ...], int]
"""Tenant, its providers' ids and versions and as of when their moving prices are, and the quarter of an hour."""


def load(services: Services) -> Catalog:
    """The catalogue of the tenant's providers as they are now; built anew only when one of them changed."""
    now = services.now()
    providers = [provider for provider in by_name(all_providers(services)).values() if not provider.is_leaving(now)]
    # A claim may wait for a price: a new one counts at once.
    versions = tuple((provider.id, provider.version, _prices_as_of(services, provider)) for provider in providers)
    key = (services.tenant, versions, int(services.clock.now().timestamp()) // FRESH_SECONDS)
    catalogs: dict[Key, Catalog] = services.factories.catalogs
    catalog = catalogs.get(key)
    if catalog is None:
        while len(catalogs) >= MAX_CATALOGS:
            del catalogs[next(iter(catalogs))]
        catalog = catalogs[key] = build(services, providers)
    return catalog


def _prices_as_of(services: Services, provider: NodeProvider) -> str | None:
    source = services.node_sources.get(provider.kind)
    prices = source.prices_as_of(provider) if source is not None else None
    stock = stock_of(services, provider)
    return prices if stock is None else f"{prices} {stock.counted_at}"


def stock_of(services: Services, provider: NodeProvider) -> Stock | None:
    """Count of the provider's machines; None where they are not counted."""
    source = services.node_sources.get(provider.kind)
    if source is None or not source.counts_stock:
        return None
    return _stock(source_of(services, provider), provider)


def _stock(source: NodeSource | None, provider: NodeProvider) -> Stock | None:
    totals = source.totals(provider) if source is not None else None
    return None if source is None or totals is None else Stock(totals, source.counted_at(provider))


def build(services: Services, providers: list[NodeProvider]) -> Catalog:
    """The catalogue of these providers."""
    everything: list[NodeType] = []
    limits: dict[str, Limit] = {}
    scopes: dict[str, str] = {}
    for provider in providers:
        source = services.node_sources.get(provider.kind)
        account = account_of(services, provider) if source is not None else None
        node_types = node_types_in(services, provider, account)
        everything += node_types
        limits |= _limits(provider, node_types, stock_of(services, provider))
        if source is not None:
            scopes[provider.name] = source.scope(provider, account)
    index = Index.build(everything)
    named = {node_type.name: node_type for node_type in everything}
    return Catalog(index, named, {provider.name: provider for provider in providers}, limits, scopes)


def _limits(provider: NodeProvider, node_types: Iterable[NodeType], stock: Stock | None) -> dict[str, Limit]:
    """Limits of the provider's types by canonical name: of those that its document limits, or of all that are
    counted."""
    most = {part.name: part.max_capacity for part in declared(provider) if part.max_capacity is not None}
    if stock is not None:
        most = {node_type.bare: stock.most(node_type.bare, most.get(node_type.bare)) for node_type in node_types}
    return {canonical(provider.name, name): Limit(capacity_counter(provider, name), n) for name, n in most.items()}


def provider_node_types(services: Services, provider: NodeProvider) -> list[NodeType]:
    """The node types of one provider: discovered where its source can, as declared otherwise."""
    built = services.node_sources.get(provider.kind) is not None
    return node_types_in(services, provider, account_of(services, provider) if built else None)


def node_types_in(services: Services, provider: NodeProvider, account: CloudAccount | None) -> list[NodeType]:
    """As ``provider_node_types``, of a provider whose account has been read."""
    source = source_of(services, provider)
    if source is None:
        return node_types_of(provider, built=False)
    node_types = source.node_types(provider, account)
    owned, counted = provider_kinds.kind(provider.kind).owned, _stock(source, provider) is not None
    if not (owned or counted):
        return list(node_types)
    return [replace(each, owned=owned, limited=each.limited or counted) for each in node_types]


def source_of(services: Services, provider: NodeProvider) -> NodeSource | None:
    """The provider's source, with the last offer to its cloud account where the node types come from there; None of a
    kind that is not built."""
    source = services.node_sources.get(provider.kind)
    number = account_number(services, provider) if source is not None and source.sells_from_sheet else None
    if source is not None and number is not None:
        return source.with_sheet(services.prices.sheet(int(number)))
    return source


def availability(services: Services, catalog: Catalog, now: datetime) -> Availability:
    """Availability of what is scarce now: places left of limited types, and what was refused of late."""
    used = _used(services, catalog)
    free = {name: max(0, limit.total - used.get(limit.counter, 0)) for name, limit in catalog.limits.items()}
    return Availability(free, refused(services, catalog, now))


def _used(services: Services, catalog: Catalog) -> dict[str, int]:
    """Used nodes of limited types: by one look at the tenant's own and one at the shared ones, however many types there
    are."""
    if not catalog.limits:
        return {}
    shared = {limit.counter.startswith(SHARED_CAPACITY) for limit in catalog.limits.values()}
    prefixes = [SHARED_CAPACITY if is_of_platform else CAPACITY for is_of_platform in shared]
    return {record.id: record.value for prefix in prefixes for record in every(services.store, Counter, prefix)}


def own_scope(provider_id: str) -> str:
    """Scope in which a refusal to a provider alone is remembered: for a reason of its document or of its account."""
    return f"provider/{provider_id}"


def refused(services: Services, catalog: Catalog, now: datetime) -> frozenset[tuple[str, str, str]]:
    """Offerings that were refused of late, by canonical names."""
    if services.unavailable_offerings is None:
        return frozenset()
    by_provider = {name: {scope, own_scope(catalog.providers[name].id)} for name, scope in catalog.scopes.items()}
    by_scope = {
        scope: services.unavailable_offerings.refused(scope, now)
        for scope in sorted(set().union(*by_provider.values()))
    }
    return frozenset(
        (canonical(provider, name), capacity_type, zone)
        for provider, scopes in by_provider.items()
        for scope in scopes
        for name, capacity_type, zone in by_scope[scope]
    )


def refusals(services: Services, provider: NodeProvider) -> Sequence[RefusedOffering]:
    """Offerings of one provider that were refused of late, each with why and until when that counts."""
    source = services.node_sources.get(provider.kind)
    if services.unavailable_offerings is None or source is None:
        return ()
    now = services.clock.now()
    scopes = sorted({source.scope(provider, account_of(services, provider)), own_scope(provider.id)})
    return [each for scope in scopes for each in services.unavailable_offerings.remembered(scope, now)]


def limits_of(services: Services, claim: NodeClaim) -> Mapping[str, int]:
    """Seconds by phase that the claim's source asks for; see ``ports.nodes.LaunchesSlowly``. Empty for most."""
    provider, source = _source_of(services, claim)
    return source.limits(provider) if provider is not None and source is not None else {}


def kubelet_args_of(services: Services, claim: NodeClaim) -> dict[str, str]:
    """The flags of the claim's kubelet: what its source says of the type, see ``ports.nodes.Reserves``, and what the
    claim says itself, which wins."""
    provider, source = _source_of(services, claim)
    if provider is None or claim.placement is None or source is None:
        return dict(claim.kubelet_args)
    return {**source.kubelet_args(provider, claim.placement), **claim.kubelet_args}


def _source_of(services: Services, claim: NodeClaim) -> tuple[NodeProvider | None, NodeSource | None]:
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None else None
    return provider, services.node_sources.get(provider.kind) if provider is not None else None


def drain_seconds(services: Services, claim: NodeClaim) -> int:
    """Seconds for which the drain of a node may wait for pods where the claim does not say it."""
    return max(services.settings.drain_seconds, limits_of(services, claim).get(DRAIN, 0))
