"""The node types that a tenant may use, as the platform has set it. Kept as a fact of the tenant."""

from __future__ import annotations

import json
from typing import Any

from stockyard.domain.records import Fact
from stockyard.errors import Conflict, PreconditionFailed
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace

ID = "tenant/allowed-node-types"


def allowed_types(services: Services) -> tuple[str, ...] | None:
    """Canonical names and ``provider.*``; None: all, an empty one: none."""
    fact = services.store.get(Fact, ID)
    names = json.loads(fact.value) if fact else None
    return None if names is None else tuple(names)


def allowed_view(services: Services) -> dict[str, Any]:
    """The setting as an ``AllowedNodeTypesView`` document; ``version`` is 0 until it is set."""
    fact = services.store.get(Fact, ID)
    if fact is None:
        return {"allowed": None, "updated_at": None, "version": 0}
    return {"allowed": json.loads(fact.value), "updated_at": fact.time, "version": fact.version}


def set_allowed_types(services: Services, allowed: list[str] | None, version: int) -> dict[str, Any]:
    """The setting, changed. ``PreconditionFailed`` unless it stands at ``version``. Nodes that are there stay."""
    stood = allowed_view(services)["version"]
    if stood != version:
        raise PreconditionFailed(f"The allowed node types are at version {stood}, not {version}.")
    fact = Fact(ID, json.dumps(allowed), services.now(), version=version + 1)
    try:
        services.store.commit(Replace(fact) if version else Create(fact))
    except Conflict as conflict:
        raise PreconditionFailed("The allowed node types were changed by someone else just now.") from conflict
    return allowed_view(services)
