"""Stockyard's SDK: a typed client of the HTTP API.

with Client("https://api.example.com", token) as stockyard:
    cluster = stockyard.clusters.create({"name": "demo", ...})
    stockyard.wait_operation(cluster.operation_id)
"""

from __future__ import annotations

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
from stockyard_client.models import CloudAccount, Cluster, Condition, Event, Operation, Phase, Plan, Price
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
from stockyard_client.pool_models import LeftOut, NodePods, Placements, PlannedNode, Pool, PoolNodes, Refusal
from stockyard_client.version import VERSION

__version__ = VERSION

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
