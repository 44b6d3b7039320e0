"""The node types on offer: those that providers declare, and those that they discover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.declared_types import DeclaredType, capacity_counter, declared, type_id
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, NodeType
from stockyard.domain.nodes.views import Capacity, node_type_view
from stockyard.domain.platform import CAPACITY, is_shared
from stockyard.domain.records import Counter, NodeProvider
from stockyard.domain.values import ids
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.listing import every
from stockyard.operations.node_providers.catalog import Stock, provider_node_types, refusals, stock_of
from stockyard.operations.node_providers.visible import all_providers, by_name, named
from stockyard.operations.services import Services

Type = tuple[NodeProvider, NodeType]


def list_types(
    services: Services,
    *,
    provider: str | None = None,
    phase: str | None = None,
    after: str | None = None,
    limit: int,
) -> tuple[list[dict[str, Any]], str | None]:
    """At most ``limit`` node types behind ``after`` in order of canonical name, of one provider and in one phase if
    they are named, and the name to go on behind."""
    types = sorted(_types(services, provider), key=lambda entry: entry[1].name)
    following = [entry for entry in types if after is None or entry[1].name > after]
    if phase is None:
        page = following[:limit]
        return _views(services, page), page[-1][1].name if len(following) > limit else None
    matching = [view for view in _views(services, following) if view["phase"] == phase]
    return matching[:limit], str(matching[limit - 1]["name"]) if len(matching) > limit else None


def count_types(services: Services, provider: str | None, phase: str | None) -> int:
    """Number of the node types of one provider and in one phase, where they are named."""
    types = _types(services, provider)
    return len(types) if phase is None else sum(view["phase"] == phase for view in _views(services, types))


def offer_of(services: Services, provider: NodeProvider) -> dict[str, Any]:
    """Number of the node types that a provider offers now, and the least of their prices by the hour, None where none
    is known. What is paid ahead has no such price."""
    types = provider_node_types(services, provider)
    prices = (
        node_type.money(offering)
        for node_type in types
        for offering in node_type.offerings
        if node_type.owned or offering.capacity_type in (ON_DEMAND, SPOT)
    )
    return {"types": len(types), "usd_hour": min((price for price in prices if price is not None), default=None)}


def get_type(services: Services, id_or_name: str, *, history: bool = False) -> dict[str, Any]:
    """A node type by id, canonical name, or its bare name, the tenant's own types first; with ``history`` its spot
    prices of the last day. ``NotFound``, and ``InvalidInput`` for a bare name that several have."""
    everything = _types(services, None)
    if id_or_name.startswith(f"{ids.NODE_TYPE}_"):
        matches = [entry for entry in everything if type_id(entry[0], entry[1].bare) == id_or_name]
    else:
        matches = [entry for entry in everything if entry[1].name == id_or_name]
        matches = matches or [entry for entry in everything if entry[1].bare == id_or_name]
        matches = [entry for entry in matches if not is_shared(entry[0])] or matches
    if len(matches) > 1:
        names = ", ".join(sorted(entry[1].name for entry in matches)[:5])
        raise InvalidInput(f"Several node types are called {id_or_name}: {names}. Give the whole name.")
    if not matches:
        raise NotFound(f"There is no node type {id_or_name}.")
    view = _views(services, matches)[0]
    return {**view, "spot_history": _history(services, *matches[0])} if history else view


def _history(services: Services, provider: NodeProvider, node_type: NodeType) -> dict[str, list[dict[str, Any]]]:
    """Spot prices of the last day by the id of the zone; none of a type that is not on offer as spot."""
    source = services.node_sources.get(provider.kind)
    offering = next((offering for offering in node_type.offerings if offering.capacity_type == SPOT), None)
    sheet = source.sheet(provider) if source is not None else None
    if offering is None or sheet is None:
        return {}
    return {
        zone: [{"time": time, "usd_hour": node_type.money(replace(offering, usd_hour=usd))} for time, usd in points]
        for zone, points in services.prices.spot_history(sheet, node_type.bare).items()
    }


def _types(services: Services, provider: str | None) -> list[Type]:
    owners = by_name(all_providers(services)).values() if provider is None else [named(services, provider)]
    return [(owner, node_type) for owner in owners if owner for node_type in provider_node_types(services, owner)]


def _views(services: Services, types: Iterable[Type]) -> list[dict[str, Any]]:
    page = list(types)
    owners = {provider.id: provider for provider, _ in page}
    written = {key: {part.name: part for part in declared(provider)} for key, provider in owners.items()}
    stocks = {key: stock_of(services, provider) for key, provider in owners.items()}
    refused = {key: refusals(services, provider) for key, provider in owners.items()}
    limited = (
        key
        for key, parts in written.items()
        if stocks[key] is not None or any(part.max_capacity is not None for part in parts.values())
    )
    counters = (record for key in limited for record in every(services.store, Counter, f"{CAPACITY}{key}/"))
    used = {record.id: record.value for record in counters}
    return [
        node_type_view(
            provider,
            node_type,
            written[provider.id].get(node_type.bare),
            _capacity(provider, node_type, written[provider.id].get(node_type.bare), stocks[provider.id], used),
            services.tenant,
            refused[provider.id],
        )
        for provider, node_type in page
    ]


def _capacity(
    provider: NodeProvider,
    node_type: NodeType,
    declaration: DeclaredType | None,
    stock: Stock | None,
    used: Mapping[str, int],
) -> Capacity:
    """Capacity of a type: by the document, or by the count of its machines."""
    total = declaration.max_capacity if declaration is not None else None
    claimed = used.get(capacity_counter(provider, node_type.bare), 0)
    if stock is None:
        return Capacity(total, claimed)
    return Capacity(stock.most(node_type.bare, total), claimed, stock.counted_at)
