"""Stockyard's SDK: a typed client of the HTTP API.

with Client("https://api.example.com", token) as stockyard:
    cluster = stockyard.clusters.create({"name": "demo", ...})
    stockyard.wait_operation(cluster.operation_id)

What is named here is imported at its first use, so that the command line's help does not wait for an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stockyard_client.version import VERSION

if TYPE_CHECKING:
    from stockyard_client.client import Client
    from stockyard_client.errors import (
        ApiError,
        ConnectionFailed,
        FieldProblem,
        OperationFailed,
        PoolsNotReady,
        StockyardClientError,
        WaitTimedOut,
    )
    from stockyard_client.models import CloudAccount, Cluster, Event, Operation, Phase, Plan, Price
    from stockyard_client.node_models import (
        Applied,
        Candidate,
        Capacity,
        Explanation,
        NodeClaim,
        NodeProvider,
        NodeType,
        PriceOf,
    )
    from stockyard_client.part_models import Condition, PoolNodes
    from stockyard_client.pool_models import LeftOut, NodePods, Placements, PlannedNode, Pool, Refusal

__version__ = VERSION

_MODULES = {
    "client": ("Client",),
    "errors": (
        "ApiError",
        "ConnectionFailed",
        "FieldProblem",
        "OperationFailed",
        "PoolsNotReady",
        "StockyardClientError",
        "WaitTimedOut",
    ),
    "models": ("CloudAccount", "Cluster", "Event", "Operation", "Phase", "Plan", "Price"),
    "node_models": (
        "Applied",
        "Candidate",
        "Capacity",
        "Explanation",
        "NodeClaim",
        "NodeProvider",
        "NodeType",
        "PriceOf",
    ),
    "pool_models": ("LeftOut", "NodePods", "Placements", "PlannedNode", "Pool", "Refusal"),
    "part_models": ("Condition", "PoolNodes"),
}
"""Module -> what it gives to this package."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ApiError",
    "Applied",
    "Candidate",
    "Capacity",
    "Client",
    "CloudAccount",
    "Cluster",
    "Condition",
    "ConnectionFailed",
    "Event",
    "Explanation",
    "FieldProblem",
    "LeftOut",
    "NodeClaim",
    "NodePods",
    "NodeProvider",
    "NodeType",
    "Operation",
    "OperationFailed",
    "Phase",
    "Placements",
    "Plan",
    "PlannedNode",
    "Pool",
    "PoolNodes",
    "PoolsNotReady",
    "Price",
    "PriceOf",
    "Refusal",
    "StockyardClientError",
    "WaitTimedOut",
]


def __getattr__(name: str) -> Any:
    """The object of that name, from its module."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
