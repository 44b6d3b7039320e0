"""Records that belong to the platform and to no tenant: those of the installation, and the shared node providers.

A shared provider's record, name and capacity counters belong to the platform. Tenants read them and count nodes of
limited types by their ids, so that code that has a provider's id need not know its owner. For each tenant that has
had nodes of a shared provider, the platform has a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.nodes.records import NodeProvider
from stockyard.domain.records import Counter, Fact, Name
from stockyard.domain.values import ids

PLATFORM = "_platform"
"""The platform's name in place of a tenant's. No tenant can have it, so no token's organization is equal to it."""

SHARED = f"{ids.SHARED_PROVIDER}_"
"""The prefix of ids of shared providers."""

CAPACITY = "capacity/"
"""The prefix of ids of the capacity counters of limited types."""

SHARED_CAPACITY = f"{CAPACITY}{SHARED}"
USES = f"use/{SHARED}"
"""The prefix of ids of the facts that record which tenants have had nodes of shared providers."""

_SHARED_NAME = "shared/"
_SHARED: Mapping[type[Any], str] = {NodeProvider: SHARED, Counter: SHARED_CAPACITY, Name: _SHARED_NAME, Fact: USES}


def home(tenant: str, kind: type[Any], id: str) -> str:
    """The owner of the record with this id, or id prefix, as ``tenant`` sees it: the tenant itself or the platform."""
    prefix = _SHARED.get(kind)
    return PLATFORM if prefix is not None and id.startswith(prefix) else tenant


def use_of(provider_id: str, tenant: str = "") -> str:
    """The id of the fact that ``tenant`` has had a node of a shared provider; without ``tenant`` their prefix."""
    return f"use/{provider_id}/{tenant}"


def use_by(fact_id: str) -> str:
    """The tenant in an id that ``use_of`` returned."""
    return fact_id.rpartition("/")[2]


def is_shared(provider: NodeProvider) -> bool:
    """Whether the provider belongs to the platform and is shared with all tenants."""
    return provider.id.startswith(SHARED)


def is_foreign(tenant: str, provider: NodeProvider) -> bool:
    """Whether the provider is shared and ``tenant`` is not the platform. Then its document is hidden."""
    return is_shared(provider) and tenant != PLATFORM


def provider_prefix(tenant: str) -> str:
    """The prefix of the ids of providers that are made for ``tenant``."""
    return ids.SHARED_PROVIDER if tenant == PLATFORM else ids.NODE_PROVIDER


def provider_name(tenant: str, name: str) -> str:
    """The id of the ``Name`` that keeps a provider's name for ``tenant`` alone."""
    return f"{_SHARED_NAME if tenant == PLATFORM else ''}node-provider/{name}"
