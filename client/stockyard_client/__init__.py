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
    StockyardClientError,
    WaitTimedOut,
)
from stockyard_client.models import CloudAccount, Cluster, Condition, Event, Operation, Phase, Plan, Price
from stockyard_client.version import VERSION

__version__ = VERSION

__all__ = [
    "ApiError",
    "Client",
    "CloudAccount",
    "Cluster",
    "Condition",
    "ConnectionFailed",
    "Event",
    "FieldProblem",
    "Operation",
    "OperationFailed",
    "Phase",
    "Plan",
    "Price",
    "StockyardClientError",
    "WaitTimedOut",
]
