"""Quotas of a tenant: the limit, its own or the default, and how much is used."""

from __future__ import annotations

from typing import Any

from stockyard.domain.records import Counter, Quota
from stockyard.errors import Conflict, NotFound, PreconditionFailed
from stockyard.operations.services import Rules, Services
from stockyard.ports import Create, Replace, Store


def view(store: Store, rules: Rules, name: str) -> dict[str, Any]:
    """One quota; ``version`` is 0 while the default holds. ``NotFound`` for an unknown name."""
    if name not in rules.quotas:
        raise NotFound(f"There is no quota {name}.")
    own = store.get(Quota, name)
    used = store.get(Counter, f"quota/{name}")
    return {
        "name": name,
        "limit": own.limit if own else rules.quotas[name],
        "used": used.value if used else 0,
        "version": own.version if own else 0,
    }


def views(store: Store, rules: Rules) -> list[dict[str, Any]]:
    """Every quota, in order of name."""
    return [view(store, rules, name) for name in sorted(rules.quotas)]


def set_quota(services: Services, name: str, limit: int, version: int) -> dict[str, Any]:
    """The quota with its new limit. ``PreconditionFailed`` unless it stands at ``version``."""
    shown = view(services.store, services.rules, name)
    if shown["version"] != version:
        raise PreconditionFailed(f"The quota is at version {shown['version']}, not {version}.")
    record = Quota(name, limit, services.now(), version + 1)
    try:
        services.store.commit(Replace(record) if version else Create(record))
    except Conflict as conflict:
        raise PreconditionFailed("The quota was changed by someone else just now.") from conflict
    return {**shown, "limit": limit, "version": version + 1}
