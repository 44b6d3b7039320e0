"""Work that schedules and streams begin: each made from the ports of the composition root when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stockyard import ports, wiring

if TYPE_CHECKING:
    from stockyard.operations.cloud_accounts.offers import OffersRefresh
    from stockyard.operations.fleet.disruption.disruptor import Disruptor
    from stockyard.operations.fleet.pools.autoscaler import Autoscaler
    from stockyard.operations.node_providers.refresh_catalog import CatalogRefresh
    from stockyard.operations.relay.outbox import Relay
    from stockyard.operations.scheduler.wake import Scheduler
    from stockyard.operations.sweep.run import Reaper


def relay() -> Relay:
    """Relay that sends the outbox."""
    from stockyard.operations.relay.outbox import Relay

    return Relay(wiring.registry(), wiring.workflows, wiring.bus, wiring.clock(), wiring.telemetry())


def scheduler() -> Scheduler:
    """Scheduler that binds claims to node types."""
    from stockyard.operations.scheduler.wake import Scheduler

    return Scheduler(wiring.registry(), wiring.services)


def autoscaler() -> Autoscaler:
    """Autoscaler that keeps pools at their numbers of nodes."""
    from stockyard.operations.fleet.pools.autoscaler import Autoscaler

    return Autoscaler(wiring.registry(), wiring.services, _hand_out)


def disruptor() -> Disruptor:
    """Disruptor that lets the nodes of clusters go."""
    from stockyard.operations.fleet.disruption.disruptor import Disruptor

    return Disruptor(wiring.registry(), wiring.services, _hand_out)


def _hand_out(tenant: str, cluster_id: str, lease: str) -> None:
    """Begin a pass over a cluster as an invocation of this function of its own."""
    wiring.background().invoke({"tenant": tenant, "cluster": cluster_id, "lease": lease})


def reap() -> Reaper:
    """Reaper that does the sweep."""
    from stockyard.operations.sweep.run import Reaper

    return Reaper(
        wiring.registry(),
        wiring.clock(),
        wiring.services,
        lambda tenant, scope: wiring.background().invoke({"tenant": tenant, "place": scope}),
        lambda tenants: wiring.background().invoke({"tenants": list(tenants)}),
    )


def catalog() -> CatalogRefresh:
    """Refresh of the EC2 catalogue."""
    from stockyard.adapters.aws_catalog import connected
    from stockyard.adapters.catalog import StoredPriceSheets
    from stockyard.operations.node_providers.refresh_catalog import CatalogRefresh

    return CatalogRefresh(
        wiring.registry(),
        wiring.clock(),
        connected(),
        StoredPriceSheets(wiring.registry().platform()),
        wiring.node_sources(),
    )


def account_offers() -> OffersRefresh:
    """Refresh of the offers of cloud accounts."""
    from stockyard.operations.cloud_accounts.offers import OffersRefresh

    return OffersRefresh(wiring.registry(), wiring.clock(), wiring.services)


def changes(records: Iterable[Mapping[str, Any]]) -> Iterable[ports.RecordChange]:
    """Changes of our records that an event of the table's stream tells."""
    from stockyard.adapters.dynamodb import stream

    return stream.changes(records)
