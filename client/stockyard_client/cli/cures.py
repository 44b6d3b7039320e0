"""What helps after a creation of a cluster has failed: a command, with other types where the cloud was short of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stockyard_client.errors import StockyardClientError

if TYPE_CHECKING:
    from stockyard_client.cli.context import Context
    from stockyard_client.models import Cluster, Operation
    from stockyard_client.node_models import NodeType

TYPES = "control_plane_instance_types"
_SINGLE = "control_plane_instance_type"
_MORE = 2
"""How many other types are proposed."""


def cure_of(context: Context, operation: Operation, *, short: bool) -> str:
    """The command that goes on. ``short``: the cloud had too little of the machine, so other types are proposed."""
    name = operation.subject
    plain = f"Once mended: stockyard cluster resume {name} --wait"
    other = f"{plain}, with other settings by --set settings.NAME=VALUE or --with FILE."
    phase = operation.error.phase if operation.error else None
    if not short or phase != "control_plane":
        return other
    try:
        with context.client() as client:
            cluster = client.clusters.get(name)
            types = [*_types(cluster), *_others(cluster, client.node_types.list(page_size=200))]
    except StockyardClientError:
        return other
    if len(types) == len(_types(cluster)):
        return other
    chosen = f"--set 'settings.{TYPES}={json.dumps(types)}'"
    return f"Try other types: stockyard cluster resume {cluster.name} {chosen} --wait"


def _types(cluster: Cluster) -> list[str]:
    """The instance types that were tried, in order."""
    several, single = cluster.settings.get(TYPES), cluster.settings.get(_SINGLE)
    if isinstance(several, list) and several:
        return [str(name) for name in several]
    groups = cluster.settings.get("autoscaler_node_groups") or ()
    control: dict[str, Any] = next((group for group in groups if group.get("role") == "control"), {})
    return [str(single)] if single else [str(name) for name in control.get("instance_types") or ()]


def _others(cluster: Cluster, offered: Iterable[NodeType]) -> list[str]:
    """The cheapest other types of the same architecture that are as large as the first one that was tried."""
    known = {offer.type: offer for offer in offered if offer.usd_hour is not None}
    tried = _types(cluster)
    first = known.get(tried[0]) if tried else None
    if first is None:
        return []
    fitting = [offer for offer in known.values() if offer.type not in tried and _is_as_large(offer, first)]
    fitting.sort(key=lambda offer: (offer.usd_hour or 0.0, offer.type))
    return [offer.type for offer in fitting[:_MORE]]


def _is_as_large(offer: NodeType, first: NodeType) -> bool:
    same = all(offer.properties.get(key) == first.properties.get(key) for key in ("kubernetes.io/arch", "provider"))
    accelerated = set(offer.resources) - set(first.resources)
    return same and not accelerated and all(_amount(offer, name) >= _amount(first, name) for name in ("cpu", "memory"))


def _amount(offer: NodeType, name: str) -> float:
    return quantity(offer.resources.get(name))


_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def quantity(text: Any) -> float:
    """A quantity of Kubernetes as a number; 0 where there is none."""
    unit = next((unit for unit in _UNITS if str(text).endswith(unit)), "")
    try:
        return float(str(text).removesuffix(unit)) * _UNITS.get(unit, 1)
    except ValueError:
        return 0.0
