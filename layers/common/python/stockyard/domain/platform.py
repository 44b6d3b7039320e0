"""What belongs to the platform and to no tenant: the installation's own records, and the providers that all share.

A shared provider's record, name and counters are the platform's; every tenant reads them, and takes places of its
limited types, by their ids alone. So nothing that follows from a provider's id has to know whose it is. The platform
knows who has had nodes of it by facts that the tenants leave with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain import ids
from stockyard.domain.node_records import NodeProvider
from stockyard.domain.records import Counter, Fact, Name

PLATFORM = "_platform"
"""Stands where a tenant's name stands. Not a valid tenant name, so no token's organization can be it."""

SHARED = f"{ids.SHARED_PROVIDER}_"
"""What the ids of shared providers begin with."""

CAPACITY = "capacity/"
"""What the ids of all counters of limited types begin with."""

SHARED_CAPACITY = f"{CAPACITY}{SHARED}"
USES = f"use/{SHARED}"
"""What the ids of the facts begin with that say who has had nodes of shared providers."""

_SHARED_NAME = "shared/"
_SHARED: Mapping[type[Any], str] = {NodeProvider: SHARED, Counter: SHARED_CAPACITY, Name: _SHARED_NAME, Fact: USES}


def home(tenant: str, kind: type[Any], id: str) -> str:
    """Who has the record that ``tenant`` means by this id, or those whose ids begin so: itself, or the platform."""
    prefix = _SHARED.get(kind)
    return PLATFORM if prefix is not None and id.startswith(prefix) else tenant


def use_of(provider_id: str, tenant: str = "") -> str:
    """The id of the fact that ``tenant`` has had a node of a shared provider; without one what all these begin with."""
    return f"use/{provider_id}/{tenant}"


def use_by(fact_id: str) -> str:
    """Which tenant's fact it is: the end of an id that ``use_of`` made."""
    return fact_id.rpartition("/")[2]


def is_shared(provider: NodeProvider) -> bool:
    """Whether the platform shares it with all tenants."""
    return provider.id.startswith(SHARED)


def is_foreign(tenant: str, provider: NodeProvider) -> bool:
    """Whether it is the platform's and not the tenant's: then its document is nobody's business there."""
    return is_shared(provider) and tenant != PLATFORM


def provider_prefix(tenant: str) -> str:
    """The prefix of the ids of providers that are made for ``tenant``."""
    return ids.SHARED_PROVIDER if tenant == PLATFORM else ids.NODE_PROVIDER


def provider_name(tenant: str, name: str) -> str:
    """The id of the ``Name`` that keeps a provider's name for ``tenant`` alone."""
    return f"{_SHARED_NAME if tenant == PLATFORM else ''}node-provider/{name}"
