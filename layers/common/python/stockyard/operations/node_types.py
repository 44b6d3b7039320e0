"""The node types on offer: those that providers declare, and those that they discover."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stockyard.domain import ids
from stockyard.domain.declared_types import capacity_counter, declared, type_id
from stockyard.domain.node_types import NodeKind
from stockyard.domain.node_views import node_type_view
from stockyard.domain.platform import CAPACITY, is_shared
from stockyard.domain.records import Counter, NodeProvider
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.every import every
from stockyard.operations.node_catalog import kinds_of
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import all_providers, by_name, named

Type = tuple[NodeProvider, NodeKind]


def list_types(
    services: Services, *, provider: str | None = None, after: str | None = None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """At most ``limit`` node types behind ``after`` in order of canonical name, of one provider if it is named, and
    the name to go on behind."""
    found = sorted(_types(services, provider), key=lambda one: one[1].name)
    rest = [one for one in found if after is None or one[1].name > after]
    shown = rest[:limit]
    return _views(services, shown), shown[-1][1].name if len(rest) > limit else None


def get_type(services: Services, id_or_name: str) -> dict[str, Any]:
    """A node type by id, canonical name, or its bare name, the tenant's own types first. ``NotFound``, and
    ``InvalidInput`` for a bare name that several have."""
    everything = _types(services, None)
    if id_or_name.startswith(f"{ids.NODE_TYPE}_"):
        found = [one for one in everything if type_id(one[0], one[1].bare) == id_or_name]
    else:
        found = [one for one in everything if one[1].name == id_or_name]
        found = found or [one for one in everything if one[1].bare == id_or_name]
        found = [one for one in found if not is_shared(one[0])] or found
    if len(found) > 1:
        names = ", ".join(sorted(one[1].name for one in found)[:5])
        raise InvalidInput(f"Several node types are called {id_or_name}: {names}. Give the whole name.")
    if not found:
        raise NotFound(f"There is no node type {id_or_name}.")
    return _views(services, found)[0]


def _types(services: Services, provider: str | None) -> list[Type]:
    return [(one, kind) for one in _providers(services, provider) for kind in kinds_of(services, one)]


def _providers(services: Services, wanted: str | None) -> Iterable[NodeProvider]:
    if wanted is None:
        return by_name(all_providers(services)).values()
    one = named(services, wanted)
    return [one] if one else []


def _views(services: Services, types: Iterable[Type]) -> list[dict[str, Any]]:
    shown = list(types)
    owners = {provider.id: provider for provider, _ in shown}
    written = {key: {one.name: one for one in declared(provider)} for key, provider in owners.items()}
    limited = [key for key, named in written.items() if any(one.max_capacity is not None for one in named.values())]
    counters = (one for key in limited for one in every(services.store, Counter, f"{CAPACITY}{key}/"))
    used = {one.id: one.value for one in counters}
    return [
        node_type_view(
            provider,
            kind,
            written[provider.id].get(kind.bare),
            used.get(capacity_counter(provider, kind.bare), 0),
            services.tenant,
        )
        for provider, kind in shown
    ]
