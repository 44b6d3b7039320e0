"""Measurements of disruption: decisions, the nodes that leave by them, the money that they save."""

from __future__ import annotations

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.metrics import DECISIONS, DECISIONS_ABANDONED, NODES_DISRUPTED, USD_HOUR_SAVED
from stockyard.operations.services import Services


def decided(services: Services, record: ClusterDisruption, reason: str) -> None:
    """A decision for this reason begins to be carried out."""
    services.telemetry.measure("disruption decided", DECISIONS, 1, **_keys(services, record), reason=reason)


def disrupted(services: Services, record: ClusterDisruption, reason: str, nodes: int, saved: float | None) -> None:
    """So many nodes leave for the reason. ``saved`` is in USD an hour, below zero where the next nodes cost more; None
    where they do not leave for their price."""
    keys = {**_keys(services, record), "reason": reason}
    services.telemetry.measure("nodes disrupted", NODES_DISRUPTED, nodes, **keys)
    if saved is not None:
        services.telemetry.measure("money saved", USD_HOUR_SAVED, round(saved, 6), **keys)


def abandoned(services: Services, record: ClusterDisruption) -> None:
    """The decision of the record is given up."""
    keys = _keys(services, record)
    services.telemetry.measure("disruption abandoned", DECISIONS_ABANDONED, 1, **keys, reason=record.reason)


def _keys(services: Services, record: ClusterDisruption) -> dict[str, str]:
    return {"tenant": services.tenant, "cluster_id": record.id}
