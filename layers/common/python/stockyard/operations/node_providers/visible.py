"""Node providers that a tenant sees: its own, and those that the platform shares with all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stockyard.domain.platform import PLATFORM, SHARED, is_foreign, is_shared, provider_name, use_of
from stockyard.domain.records import Fact, Name, NodeClaim, NodeProvider
from stockyard.domain.values import ids
from stockyard.errors import Forbidden, NotFound
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Page, Store

_IDS = tuple(f"{prefix}_" for prefix in (ids.NODE_PROVIDER, ids.SHARED_PROVIDER))


def all_providers(services: Services) -> Iterator[NodeProvider]:
    """The tenant's own in order of id, then the shared ones."""
    yield from every(services.store, NodeProvider)
    if services.tenant != PLATFORM:
        yield from every(services.store, NodeProvider, SHARED)


def by_name(providers: Iterable[NodeProvider]) -> dict[str, NodeProvider]:
    """Provider that each name means to a tenant: its own provider hides a shared one of the same name."""
    named: dict[str, NodeProvider] = {}
    for provider in providers:
        if provider.name not in named or is_shared(named[provider.name]):
            named[provider.name] = provider
    return named


def page_of(store: Store, after: str | None, limit: int, conditions: Mapping[str, Any] | None) -> Page[NodeProvider]:
    """A page of ``all_providers``; the ids of shared ones sort behind the others."""
    own: list[NodeProvider] = []
    if after is None or not after.startswith(SHARED):
        page = store.list(NodeProvider, after=after, limit=limit, where=conditions)
        if page.next_id is not None or store.tenant == PLATFORM:
            return page
        own, after = page.items, None
    if limit == len(own):
        more = store.list(NodeProvider, prefix=SHARED, limit=1, where=conditions).items
        return Page(own, own[-1].id if more else None)
    shared = store.list(NodeProvider, prefix=SHARED, after=after, limit=limit - len(own), where=conditions)
    return Page([*own, *shared.items], shared.next_id)


def named(services: Services, id_or_name: str) -> NodeProvider | None:
    """The provider by id or name, the tenant's own first; None when there is none."""
    store = services.store
    if id_or_name.startswith(_IDS):
        return store.get(NodeProvider, id_or_name)
    for tenant in dict.fromkeys((services.tenant, PLATFORM)):
        name = store.get(Name, provider_name(tenant, id_or_name))
        if name is not None:
            return store.get(NodeProvider, name.owner)
    return None


def find_provider(services: Services, id_or_name: str) -> NodeProvider:
    """The provider by id or name, else ``NotFound``."""
    provider = named(services, id_or_name)
    if provider is None:
        raise NotFound(f"There is no node provider {id_or_name}.")
    return provider


def find_own(services: Services, id_or_name: str) -> NodeProvider:
    """As ``find_provider``, to read its document or to change it: ``Forbidden`` for a tenant that gives the id of a
    shared one. A name is the tenant's own here, so that a removal that is repeated finds nothing."""
    provider = find_provider(services, id_or_name)
    if not is_foreign(services.tenant, provider):
        return provider
    if id_or_name != provider.id:
        raise NotFound(f"There is no node provider {id_or_name} of your own; the platform shares one of that name.")
    raise Forbidden(f"Node provider {provider.name} is shared: its document is the platform's alone.")


def uses(services: Services, provider: NodeProvider) -> Iterator[Fact]:
    """Uses of a shared provider: who has ever had a node of it. For the platform."""
    return every(services.store, Fact, use_of(provider.id)) if is_shared(provider) else iter(())


def users(services: Services, provider: NodeProvider) -> Iterator[Services]:
    """Users whose claims may have nodes of the provider: the tenant itself, or who has ever had one of a shared one."""
    if not is_shared(provider):
        yield services
    elif services.services_of is not None:
        yield from (services.services_of(use.value) for use in uses(services, provider))


def claims_of(services: Services, provider: NodeProvider) -> list[tuple[str, NodeClaim]]:
    """(tenant, claim) of those that have a node of the provider, or wait for one; of a shared one only the former."""
    return [
        (user.tenant, claim)
        for user in users(services, provider)
        for claim in every(user.store, NodeClaim)
        if _has(claim, provider)
    ]


def _has(claim: NodeClaim, provider: NodeProvider) -> bool:
    if claim.placement:
        return claim.placement.provider_id == provider.id
    return claim.provider_ref == provider.name and not is_shared(provider)
