"""Outputs of an environment: JSON values, whole as the last preparation had them, and bounded; secret ones are sealed.

Each preparation seals under a mark of its own, which the record then has. So whoever reads a record finds the secrets
that belong to it, whichever of two workers was first. What no record names the sweep removes after the environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import NodeEnvironment
from stockyard.domain.values import ids
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.operations.services import Services
from stockyard.ports import Outcome
from stockyard.ports.node_work import Prepared

MOST_BYTES = 200_000
"""All outputs of an environment together, as JSON. A record of the table holds 400 KB, sealed a third more."""


def outputs_of(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs that a preparation has, the secret ones apart.

    Raises ``NodeCouldNotBeProvisioned`` with the name of an output that is no JSON, or that is the largest of too many.
    No message has a value.
    """
    outputs = {**outcome.facts, **(outcome.outputs if isinstance(outcome, Prepared) else {})}
    secret_names = outcome.secret_outputs if isinstance(outcome, Prepared) else frozenset()
    sizes = {name: _size(name, value) for name, value in outputs.items()}
    if sum(sizes.values()) > MOST_BYTES:
        largest = max(sizes, key=lambda name: (sizes[name], name))
        raise NodeCouldNotBeProvisioned(
            f"The outputs of the environment have {sum(sizes.values())} bytes, and {MOST_BYTES} is the most;"
            f" the largest is {largest} with {sizes[largest]}."
        )
    plain = {name: value for name, value in outputs.items() if name not in secret_names}
    return plain, {name: value for name, value in outputs.items() if name in secret_names}


def seal(services: Services, environment_id: str, secrets: Mapping[str, Any]) -> str | None:
    """Keep secret outputs; the suffix by which the environment's record is to name them, None without any."""
    if not secrets:
        return None
    suffix = services.new_id(ids.NODE_ENVIRONMENT).partition("_")[2]
    services.secrets.put(ids.environment_secret(services.tenant, environment_id, suffix), json.dumps(secrets))
    return suffix


def opened(services: Services, environment: NodeEnvironment) -> Mapping[str, Any]:
    """The secret outputs of the environment by name."""
    if environment.sealed_as is None:
        return {}
    name = ids.environment_secret(services.tenant, environment.id, environment.sealed_as)
    return dict(json.loads(services.secrets.get(name) or "{}"))


def unseal(services: Services, environment_id: str, suffix: str | None) -> None:
    """Remove what was sealed by that suffix, which no record names any more."""
    if suffix is not None:
        services.secrets.delete(ids.environment_secret(services.tenant, environment_id, suffix))


def _size(name: str, value: Any) -> int:
    try:
        return len(json.dumps({name: value}, allow_nan=False).encode())
    except (TypeError, ValueError):
        raise NodeCouldNotBeProvisioned(f"Output {name} of the environment is no JSON value.") from None
