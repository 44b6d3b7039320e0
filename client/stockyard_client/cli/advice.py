"""Advice after a creation of a cluster has failed: a command, with other types where the cloud was short of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stockyard_client.errors import StockyardClientError

if TYPE_CHECKING:
    from stockyard_client.cli.context import Context
    from stockyard_client.client import Client
    from stockyard_client.models import Cluster, Operation

TYPES = "control_plane_instance_types"
_SINGLE = "control_plane_instance_type"
_FAMILIES = frozenset({"t3", "t3a", "m5", "m5a", "m6a", "m6i", "m7a", "m7i"})
"""Families of EC2 with equal processors, architecture and memory at each size from ``large`` on."""
_MORE = 2
"""How many other types are proposed."""


def advice_of(context: Context, operation: Operation, *, short: bool) -> str:
    """The command that goes on. ``short``: the cloud had too little of the machine, so other types are proposed."""
    plain = f"Once mended: stockyard cluster resume {operation.subject} --wait"
    other = f"{plain}\nWith other settings: add --set settings.NAME=VALUE, or --with FILE."
    if not short or operation.error is None or operation.error.phase != "control_plane":
        return other
    try:
        with context.client() as client:
            cluster = client.clusters.get(operation.subject)
            tried = _tried(cluster)
            other_types = _other_types(client, cluster, tried[0]) if tried else []
    except StockyardClientError:
        return other
    types = [*tried, *(name for name in other_types if name not in tried)][: len(tried) + _MORE]
    if types == tried:
        return other
    setting = f"--set 'settings.{TYPES}={json.dumps(types)}'"
    return f"With other types as well: stockyard cluster resume {cluster.name} {setting} --wait"


def _tried(cluster: Cluster) -> list[str]:
    """The instance types that were tried, in order."""
    several, single = cluster.settings.get(TYPES), cluster.settings.get(_SINGLE)
    if isinstance(several, list) and several:
        return [str(name) for name in several]
    groups = cluster.settings.get("autoscaler_node_groups") or ()
    control: dict[str, Any] = next((group for group in groups if group.get("role") == "control"), {})
    return [str(single)] if single else [str(name) for name in control.get("instance_types") or ()]


def _other_types(client: Client, cluster: Cluster, first: str) -> list[str]:
    """Types of the first one's size, the cheapest first, where its family has equals."""
    family, _, size = first.partition(".")
    if family not in _FAMILIES or not size.endswith("large"):
        return []
    names = {f"{other}.{size}" for other in _FAMILIES}
    region = cluster.settings.get("region_name")
    prices = [price for price in client.prices.list(region=region, page_size=200) if price.name in names]
    known_prices = [price for price in prices if price.price is not None]
    return [price.name for price in sorted(known_prices, key=lambda price: (price.price or 0.0, price.name))]
